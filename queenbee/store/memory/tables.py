"""The tables of a memory: made in a new file, and compared with those that a file has.

`docs/format.md`, "Memory"; ADR 0042.
"""

from __future__ import annotations

from queenbee.core.kinds import KINDS, kind_of
from queenbee.store.memory import sqlite

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Schema = dict[object, tuple[object, ...]]
    """What SQLite has as the definition of each table, index, view and trigger: name, and (type,
    table, SQL)."""

APPLICATION_ID = 0x51426565
"""In the header of the file: "QBee". A file with another one is not ours."""
LINES_VERSION = 2
"""Of the tables that cannot be made anew. A newer one is refused."""
FOLD_VERSION = 5
"""Of the tables that follow from the lines: made anew in another version's file."""
MOST = 2**53
"""No number that is counted here gets this large; one that is was written by somebody else."""

_SPARSE = frozenset({"issue_id", "thread_id", "released_at"})
"""Columns that most records leave empty: an index has the others only."""
_TEXT = "TEXT NOT NULL CHECK (typeof({0}) = 'text')"
_COUNT = f"INTEGER NOT NULL CHECK ({{0}} BETWEEN {{1}} AND {MOST})"
"""Neither text nor bytes are between two numbers. Fractions are, and are refused when read."""
_LINES = {
    "lines": f"TABLE lines (seq INTEGER PRIMARY KEY CHECK (seq BETWEEN 1 AND {MOST}), "
    f"kind {_TEXT.format('kind')}, first INTEGER CHECK (first BETWEEN 0 AND {MOST}), "
    "raw BLOB NOT NULL CHECK (typeof(raw) = 'blob'), sum INTEGER NOT NULL, "
    f"loose {_COUNT.format('loose', 0)}, archived {_COUNT.format('archived', 0)})",
    "later_lines": "INDEX later_lines ON lines (first) WHERE first IS NOT NULL",
    "loose_lines": "INDEX loose_lines ON lines (kind) WHERE loose != 0",
    "ledgers": f"TABLE ledgers (number {_COUNT.format('number', 1)}, "
    f"path {_TEXT.format('path')}, kind {_TEXT.format('kind')}, inode INTEGER NOT NULL, "
    f"offset {_COUNT.format('offset', 0)}, sum TEXT NOT NULL, changed_ns INTEGER NOT NULL, "
    f"is_whole INTEGER NOT NULL, recorded_to {_COUNT.format('recorded_to', -2)}, "
    f"unusable {_COUNT.format('unusable', 0)}, archive TEXT NOT NULL, "
    f"settled_bytes {_COUNT.format('settled_bytes', 0)}, "
    f"due_offset {_COUNT.format('due_offset', 0)}, due_sum TEXT NOT NULL, "
    f"due_ns INTEGER NOT NULL, due_to {_COUNT.format('due_to', -1)}, "
    "PRIMARY KEY (path, kind)) WITHOUT ROWID",
    "meta": "TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID",
}
"""`loose` is the number of the ledger that alone has a line, 0 for a line that is recorded. `first`
is the `seq` of the first line of the same record, for the later ones; 0 for a `_migration`."""
_MARKS = "TABLE marks (kind TEXT, id TEXT, name TEXT, PRIMARY KEY (kind, id, name)) WITHOUT ROWID"
_TRACKERS = {
    "trackers": "TABLE trackers (number INTEGER PRIMARY KEY, path TEXT NOT NULL, "
    "state TEXT NOT NULL, version INTEGER NOT NULL, gone INTEGER NOT NULL, "
    "unusable TEXT NOT NULL, anonymous INTEGER NOT NULL)",
    "tracker_paths": "UNIQUE INDEX tracker_paths ON trackers (path)",
    "issue_rows": "TABLE issue_rows (number INTEGER NOT NULL, id TEXT NOT NULL, filed BLOB, "
    "base BLOB, laid BLOB, sum INTEGER NOT NULL, kept INTEGER NOT NULL, "
    "theirs INTEGER NOT NULL, torn INTEGER NOT NULL, change INTEGER NOT NULL)",
    "rows_of": "UNIQUE INDEX rows_of ON issue_rows (number, id)",
    "news_of_rows": "INDEX news_of_rows ON issue_rows (number) WHERE theirs = 1",
    "unfiled_rows": "INDEX unfiled_rows ON issue_rows (number) WHERE laid IS NOT NULL",
    "unkept_rows": "INDEX unkept_rows ON issue_rows (number) WHERE kept = 0",
    "changed_rows": "INDEX changed_rows ON issue_rows (number, change)",
    "boards": "TABLE boards (number INTEGER PRIMARY KEY, noted TEXT NOT NULL)",
    "standings": "TABLE standings (number INTEGER NOT NULL, id TEXT NOT NULL, "
    "state TEXT NOT NULL, holder TEXT, children INTEGER NOT NULL, priority INTEGER NOT NULL, "
    "urgency INTEGER NOT NULL, chain REAL NOT NULL, behind REAL NOT NULL, "
    "created_ms INTEGER NOT NULL, minutes REAL, special INTEGER NOT NULL)",
    "standings_of": "UNIQUE INDEX standings_of ON standings (number, id)",
    "states": "INDEX states ON standings (number, state, holder)",
    "startable": "INDEX startable ON standings (number, priority, created_ms, id, holder) "
    "WHERE state = 'ready'",
    "takeable": "INDEX takeable ON standings (number, urgency, chain DESC, behind DESC, "
    "created_ms, id) WHERE state = 'ready' AND children = 0",
    "special_standings": "INDEX special_standings ON standings (number) WHERE special = 1",
    "held_standings": "INDEX held_standings ON standings (number) WHERE holder IS NOT NULL",
    "estimates": "INDEX estimates ON standings (number, minutes) WHERE minutes IS NOT NULL",
    "needs": "TABLE needs (number INTEGER NOT NULL, id TEXT NOT NULL, target TEXT NOT NULL, "
    "kind TEXT NOT NULL, PRIMARY KEY (number, id, target, kind)) WITHOUT ROWID",
    "needed_by": "INDEX needed_by ON needs (number, target)",
}
"""Of each tracker's file, what of it was taken in, and its rows, as `tracker_memory` lays them;
where they stand, as `services.board` works it out, and what depends on what."""
_RECORDS = "records "
"""The beginning of the name of a table of records, before the name of its kind."""


