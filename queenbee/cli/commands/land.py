"""`queen land`: brings a worktree's branch to the main branch, and completes the issue; and `queen
review`: what its droid says itself about a pull request that proposes it.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli import outliving
from queenbee.cli.app import Answer, QueenGroup, command, group, invocation, tell
from queenbee.cli.commands import work as views
from queenbee.cli.exits import DONE, GOES_ON, NO, PROPOSED
from queenbee.cli.options import seconds
from queenbee.cli.person import sits_here
from queenbee.cli.progress import watcher
from queenbee.cli.rendering import show_lines
from queenbee.cli.terminal import say
from queenbee.core.text import HINT, last_said, printable, suggested
from queenbee.core.timestamps import format_ms
from queenbee.errors import InvalidInput
from queenbee.git.landed import unlanded
from queenbee.store.git_files.worktrees import commit_at
from queenbee.workflows.next_text import block, landing_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.git.landing import Landing
    from queenbee.git.landing.landed_issue import Landed
    from queenbee.git.landing.requests import Request
    from queenbee.library.hive import Hive
    from queenbee.services.waiting.landing_record import LandingRecord

_SHOWN = 5
_LEAST_BYTES = 2**20
"""With less room, what it prints could be lost."""
_NOTHING: dict[str, Any] = {
    "landing": None,
    "told": [],
    "completed": None,
    "also": [],
    "review": None,
    "next": None,
}


def _show(value: dict[str, Any]) -> None:
    if "result" in value:
        _show_result(value["result"])
        return
    if not value.get("is_shown"):
        if value["landing"] is None:
            say("taken back; the turn went on to the next")
        else:
            _show_landing(value)
    if value["next"] is not None:
        views.show_next(value["next"], landed=value["landing"] is not None)


def _show_result(result: dict[str, Any]) -> None:
    for text in (result["output"], result["errors"]):
        for each in text.splitlines():
            say(printable(each))
    if result["under_way"]:
        say(f"it is under way, since {printable(str(result['since']))}")
    elif result["status"] is None:
        say("it was killed; queen land again")


def _show_landing(value: dict[str, Any]) -> None:
    from queenbee.git.landing.arrivals import sentences  # noqa: PLC0415 - start-up
    from queenbee.git.landing.requests import kept_issues, kept_next  # noqa: PLC0415 - start-up

    landing: Landing = value["landing"]
    if landing.commit is None:
        say(f"the check failed; nothing was landed on {printable(landing.target)}", bold=True)
        show_lines(block(landing.output))
        options = "-m 'WHAT YOU DID'" + " --next" * kept_next(invocation().hive.layout)
        again = landing_of(kept_issues(invocation().hive.layout), options)
        say(f"{HINT}{printable(again)}, when it is mended")
        return
    end = "" if landing.checked else ", unchecked"
    if landing.is_proposed:
        review = value["review"]
        say(f"proposed {review}, not landed{end}: {printable(review.url)}")
        return
    if landing.landed_with:
        checked = ", with one check of all" if landing.checked else ""
        end += f", together with {printable(', '.join(landing.landed_with))}{checked}"
    say(f"landed on {printable(landing.target)} as {landing.commit[:10]}{end}")
    for each in sentences(landing.came_in[:_SHOWN]):
        say(f"came in: {each}")
    if len(landing.came_in) > _SHOWN:
        more = len(landing.came_in) - _SHOWN
        say(f"came in: {more} more landing{'s' * (more > 1)}")
    if landing.untracked:
        say(f"note: not part of it, because untracked: {printable(', '.join(landing.untracked))}")
    if value["told"]:
        say(f"told {printable(', '.join(value['told']))} that this changes files that they work on")
    views.show_completions([each for each in (value["completed"], *value["also"]) if each])


@command(
    show=_show,
    example="queen land -m 'Round the prices' --next\n"
    "queen land qb-42 --reason 'tax is in' --check 'make slow' --next\n"
    "queen land --continue",
)
@click.argument("issue_ids", nargs=-1, metavar="[ISSUE]...")
@click.option(
    "--check",
    metavar="COMMAND",
    help="Command that must succeed too, after land.check",
)
@click.option("--unchecked", is_flag=True, help="Land although there is no check at all")
@click.option("-m", "--message", metavar="TEXT", help="First commit all changes, with this message")
@click.option("--reason", help="What was done")
@click.option("--next", "take_next", is_flag=True, help="Take the next issue, as queen next does")
@click.option(
    "--wait",
    metavar="10m",
    callback=seconds,
    help="How long to wait for your turn (by default a day), and with --next for an issue (10m)",
)
@click.option("--alone", is_flag=True, help="In a step of its own, with a check of its own")
@click.option("--continue", "go_on", is_flag=True, help="Go on after a conflict was resolved")
@click.option("--confirm", is_flag=True, help="Only if the git remote confirms the issue as yours")
@click.option(
    "--accept-check",
    metavar="CHANGE",
    help="Accept, as a person, the change of the check that was shown",
)
@click.option("--no-wait", is_flag=True, help="Return at once; the landing goes on by itself")
@click.option("--result", is_flag=True, help="Show what became of the last landing, and its output")
@click.option("--abort", "abort", is_flag=True, help="Take a landing back, or an unfinished merge")
def land(
    hive: Hive,
    issue_ids: tuple[str, ...],
    wait: int | None,
    go_on: bool,
    no_wait: bool,
    **asked: Any,
) -> Answer:
    """Bring your commits to the main branch, and complete the issue

    For a worktree of its own: it waits for its turn, merges the main branch into yours, runs the
    check that is set (land.check), yours and those of the issue, and moves the main branch to yours
    by fast-forward, also in the main worktree. Then it completes each ISSUE (default: the one that
    you have), and tells those who work on files that changed. Without any check, it refuses. Those
    who wait for their turn land with you, with one check.

    If the merge has conflicts, it leaves them to you, and others land meanwhile: resolve them, git
    add, and --continue, which does what was asked before, or --abort. If a check fails (exit 1),
    nothing is landed. It refuses files that another droid holds.

    With --confirm, the git remote confirms first that the issue is yours, and files that others
    hold on other machines count too. Exit 6: it cannot be reached, and nothing was landed.

    The landing goes on if this command is ended, by a time limit of its caller, say: the answer
    comes with a later command, or with --result; called again, it shows the same landing. Ctrl-C
    or --abort takes it back. After [land] patience (8m) it returns by itself (exit 9), with
    --no-wait at once; with --next, you then have the next issue. What you land meanwhile waits for
    it, and is refused if it did not land.

    It names what your branch changes of the check: its settings, a file that it runs, a workflow.
    With guard_check in [land], that waits for a person, who types --accept-check CHANGE in your
    worktree, as it says then.
    """
    if outliving.has_left:
        return _next_meanwhile(hive, confirm=asked["confirm"])
    abort, result = asked.pop("abort"), asked.pop("result")
    others = (*issue_ids, go_on, *asked.values())
    if abort:
        return _taken_back(hive, (*others, no_wait, result))
    if result:
        return _last(hive, (*others, no_wait))
    if asked["accept_check"]:
        _refuse_agents()
    invocation().in_order = True
    patience_s = 0.0 if no_wait else hive.layout.settings.land_patience_s
    begin = partial(_leave, hive, patience_s)
    done = hive.land(
        *issue_ids,
        resume=go_on,
        timeout_s=wait,
        on_progress=watcher(),
        on_begin=begin,
        **asked,
    )
    return _landed(hive, done)


def _last(hive: Hive, others: Sequence[object]) -> Answer:
    """Shows what the last landing of this worktree has printed, and answers as it did."""
    if any(others):
        raise InvalidInput("--result takes nothing else", hint="queen land --result")
    found = hive.last_landing()
    no = found.status if found.status is not None else GOES_ON if found.under_way else NO
    return Answer({**_NOTHING, "result": found.to_dict()}, yes=found.status == DONE, no=no)


def _next_meanwhile(hive: Hive, *, confirm: bool) -> Answer:
    """Takes the next issue while a landing goes on by itself."""
    following = hive.following(confirm=confirm)
    shown = {} if invocation().json else {"is_shown": True}
    return Answer({**_NOTHING, "next": following, **shown}, yes=False, no=GOES_ON)


def _leave(
    hive: Hive, patience_s: float, asked: Request, issues: list[str]
) -> Callable[[], bool] | None:
    """Goes on by itself, if the caller is there to show what this process prints; returns what says
    whether that is still so. Or shows the landing of the same commit that is under way; another one
    ends first: this stands on it.
    """
    from queenbee.library.landings import after_earlier, record_of  # noqa: PLC0415 - start-up

    disk = os.statvfs(str(hive.layout.git_dir))
    has_room = disk.f_bavail * disk.f_frsize >= _LEAST_BYTES
    worker = outliving.worker if has_room else None

    def show_instead(record: LandingRecord, head: str | None) -> None:
        if worker is not None and not asked.go_on and record.answers(head, hive.actor):
            worker.hand_over(record, patience_s, takes_next=asked.take_next)

    turn_s = min(asked.turn_s, hive.layout.settings.land_patience_s)
    after_earlier(hive, issues, timeout_s=turn_s, tell=tell, look=show_instead)
    if worker is not None:
        said = {"issues": issues, "head": commit_at(hive.layout.tree), "droid": hive.actor}
        said["since"] = format_ms(hive.now_ms())
        worker.leave(record_of(hive), patience_s, takes_next=asked.take_next, **said)
        return lambda: worker.is_watched
    return None


def _refuse_agents() -> None:
    from queenbee.git.landing.judged.check_files import CheckGuarded  # noqa: PLC0415 - start-up

    if not sits_here(is_json=False):
        raise CheckGuarded(
            "only a person accepts a change of the check",
            hint="in a terminal, in this worktree, the same again",
        )


def _taken_back(hive: Hive, others: Sequence[object]) -> Answer:
    if any(others):
        raise InvalidInput("--abort takes nothing else", hint="queen land --abort")
    hive.abort_landing()
    return Answer(_NOTHING, yes=True)


def _landed(hive: Hive, done: Landed) -> Answer:
    """Shows a landing, and takes the next issue if that is asked for."""
    call, asked = invocation(), done.asked
    is_watched = outliving.worker is None or outliving.worker.is_watched
    if outliving.worker is not None:
        outliving.worker.landed = done.landing.commit
        outliving.worker.said = (
            last_said(done.landing.output) if done.landing.commit is None else ""
        )
        goes_on = is_watched or done.landing.is_proposed
        if not goes_on and unlanded(hive.layout) is None:  # Else its droid went on.
            outliving.worker.followed = commit_at(hive.layout.tree)
    value = {
        "landing": done.landing,
        "told": done.told,
        "completed": done.completion,
        "also": done.also,
        "review": done.review,
        "next": None,
    }
    is_over = done.done or done.landing.is_proposed
    if asked.take_next and is_over and is_watched:  # Else nobody would know of the next one.
        if not call.json:  # Before the wait: whoever ends that must have it.
            _show_landing(value)
            sys.stdout.flush()
            value["is_shown"] = True
        wait_s = asked.wait_s
        if outliving.worker is not None:
            wait_s = outliving.worker.left_s(wait_s)
        with views.waiting_for("an issue", wait_s) as tell_again:
            value["next"] = hive.following(
                timeout_s=wait_s, confirm=asked.confirm, on_progress=tell_again
            )
    return Answer(value, yes=done.done, no=PROPOSED if done.landing.is_proposed else NO)


def _show_reply(value: dict[str, Any]) -> None:
    say(f"answered in {printable(value['url'] or '#' + str(value['number']))}")


@command(show=_show_reply, example="queen review reply PRRT_kwDOA 'It is rounded in total()'")
@click.argument("thread")
@click.argument("text")
def reply(hive: Hive, thread: str, text: str) -> dict[str, object]:
    """Answer in a review thread of your pull request

    THREAD is as the message with the review names it. The answer is posted with the login of your
    client of the host. To answer with a change: queen land -m TEXT.
    """
    return hive.answer_review(thread, text).to_dict()


def _show_withdrawn(value: dict[str, Any]) -> None:
    issues = value["issue_ids"]
    say(f"withdrawn: {printable(', '.join(issues))}")
    say(f"to propose it anew: queen land; or {printable(suggested('queen release', *issues))}")


@command(show=_show_withdrawn, example="queen review withdraw qb-42")
@click.argument("issue_id", required=False, metavar="[ISSUE]")
def withdraw(hive: Hive, issue_id: str | None) -> dict[str, object]:
    """Close the pull request of your issue, unmerged

    ISSUE stays yours, with its branch and what was proposed: queen land proposes it anew.
    """
    return {"issue_ids": hive.withdraw(issue_id)}


review: QueenGroup = group(
    "review",
    [reply, withdraw],
    help="Answer reviews of your pull requests, or withdraw one",
    example="queen review reply PRRT_kwDOA 'It is rounded in total()'",
)
