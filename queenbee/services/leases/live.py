"""The live leases of a hive, found by pattern or path without trying each.

A process that asks a few times scans: building an index would cost more than it saves. A process
that keeps asking has an index, which the log of changes keeps up to date.
"""

from __future__ import annotations

import os
from _thread import RLock

from queenbee.core import leases
from queenbee.core.glob.chars import fold
from queenbee.core.glob.index import GlobIndex, scan_covering, scan_meeting
from queenbee.core.glob.pattern import overlap
from queenbee.core.glob.places import places_of_path, places_of_paths, places_of_pattern
from queenbee.core.records import Reservation
from queenbee.store.documents import keep, recall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager

    from queenbee.core.fold import Fields
    from queenbee.core.glob.places import Places
    from queenbee.store.records import Cursor, Records

KIND = "reservations"
ACTIVE: Mapping[str, object] = {"status": "active"}

_RULES = 3
"""Changes with the rules of `core.standing`: what an older version found is judged again."""
_SCANS = 3
"""How many questions are answered by a scan: of 10,000 leases one takes 9 ms, their index 70."""


class LiveLeases:
    """What is reserved at the instant of each question. Safe for threads."""

    def __init__(self, *, fold_case: bool, cache_path: str) -> None:
        self.fold_case = fold_case
        self._cache_path = cache_path
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._mutex = RLock()
        """Held for each question: an index that is half built would grant what is held."""
        self._index: GlobIndex | None = None
        self._cursor: Cursor | None = None
        self._asked = 0
        self._latest_ms = 0
        self._verdicts: tuple[str, dict[str, str]] | None = None

    def overlapping(
        self, state: Records, pattern: str, now_ms: int, *, parted: list[Reservation] | None = None
    ) -> list[Reservation]:
        """Returns the live leases that overlap a pattern; `witness` says where.

        Adds to `parted` those from which files were taken over.
        """
        with self._alone():
            index = self._followed(state, now_ms)
            if index is not None:
                keys = index.meeting(pattern)
            else:
                near = _near(state, places_of_pattern(pattern))
                keys = scan_meeting(pattern, near, self.fold_case)
            met = self._live(state, keys, now_ms)
        shared = []
        for lease in met:
            taken = leases.parts_taken(lease)
            if parted is not None and taken:
                parted.append(lease)
            if not taken or _outside(lease, pattern, taken, self.fold_case) is not None:
                shared.append(lease)
        return shared

    def witness(self, lease: Reservation, pattern: str) -> str:
        """Returns a path that an overlapping lease and the pattern both cover.

        It is only asked for what a refusal names: for thousands of leases it takes a while.
        """
        taken = leases.parts_taken(lease)
        if taken:
            return _outside(lease, pattern, taken, self.fold_case) or ""
        return overlap(lease.pattern, pattern, fold_case=self.fold_case) or ""

    def covering(self, state: Records, path: str, now_ms: int) -> list[Reservation]:
        """Returns the live leases that cover a literal path."""
        with self._alone():
            index = self._followed(state, now_ms)
            if index is not None:
                keys: Iterable[str] = index.covering(path)
            else:
                near = _near(state, places_of_path(path))
                keys = scan_covering(path, near, self.fold_case)
            found = self._live(state, keys, now_ms)
        return [lease for lease in found if not is_gone(lease, path, self.fold_case)]

    def around(self, state: Records, paths: Iterable[str], now_ms: int) -> list[Reservation]:
        """Returns the live leases that may cover one of many literal paths."""
        places = places_of_paths(paths)
        with self._alone():
            keys = [key for key, pattern in _near(state) if places.include(pattern)]
            return self._live(state, keys, now_ms)

    def everything(self, state: Records, now_ms: int, *, ended: bool = False) -> list[Reservation]:
        """Returns all live leases, oldest first; with `ended`, all leases ever, with the
        superseded ones marked.
        """
        rows = state.select({} if ended else ACTIVE)
        found = [leases.as_of(fields, now_ms) for fields in rows]
        with self._alone():
            self._asked += 1
            return self._judged(state, found) if ended else self._counting(state, found)

    def _alone(self) -> AbstractContextManager[object]:
        """Returns the mutex; in a forked child a new one, with a new index."""
        if self._process != os.getpid():
            self._begin()
        return self._mutex

    def _live(self, state: Records, keys: Iterable[str], now_ms: int) -> list[Reservation]:
        found: list[Reservation] = []
        for key in keys:
            fields = state.get(key)
            lease = leases.as_of(fields, now_ms) if fields is not None else None
            if lease is not None and leases.is_live(lease):
                found.append(lease)
            elif self._index is not None:
                # An ended lease becomes live again only through a new line, which adds it here, or
                # when the clock is set back, which `_followed` notices.
                self._index.discard(key)
        # By age: the files' order differs from clone to clone.
        return sorted(self._counting(state, found), key=lambda lease: lease.age)

    def _counting(self, state: Records, found: list[Reservation]) -> list[Reservation]:
        """Returns the live ones that have not lost to an older one."""
        live = [lease for lease in found if leases.is_live(lease)]
        return [lease for lease in self._judged(state, live) if leases.is_live(lease)]

    def _followed(self, state: Records, now_ms: int) -> GlobIndex | None:
        if now_ms < self._latest_ms:
            self._index = None
        self._latest_ms = now_ms
        self._asked += 1
        if self._asked <= _SCANS:
            return None
        changed, self._cursor = state.changes(self._cursor)
        if changed is None or self._index is None:
            self._index = GlobIndex(fold_case=self.fold_case)
            for identifier, pattern in _near(state):
                self._index.add(identifier, pattern)
        else:
            for identifier in changed:
                _replace(self._index, identifier, state.get(identifier) or {})
        return self._index

    # Grants made on one machine never exclude each other. So a verdict is only needed for lines
    # from elsewhere, and it is valid until more of them arrive.

    def verdicts(self, state: Records) -> dict[str, str]:
        """Returns the winner's id for each lease of the hive that lost to an older one."""
        foreign = state.foreign()
        if not foreign:
            return {}
        if self._verdicts is None or self._verdicts[0] != foreign:
            lost = self._recalled(foreign)
            if lost is None:
                from queenbee.core.standing import superseded_leases  # noqa: PLC0415 - start-up

                whole = map(Reservation, state.everything())
                lost = superseded_leases(whole, fold_case=self.fold_case)
                keep(self._cache_path, {"rules": _RULES, "of": foreign, "lost": lost})
            self._verdicts = foreign, lost
        return self._verdicts[1]

    def _recalled(self, foreign: str) -> dict[str, str] | None:
        """Returns the verdicts that another process found for exactly these lines, or None."""
        kept = recall(self._cache_path)
        try:
            if kept["rules"] == _RULES and kept["of"] == foreign:
                return {str(key): str(value) for key, value in kept["lost"].items()}
        except (KeyError, TypeError, AttributeError):
            pass
        return None

    def _judged(self, state: Records, found: list[Reservation]) -> list[Reservation]:
        """Returns the leases, with `superseded_by` set in those that lost to an older one."""
        verdicts = self.verdicts(state) if found else {}
        if not verdicts:
            return found
        return [
            Reservation({**lease.fields, "superseded_by": verdicts[lease.id]})
            if lease.id in verdicts
            else lease
            for lease in found
        ]


