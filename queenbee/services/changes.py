"""What happens in a hive: every record that became or changed, in order of arrival here.

A cursor names a line of this clone's memory. Whoever keeps it misses nothing and sees nothing
twice, whatever clocks, merges and other processes do.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

from queenbee.core.beads import Issue
from queenbee.core.fold import Table
from queenbee.core.kinds import ISSUES, KINDS, kind_of
from queenbee.core.records import Reservation
from queenbee.core.timestamps import instant_ms
from queenbee.errors import Cancelled, InvalidInput, NotFound
from queenbee.services.history import written_at
from queenbee.services.leases.live import covers
from queenbee.services.waiting.attempts import Watch
from queenbee.services.waiting.pauses import finish
from queenbee.store import giving_up
from queenbee.store.codec import decode
from queenbee.store.memory.arrivals import Arrivals, last_number, loose_kinds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Self

    from queenbee.core.fold import Fields
    from queenbee.core.records import Record
    from queenbee.services.hive import Services
    from queenbee.services.waiting.pauses import Steps
    from queenbee.store.giving_up import Event

_AT_ONCE = 500
"""So many lines are read at a time."""
_FOREVER_S = 3600.0
BEGINNING = "0"
"""The cursor before everything."""


@dataclass(frozen=True, slots=True)
class Change:
    """A record that became, or changed: how it was before, None if it was not there, and is now.

    An issue has what the hive's lines say of it: `Hive.issues` has its whole row.
    """

    cursor: str
    """The place after this change: `changes(since=cursor)` goes on behind it."""
    kind: str
    """`messages`, `assignments`, `reservations`, `verifications`, `issues`, or another one."""
    before: Record | None
    after: Record
    at: str | None
    """When its line was written, as that says; None if it does not."""
    by: str | None
    """Who wrote it, as far as the record shows."""

    @property
    def id(self) -> str:
        """The id of the record."""
        return self.after.id

    @property
    def fields(self) -> list[str]:
        """The names of the fields that changed."""
        before = self.before.fields if self.before is not None else {}
        now = self.after.fields
        names = [each for each in {**now, **before} if each != "rev"]
        return [each for each in names if before.get(each) != now.get(each)]

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {
            "cursor": self.cursor,
            "kind": self.kind,
            "id": self.id,
            "at": self.at,
            "by": self.by,
            "fields": self.fields,
            "before": self.before.to_dict() if self.before is not None else None,
            "after": self.after.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which changes are wanted: all, if nothing is said."""

    droid: str | None = None
    """That this one made, or whose record is about it, or goes to it."""
    issue_id: str | None = None
    kinds: Sequence[str] = ()
    path: str | None = None
    """Of reservations that cover this path from the root."""
    since_ms: int | None = None

    @classmethod
    def of(
        cls,
        hive: Services,
        droid: str | None,
        issue_id: str | None,
        kinds: Sequence[str],
        path: str | None,
        since_ms: int | None = None,
    ) -> Self:
        """Returns what is wanted, of a path that a user typed."""
        from_root = None if path is None else hive.reservations.check([path])[0].path
        return cls(droid, issue_id, kinds, from_root, since_ms)

    def check(self) -> None:
        """Raises `InvalidInput` for a kind that no hive has."""
        unknown = [each for each in self.kinds if each not in KINDS]
        if unknown:
            raise InvalidInput(
                f"{unknown[0]!r} is not a kind of record", hint=f"one of: {', '.join(KINDS)}"
            )

    def fits(self, change: Change, *, fold_case: bool) -> bool:
        """Returns whether a change is wanted."""
        now = change.after
        about = (change.by, now.get("droid"), now.get("from"), now.get("to"))
        issue = now.id if change.kind == ISSUES else now.get("issue_id")
        return (
            (not self.kinds or change.kind in self.kinds)
            and self.droid in (None, *about)
            and self.issue_id in (None, issue)
            and (self.path is None or _covers(now, self.path, fold_case=fold_case))
            and (self.since_ms is None or (instant_ms(change.at) or 0) >= self.since_ms)
        )


def _covers(record: Record, path: str, *, fold_case: bool) -> bool:
    return isinstance(record, Reservation) and covers(record, path, fold_case=fold_case)


def cursor_now(hive: Services) -> str:
    """Returns the cursor behind everything that is here now."""
    _take_in(hive)
    memory = hive.engine.memory
    _record(hive, loose_kinds(memory))
    return _cursor(hive, last_number(memory))


