"""A clone's memory of one hive: every line in order of arrival, and what each record folds to.

`docs/format.md`, "Memory"; ADR 0042.
"""

from __future__ import annotations

import os
from contextlib import suppress
from errno import ENOSPC

from queenbee.errors import Busy, QueenError, Unreadable, Unwritable
from queenbee.store import safe_open
from queenbee.store.codec import named
from queenbee.store.memory import sqlite
from queenbee.store.memory.database import (
    Database,
    checked,
    is_busy,
    is_damage,
    is_unwritable,
)
from queenbee.store.memory.folding import Folding
from queenbee.store.memory.record_lines import OF_NO_RECORD
from queenbee.store.memory.tables import make_fold, table_of

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TypeVar

    from queenbee.store.memory.database import Progress

    Found = TypeVar("Found")

_MOST_ASIDE = 3
"""Files that were set aside, and of which every line can be read."""


class Memory:
    """The memory, whatever brings it lines: `refresh` is each carrier's own. Safe for threads."""

    def __init__(self, path: str) -> None:
        self.database: Database = Database(path, self._fold_anew)
        self.progress: Progress | None = None
        """Called while lines are taken in."""

    def refresh(self, kind: str) -> None:
        """Takes in what is new of a kind."""
        raise NotImplementedError

    def make_room(self, path: str) -> None:
        """Lets the memory be kept where a file is too long to be read by each command."""

    def stamp(self, kind: str) -> object:
        """Returns a value that changes whenever lines of a kind come or go; for cheap polling."""
        raise NotImplementedError

    def all_kinds(self) -> list[str]:
        """Returns the kinds of record that have lines, also where nothing was taken in yet."""
        raise NotImplementedError

    def lacking(self, kind: str) -> list[bytes]:
        """Returns the recorded lines that the tracked files should have, and lack."""
        return []

    def write(self, lines: Mapping[str, Sequence[bytes]]) -> None:
        """Records lines of several kinds in the turn that has begun, all or none."""
        raise NotImplementedError

    def sync(self) -> None:
        """Returns when what was written is on disk. Raises `DurabilityUnknown`."""

    def unusable(self, kind: str) -> int:
        """Returns the number of lines of a kind that hold no record."""
        return 0

    def kinds(self) -> list[str]:
        """Returns the kinds that have lines."""
        query = (
            "SELECT substr(key, 6) AS name FROM meta JOIN sqlite_master AS s "
            "ON s.name = 'records ' || substr(key, 6) WHERE key LIKE 'born %'"
        )

        def kinds() -> list[str]:
            # A name is part of the names of files: nothing in a memory leads out of their folder.
            names = [str(name) for (name,) in self.database.ask(query)]
            return [each for each in names if "/" not in each and each.isprintable() and has(each)]

        def has(kind: str) -> bool:
            # Not of all lines, which have no index by their kind.
            has_any = f"SELECT EXISTS (SELECT 1 FROM {table_of(kind)})"  # noqa: S608
            others = "SELECT EXISTS (SELECT 1 FROM lines WHERE first = 0 AND kind = ?)"
            return bool(self.database.ask(has_any)[0][0] or self.database.ask(others, kind)[0][0])

        return self.asked(kinds)

    def identity(self) -> str:
        """Returns a text that no other memory has, nor an older copy of this one that was put back:
        each numbers its lines in its own way.
        """
        return self.asked(self.database.identity)

    def close(self) -> None:
        """Closes the file; the next question opens it again."""
        self.database.close()

    def asked(self, ask: Callable[[], Found]) -> Found:
        """Returns what a question brings. If the file is damaged, another one takes its place, with
        what can still be read of it and with what the ledgers have; if it cannot be written, a copy
        in this process does. Raises `Unreadable`.
        """
        for is_again in (False, True):
            try:
                with self.database.mutex:
                    return ask()
            except sqlite.Error as error:
                if is_busy(error):
                    raise _busy(self.database.path) from error
                if not is_again and is_unwritable(error) and self.database.is_durable:
                    self.database.stand_in()
                elif not is_again and is_damage(error):
                    self._replace()
                else:
                    raise _unreadable(self.database.path, error) from error
        raise AssertionError

    def changed(self, change: Callable[[], Found]) -> Found:
        """Returns what a change brings. If the file is damaged, another one takes its place, and
        the change is made there: it must be one that a rollback undoes. Raises `sqlite3.Error`.
        """
        with self.database.mutex:
            try:
                return change()
            except sqlite.Error as error:
                if not is_damage(error):
                    raise
            self._replace()
            return change()

    def count_arrival(self, kind: str) -> None:
        """Notes that verdicts on what met in a merge are to be made again."""

        def counted() -> None:
            with self.database.turn():
                self.database.count(f"arrivals {kind}")

        self.changed(counted)

    # What a machine notes beside the lines: it is lost with the memory, and never sent anywhere.

    def noted(self, name: str) -> object:
        """Returns what was noted under a name, or None."""
        if self.database.is_behind():
            self.close()
        return self.asked(lambda: self.database.meta(name))

    def notes(self, begin: str) -> dict[str, object]:
        """Returns what was noted under names with this beginning, without it, sorted."""
        if self.database.is_behind():
            self.close()
        query = "SELECT substr(key, ?), value FROM meta WHERE substr(key, 1, ?) = ? ORDER BY key"
        length = len(begin)
        rows = self.asked(lambda: self.database.ask(query, length + 1, length, begin))
        return {str(name): value for name, value in rows}

    def note(self, name: str, value: object) -> None:
        """Notes a number or a text; None forgets what was noted. Raises `Unwritable`."""
        database = self.database
        try:
            safe_open.make_folder(os.path.dirname(database.path))
            database.may_create = True
            if database.is_behind() or not database.is_durable:
                self.close()
            self.changed(lambda: self._noted_now(name, value))
        except (sqlite.Error, OSError) as error:
            raise refusal(database.path, error) from error

    def _noted_now(self, name: str, value: object) -> None:
        with self.database.turn():
            if value is None:
                self.database.db.execute("DELETE FROM meta WHERE key = ?", (name,))
            else:
                self.database.put_meta(name, value)

    def rebuild(self) -> None:
        """Folds every record anew, from the lines. If one of them is not what it says, they are
        made anew, too.
        """

        def folded() -> None:
            kinds = self.kinds()  # No turn is open when another file takes the place of this one.
            with self.database.turn():
                for kind in kinds:
                    self._check_lines(kind)
                make_fold(self.database.db)
                self._fold_anew(self.database)

        self.asked(folded)

    def differing(self, kind: str, known: Collection[int]) -> int:
        """Returns the number of lines that are in the memory or in the tracked files alone, and
        should not be; given the hashes of the lines of all records.
        """
        return 0

    def _check_lines(self, kind: str) -> None:
        query = "SELECT seq, first, raw, sum FROM lines WHERE kind = ? ORDER BY seq"
        heads: dict[str | None, object] = {"": OF_NO_RECORD}
        for seq, first, raw, checksum in self.database.db.execute(query, (kind,)):
            line = named(checked(kind, raw, checksum))
            if heads.setdefault(line, seq) != (seq if first is None else first):
                raise sqlite.DatabaseError("the memory has a line in another record")

    def _fold_anew(self, database: Database) -> None:
        rows = database.ask("SELECT kind, sum(first IS NULL) FROM lines GROUP BY kind")
        if not rows:
            self._restore(database)
        report = self.progress if rows else None
        done, total = 0, sum(int(str(count)) for _, count in rows)
        try:
            for kind, _ in rows:
                folding = Folding(database, str(kind))
                for count in folding.fold_all():
                    done += count
                    if report:
                        report(done, total + 1)  # Never 100 %: the commit is still to come.
                folding.finish()
        finally:
            if report:
                report(1, 1)

    def _restore(self, database: Database) -> None:
        """Fills a new file with lines that only those that were set aside may have: it has them
        from its first commit on, whoever makes it, and whatever ended the one who set them aside.
        """

    def _replace(self) -> None:
        """Lets another file take the place of a damaged one, with the lines that can be read."""
        self.database.set_aside()
        with suppress(sqlite.Error, OSError, QueenError):
            if self.database.db and self.database.is_durable:
                self._forget_older()

    def _forget_older(self) -> None:
        """Removes the oldest of the files that were set aside, except those of which a part cannot
        be read: the memory has all lines of the others.
        """
        from queenbee.store.memory.salvage import salvaged  # noqa: PLC0415 - start-up

        with suppress(OSError):
            for path in self.database.aside()[:-_MOST_ASIDE]:
                if salvaged(path).is_whole:
                    self.database.forget(path)


def refusal(path: str, error: sqlite.Error | OSError) -> QueenError:
    """Returns the refusal for a write that failed."""
    if is_busy(error):
        return _busy(path)
    is_full = getattr(error, "sqlite_errorname", "") == "SQLITE_FULL"
    why = os.strerror(ENOSPC) if is_full else getattr(error, "strerror", None) or error
    return Unwritable(
        f"{path} cannot be written: {why}; nothing was recorded",
        hint="free some disk space, then try again" if is_full else None,
        path=path,
    )


def _busy(path: str) -> Busy:
    return Busy(f"{path} is in use by another process", hint="try again", path=path)


def _unreadable(path: str, error: Exception) -> Unreadable:
    return Unreadable(
        f"{path} cannot be read: {error}",
        hint="it is rebuilt from the ledgers once it is moved away",
        path=path,
    )
