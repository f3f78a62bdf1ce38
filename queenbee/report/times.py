"""Who had what when: bars of a time line, waiting times, conflicts that were met or avoided.

Functions of the records; nothing here reads a file or a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from queenbee.core.glob.pattern import ByFolder, overlap
from queenbee.core.leases import assignment_end_ms, lease_end_ms
from queenbee.core.readiness import Standing
from queenbee.core.records import Assignment, Grant, Record, Reservation
from queenbee.core.timestamps import instant_ms
from queenbee.errors import BadPattern
from queenbee.report import caps
from queenbee.report.values import Bar, Conflict, Handover, Wait

SOON_MS = 15 * 60_000
"""Whoever gets files this soon after somebody else let go of them is taken to have waited."""

_LOST = ("superseded", "taken over")


def bars(
    assignments: Iterable[Assignment], leases: Iterable[Reservation], now_ms: int
) -> list[Bar]:
    """Returns what droids had, oldest first; without what has no readable beginning."""
    found = [
        _bar(each, "issue", each.issue_id, assignment_end_ms(each), now_ms) for each in assignments
    ]
    for lease in leases:
        kind = "exclusive" if lease.exclusive else "shared"
        found.append(_bar(lease, kind, lease.pattern, lease_end_ms(lease), now_ms))
    return sorted(
        (each for each in found if each.begin_ms > 0),
        key=lambda each: (each.begin_ms, each.droid, each.what, each.kind),
    )


def waits(
    assignments: Sequence[Assignment], found: Mapping[str, Standing], since_ms: int
) -> list[Wait]:
    """Returns how long each issue waited for its first droid, the longest first.

    The time begins when the issue could be started: when it was made, or when the last issue that
    it waits for was done. An issue that was begun before that did not wait.
    """
    first: dict[str, Assignment] = {}
    last: dict[str, Assignment] = {}
    for each in sorted(assignments, key=lambda each: each.age):
        if each.created_ms and not each.superseded_by:
            first.setdefault(each.issue_id, each)
            last[each.issue_id] = each
    done_ms = {key: _done_ms(key, each, last) for key, each in found.items()}
    measured = []
    for issue_id, assignment in first.items():
        standing = found.get(issue_id)
        if standing is None or assignment.created_ms < since_ms:
            continue
        needed = [done_ms.get(target) for target, _ in standing.issue.dependencies]
        could_ms = max(filter(None, [standing.issue.created_ms, *needed]), default=0)
        if not could_ms:
            continue
        end_ms = done_ms[issue_id] if standing.issue.done else None
        measured.append(
            Wait(
                issue_id,
                standing.issue.title,
                assignment.droid,
                max(0, assignment.created_ms - could_ms) / 1000,
                max(0, end_ms - assignment.created_ms) / 1000 if end_ms else None,
            )
        )
    return sorted(measured, key=lambda each: (-each.waited_s, each.issue_id))


def conflicts(
    assignments: Iterable[Assignment], leases: Iterable[Reservation], since_ms: int
) -> list[Conflict]:
    """Returns the conflicts that were met, newest first: grants that lost to an older one after a
    merge or were withdrawn, and what was taken over from a droid that had it.
    """
    issues, files = list(assignments), list(leases)
    grants: list[Assignment | Reservation] = [*issues, *files]
    holders = {each.id: each.droid for each in grants}
    ended = [each for each in issues if each.status == "reassigned"]
    why = {(each.issue_id, each.droid): _text(each, "reason") for each in ended}
    of_all = [
        *((each, each.issue_id) for each in issues),
        *((each, each.pattern) for each in files),
    ]
    met = [found for each, what in of_all if (found := _lost(each, what, holders)) is not None]
    met += [
        Conflict("reassigned", each.created_ms, each.issue_id, lost, each.droid, reason)
        for each in issues
        if (lost := each.previous_droid) and lost != each.droid
        for reason in (why.get((each.issue_id, lost)),)
    ]
    for each in files:
        by = each.get("released_by")
        if isinstance(by, str) and by != each.droid:
            met.append(
                Conflict(
                    "taken over",
                    lease_end_ms(each),
                    each.pattern,
                    each.droid,
                    by,
                    _text(each, "release_reason"),
                )
            )
    return sorted(
        (each for each in met if each.at_ms >= since_ms),
        key=lambda each: (-each.at_ms, each.kind, each.what, each.droid),
    )


def handovers(leases: Sequence[Reservation], *, fold_case: bool) -> list[Handover]:
    """Returns the files that droids had one after the other instead of at once, newest first.

    An exclusive lease counts if it began at most a quarter of an hour after the last one that it
    could not have beside it, and that another droid had.
    """
    known = {each.id: each for each in leases if each.created_ms and _how(each) not in _LOST}
    table = ByFolder(((each.id, each.pattern) for each in known.values()), fold_case=fold_case)
    found = []
    for each in known.values():
        try:
            met = [known[key] for key in table.meeting(each.pattern)]
        except BadPattern:
            continue
        gaps = [
            (end_ms, overlap(each.pattern, other.pattern, fold_case=fold_case) or "", other.droid)
            for other in met
            if other.droid != each.droid and (each.exclusive or other.exclusive)
            if 0 <= each.created_ms - (end_ms := lease_end_ms(other)) <= SOON_MS
        ]
        if gaps:
            end_ms, witness, droid = max(gaps)
            gap_s = (each.created_ms - end_ms) / 1000
            found.append(Handover(each.created_ms, droid, each.droid, witness, gap_s))
    return sorted(found, key=lambda each: (-each.at_ms, each.witness, each.then))


def median(values: Sequence[float]) -> float | None:
    """Returns the middle one of these values, or None if there are none."""
    return sorted(values)[len(values) // 2] if values else None


def _bar(grant: Assignment | Reservation, kind: str, what: str, end_ms: int, now_ms: int) -> Bar:
    begin_ms = min(grant.created_ms, now_ms)
    how = _how(grant)
    return Bar(
        grant.droid,
        kind,
        what,
        begin_ms,
        max(begin_ms, min(end_ms, now_ms)),
        how,
        grant.issue_id,
        grant.reason,
    )


def _how(grant: Assignment | Reservation) -> str:
    if grant.superseded_by:
        return "superseded"
    by = grant.fields.get("released_by")
    if isinstance(by, str) and by != grant.droid:
        return "taken over"
    return "held" if grant.status == "active" else grant.status


def _done_ms(issue_id: str, standing: Standing, last: Mapping[str, Assignment]) -> int | None:
    """Returns when an issue was done, as far as the records say."""
    if not standing.issue.done:
        return None
    ended = last.get(issue_id)
    if ended is not None and ended.status == "completed":
        return assignment_end_ms(ended)
    return instant_ms(standing.issue.closed_at)


def _lost(grant: Grant, what: str, holders: Mapping[str, str]) -> Conflict | None:
    """Returns the conflict in which a grant lost to another one, or None."""
    for kind, name in (("superseded", "superseded_by"), ("withdrawn", "lost_to")):
        if winner := _text(grant, name):
            lost, other = holders[grant.id], holders.get(winner)
            return Conflict(kind, grant.created_ms, what, lost, other, _text(grant, "reason"))
    return None


def _text(record: Record, name: str) -> str | None:
    value = record.get(name)
    return value if isinstance(value, str) and value else None


def newest(leases: Sequence[Reservation]) -> Sequence[Reservation]:
    """Returns the newest leases, as many as are compared with each other."""
    return sorted(leases, key=lambda each: each.age)[-caps.PATTERNS :]
