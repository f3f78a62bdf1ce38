"""Which lines belong to one record: the first to arrive is its head, the others name that.

Most records have a single line. So only the others are in an index, and a line need not repeat the
id that its bytes have. `docs/format.md`, "Memory".
"""

from __future__ import annotations

from queenbee.core.ids import end_key
from queenbee.store.memory.database import batches, whole_number
from queenbee.store.memory.tables import table_of

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from queenbee.store.memory.database import Database

    Row = tuple[int, int, object, object, object]
    """Of a line: the `seq` of the head of its record, its own, `raw`, `sum` and `archived`."""

_MANY = 100
"""So many ids are worth a look whether there is any record."""
OF_NO_RECORD = 0
"""What a `_migration` has as its head."""


def heads_of(database: Database, kind: str, ids: Collection[str]) -> dict[str, int]:
    """Returns the `seq` of the head of each record that is known, by id."""
    heads: dict[str, int] = {}
    table = table_of(kind)
    if len(ids) > _MANY and not database.ask(f"SELECT 1 FROM {table} LIMIT 1"):  # noqa: S608
        return heads
    for marks, some in batches(sorted(ids)):
        keys = [end_key(str(each)) for each in some]
        query = f"SELECT id, seq FROM {table} WHERE end_key IN ({marks}) AND id IN ({marks})"  # noqa: S608
        for identifier, seq in database.ask(query, *keys, *some):
            heads[str(identifier)] = whole_number(seq)
    return heads


def lines_of(
    database: Database, kind: str, heads: Iterable[int], *, archived: bool = False
) -> Iterator[Row]:
    """Yields the lines of records, by their heads. Those of one record are in order of arrival.
    With `archived`, only those that a segment has.
    """
    also = " AND archived != 0" * archived
    for marks, some in batches([*heads]):
        query = (
            "SELECT seq, seq, raw, sum, archived FROM lines "  # noqa: S608
            f"WHERE seq IN ({marks}) AND kind = ? AND first IS NULL{also} UNION ALL "
            "SELECT first, seq, raw, sum, archived FROM lines "
            f"WHERE first IN ({marks}) AND kind = ?{also} ORDER BY 2"
        )
        yield from database.ask(query, *some, kind, *some, kind)  # type: ignore[misc]


def numbers_of(
    database: Database,
    kind: str,
    lines: Iterable[tuple[str, bytes]],
    *,
    archived: bool = False,
) -> dict[bytes, list[int]]:
    """Returns the numbers under which lines arrived, given with the ids of their records; with
    `archived`, only of those that a segment has.
    """
    wanted: dict[bytes, list[int]] = {}
    ids = set[str]()
    for identifier, raw in lines:
        wanted[raw] = []
        ids.add(identifier)
    heads = {*heads_of(database, kind, ids - {""}).values()}
    if "" in ids:
        heads.add(OF_NO_RECORD)
    for _, seq, line, *_ in lines_of(database, kind, heads, archived=archived):
        if isinstance(line, bytes) and line in wanted:
            wanted[line].append(seq)
    return {raw: numbers for raw, numbers in wanted.items() if numbers}
