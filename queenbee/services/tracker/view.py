"""The questions that the index of the tracker answers, in one consistent state."""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager, nullcontext

from queenbee.core.beads import Issue, as_completed
from queenbee.core.readiness import STATES, Standing, ranked
from queenbee.services.tracker.upkeep import Upkeep, completions
from queenbee.store.index import sqlite
from queenbee.store.index.tables import is_damage
from queenbee.store.index.tracker import TrackerTables, waits_of
from queenbee.store.index.tracker_lines import Source, Stale, Unfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from queenbee.core.fold import Fields
    from queenbee.services.documents import Documents
    from queenbee.services.store import Store
    from queenbee.store.records import Records

FAILURES = (sqlite.Error, OSError, Stale, Unfit, ValueError, OverflowError, AssertionError)
"""What keeps an index from answering: the file answers then."""
_TRIES = 3
_FREE = "free AND (holder IS NULL OR holder = ?)"


class View:
    """The index as it is while a question is asked. Raises one of `FAILURES`."""

    def __init__(self, tables: TrackerTables, source: Source, assignments: Records) -> None:
        self._tables = tables
        self._source = source
        self._assignments = assignments

    def ids(self) -> list[str]:
        """Returns the ids of all issues, without tombstones."""
        return [
            str(each) for (each,) in self._tables.ask("SELECT id FROM issues WHERE NOT deleted")
        ]

    def has(self, issue_id: str) -> bool:
        """Returns whether the tracker has an issue, a tombstone included."""
        return bool(self._tables.ask("SELECT 1 FROM issues WHERE id = ?", issue_id))

    def tracked(self, ids: Collection[str]) -> dict[str, Issue]:
        """Returns the tracker's own rows of issues, tombstones included."""
        query = (
            "SELECT issues.id, at, size FROM issues JOIN lines ON lines.key = line "
            "WHERE issues.id IN ({})"
        )
        return {
            str(key): Issue(self._source.row(int(str(at)), int(str(size)), str(key)))
            for key, at, size in self._tables.related(query, ids)
        }

    def exact_row(self, issue_id: str) -> Fields | None:
        """Returns the tracker's own row for writing back, or None."""
        query = "SELECT at, size FROM issues JOIN lines ON lines.key = line WHERE issues.id = ?"
        for at, size in self._tables.ask(query, issue_id):
            return self._source.exact_row(int(str(at)), int(str(size)), issue_id)
        return None

    def issues(self, ids: Collection[str]) -> dict[str, Issue]:
        """Returns issues as rows and completions say, tombstones included, in this order."""
        tracked = self.tracked(ids)
        completed = completions(self._tables, self._assignments, tracked)
        return {
            key: as_completed(tracked[key], completed[key]) if key in completed else tracked[key]
            for key in ids
            if key in tracked
        }

    def standings(self, ids: Collection[str]) -> dict[str, Standing]:
        """Returns where issues stand, without those that are no work."""
        query = (
            "SELECT id, holder, waits, because FROM issues WHERE state IS NOT NULL AND id IN ({})"
        )
        rows = {str(row[0]): row[1:] for row in self._tables.related(query, ids)}
        found = self.issues([each for each in ids if each in rows])
        return {
            key: Standing(
                issue,
                holder=_text(rows[key][0]),
                waits_for=waits_of(rows[key][1]),
                because=_text(rows[key][2]),
            )
            for key, issue in found.items()
        }

    def needed_for(self, issue_id: str) -> dict[str, Issue]:
        """Returns the issues that decide where one stands, in the order of the file."""
        ids = self._tables.needed_for([issue_id])
        query = "SELECT id, min(at) FROM lines WHERE id IN ({}) GROUP BY id"
        first = {str(key): int(str(at)) for key, at in self._tables.related(query, ids)}
        return self.issues(sorted(first, key=first.__getitem__))

    def open(self) -> dict[str, Standing]:
        """Returns where the issues stand that are not done, in the order of the file."""
        rows = self._tables.ask(
            "SELECT issues.id FROM issues JOIN lines ON lines.id = issues.id "
            "WHERE state IS NOT NULL AND state != 'done' GROUP BY issues.id ORDER BY min(at)"
        )
        return self.standings([str(each) for (each,) in rows])

    def counts(self) -> dict[str, int]:
        """Returns what `core.readiness.counts` does."""
        found: dict[str, int] = json.loads(str(self._tables.meta("counts")))
        return {**{state: found.get(state, 0) for state in STATES}, "total": sum(found.values())}

    def ready(self, actor: str | None, limit: int | None = None) -> list[Issue]:
        """Returns what `actor` could start now: most urgent first, then oldest."""
        rows = self._tables.ask(
            f"SELECT id FROM issues WHERE {_FREE} ORDER BY priority, created_ms, id LIMIT ?",  # noqa: S608
            actor,
            -1 if limit is None else limit,
        )
        return list(self.issues([str(each) for (each,) in rows]).values())

    def ready_to_take(self) -> int:
        """Returns how many issues are ready that have no open children."""
        query = "SELECT count(*) FROM issues WHERE free AND parent AND holder IS NULL"
        [[parents]] = self._tables.ask(query)
        return self.counts()["ready"] - int(str(parents))

    def to_take(
        self,
        actor: str | None,
        *,
        reserved: Callable[[Mapping[str, set[str]]], Collection[str]] | None,
        contested: Collection[str],
    ) -> Iterator[str]:
        """Yields the ids of what an actor could start, as `in_order_to_take` orders them.

        `reserved` is asked for some issues at a time, each with the files that it names.
        """
        rows = self._tables.db.execute(
            f"SELECT id, urgency, chain, work FROM issues WHERE {_FREE} AND NOT parent "  # noqa: S608
            "ORDER BY urgency, chain DESC, work DESC, created_ms, id",
            (actor,),
        )

        def held(ids: Sequence[str]) -> Collection[str]:
            return reserved(self.names_of(ids)) if reserved is not None else ()

        candidates = ((str(row[0]), (row[1], row[2], row[3])) for row in rows)
        return ranked(candidates, reserved=held, contested=contested)

    def held_by_others(self, actor: str | None) -> list[str]:
        """Returns the ids of the issues that others are at."""
        query = "SELECT id FROM issues WHERE state = 'active' AND holder IS NOT ?"
        return [str(each) for (each,) in self._tables.ask(query, actor)]

    def names_of(self, ids: Collection[str]) -> dict[str, set[str]]:
        """Returns what issues name in their texts that looks like a file."""
        named: dict[str, set[str]] = {each: set() for each in ids}
        query = "SELECT issue, name FROM names WHERE issue IN ({})"
        for issue, name in self._tables.related(query, ids):
            named[str(issue)].add(str(name))
        return named

    def naming(self, names: Collection[str]) -> set[str]:
        """Returns the issues that name one of these files."""
        return self._tables.texts("SELECT issue FROM names WHERE name IN ({})", names)

    def behind(self, issue_id: str) -> list[Standing]:
        """Returns where the issues stand that wait for this one, in the order of the file."""
        rows = self._tables.ask(
            "SELECT waits.issue FROM waits JOIN lines ON lines.id = waits.issue "
            "WHERE blocker = ? GROUP BY waits.issue ORDER BY min(at)",
            issue_id,
        )
        return list(self.standings([str(each) for (each,) in rows]).values())


