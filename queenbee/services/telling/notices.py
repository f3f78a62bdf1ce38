"""Notices that a droid gets once, next to the answer to its command: which of its leases ended,
who waits for what it has, and what is wrong with the hive's files.

A lease must never end unseen. The hive's untracked state remembers which notices each droid has
seen. If that cannot be written, the droid gets the notice again rather than not at all.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core import leases
from queenbee.core.names import is_name
from queenbee.core.records import Assignment, Reservation
from queenbee.core.text import bracketed, mentioned, quotation, suggested
from queenbee.core.timestamps import format_duration, format_ms
from queenbee.errors import QueenError, Unreachable, Unwritable
from queenbee.store.droids.told import LANDING_RECORD, Told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queenbee.services.hive import Services

    News = dict[str, Callable[[], str]]
    """The notices, by the key that is remembered; the text is only made for a new one."""

_FORGET_AFTER_MS = 24 * 3_600_000
"""A lease that ended a day ago is history. In a fresh clone, all of them are."""
_RECENT = 50
"""How many assignments of each status are looked at, the newest."""
_NAME_CHARS, _REASON_CHARS, _NOTE_CHARS = 40, 60, 120
_AT_MOST = 5
_LINES = 10
"""At most so many line numbers in a notice."""
_ENDS = ("id", "status", "expires_at", "released_at")


def notes(hive: Services) -> list[str]:
    """Returns the notices for the actor, each of them once."""
    settings, told = hive.layout.settings, list[str]()
    if settings.sync_ledgers == "branch" and not os.path.isdir(hive.layout.remote_dir):
        told.append("this clone has not fetched the records yet, which are on a branch: queen sync")
    if settings.sync_when != "manual":
        from queenbee.services.unasked import news  # noqa: PLC0415 - start-up

        told += news(hive)
    return [
        *told,
        *(text() for text in ended_landing(hive).values()),
        *_long_lines(hive),
        *take(hive),
        *_unusable(hive),
    ]


def ended_landing(hive: Services) -> News:
    """Returns how a landing of this worktree ended that nobody waited for; once its text is taken,
    that counts as seen.
    """
    path = os.path.join(hive.layout.git_dir or "", LANDING_RECORD)
    if hive.layout.worktree is None or hive.actor_or_none is None or not os.path.exists(path):
        return {}
    from queenbee.services.waiting.landing_record import LandingRecord  # noqa: PLC0415 - start-up

    record = LandingRecord(str(hive.layout.git_dir))
    if not record.has_news(hive.actor):
        return {}

    def text() -> str:
        record.is_new(hive.actor)
        ended = record.read()
        status = ended.get("status")
        if status is None:
            return "your landing was killed before it had ended, and is not lost: queen land"
        is_done = status == 0 or ended.get("landed")  # Also as a proposal.
        how = "has ended" if is_done else "did not pass" if status == 1 else "was refused"
        said = quotation(record.last_line(), _NOTE_CHARS)
        return f"your landing {how}: {said}; to see all: queen land --result"

    return {f"landing:{record.read().get('since')}": text}


def _long_lines(hive: Services) -> Iterator[str]:
    written, hive.long_lines = list(dict.fromkeys(hive.long_lines)), []
    if written:
        more = f" and {len(written) - 1} more" if len(written) > 1 else ""
        problem = "took a line of 64 KiB or more: the Go tool cannot read it, or anything after it"
        advice = "put long text in a file in the repository and send its path"
        yield f"{written[0]}{more} {problem}; {advice}"


def _unusable(hive: Services) -> Iterator[str]:
    issues = hive.__dict__.get("issues")  # Only if the command asked for them.
    numbers = issues.unusable_lines if issues is not None else []
    if numbers:
        lines = ", ".join(map(str, numbers[:_LINES]))
        more = ", …" if len(numbers) > _LINES else ""
        text = f"{len(numbers)} of the lines in {hive.layout.issues_path} cannot be read "
        text += f"({lines}{more}); what waits for an issue in them stays blocked"
        yield f"{text}; see: queen doctor"
    for state in hive.opened():
        if state.unusable:
            path = hive.layout.ledger_path(state.kind)
            text = f"{state.unusable} of the lines in {path} cannot be used; "
            yield f"{text}they are left alone; see: queen doctor"


def new_mail(hive: Services) -> object | None:
    """Returns the stamp of the messages, if they changed since the actor was told who wrote."""
    if hive.actor_or_none is None or not is_name(hive.actor):
        return None
    return Told(hive.layout, hive.actor, hive.engine).new_mail()


def take(hive: Services) -> list[str]:
    """Returns what happened to what the actor has, as far as it has not seen it yet, and marks it
    as seen. While another process tells the droid something, it is left to the next command.
    """
    if hive.actor_or_none is None or not is_name(hive.actor):
        return []
    try:
        ended = {**ended_claims(hive), **ended_leases(hive), **lost_grants(hive)}
        waits = waiters(hive)
        if not ended and not waits:
            return []
        told = Told(hive.layout, hive.actor)
        with told as mine:
            return _untold(told, ended, waits) if mine else []
    except QueenError as error:
        if isinstance(error, Unreachable | Unwritable) and hive.engine.carrier is not None:
            return []  # The command needs the same database, and says what is wrong with it.
        return [f"{error.message}; cannot tell which of your leases ended"]


def _untold(told: Told, ended: News, waits: News) -> list[str]:
    known = set(told.known())
    fresh = [key for key in ended if key not in known]
    waiting = [key for key in waits if key not in known]
    lines = [ended[key]() for key in fresh[:_AT_MOST]]
    if len(fresh) > _AT_MOST:
        more = len(fresh) - _AT_MOST
        lines.append(f"and {more} more leases of yours ended; see: queen reserve list --all")
    lines += [waits[key]() for key in waiting[:_AT_MOST]]
    if fresh or waiting:
        told.add([*fresh, *waiting])
    return lines


def ended_claims(hive: Services) -> News:
    """Returns the assignments of the actor that somebody else ended lately."""
    return {f"{each.id}:ended": partial(_claim_ended, each) for each in lost_claims(hive)}


def lost_claims(hive: Services) -> Iterator[Assignment]:
    """Yields the assignments of the actor that somebody else ended lately."""
    state, now_ms = hive.state("assignments"), hive.now_ms()
    mine = {"droid": hive.actor}
    active = {key for (key,) in state.project(("issue_id",), {**mine, "status": "active"})}
    for status in ("reassigned", "released", "completed"):
        for row in state.select({**mine, "status": status}, newest_first=True, limit=_RECENT):
            each = Assignment(row)
            recent = now_ms - leases.assignment_end_ms(each) < _FORGET_AFTER_MS
            if recent and ended_by(each) is not None and each.issue_id not in active:
                yield each


def ended_by(assignment: Assignment) -> object:
    """Returns the other droid that ended an assignment, or None."""
    by = assignment.get("updated_by")
    return by if isinstance(by, str) and by != assignment.droid else None


def _claim_ended(ended: Assignment) -> str:
    how = {"completed": "completed", "reassigned": "given to somebody else"}
    why = f": {quotation(ended.reason, _REASON_CHARS)}" if ended.reason else ""
    what = how.get(ended.status, "taken back")
    by = mentioned(str(ended_by(ended)), _NAME_CHARS)
    return f"{mentioned(ended.issue_id, _NAME_CHARS)} is no longer yours: {what} by {by}{why}"


def notes_of_others(hive: Services) -> News:
    """Returns what others do beside their issues."""
    now_ms = hive.now_ms()
    news: News = {}
    for row in hive.state("assignments").select({"status": "active"}):
        each = Assignment(row)
        note = each.note(now_ms)
        if note and each.droid != hive.actor:
            key = f"{each.id}:note:{each.get('noted_at')}"
            news[key] = partial(_noted, each, note)
    return news


def _noted(assignment: Assignment, note: str) -> str:
    beside = f"beside {mentioned(assignment.issue_id, _NAME_CHARS)}"
    said = quotation(note, _NOTE_CHARS)
    return f"{mentioned(assignment.droid, _NAME_CHARS)} does {beside}: {said}"


def ended_leases(
    hive: Services, *, of_edits: bool = True, said: Callable[[str], str] = bracketed
) -> News:
    """Returns the leases of the actor that ended lately, and that it did not end.

    Without `of_edits`, those that an edit took, that ran out and that nobody else wanted are left
    out. `said` marks what others wrote.
    """
    state, now_ms, actor = hive.state("reservations"), hive.now_ms(), hive.actor
    since, now = format_ms(now_ms - _FORGET_AFTER_MS), format_ms(now_ms)
    news: News = {}
    for key, status, expires_at, released_at in state.project(_ENDS, {"droid": actor}):
        ended_at = released_at if status == "released" else expires_at
        if not _may_be_within(ended_at, since, now):
            continue
        lease = leases.as_of(state.get(str(key)) or {}, now_ms)
        end_ms = leases.lease_end_ms(lease)
        if not lease.deleted and now_ms - _FORGET_AFTER_MS < end_ms <= now_ms:
            how = _how_it_ended(lease, actor, now_ms - end_ms, said)
            unwanted = lease.session is not None and lease.status == "expired"
            if unwanted and not of_edits and not _holders_now(hive, lease, said):
                continue
            if how is not None:
                news[lease.id] = partial(_lease_ended, hive, lease, how, said)
    return news


def lost_grants(hive: Services) -> News:
    """Returns the grants of the actor that a merge superseded."""
    news: News = {}
    for kind in ("assignments", "reservations"):
        # Only a grant made elsewhere can win over one of ours.
        if not hive.state(kind).foreign():
            continue
        for winner, loser in getattr(hive, kind).conflicts():
            if loser.droid == hive.actor:
                what = loser.pattern if isinstance(loser, Reservation) else loser.issue_id
                text = (
                    f"a merge brought in {mentioned(winner.droid)}'s older grant of "
                    f"{mentioned(what)}: yours ({mentioned(loser.id)}) no longer counts; "
                    "see: queen reserve conflicts"
                )
                news[f"{loser.id}:superseded"] = partial(str, text)
    return news


def waiters(hive: Services) -> News:
    """Returns who waits for a lease of the actor, or for an issue that it has; each once."""
    if not hive.layout.may_have_waiters():
        return {}
    from queenbee.core.queue import Want  # noqa: PLC0415 - start-up

    news: News = {}
    line = [each for each in hive.queue.everything() if each.droid != hive.actor]
    if any(each.want.patterns for each in line):
        for lease in hive.reservations.find(droid=hive.actor):
            for each in hive.queue.waiting_for(Want.of(lease), droid=hive.actor):
                end = suggested("queen reserve release", lease.pattern)
                who, what = mentioned(each.droid), each.want.shown()
                text = f"{who} waits for {what}; if you are done: {end}"
                news.setdefault(f"{lease.id}:waiter:{each.droid}", partial(str, text))
    for each in line:
        issue_id = each.want.issue_id
        held = hive.assignments.active(issue_id) if issue_id is not None else None
        if held is not None and held.droid == hive.actor:
            text = f"{mentioned(each.droid)} waits for {each.want.shown()}, which you have"
            news.setdefault(f"{held.id}:waiter:{each.droid}", partial(str, text))
    return news


def _lease_ended(hive: Services, lease: Reservation, how: str, said: Callable[[str], str]) -> str:
    holders = _holders_now(hive, lease, said)
    now_held = f"held now by {', '.join(holders)}" if holders else "nobody holds it now"
    taken_over = lease.status == "released" and not lease.session
    again = f"; reserve what you still need: {leases.reserving_again([lease])}"
    return f"your lease on {mentioned(lease.pattern)} {how}; {now_held}{again * taken_over}"


def _holders_now(hive: Services, lease: Reservation, said: Callable[[str], str]) -> list[str]:
    """Returns the other droids that hold what a lease was on, each with its pattern."""
    holders = [
        f"{mentioned(each.droid)} {said(each.pattern)}"
        for each in hive.reservations.overlapping(lease.pattern)
        if leases.stand_against(each, lease)
    ]
    return list(dict.fromkeys(holders))


def _how_it_ended(
    lease: Reservation, actor: str, ago_ms: int, said: Callable[[str], str]
) -> str | None:
    """Returns how a lease ended, or None if its owner ended it."""
    if lease.status == "expired":
        return f"expired {format_duration(ago_ms / 1000)} ago"
    by = lease.get("released_by") or actor
    if by == actor:
        return None
    reason = lease.get("release_reason") or "no reason"
    return f"was taken over by {mentioned(str(by))} {said(str(reason))}"


def _may_be_within(instant: object, since: str, until: str) -> bool:
    """Returns whether a timestamp may be between two of ours, by comparing text only."""
    ours = isinstance(instant, str) and len(instant) == len(since) and instant[-1] == "Z"
    return not ours or since <= str(instant) <= until
