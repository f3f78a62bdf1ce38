"""The tables of the index over the tracker's `issues.jsonl`: where each row is, what depends on
what, and where each issue stands.

`tracker_lines` fills the first two from the file; `services.tracker` fills the rest, which
assignments and documents decide as well. No text of an issue is kept: rows are read from the file.
Disposable like all indexes: ADR 0033.
"""

from __future__ import annotations

import json

from queenbee.store.index.tables import Tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Sequence

VERSION = 2
"""Of the tables below; an index of another version is rebuilt."""
_BATCH = 500
_CHILDREN = "SELECT issue FROM edges WHERE kind = 'parent-child' AND target IN ({})"
_PARENTS = "SELECT target FROM edges WHERE kind = 'parent-child' AND issue IN ({})"
_TABLES = (
    # The lines of the file. `id` is null for a blank line and for bookkeeping.
    (
        "lines (key INTEGER PRIMARY KEY, at INTEGER NOT NULL, size INTEGER NOT NULL, "
        "digest BLOB NOT NULL, id TEXT, changed_ms INTEGER)"
    ),
    # `line` is the row that counts. `state` is null for what is no work.
    (
        "issues (id TEXT PRIMARY KEY, line INTEGER NOT NULL, deleted INTEGER NOT NULL, "
        "documented INTEGER NOT NULL, deferred_ms INTEGER, priority INTEGER NOT NULL, "
        "created_ms INTEGER NOT NULL, state TEXT, holder TEXT, because TEXT, waits TEXT, "
        "free INTEGER, minutes REAL, urgency INTEGER, chain REAL, work REAL, "
        "parent INTEGER NOT NULL DEFAULT 0)"
    ),
    "edges (issue TEXT NOT NULL, target TEXT NOT NULL, kind TEXT NOT NULL)",
    # What an issue that is not done waits for, also through its parents.
    "waits (issue TEXT NOT NULL, blocker TEXT NOT NULL)",
    "names (name TEXT NOT NULL, issue TEXT NOT NULL)",
    # What assignments said when the states were computed.
    "held (issue TEXT PRIMARY KEY, droid TEXT NOT NULL)",
    "completed (issue TEXT PRIMARY KEY, assignment TEXT NOT NULL, mark TEXT NOT NULL)",
    "meta (key TEXT PRIMARY KEY, value)",
)
_INDEXES = (
    "lines_by_id ON lines (id)",
    "issues_deferred ON issues (deferred_ms) WHERE deferred_ms IS NOT NULL",
    "issues_at_work ON issues (holder) WHERE state = 'active'",
    "issues_open ON issues (id) WHERE state IS NOT NULL AND state != 'done'",
    "issues_documented ON issues (id) WHERE documented",
    (
        "issues_estimated ON issues (minutes) WHERE minutes IS NOT NULL AND state IS NOT NULL "
        "AND state != 'done'"
    ),
    (
        "issues_by_rank ON issues (urgency, chain DESC, work DESC, created_ms, id) "
        "WHERE free AND NOT parent"
    ),
    "issues_with_children ON issues (holder) WHERE free AND parent",
    "issues_by_urgency ON issues (priority, created_ms, id) WHERE free",
    "edges_by_issue ON edges (issue)",
    "edges_by_target ON edges (target, kind)",
    "waits_by_issue ON waits (issue)",
    "waits_by_blocker ON waits (blocker)",
    "names_by_name ON names (name)",
    "names_by_issue ON names (issue)",
    "completed_by_assignment ON completed (assignment)",
)


class TrackerTables(Tables):
    """An open index of the tracker. Raises `sqlite3.Error` or `OSError` if it cannot be used."""

    version = VERSION

    def __init__(self, path: str) -> None:
        super().__init__("issues", path)

    def create(self, db: sqlite3.Connection) -> None:
        for table in _TABLES:
            db.execute(f"CREATE TABLE {table}")
        db.execute(f"PRAGMA user_version = {VERSION}")

    def sort(self) -> None:
        for index in _INDEXES:
            self.db.execute(f"CREATE INDEX IF NOT EXISTS {index}")

    def notes(self) -> dict[str, object]:
        """Returns everything that `put_meta` stored."""
        return {str(key): value for key, value in self.ask("SELECT key, value FROM meta")}

    def related(self, query: str, ids: Collection[object]) -> Iterator[tuple[object, ...]]:
        """Yields the rows that a query with `IN ({})` gives for these ids, in batches."""
        ordered = list(ids)
        for begin in range(0, len(ordered), _BATCH):
            some = ordered[begin : begin + _BATCH]
            marks = ", ".join("?" * len(some))
            yield from self.ask(query.replace("{}", marks), *some)

    def texts(self, query: str, ids: Collection[str]) -> set[str]:
        """Returns the texts in the first column of such rows."""
        return {str(row[0]) for row in self.related(query, ids)}

    def forget(self, table: str, column: str, ids: Collection[str]) -> None:
        """Deletes the rows of a table that have one of these ids."""
        query = f"DELETE FROM {table} WHERE {column} = ?"  # noqa: S608 - names of our own
        self.db.executemany(query, [(each,) for each in ids])

    def add(self, table: str, rows: Iterable[Sequence[object]], columns: int) -> None:
        """Inserts rows into a table with so many columns, in place of those with the same key."""
        marks = ", ".join("?" * columns)
        query = f"INSERT OR REPLACE INTO {table} VALUES ({marks})"  # noqa: S608 - names of our own
        self.db.executemany(query, rows)

    def affected_by(self, ids: Collection[str]) -> set[str]:
        """Returns the issues whose standing may be another once these have changed.

        Ask before and after the change: an edge may be gone, or new.
        """
        found = set(ids) | self.texts(
            "SELECT issue FROM edges WHERE kind IN ('blocks', 'conditional-blocks') "
            "AND target IN ({})",
            ids,
        )
        # A `waits-for` waits for the children of its target.
        found |= self.texts(
            "SELECT issue FROM edges WHERE kind = 'waits-for' AND target IN ({})",
            self.parents_of(ids),
        )
        return self._closed(found, _CHILDREN)

    def parents_of(self, ids: Collection[str]) -> set[str]:
        """Returns the issues that these are children of."""
        return self.texts(_PARENTS, ids)

    def needed_for(self, ids: Collection[str]) -> set[str]:
        """Returns the issues that decide where these stand: themselves, their parents to any
        height, and what all of them depend on.
        """
        related = self._closed(set(ids), _PARENTS)
        targets = self.texts("SELECT target FROM edges WHERE issue IN ({})", related)
        spawners = self.texts(
            "SELECT target FROM edges WHERE kind = 'waits-for' AND issue IN ({})", related
        )
        children = self.texts(_CHILDREN, spawners)
        return related | targets | children

    def upstream_of(self, ids: Collection[str]) -> set[str]:
        """Returns these issues and all that they wait for, directly or not."""
        return self._closed(set(ids), "SELECT blocker FROM waits WHERE issue IN ({})")

    def downstream_of(self, ids: Collection[str]) -> set[str]:
        """Returns these issues and all that wait for them, directly or not."""
        return self._closed(set(ids), "SELECT issue FROM waits WHERE blocker IN ({})")

    def _closed(self, found: set[str], query: str) -> set[str]:
        fresh: set[str] = found
        found = set(found)
        while fresh:
            fresh = self.texts(query, fresh) - found
            found |= fresh
        return found


def waits_of(text: object) -> list[str]:
    """Returns the ids that an issue waits for, from its row in the index."""
    found: list[str] = json.loads(str(text)) if text else []
    return found