def covers(lease: Reservation, path: str, *, fold_case: bool) -> bool:
    """Returns whether a lease covers a literal path; one that cannot be read covers none."""
    covered = scan_covering(path, [(lease.id, lease.pattern)], fold_case)
    return bool(covered) and not is_gone(lease, path, fold_case)


def overlaps(lease: Reservation, pattern: str, *, fold_case: bool) -> bool:
    """Returns whether a lease and a pattern share a path; one that cannot be read shares none."""
    return bool(scan_meeting(pattern, [(lease.id, lease.pattern)], fold_case))


def _outside(lease: Reservation, pattern: str, taken: Iterable[str], fold_case: bool) -> str | None:
    from queenbee.core.glob.outside import overlap_outside  # noqa: PLC0415 - start-up

    return overlap_outside(lease.pattern, pattern, taken, fold_case=fold_case)


def is_gone(lease: Reservation, path: str, fold_case: bool) -> bool:
    """Returns whether a path was taken over from a lease."""
    taken = leases.parts_taken(lease)
    return path in taken or (fold_case and fold(path) in map(fold, taken))


def _replace(index: GlobIndex, identifier: str, fields: Fields) -> None:
    index.discard(identifier)
    pattern = fields.get("pattern")
    if Reservation(fields).status == "active" and isinstance(pattern, str):
        index.add(identifier, pattern)


def _near(state: Records, places: Places | None = None) -> list[tuple[str, str]]:
    """Returns the active leases that may be there, each with its pattern."""
    rows = state.project(("id", "pattern"), ACTIVE, places=places)
    return [(str(key), pattern) for key, pattern in rows if isinstance(pattern, str)]