class Follower:
    """Follows what is wanted behind a cursor, and then what arrives, until `timeout_s` have passed
    without anything, None for ever. Raises `InvalidInput` and `NotFound` for a cursor that is none,
    or is of another memory.
    """

    def __init__(self, hive: Services, since: str, wanted: Wanted, timeout_s: float | None) -> None:
        wanted.check()
        self._hive = hive
        self._number = _number(hive, since)
        self._wanted = wanted
        self._timeout_s = timeout_s

    def further(self) -> Steps[list[Change] | None]:
        """Comes to the next changes, some of which may not be wanted; None at the end."""
        watch = Watch(self._hive, self._hive.kinds())
        fold_case = self._hive.reservations.fold_case
        while True:
            watch.look()
            before = self._number
            self._number, found = _after(self._hive, before)
            if self._number != before:
                return [each for each in found if self._wanted.fits(each, fold_case=fold_case)]
            wait_s = _FOREVER_S if self._timeout_s is None else self._timeout_s
            has_more = yield from watch.wait(time.monotonic() + wait_s)
            if not has_more and self._timeout_s is not None:
                return None

    def follow(self, cancel: Event | None = None) -> Iterator[Change]:
        """Yields the changes, in this thread, until the event is set."""
        while True:
            try:
                with giving_up.until(cancel):
                    found = finish(self.further())
            except Cancelled:
                return
            if found is None:
                return
            yield from found


def latest(hive: Services, wanted: Wanted, limit: int) -> list[Change]:
    """Returns the last changes that are wanted, the newest last."""
    wanted.check()
    end, span = _number(hive, cursor_now(hive)), _AT_ONCE
    while True:
        begin = max(0, end - span)
        since = _cursor(hive, begin)
        found = [*Follower(hive, since, wanted, 0).follow()]
        if len(found) >= limit or not begin:
            return found[-limit:]
        span *= 8


def _after(hive: Services, number: int) -> tuple[int, list[Change]]:
    """Returns the next changes behind a line, and the number of the last line looked at."""
    _take_in(hive)
    memory = hive.engine.memory
    arrived = Arrivals(memory, number, _AT_ONCE)
    if arrived.loose:
        _record(hive, arrived.loose)
        arrived = Arrivals(memory, number, _AT_ONCE)
    found = (_change(hive, seq, kind, before, raw) for seq, kind, before, raw in arrived.lines)
    return arrived.last, [each for each in found if each is not None]


def _take_in(hive: Services) -> None:
    for kind in hive.kinds():
        hive.state(kind)


def _record(hive: Services, kinds: Collection[str]) -> None:
    """Records what git or another program brought: until then, it may be gone without a trace."""
    if kinds:
        with hive.transaction() as tx:
            for each in kinds:
                tx.touch(each)


def _change(
    hive: Services, seq: int, kind: str, before: Sequence[bytes], raw: bytes
) -> Change | None:
    """Returns what a line changed; None if that is nothing."""
    table = Table(kind_of(kind).aliases)
    identifier = str(decode(raw)["id"])
    for each in before:
        table.add(each, decode(each))
    was = table.get(identifier)
    line = decode(raw)
    table.add(raw, line)
    now = table.get(identifier)
    if now is None or now == was:
        return None
    changed = {name: now[name] for name in now if was is None or was.get(name) != now[name]}
    by = kind_of(kind).author(line, changed, first=was is None)
    cursor = _cursor(hive, seq)
    by = by if isinstance(by, str) else None
    view = None if was is None else _view(kind, was)
    return Change(cursor, kind, view, _view(kind, now), written_at(line, changed), by)


def _view(kind: str, fields: Fields) -> Record:
    return Issue(fields) if kind == ISSUES else kind_of(kind).view(fields)


def _cursor(hive: Services, number: int) -> str:
    memory = crc32(hive.engine.memory.identity().encode())
    return f"{memory:08x}-{number}" if number else BEGINNING


def _number(hive: Services, cursor: str) -> int:
    """Returns the line that a cursor names. Raises `InvalidInput`, `NotFound`."""
    if cursor == BEGINNING:
        return 0
    begun, dash, number = cursor.rpartition("-")
    if not (dash and number.isascii() and number.isdigit() and len(number) < 17):
        raise InvalidInput(f"{cursor!r} is no cursor", hint="the cursor of a change, or of now")
    if f"{begun}-{number}" != _cursor(hive, int(number)):
        raise NotFound(
            "the cursor is of a memory that this clone no longer has",
            hint="begin anew, without a cursor: queen log",
        )
    return int(number)
