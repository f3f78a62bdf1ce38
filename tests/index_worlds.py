"""The ways in which an index can be there, not be there, or be wrong.

A world is what happens to the indexes before each command. Whatever it is, `queen` has to answer
as it does where there is none.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from long_history import KINDS
from queenbee.store.index import sqlite
from queenbee.store.index import tables as index_tables

World = Callable[[Path, pytest.MonkeyPatch], "Happening"]


class Happening:
    """What befalls the indexes of one hive. On its own: nothing."""

    def __init__(self, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = repo / ".git" / "queenbee" / "index"
        self.monkeypatch = monkeypatch
        self.number = 0

    @property
    def files(self) -> list[Path]:
        """The databases, of which there may be none."""
        return [self.folder / f"{kind}.sqlite3" for kind in KINDS]

    def begin(self) -> None:
        """Happens before the hive is made."""

    def half_way(self) -> None:
        """Happens in the middle of its past."""

    def before_command(self) -> None:
        """Happens before each command that is compared."""
        self.number += 1

    @contextmanager
    def during_command(self) -> Iterator[None]:
        yield


class Off(Happening):
    """`QUEEN_INDEX=off`: what all others are compared with."""

    def begin(self) -> None:
        self.monkeypatch.setenv("QUEEN_INDEX", "off")


class Deleted(Happening):
    """Somebody deletes the folder between any two commands."""

    def before_command(self) -> None:
        super().before_command()
        if self.number % 3 == 0:
            shutil.rmtree(self.folder, ignore_errors=True)


class Stale(Happening):
    """Somebody puts back an older index, as a restored backup does."""

    def half_way(self) -> None:
        shutil.copytree(self.folder, self.folder.parent / "older")

    def before_command(self) -> None:
        super().before_command()
        if self.number % 3 == 0:
            shutil.rmtree(self.folder)
            shutil.copytree(self.folder.parent / "older", self.folder)


class Corrupt(Happening):
    """Every other command finds another kind of damage."""

    def before_command(self) -> None:
        super().before_command()
        dice = random.Random(self.number)
        for path in self.files if self.number % 2 else []:
            _checkpoint(path)
            data = DAMAGES[self.number // 2 % len(DAMAGES)](path.read_bytes(), dice)
            path.unlink()
            path.write_bytes(data)


class AnotherVersion(Happening):
    """Another version of QueenBee, with other tables, works in the same hive."""

    def before_command(self) -> None:
        super().before_command()
        for path in self.files if self.number % 3 == 0 else []:
            path.parent.mkdir(exist_ok=True)
            index_tables.remove(str(path))
            with sqlite3.connect(path) as database:
                database.execute("CREATE TABLE records (id, other)")
                database.execute("INSERT INTO records VALUES ('qm-1', 'x')")
                database.execute("PRAGMA user_version = 7")
            database.close()


class NoDatabase(Happening):
    """A state directory in which no database can be opened."""

    def begin(self) -> None:
        connect = sqlite3.connect

        def in_memory(path: str, **options: Any) -> sqlite3.Connection:
            if path != ":memory:":
                raise sqlite3.OperationalError("unable to open database file")
            made: sqlite3.Connection = connect(path, **options)
            return made

        for module in (sqlite3, sqlite):
            self.monkeypatch.setattr(module, "connect", in_memory)


class Failing(Happening):
    """A disk that fails in the middle of a command: at another statement each time."""

    def begin(self) -> None:
        connect, happening = sqlite3.connect, self

        class Connection(sqlite3.Connection):
            def execute(self, *args: Any) -> sqlite3.Cursor:
                happening.left -= 1
                if happening.left == 0:
                    raise sqlite3.OperationalError("disk I/O error")
                return super().execute(*args)

        self.left = -1

        def failing(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            made: sqlite3.Connection = connect(*args, factory=Connection, **kwargs)
            return made

        for module in (sqlite3, sqlite):
            self.monkeypatch.setattr(module, "connect", failing)

    def before_command(self) -> None:
        super().before_command()
        self.left = 1 + self.number * 7 % 60


class Held(Happening):
    """Another process holds the databases for longer than anybody waits, and writes came since."""

    def begin(self) -> None:
        self.monkeypatch.setattr(index_tables, "_OPEN_S", 0.0)
        self.monkeypatch.setattr(index_tables, "_WAIT_S", 0.0)

    @contextmanager
    def during_command(self) -> Iterator[None]:
        held = [sqlite3.connect(path, isolation_level=None) for path in self.files if path.exists()]
        for database in held:
            database.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            for database in held:
                database.close()


def _random_bytes(data: bytes, dice: random.Random) -> bytes:
    return dice.randbytes(len(data))


def _half(data: bytes, _dice: random.Random) -> bytes:
    return data[: len(data) // 2]


def _text(_data: bytes, _dice: random.Random) -> bytes:
    return b"this is no database\n" * 500


def _nothing(_data: bytes, _dice: random.Random) -> bytes:
    return b""


def _pages(data: bytes, dice: random.Random) -> bytes:
    """All pages but the first, which says what the tables are."""
    return data[:4096] + dice.randbytes(max(0, len(data) - 4096))


def _one_page(data: bytes, dice: random.Random) -> bytes:
    number = dice.randrange(1, max(2, len(data) // 4096))
    return data[: number * 4096] + dice.randbytes(4096) + data[(number + 1) * 4096 :]


DAMAGES = (_random_bytes, _half, _text, _nothing, _pages, _one_page)


def _checkpoint(path: Path) -> None:
    """Brings what the log holds into the file, and leaves no log."""
    if path.exists():
        try:
            database = sqlite3.connect(path)
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.close()
        except sqlite3.Error:
            pass
    path.parent.mkdir(exist_ok=True)
    path.touch()
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


WORLDS: dict[str, World] = {
    "on": Happening,
    "deleted": Deleted,
    "stale": Stale,
    "corrupt": Corrupt,
    "another version": AnotherVersion,
    "no database": NoDatabase,
    "failing": Failing,
    "held": Held,
}