# Comparing.


def schema_of(db: sqlite.Connection) -> Schema:
    """Returns the definitions that a file has."""
    rows = db.execute("SELECT name, type, tbl_name, sql FROM sqlite_master").fetchall()
    return {name: tuple(rest) for name, *rest in rows}


def is_ours(schema: Schema, version: int, application_id: int) -> bool:
    """Returns whether a file is ours: by its `application_id`, or if it has none, because it is
    new, or was made before there was one.
    """
    if application_id:
        return application_id == APPLICATION_ID
    return not (schema or version) or {"lines", "ledgers", "meta", "marks"} <= schema.keys()


def is_as_made(schema: Schema) -> bool:
    """Returns whether a file has exactly the definitions that this version makes. Others could
    answer anything, or never.
    """
    other = schema.keys() - _OF_KINDS.keys()
    if not other:
        return schema == _OF_KINDS
    wanted = dict(_OF_KINDS)
    for name in other:  # Of kinds that only another version knows.
        if isinstance(name, str) and name.startswith(_RECORDS):
            wanted.update(_of_kind(name.removeprefix(_RECORDS)))
    return schema == wanted


def are_lines_as_made(schema: Schema) -> bool:
    """Returns whether the tables that cannot be made anew are as this version makes them, and the
    others can be dropped.
    """
    return schema == _OF_KINDS or (
        all(schema.get(name) == made for name, made in _OF_LINES.items())
        and {kind for kind, *_ in schema.values()} <= {"table", "index"}
        and not any(str(name).startswith("sqlite_stat") for name in schema)
    )


def _defined(name: str, definition: str, table: str) -> tuple[str, tuple[object, ...]]:
    kind = "table" if definition.startswith("TABLE") else "index"
    return name, (kind, table, f"CREATE {definition}")


def _table_in(name: str, definition: str) -> str:
    """Returns the table that a definition makes, or makes an index of."""
    return name if definition.startswith("TABLE") else definition.partition(" ON ")[2].split()[0]


