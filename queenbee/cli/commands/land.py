"""`queen land`: brings a worktree's branch to the main branch, and completes the issue."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli.app import Answer, command, tell
from queenbee.cli.commands import work as views
from queenbee.cli.options import seconds
from queenbee.cli.rendering import block
from queenbee.cli.terminal import say
from queenbee.core.text import printable, suggested
from queenbee.errors import InvalidInput
from queenbee.git import touched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.git.landing import Landing
    from queenbee.workflows.hive import Hive


def _show(value: dict[str, Any]) -> None:
    landing: Landing = value["landing"]
    if landing.commit is None:
        say(f"the check failed; nothing was landed on {printable(landing.target)}", bold=True)
        block(landing.output, most=40)
        return
    checked = "" if landing.checked else ", unchecked"
    say(f"landed on {printable(landing.target)} as {landing.commit[:10]}{checked}")
    if landing.untracked:
        say(f"note: not part of it, because untracked: {printable(', '.join(landing.untracked))}")
    if value["completed"] is not None:
        views.show_loop({"completed": value["completed"], "next": value["next"]})
    elif value["next"] is not None:
        views.show_next(value["next"])


def _issue(hive: Hive, issue_id: str | None) -> str | None:
    """Returns the issue to complete, which the actor may end; None if it has none."""
    if issue_id is not None:
        issue_id = hive.issue_id(issue_id)
        hive.assignments.check_ending(issue_id)
        return issue_id
    mine = [each.issue_id for each in hive.assignments.find(droid=hive.actor)]
    if len(mine) > 1:
        raise InvalidInput(
            f"{hive.actor} has several issues: {', '.join(mine)}",
            hint=f"say which: {suggested('queen land', mine[0])}",
        )
    return mine[0] if mine else None


def _held_by_others(hive: Hive) -> Callable[[Sequence[str]], list[str]]:
    """Returns a function that names the files among these that others hold exclusively."""

    def held(paths: Sequence[str]) -> list[str]:
        top = [os.path.join(hive.layout.tree, path) for path in paths]
        return [
            f"{each.path} ({lease.droid})"
            for each in (hive.reservations.check(top) if top else ())
            if each.status == "held"
            for lease in each.leases[:1]
            if lease.exclusive
        ]

    return held


@command(
    "land",
    show=_show,
    example="queen land --check 'make test' --next\nqueen land qb-42 --reason 'tax is in' --next",
)
@click.argument("issue_id", required=False, metavar="[ISSUE]")
@click.option("--check", metavar="COMMAND", help="What must pass; default: git's queenbee.check")
@click.option("--reason", help="What was done")
@click.option("--next", "take_next", is_flag=True, help="Take the next issue, as queen next does")
@click.option("--wait", default="10m", callback=seconds, metavar="10m", help="For its turn")
def land(
    hive: Hive,
    issue_id: str | None,
    check: str | None,
    reason: str | None,
    take_next: bool,
    wait: int,
) -> Answer:
    """Bring your commits to the main branch, and complete the issue

    For a worktree of its own: it waits for its turn, merges the main branch into yours, runs the
    check, and moves the main branch to yours by fast-forward, also in the main worktree. Then it
    completes ISSUE (default: the one that you have).

    If the merge has conflicts, it leaves them to you: resolve them, commit, and run it again. If
    the check fails (exit 1), nothing is landed. It refuses files that another droid holds. The
    checks of a bead run when it is completed, after that.
    """
    from queenbee.git.landing import land as land_branch  # noqa: PLC0415 - start-up
    from queenbee.workflows.completing import complete  # noqa: PLC0415 - start-up

    issue = _issue(hive, issue_id)
    landing = land_branch(hive, check=check, wait_s=wait, held=_held_by_others(hive), tell=tell)
    value: dict[str, Any] = {"landing": landing, "completed": None, "next": None}
    if landing.commit is None:
        return Answer(value, yes=False)
    if issue is not None:
        why = f"{reason} ({landing.commit[:10]})" if reason else f"landed as {landing.commit[:10]}"
        done = value["completed"] = complete(hive, issue, env=os.environ, reason=why)
        if not done.completed:
            return Answer(value, yes=False)
    if take_next:
        value["next"] = touched.take_next(hive)
    return Answer(value, yes=True)
