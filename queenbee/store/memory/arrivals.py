"""The recorded lines of all kinds in order of arrival, each with those of its record before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.store.memory.database import checked, whole_number
from queenbee.store.memory.record_lines import OF_NO_RECORD, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queenbee.store.memory.memory import Memory

    Row = tuple[int, str, int, bool]
    """Of a line: its number, its kind, the number of its record's head, whether it is loose."""


class Arrivals:
    """What arrived after a number, at most so many lines of it.

    `loose` are the kinds that have lines which no write has recorded yet: they arrive with that.
    """

    def __init__(self, memory: Memory, number: int, most: int) -> None:
        self.lines: list[tuple[int, str, Sequence[bytes], bytes]] = []
        """Of each: its number, its kind, the earlier lines of its record, and itself."""
        self.loose: set[str] = set()
        self.last: int = number
        """The number of the last line that was looked at."""
        self._memory = memory
        memory.asked(lambda: self._read(number, most))

    def _read(self, number: int, most: int) -> None:
        query = (
            "SELECT seq, kind, coalesce(first, seq), loose FROM lines WHERE seq > ? "
            "ORDER BY seq LIMIT ?"
        )
        self.lines.clear()
        found = [
            (whole_number(seq), str(kind), whole_number(head), bool(loose))
            for seq, kind, head, loose in self._memory.database.ask(query, number, most)
        ]
        self.loose = {kind for _, kind, _, is_loose in found if is_loose}
        self.last = found[-1][0] if found else number
        recorded = [row for row in found if not row[3]]
        of_records = self._of_records(recorded)
        for seq, kind, head, _ in recorded:
            if head != OF_NO_RECORD:
                known = of_records[kind, head]
                before = [raw for earlier, raw in known.items() if earlier < seq]
                self.lines.append((seq, kind, before, known[seq]))

    def _of_records(self, rows: Iterable[Row]) -> dict[tuple[str, int], dict[int, bytes]]:
        """Returns the lines of the records of these, by number, in order of arrival."""
        heads: dict[str, set[int]] = {}
        for _, kind, head, _ in rows:
            heads.setdefault(kind, set()).add(head)
        found: dict[tuple[str, int], dict[int, bytes]] = {}
        for kind, wanted in heads.items():
            for head, seq, raw, checksum, _ in lines_of(
                self._memory.database, kind, wanted - {OF_NO_RECORD}
            ):
                line = checked(kind, raw, checksum)
                found.setdefault((kind, head), {})[seq] = line
        return found


def last_number(memory: Memory) -> int:
    """Returns the number of the line that arrived last; 0 if there is none."""
    rows = memory.asked(lambda: memory.database.ask("SELECT max(seq) FROM lines"))
    return whole_number(rows[0][0] or 0)


def loose_kinds(memory: Memory) -> set[str]:
    """Returns the kinds that have lines which no write has recorded yet."""
    query = "SELECT DISTINCT kind FROM lines WHERE loose != 0"
    return {str(kind) for (kind,) in memory.asked(lambda: memory.database.ask(query))}
