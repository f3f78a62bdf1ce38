"""The live leases of a hive, found by pattern or path without comparing each."""

from __future__ import annotations

from contextlib import suppress

from queenbee.core import leases
from queenbee.core.glob.pattern import ByFolder, overlap, scan_covering, scan_meeting
from queenbee.core.records import Reservation
from queenbee.store.whole_files import keep, recall

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from queenbee.store.memory.recorded import Recorded

KIND = "reservations"
ACTIVE: Mapping[str, object] = {"status": "active"}

_SCANS = 8
"""For how many paths each text is scanned: for more, parsing the patterns once costs less."""
_RULES = 4
"""Changes with the rules of `core.standing`: what an older version found is judged again."""
_AGAIN = 2_000
"""So many leases are judged again when more arrive from elsewhere, in 50 ms: what arrives is seldom
older.
"""


class LiveLeases:
    """What is reserved at the instant of each question. Safe for threads."""

    def __init__(self, *, fold_case: bool, cache_path: str) -> None:
        self.fold_case = fold_case
        self._cache_path = cache_path
        self._verdicts: tuple[str, Mapping[str, str]] | None = None

    def overlapping(
        self, state: Recorded, patterns: Iterable[str], now_ms: int
    ) -> dict[str, list[Reservation]]:
        """Returns for each pattern the live leases that overlap it; `witness` says where."""
        held = _patterns(state)
        return {
            pattern: self._live(state, scan_meeting(pattern, held, self.fold_case), now_ms)
            for pattern in patterns
        }

    def witness(self, lease: Reservation, pattern: str) -> str:
        """Returns a path that an overlapping lease and the pattern both cover."""
        return overlap(lease.pattern, pattern, fold_case=self.fold_case) or ""

    def covering(
        self, state: Recorded, paths: Collection[str], now_ms: int
    ) -> dict[str, list[Reservation]]:
        """Returns for each literal path the live leases that cover it, oldest first."""
        patterns = _patterns(state)
        if len(paths) > _SCANS:
            table = ByFolder(patterns, fold_case=self.fold_case)
            met = {path: table.covering(path) for path in paths}
        else:
            met = {path: scan_covering(path, patterns, self.fold_case) for path in paths}
        near = self._live(state, {key for keys in met.values() for key in keys}, now_ms)
        by_age = {lease.id: (at, lease) for at, lease in enumerate(near)}
        return {
            path: [lease for _, lease in sorted(by_age[key] for key in keys if key in by_age)]
            for path, keys in met.items()
        }

    def everything(self, state: Recorded, now_ms: int, *, ended: bool = False) -> list[Reservation]:
        """Returns all live leases, oldest first; with `ended`, all leases ever, with the
        superseded ones marked.
        """
        rows = state.select({} if ended else ACTIVE)
        found = [leases.as_of(fields, now_ms) for fields in rows]
        return self._judged(state, found) if ended else self._counting(state, found)

    def _live(self, state: Recorded, keys: Iterable[str], now_ms: int) -> list[Reservation]:
        found = [leases.as_of(fields, now_ms) for key in keys if (fields := state.get(key))]
        # By age: the files' order differs from clone to clone.
        return sorted(self._counting(state, found), key=lambda lease: lease.age)

    def _counting(self, state: Recorded, found: list[Reservation]) -> list[Reservation]:
        """Returns the live ones that have not lost to an older one."""
        live = [lease for lease in found if leases.is_live(lease)]
        return [lease for lease in self._judged(state, live) if leases.is_live(lease)]

    # Grants made on one machine never exclude each other. So a verdict is only needed for lines
    # from elsewhere, and it is valid until more of them arrive. Then the last leases are judged,
    # and all if an older one has changed.

    def verdicts(self, state: Recorded) -> Mapping[str, str]:
        """Returns the winner's id for each lease of the hive that lost to an older one."""
        foreign = state.foreign()
        if not foreign:
            return {}
        if self._verdicts is None or self._verdicts[0] != foreign:
            self._verdicts = foreign, self._settled(state, foreign)
        return self._verdicts[1]

    def _settled(self, state: Recorded, foreign: str) -> Mapping[str, str]:
        """Returns the verdicts; another process may have found them for exactly these lines."""
        from queenbee.core.standing import Settled  # noqa: PLC0415 - start-up

        before, of, cursor = Settled(), None, None
        kept = recall(self._cache_path)
        with suppress(KeyError, TypeError, AttributeError, ValueError):
            if kept["rules"] == _RULES:
                lost = {str(key): str(value) for key, value in kept["lost"].items()}
                before = Settled(lost, int(kept["since_ms"]), [*map(str, kept["counting"])])
                of, cursor = str(kept["of"]), (int(kept["born"]), int(kept["change"]))
        if of == foreign:
            return before.lost
        changed, (born, change) = state.changes(cursor)
        rows = state.several(changed) if changed is not None else ()
        if changed is None or any(Reservation(row).created_ms < before.since_ms for row in rows):
            before = Settled()
        some = (*state.several(before.counting), *state.everything(before.since_ms))
        after = before.going_on(map(Reservation, some), again=_AGAIN, fold_case=self.fold_case)
        known = {name: getattr(after, name) for name in Settled.__slots__}
        keep(
            self._cache_path,
            {"rules": _RULES, "of": foreign, "born": born, "change": change, **known},
        )
        return after.lost

    def _judged(self, state: Recorded, found: list[Reservation]) -> list[Reservation]:
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
    return bool(scan_covering(path, [(lease.id, lease.pattern)], fold_case))


def overlaps(lease: Reservation, pattern: str, *, fold_case: bool) -> bool:
    """Returns whether a lease and a pattern share a path; one that cannot be read shares none."""
    return bool(scan_meeting(pattern, [(lease.id, lease.pattern)], fold_case))


def _patterns(state: Recorded) -> list[tuple[str, str]]:
    """Returns the active leases, each with its pattern."""
    return [(each, held) for each, held in state.in_effect().items() if isinstance(held, str)]
