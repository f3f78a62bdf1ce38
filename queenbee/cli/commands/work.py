"""`queen next`, `complete`, `wait`, `status`: the loop of a droid in a team."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

import click

from queenbee.cli.app import Answer, command, invocation, short_ids, tell_origin
from queenbee.cli.confirming import confirm_options
from queenbee.cli.options import force, seconds, timeout_option
from queenbee.cli.rendering import (
    ago,
    entry,
    in_review,
    paragraph,
    show_lines,
    summary,
)
from queenbee.core.text import printable, quotation, shell_word, shortened, some, suggested
from queenbee.core.timestamps import instant_ms
from queenbee.errors import InvalidInput
from queenbee.services import work
from queenbee.store.droids.identity import nobody
from queenbee.workflows import next_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from queenbee.cli.app import Invocation
    from queenbee.core.readiness import Standing
    from queenbee.core.records import Message
    from queenbee.library.hive import Hive
    from queenbee.library.hives import Glimpse
    from queenbee.services.work import Begin, Member, Nothing, Status
    from queenbee.store.host_note import HostNote
    from queenbee.workflows.completing import Completion, Followed

_SHOWN = 8
_TITLE = 60
_ENDED = (
    (True, "was completed by", "were completed by"),
    (False, "is still assigned to", "are still assigned to"),
)
_WAIT = "10m"
_BEGINNING = (
    "queen worktree add NAME, and there: queen next; or queen start; here: queen next --as NAME"
)
"""For whoever has no name in the main worktree, from which nothing lands."""
_LANDING = {
    "landing": "lands on",
    "waiting": "waits to land on",
    "resolving": "resolves a conflict before it lands on",
}


def obstacle(standing: Standing) -> str:
    """Returns who has an issue, or what it waits for, or why it is on hold."""
    if standing.holder is not None:
        review = f", in review: {standing.review}" if standing.review is not None else ""
        return f"{printable(standing.holder)} has it{review}"
    if standing.waits_for:
        return f"waits for {printable(', '.join(standing.waits_for))}"
    return printable(standing.because or "ready")


def show_next(found: Begin | Nothing, *, landed: bool = False) -> None:
    """Shows an issue to begin with all that is needed, or why there is none; after a landing, not
    how to land.
    """
    if found.waited_for:
        had = [f"{key}, which {holder} had" for key, holder in found.waited_for.items()]
        paragraph(printable(f"waited for {some(had, _SHOWN, '; ')}"))
    if isinstance(found, work.Begin):
        show_lines(next_text.of_begin(invocation().hive, found, landed=landed))
    else:
        _show_nothing(found)


def _show_member(member: Member, program: str, note: HostNote | None) -> None:
    now_ms = time.time_ns() // 1_000_000
    doing = next_text.doing(member, review=partial(in_review, note=note))
    place = f" in {member.worktree}" if member.worktree else ""
    seen = f", seen {ago(member.last_seen_ms, now_ms)}" if member.last_seen_ms else ""
    if member.silent_s is not None:
        seen = f", {member.silence()}"
    what = f"{printable(doing)}{printable(place)}"
    paragraph(f"  {printable(member.droid + program)}: {what}{seen}")


def _show_nothing(nothing: Nothing) -> None:
    show_lines(next_text.of_mail(invocation().hive, nothing.mail, nothing.unread))
    if not nothing.counts["total"]:
        paragraph("There are no issues yet: queen issue new TITLE, or queen plan import PLAN.md")
        return
    if nothing.is_end:
        _show_end(nothing)
        return
    names = printable(" or ".join(nothing.ahead))
    # Those ahead wait too: they have a claim on what is ready, if anything is.
    promised = names and nothing.counts["ready"]
    because = f", because what is ready goes to {names}" if promised else ""
    paragraph(f"Nothing is ready for you{because}: {summary(nothing.counts)}")
    for each in nothing.open[:_SHOWN]:
        title = printable(shortened(each.issue.title, _TITLE))
        why = obstacle(each)
        if each.holder is not None and each.holder in nothing.silent:
            why += f", {nothing.silence(each.holder)}"
        if each.state == "ready" and nothing.ahead:
            have = "has" if len(nothing.ahead) == 1 else "have"
            why = f"taken care of: {names} {have} waited longer and will get it"
        entry(f"  {printable(each.issue.id)}  ", title, f"  ({why})")
    if len(nothing.open) > _SHOWN:
        paragraph(f"  … {len(nothing.open) - _SHOWN} more: queen issues")
    if nothing.state == "under_way":
        paragraph(f"  to wait until something is ready or all is done: queen next --wait {_WAIT}")
        from queenbee.services.unasked import staleness  # noqa: PLC0415 - start-up

        if old := staleness(invocation().hive.layout):
            paragraph(f"  {old}")


def _show_end(nothing: Nothing) -> None:
    total = nothing.counts["total"]
    over = f"Everything is done: {total} of {total} issues"
    if nothing.state == "ending":
        over = "Nothing is left for you in this run of queen start"
    then = ". You can stop." if nothing.unlanded is None else f", but {nothing.unlanded}"
    paragraph(f"{over}{printable(then)}")
    if nothing.proposed:
        branches = printable(some(nothing.proposed, _SHOWN))
        paragraph(f"Proposed, and not seen to be merged yet: {branches}; try: queen status --sync")
    if nothing.uncommitted_records is not None:
        paragraph(_to_commit(nothing.uncommitted_records))


def _to_commit(beads_dir: str) -> str:
    """Returns how to commit the records, and nothing else that is staged there."""
    from queenbee.git.contents.landing_messages import (  # noqa: PLC0415 - start-up
        RECORDS,
        commit_options,
    )

    folder, name = os.path.split(beads_dir)
    folder, files = shell_word(folder), shell_word(f"{name}/*.jsonl")
    add = f"git -C {folder} add {files}"
    options = commit_options(invocation().hive.layout.settings, RECORDS)
    commit = f"git -C {folder} commit {options} -- {files}"
    return printable(f"The hive's records are not committed: {add} && {commit}")


@command(
    show=show_next,
    example="queen next\nqueen next --take\nqueen next --reserve 'migrations/**'\n"
    "queen next --wait 10m",
    at_once=True,
)
@click.option(
    "--reserve", "patterns", multiple=True, metavar="PATTERN", help="Reserve this as well"
)
@click.option(
    "--wait",
    is_flag=False,
    flag_value=_WAIT,
    callback=seconds,
    metavar="[10m]",
    help="Wait until an issue is ready, everything is done, or urgent mail comes",
)
@click.option("--take", is_flag=True, help="Take what is held for you with it as well")
@confirm_options
def next_(
    hive: Hive,
    patterns: tuple[str, ...],
    wait: int | None,
    take: bool,
    confirm: bool,
    local_if_offline: bool,
) -> Answer:
    """Take the next issue, and print all that you need to begin

    It takes the ready issue on the critical path; two droids never get the same one. What belongs
    with it, by its files and names or because it waits for nothing else, is held for you for two
    minutes; --take takes that too. If you have an issue already, it prints that one again.

    Exit 0: you have an issue, or everything is done. Exit 1: nothing is free for you now, and the
    output says why. Exit 6: --wait timed out.
    """
    if hive.actor_or_none is None and hive.layout.worktree is None:
        raise nobody(_BEGINNING)
    with waiting_for("an issue", wait) as tell_again:
        taken = hive.next(
            reserve=patterns,
            timeout_s=wait or 0,
            take=take,
            confirm=confirm,
            local_if_offline=local_if_offline,
            on_progress=tell_again,
        )
    return Answer(taken, yes=isinstance(taken, work.Begin) or taken.is_end)


def show_completions(completions: Sequence[Completion]) -> None:
    """Shows what was completed, or is still assigned, by one droid."""
    for each in completions:
        if each.verification is not None:
            from queenbee.cli.commands.verify import show_record  # noqa: PLC0415 - start-up

            show_record(each.verification)
    for ended, one, several in _ENDED:
        ids = [each.assignment.issue_id for each in completions if each.completed == ended]
        if ids:
            how = f"{several if ids[1:] else one} {completions[0].assignment.droid}"
            paragraph(printable(f"{', '.join(ids)} {how}"))
    for each in completions:
        _show_after(each)


def _show_after(completion: Completion) -> None:
    """Shows what else the end of an issue has changed, and what it has not."""
    if completion.still_reserved:
        kept = some(list(completion.still_reserved), _SHOWN)
        paragraph(printable(f"still reserved for you: {kept}: queen reserve release --all"))
    for note in completion.notes:
        paragraph(f"note: {printable(note)}", bold=True)
    for issue in completion.unblocked:
        entry(f"unblocked: {printable(issue.id)}  ", printable(shortened(issue.title)))


def _show_completed(done: Completion | Followed) -> None:
    from queenbee.workflows.completing import Completion  # noqa: PLC0415 - start-up

    if isinstance(done, Completion):
        show_completions([done])
        return
    show_completions([done.completion])
    if done.next is not None:
        show_next(done.next)  # type: ignore[arg-type]


@command(
    show=_show_completed,
    example="queen complete qb-42 --reason 'merged in 3f2a1bc' --next\n"
    "queen complete gt-login-001 --force --reason 'the test server is down'",
)
@click.argument("issue_id", required=False, metavar="[ISSUE]")
@click.option("--reason", help="What was done, or why the checks are skipped")
@force("no-verify", "Skip its checks; needs --reason")
@click.option("--next", "take_next", is_flag=True, help="Take the next issue, as queen next does")
def complete(
    hive: Hive, issue_id: str | None, reason: str | None, no_verify: bool, take_next: bool
) -> Answer:
    """Complete an issue and release the files reserved for it

    ISSUE is the one that you have, if nothing else is said. If the issue is a bead, its checks run
    first. If one fails, the command exits with status 1 and nothing else changes.

    With --next it also takes the next issue, and exits with status 0 if there is none for you.
    """
    from queenbee.cli.progress import watcher  # noqa: PLC0415 - start-up

    done = hive.complete(issue_id, reason=reason, unverified=no_verify, on_progress=watcher())
    if not take_next:
        return Answer(done, yes=done.completed)
    from queenbee.workflows.completing import Followed  # noqa: PLC0415 - start-up

    following = hive.following() if done.completed else None
    return Answer(Followed(done, following), yes=done.completed)


def waiting_for(
    what: str, wait_s: int | None
) -> AbstractContextManager[Callable[[float], None] | None]:
    """Returns what shows that the command waits, if it does."""
    if not wait_s:
        return nullcontext()
    from queenbee.cli import progress  # noqa: PLC0415 - start-up

    return progress.waiting_for(what, wait_s)


def _show_waited(found: Mapping[str, Sequence[object]]) -> None:
    (what, values), *_ = found.items()
    if what == "mail":
        from queenbee.cli.commands import msg  # noqa: PLC0415 - start-up

        msg.show_list(values)  # type: ignore[arg-type]
    elif what == "ready":
        from queenbee.cli.commands import issues  # noqa: PLC0415 - start-up

        issues.show_list(values, empty="Everything is done.")  # type: ignore[arg-type]
    else:
        word = "done" if what == "issues" else "free"
        paragraph(f"{word}: {printable(', '.join(map(str, values)))}")


@command(
    show=_show_waited,
    example="queen issue wait qb-40 qb-41\nqueen issue wait --free 'src/api/**' --mail --wait 5m",
)
@click.argument("issues", nargs=-1, metavar="[ISSUE]...")
@click.option("--ready", is_flag=True, help="Until an issue is ready for you, or all are done")
@click.option("--free", multiple=True, metavar="PATTERN", help="Until nobody else holds it")
@click.option("--mail", is_flag=True, help="Until you have unread messages")
@timeout_option("10m")
def wait(
    hive: Hive,
    issues: tuple[str, ...],
    ready: bool,
    free: tuple[str, ...],
    mail: bool,
    timeout: int,
) -> object:
    """Wait until issues are done, files are free, or mail is there

    The first of these that is true ends the wait; several issues must all be done. Exit 6: it
    timed out.
    """
    wanted = work.Wanted(issues=issues, ready=ready, free=free, mail=mail)
    with waiting_for(wanted.shown(), timeout):
        return hive.wait(*issues, ready=ready, free=free, mail=mail, timeout_s=timeout)


def show_status(status: Status) -> None:
    """Shows the whole team on one screen."""
    now_ms = time.time_ns() // 1_000_000
    _show_for_a_person(status)
    _show_me(status, now_ms)
    if status.others:
        paragraph("others", bold=True)
    programs = {name: f" ({program})" for name, program in status.programs.items()}
    for member in status.others:
        _show_member(member, programs.get(member.droid, ""), status.host)
    if status.idle:
        names = [
            f"{name}{programs.get(name, '')} (seen {ago(ms, now_ms)})"
            for name, ms in sorted(status.idle.items())
        ]
        paragraph(printable(f"without an issue: {some(names, _SHOWN)}"))
    for each in status.started:
        what = printable(" ".join(filter(None, (each.state, each.issue_id))))
        since = ago(each.since_ms, now_ms)
        paragraph(
            f"{printable(each.name)} is run by queen start ({printable(each.client)}): {what}, "
            f"since {since}, landed {each.landed}"
        )
    for waiter in status.queue:
        since = ago(waiter.since_ms, now_ms)
        what = printable(waiter.want.shown())
        paragraph(f"{printable(waiter.droid)} waits for {what} (began {since})", "  ")
    for lander in status.landing:
        since = ago(instant_ms(lander.since) or now_ms, now_ms)
        who = f"{printable(lander.droid)} {_LANDING[lander.state]} {printable(lander.target)}"
        took = f"; the last check took {lander.check_s:.0f} s" if lander.check_s else ""
        said = f": {quotation(lander.doing)}" if lander.doing else ""
        paragraph(f"{who} (began {since}{took}){said}")
    _show_counted(status, now_ms)


def _show_asked(messages: Sequence[Message]) -> None:
    """Shows what agents wrote to `human`, and how to answer."""
    from queenbee.services.telling.people import (  # noqa: PLC0415 - start-up
        of_message,
        way_to_answer,
    )

    short = short_ids("messages", messages[:_SHOWN])
    for each in messages[:_SHOWN]:
        want, ways = of_message(each), []
        if not each.by_hive:
            ways.append(way_to_answer(short[want.about]))
        if want.kind != "answer":
            ways.append("queen msg read --as human")
        way = ", or ".join(ways)
        paragraph(printable(f"for a person: {want.text}: {way}"), bold=True)
    if len(messages) > _SHOWN:
        paragraph(f"… {len(messages) - _SHOWN} more: queen msg inbox --as human")


def _show_for_a_person(status: Status) -> None:
    if status.for_a_person:
        _show_asked(status.for_a_person)
    from queenbee.services.telling.people import (  # noqa: PLC0415 - start-up
        of_decision,
        of_failed,
        of_given_back,
    )

    for issue in status.decisions[:_SHOWN]:
        way = suggested("queen show", issue.id)
        paragraph(printable(f"for a person: {of_decision(issue).text}: {way}"), bold=True)
    for issue, by in status.left_by_agents[:_SHOWN]:
        way = suggested("queen show", issue.id)
        paragraph(printable(f"for a person: {of_given_back(issue, by).text}: {way}"), bold=True)
    for landing in status.failed_landings:
        paragraph(printable(f"for a person: {of_failed(landing).text}"), bold=True)
    for issue_id, why in status.waits_to_land.items():
        paragraph(printable(f"{issue_id}: {why}"), bold=True)
    for issue_id, number in status.with_a_person.items():
        paragraph(printable(f"{issue_id} waits for a person: {number}"), bold=True)
    if count := len(status.unseen_commands):
        what = f"{count} command{'s' * (count != 1)} to look at"
        paragraph(f"waits for a person: {what}: queen config trust", bold=True)


def _show_me(status: Status, now_ms: int) -> None:
    if status.actor is not None:
        paragraph(f"{printable(status.actor)} (you)", bold=True)
        if status.me is None:
            paragraph("  no issue and no reservation")
    for each in status.me.assignments if status.me is not None else ():
        began = f"{ago(each.created_ms, now_ms)}{next_text.sign(each)}"
        since = f"  ({began}{in_review(each, status.host)})"
        title = _short_title(status.titles.get(each.issue_id, ""))
        entry(f"  {printable(each.issue_id)}  ", title, since)
        if status.me is not None and (note := next_text.note_of(status.me, each)):
            paragraph(f"    {note.removeprefix(', ')}")
    for lease in status.me.leases if status.me is not None else ():
        entry("  holds ", printable(lease.pattern), next_text.sign(lease))
    if status.unread and status.actor is not None:
        paragraph(f"  {status.unread} unread: queen msg read")


def _show_counted(status: Status, now_ms: int) -> None:
    paragraph(f"issues: {summary(status.counts)}", bold=True)
    told = {each.id for each, _ in status.left_by_agents}
    for issue in status.first_ready:
        before = f"  ready  P{issue.priority}  {printable(issue.id)}  "
        entry(before, _short_title(issue.title), state="ready")
        if issue.id not in told and (back := status.given_back.get(issue.id)):
            why = f"given back by {back}: {suggested('queen show', issue.id)}"
            paragraph(printable(why), "         ")
    if status.ready_count > len(status.first_ready):
        paragraph(f"  … {status.ready_count - len(status.first_ready)} more: queen issue ready")
    for done in status.done:
        when = ago(instant_ms(done.updated_at) or 0, now_ms)
        title = _short_title(status.titles.get(done.issue_id, ""))
        before = f"  done   {when}  {printable(done.issue_id)}  "
        entry(before, title, f"  by {printable(done.droid)}", state="done")
    if status.done and (more := status.counts["done"] - len(status.done)) > 0:
        paragraph(f"  … {more} more: queen issue assignments --status completed")


def _short_title(title: str) -> str:
    return printable(shortened(title, _TITLE))


def show_hives(found: Sequence[Glimpse]) -> None:
    """Shows each hive: what waits for a person there, and who works on what."""
    for each in found:
        paragraph(f"{printable(each.name)}  {printable(each.root)}", bold=True)
        if each.problem:
            paragraph(printable(each.problem), "  ")
            continue
        for want in each.wants[:_SHOWN]:
            paragraph(printable(want.text), "  ")
        if each.wants:
            paragraph(printable(f"how to see to it: {suggested('cd', each.root)} && queen"), "  ")
        if len(each.wants) > _SHOWN:
            paragraph(f"  … {len(each.wants) - _SHOWN} more")
        at_work = [f"{who} has {issue_id}" for who, issue_id in each.at_work]
        paragraph(printable(some(at_work, _SHOWN) or "nobody is at work"), "  ")
        paragraph(f"issues: {summary(each.counts)}", "  ")
    if not found:
        paragraph("No hive is known: queen status in a repository notes it.")


@command(
    show=lambda found: show_status(found) if isinstance(found, work.Status) else show_hives(found),
    example="queen status\nqueen status --sync\nqueen status --all",
    opens_hive=False,
)
@click.option("--sync", is_flag=True, help="First ask the code host of pull requests")
@click.option("--all", "everywhere", is_flag=True, help="Of all hives that you have opened")
def status(call: Invocation, sync: bool, everywhere: bool) -> Status | Sequence[Glimpse]:
    """Show who works on what, what is ready, and what was just done

    With --all, it shows what waits for you and who is at work in every hive in which you have run
    queen status, watch or start on this machine. queen hive forget leaves one out.
    """
    if everywhere:
        if call.json:
            raise InvalidInput("--all is for people", hint="queen hive list --json")
        from queenbee.library.hives import glimpses  # noqa: PLC0415 - start-up

        return glimpses(droid=call.actor)
    call.freshen("status")
    tell_origin(call.hive, must_know=False)
    return call.hive.status(sync=sync)