# Making.


def make_lines(db: sqlite.Connection) -> None:
    """Makes the tables that cannot be made anew, in an empty file."""
    for definition in _LINES.values():
        db.execute(f"CREATE {definition}")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {LINES_VERSION}")


def make_fold(db: sqlite.Connection) -> None:
    """Makes the tables that follow from the lines, empty: whoever asks first folds them."""
    for name, (kind, *_) in schema_of(db).items():
        if kind == "table" and name not in _LINES:
            db.execute(f"DROP TABLE {_quoted(str(name))}")
    for definition in (_MARKS, *_TRACKERS.values()):
        db.execute(f"CREATE {definition}")
    db.execute("DELETE FROM meta WHERE key LIKE 'in effect %'")
    for kind in KINDS:
        make_records(db, kind)
    db.execute("INSERT OR REPLACE INTO meta VALUES ('fold', ?)", (FOLD_VERSION,))


def table_of(kind: str) -> str:
    """Returns the name of the table of a kind's records, quoted for SQL."""
    return _quoted(f"{_RECORDS}{kind}")


def make_records(db: sqlite.Connection, kind: str) -> None:
    """Makes the table of a kind's records, if it is not there."""
    query = "SELECT 1 FROM sqlite_master WHERE name = ?"
    if not db.execute(query, (f"{_RECORDS}{kind}",)).fetchone():
        db.execute(f"CREATE {_records(kind)}")
        index_records(db, kind)


def index_records(db: sqlite.Connection, kind: str) -> None:
    """Makes the SQL indexes of a kind's records."""
    db.execute(f"DROP INDEX IF EXISTS {_quoted(f'{kind} by id')}")
    for _, definition in _indexes(kind):
        db.execute(f"CREATE {definition}")


def unindex_records(db: sqlite.Connection, kind: str) -> None:
    """Removes the SQL indexes of a kind: to sort many records afterwards takes a fifth of the time
    of keeping them sorted from the first on. Meanwhile, one by id takes their place: most new ids
    come last in it.
    """
    for name, _ in _indexes(kind):
        db.execute(f"DROP INDEX {_quoted(name)}")
    db.execute(f"CREATE UNIQUE INDEX {_quoted(f'{kind} by id')} ON {table_of(kind)} (id)")


def _records(kind: str) -> str:
    named = "".join(f', "{column}" TEXT' for column in kind_of(kind).columns)
    return (
        f"TABLE {table_of(kind)} (change INTEGER PRIMARY KEY, "
        "id TEXT NOT NULL, told INTEGER NOT NULL, created_ms INTEGER NOT NULL, "
        "read INTEGER NOT NULL, deleted INTEGER NOT NULL, end_key TEXT NOT NULL, "
        f"seq INTEGER NOT NULL, body BLOB, body_sum INTEGER{named})"
    )


def _indexes(kind: str) -> Iterator[tuple[str, str]]:
    """Yields the SQL indexes of a kind: the name of each, and how it is defined."""
    indexes: tuple[Sequence[str], ...] = (("end_key",), *kind_of(kind).indexes)
    for number, columns in enumerate(indexes):
        name = f"{kind} by {number}"
        names = ", ".join(f'"{column}"' for column in columns)
        where = f' WHERE "{columns[0]}" IS NOT NULL' if columns[0] in _SPARSE else ""
        yield name, f"INDEX {_quoted(name)} ON {table_of(kind)} ({names}){where}"


def _of_kind(kind: str) -> Schema:
    table = f"{_RECORDS}{kind}"
    return {
        **dict([_defined(table, _records(kind), table)]),
        **dict(_defined(name, definition, table) for name, definition in _indexes(kind)),
    }


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_OF_LINES: Schema = dict(
    _defined(name, definition, _table_in(name, definition)) for name, definition in _LINES.items()
)
_OF_KINDS: Schema = dict([*_OF_LINES.items(), _defined("marks", _MARKS, "marks")])
for _name, _definition in _TRACKERS.items():
    _OF_KINDS.update([_defined(_name, _definition, _table_in(_name, _definition))])
for _name in KINDS:
    _OF_KINDS.update(_of_kind(_name))
