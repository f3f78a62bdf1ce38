"""`queen worktree add`, `list`, `prune`, `remove`: a worktree for each agent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from queenbee.cli.app import QueenGroup, command, group, tell
from queenbee.cli.options import adopts
from queenbee.cli.rendering import ago, table
from queenbee.cli.terminal import say
from queenbee.core.text import mentioned, named, printable, suggested
from queenbee.core.timestamps import instant_ms
from queenbee.git.hooks import cure
from queenbee.git.worktrees.surrounding import hiding

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from queenbee.git.worktrees.preparing import Plan
    from queenbee.git.worktrees.pruning import Pruned
    from queenbee.git.worktrees.worktree_care import Place, Removed
    from queenbee.git.worktrees.worktree_making import Made
    from queenbee.library.hive import Hive


def _show_made(made: Made) -> None:
    say(f"{printable(made.droid)} works in {printable(made.path)}, on branch {made.branch}")
    if made.assignment is not None:
        say(f"{printable(made.assignment.issue_id)} is assigned to {printable(made.droid)}")
    say(f"begin there: {suggested('cd', made.path)} && queen next")


@command(
    show=_show_made,
    example="queen worktree add ui\nqueen worktree add api qb-42 --path ../work/api",
)
@click.argument("name", required=False)
@click.argument("issue_id", required=False, metavar="[ISSUE]")
@click.option("--bead", metavar="ID", help="A sprint bead: on its branch, in its worktree")
@click.option("--path", metavar="DIR", help="Where; default: beside the main worktree, REPO-NAME")
@click.option("--branch", help="On this branch, which may exist; default: a new one, NAME")
@click.option("--new", is_flag=True, help="Also if nobody has described ISSUE")
@adopts
def add(
    hive: Hive, name: str | None, issue_id: str | None, bead: str | None, new: bool, **where: Any
) -> Made:
    """Make a worktree for an agent

    Makes a git worktree with a branch NAME from the main worktree's branch. It remembers the droid
    NAME, so that all commands in it act as that droid. With ISSUE, it claims the issue for the
    droid first; if that is refused, nothing is made. If the command was interrupted, run it again.
    Then it sets the worktree up, as queen worktree setup does.

    With --bead, it claims a sprint bead for NAME (default: you), and makes the worktree_path and
    the branch that the bead names, from its source_branch.

    A branch or worktree that QueenBee did not make for this is refused. --adopt BRANCH takes over
    that branch and its worktree, with all that is in them.
    """
    if bead is None and name is None:
        raise click.UsageError("Missing argument 'NAME'.")
    if bead is not None and (issue_id is not None or where["branch"] is not None):
        raise click.UsageError("--bead says the issue and the branch.")
    made = hive.worktrees.add(name, issue_id, bead=bead, new=new, **where)
    if not made.guarded:
        way = cure(made.path, hive.layout.tree)
        tell(f"no git hook refuses commits there of files that others hold: {way}")
    if hidden := hiding(made.path, hive.layout.root):
        tell(f"git add -A around it would add a link to it; to hide it: {hidden}")
    return made


def _show_plan(plan: Plan | None) -> None:
    if plan is None:
        return
    say(f"in {printable(plan.worktree)}")
    for path in plan.copies:
        say(f"  would copy {printable(path)}")
    for each in plan.left_out:
        say(f"  would not copy: {printable(each)}")
    if plan.command:
        say(f"  {'would run' if plan.runs else 'has run'}: {printable(plan.command)}")
    if not (plan.command or plan.copies or plan.left_out):
        say("  nothing to do: queen config set worktree.setup COMMAND")
    for name, value in plan.variables.items():
        say(f"  {name}={printable(value)}")


@command(show=_show_plan, example="queen worktree setup\nqueen worktree setup --dry-run")
@click.option("--dry-run", is_flag=True, help="Show what would be copied and run, and do nothing")
def setup(hive: Hive, dry_run: bool) -> Plan | None:
    """Make this worktree usable, once more

    Copies the files of the settings worktree.copy and of .worktreeinclude that git ignores and that
    are missing here, and runs worktree.setup. queen worktree add does the same for a new worktree.
    """
    return hive.worktrees.setup(dry_run=dry_run)


def _show_places(places: Sequence[Place]) -> None:
    now_ms = time.time_ns() // 1_000_000
    rows = [
        [
            each.name,
            each.droid or "",
            each.branch or "(detached)",
            each.issue_id or "",
            "?" if each.unlanded is None else str(each.unlanded or ""),
            "?" if each.changed is None else str(len(each.changed) or ""),
            ago(seen_ms, now_ms) if (seen_ms := instant_ms(each.last_seen_at)) else "",
        ]
        for each in places
    ]
    headings = ["WORKTREE", "DROID", "BRANCH", "ISSUE", "UNLANDED", "CHANGED", "SEEN"]
    table(headings, rows, empty="No worktrees.", spare=["SEEN", "BRANCH"])


@command(show=_show_places, example="queen worktree list")
def list_(hive: Hive) -> Sequence[Place]:
    """List the worktrees, and what in them has not landed

    UNLANDED counts the commits that are not on the main branch, CHANGED the files that are not
    committed.
    """
    return hive.worktrees.list()


def _show_removed(removed: Removed) -> None:
    say(f"removed {printable(removed.place.path)}")
    if removed.keeps_branch:
        say(f"the branch {printable(str(removed.place.branch))} was kept")
    if removed.kept is not None:
        say(f"what was on no branch is kept: {suggested('git show', removed.kept)}")
    if removed.aside is not None:
        say(f"what git refuses to add is in {printable(mentioned(removed.aside))}")
    if removed.ignored:
        say(f"gone with it, ignored by git: {named(removed.ignored, 5)}")
    for pattern in removed.released:
        say(f"released {printable(pattern)}")


@command(show=_show_removed, example="queen worktree remove ui")
@click.argument("name")
@click.option(
    "--force", is_flag=True, help="Whatever is in it; what is not committed is kept on a branch"
)
def remove(hive: Hive, name: str, force: bool) -> Removed:
    """Remove a worktree of which nothing would be lost

    NAME is that of its folder or branch, its path, or the droid that it was made for; also that of
    the checkout in which landings are checked, unless one is under way. It refuses if its droid has
    an issue there, if it has commits that are not on the main branch or that no branch has, files
    that are not committed, or a repository in it with commits that no remote has. With --force,
    such files and commits that no branch has are kept on a branch unfinished/NAME; that repository
    is lost. An agent of queen start removes only what it has made.
    """
    return hive.worktrees.remove(name, force=force)


def _show_pruned(pruned: Pruned) -> None:
    for removed in pruned.removed:
        _show_removed(removed)
    for each in pruned.kept:
        way = f"; try: {printable(each.hint)}" if each.hint else ""
        say(f"kept {printable(each.path)}: {printable(each.why)}{way}")
    if not (pruned.removed or pruned.kept):
        say("QueenBee has made no worktrees for agents here.")


@command(show=_show_pruned, example="queen worktree prune")
def prune(hive: Hive) -> Pruned:
    """Remove the worktrees whose work has landed

    Of those that QueenBee made, it removes each as queen worktree remove does: only if nothing
    would be lost. It names the others, with the reason: an issue under way, commits that have not
    landed, files that are not committed, a droid that was there lately, or nothing done yet.
    """
    return hive.worktrees.prune()


worktree: QueenGroup = group(
    "worktree",
    [add, list_, prune, remove, setup],
    help="Make, list, set up and remove the worktrees of agents",
    more="collisions:collisions",
    example="queen worktree add ui qb-42\nqueen worktree list",
)
