"""The live leases of a hive, found by pattern or path without trying each.

A process that asks once scans: building an index would cost more than it saves. One that asks
again keeps an index, brought up to date from the log of changes.
"""

from __future__ import annotations

from queenbee.core import globs, leases
from queenbee.core.globindex import GlobIndex
from queenbee.core.records import Reservation
from queenbee.core.standing import superseded_leases, superseder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queenbee.core.fold import Fields
    from queenbee.store.state import State

_SWEEP_FROM = 16
"""From so many leases on, judging all in one sweep costs less than judging each by itself."""


class LiveLeases:
    """What is reserved now, judged at the instant of each question."""

    def __init__(self, *, fold_case: bool) -> None:
        self._fold_case = fold_case
        self._index: GlobIndex | None = None
        self._asked = False
        self._generation = -1
        self._seen = 0
        self._last_release = ""

    def overlapping(self, state: State, pattern: str, now_ms: int) -> list[tuple[Reservation, str]]:
        """Returns the live leases that overlap a pattern, each with a path that both cover."""
        index = self._followed(state)
        if index is not None:
            pairs: Iterable[tuple[str, str]] = index.overlapping(pattern)
        else:
            pairs = self._scan_overlapping(state, pattern)
        found = dict(pairs)
        return [(lease, found[lease.id]) for lease in self._live(state, found, now_ms)]

    def covering(self, state: State, path: str, now_ms: int) -> list[Reservation]:
        """Returns the live leases that cover a literal path."""
        index = self._followed(state)
        if index is not None:
            keys: Iterable[str] = index.covering(path)
        else:
            keys = self._scan_covering(state, path)
        return self._live(state, keys, now_ms)

    def everything(self, state: State, now_ms: int, *, ended: bool = False) -> list[Reservation]:
        """Returns all live leases, or all that ever were; superseded ones are marked."""
        rows = state.everything() if ended else state.where("status", "active")
        found = [leases.as_of(fields, now_ms) for fields in rows]
        if not ended:
            found = [lease for lease in found if leases.is_live(lease)]
        return self.judged(state, found)

    def judged(self, state: State, found: list[Reservation]) -> list[Reservation]:
        """Returns the leases, those that lost to an older one marked `superseded_by`."""
        if not found:
            return found
        whole = [Reservation(fields) for fields in state.everything()]
        if len({lease.droid for lease in whole}) < 2:
            return found
        if len(found) < _SWEEP_FROM:
            verdicts = {
                lease.id: superseder(lease, whole, fold_case=self._fold_case) for lease in found
            }
        else:
            verdicts = {**superseded_leases(whole, fold_case=self._fold_case)}
        return [
            Reservation({**lease.fields, "superseded_by": winner})
            if (winner := verdicts.get(lease.id))
            else lease
            for lease in found
        ]

    def last_release(self, state: State) -> str:
        """Returns the newest `released_at` of the ledger, as written; "" where there is none."""
        if state.generation != self._generation:
            self._generation, self._seen, self._last_release = state.generation, 0, ""
            self._index = None
        for identifier in state.changed[self._seen :]:
            fields = state.get(identifier) or {}
            released_at = fields.get("released_at")
            if isinstance(released_at, str):
                self._last_release = max(self._last_release, released_at)
            if self._index is not None:
                self._place(self._index, identifier, fields)
        self._seen = len(state.changed)
        return self._last_release

    def _live(self, state: State, keys: Iterable[str], now_ms: int) -> list[Reservation]:
        found: list[Reservation] = []
        for key in keys:
            fields = state.get(key)
            lease = leases.as_of(fields, now_ms) if fields is not None else None
            if lease is not None and leases.is_live(lease):
                found.append(lease)
            elif self._index is not None:
                # An ended lease never lives again without a new line, which brings it back here.
                self._index.discard(key)
        return [lease for lease in self.judged(state, found) if leases.is_live(lease)]

    def _followed(self, state: State) -> GlobIndex | None:
        self.last_release(state)
        if self._index is None and self._asked:
            self._index = GlobIndex(fold_case=self._fold_case)
            for fields in state.where("status", "active"):
                self._place(self._index, str(fields["id"]), fields)
        self._asked = True
        return self._index

    def _place(self, index: GlobIndex, identifier: str, fields: Fields) -> None:
        index.discard(identifier)
        pattern = fields.get("pattern")
        if fields.get("status", "active") == "active" and isinstance(pattern, str):
            index.add(identifier, pattern)

    def _scan_overlapping(self, state: State, pattern: str) -> Iterator[tuple[str, str]]:
        for key, each in _named(state):
            witness = globs.overlap(each, pattern, fold_case=self._fold_case)
            if witness is not None:
                yield key, witness

    def _scan_covering(self, state: State, path: str) -> Iterator[str]:
        return (
            key
            for key, each in _named(state)
            if globs.matches(each, path, fold_case=self._fold_case)
        )


def _named(state: State) -> list[tuple[str, str]]:
    return [
        (str(fields["id"]), pattern)
        for fields in state.where("status", "active")
        if isinstance(pattern := fields.get("pattern"), str)
    ]