class TrackerIndex:
    """The index of a tracker's file, which is opened when it is first asked."""

    def __init__(self, store: Store, documents: Documents) -> None:
        self._store = store
        self._documents = documents
        self._process = os.getpid()
        self._tables: TrackerTables | None = None
        self._view: View | None = None

    @property
    def is_inherited(self) -> bool:
        """Returns whether this process was forked from the one that opened it."""
        return self._process != os.getpid()

    @contextmanager
    def view(self, holders: Callable[[], Mapping[str, str]]) -> Iterator[View]:
        """Yields the index as it is now, brought up to date. Raises one of `FAILURES`, and
        `QueenError`.
        """
        if self._view is not None:  # A question within a question.
            yield self._view
            return
        if self._tables is None:
            self._tables = TrackerTables(self._store.layout.index_path("issues"))
        tables = self._tables
        with tables.mutex:
            if tables.is_gone():
                tables.reopen()
            with self._current(tables, holders) as view:
                self._view = view
                try:
                    yield view
                finally:
                    self._view = None

    @contextmanager
    def _current(
        self, tables: TrackerTables, holders: Callable[[], Mapping[str, str]]
    ) -> Iterator[View]:
        assignments = self._store.state("assignments")
        held = holders()
        path = self._store.layout.issues_path
        for _ in range(_TRIES):
            with Source(path) as source:

                def upkeep(source: Source = source) -> Upkeep:
                    return Upkeep(
                        tables,
                        source,
                        documents=self._documents,
                        assignments=assignments,
                        holders=held,
                        now_ms=self._store.now_ms(),
                    )

                for just_read in (False, True):
                    # What is read stays the same until the end, whoever writes meanwhile.
                    tables.db.execute("BEGIN")
                    try:
                        if tables.meta("unfit") == json.dumps(source.stamp):
                            raise Unfit
                        if upkeep().is_done(just_read=just_read):
                            yield View(tables, source, assignments)
                            return
                    finally:
                        if tables.db.in_transaction:
                            tables.db.execute("ROLLBACK")
                    if source.wait_s and tables.meta("stamp") != json.dumps(source.stamp):
                        time.sleep(source.wait_s)
                        break  # It may be another file by now.
                    if not just_read:
                        _bring_up_to_date(tables, source, upkeep)
        raise Stale

    def start_over(self, error: Exception) -> bool:
        """Deletes a damaged index; returns whether it makes sense to ask again."""
        damaged = isinstance(error, (ValueError, AssertionError)) or (
            isinstance(error, sqlite.Error) and is_damage(error)
        )
        tables = self._tables
        if tables is None or not damaged:
            return False
        with tables.mutex:
            tables.start_over()
        return True

    def close(self) -> None:
        """Closes the database."""
        tables, self._tables = self._tables, None
        if tables is not None and not self.is_inherited:
            with tables.mutex:
                tables.close()


def _bring_up_to_date(tables: TrackerTables, source: Source, upkeep: Callable[[], Upkeep]) -> None:
    is_new = tables.meta("stamp") is None
    try:
        with tables.unlogged() if is_new else nullcontext(), tables.transaction():
            upkeep().do()
    except Unfit:
        with tables.transaction():
            tables.clear()
            tables.put_meta("unfit", json.dumps(source.stamp))
        raise


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
