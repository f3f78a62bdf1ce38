"""The ways in which a clone's memory can be there, not be there, or be wrong.

A world is what happens to the file before each command. Whatever it is, `queen` has to answer as
it does where nothing happens.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_SUFFIXES = ("", "-wal", "-shm", "-journal")


class Happening:
    """What befalls the memory of one hive. On its own: nothing."""

    keeps_lines = True
    """Whether lines that only the memory has survive it."""

    def __init__(self, repo: Path) -> None:
        self.path = repo / ".git" / "queenbee" / "hive.sqlite3"
        self.number = 0

    def half_way(self) -> None:
        """Happens in the middle of its past."""

    def before_command(self) -> None:
        """Happens before each command that is compared."""
        self.number += 1

    @contextmanager
    def during_command(self) -> Iterator[None]:
        yield

    def remove(self) -> None:
        for suffix in _SUFFIXES:
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def change(self, *statements: str) -> None:
        """Changes the file as another program does, and leaves no log."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            for each in (*statements, "PRAGMA wal_checkpoint(TRUNCATE)"):
                database.execute(each)


class Deleted(Happening):
    """Somebody deletes it between any two commands."""

    keeps_lines = False

    def before_command(self) -> None:
        super().before_command()
        if self.number % 3 == 0:
            self.remove()


class DeletedWithoutItsLog(Happening):
    """Somebody deletes the one file, and a killed process has left its log beside it."""

    keeps_lines = False

    def before_command(self) -> None:
        super().before_command()
        if self.number % 3 == 0 and self.path.exists():
            leave_log(self.path)
            self.path.unlink()


class Stale(Happening):
    """Somebody puts back an older one, as a restored backup does."""

    keeps_lines = False

    def half_way(self) -> None:
        self.change()
        shutil.copy(self.path, self.path.with_name("older"))

    def before_command(self) -> None:
        super().before_command()
        if self.number % 3 == 0:
            self.remove()
            shutil.copy(self.path.with_name("older"), self.path)


class Damaged(Happening):
    """Every other command finds another kind of damage."""

    keeps_lines = False

    def before_command(self) -> None:
        super().before_command()
        if self.number % 2 and self.path.exists():
            data = self.path.read_bytes()
            self.remove()
            self.path.write_bytes(
                DAMAGES[self.number // 2 % len(DAMAGES)](data, random.Random(self.number))
            )


class AnotherFold(Happening):
    """Another version of QueenBee, which folds otherwise, works in the same hive."""

    def before_command(self) -> None:
        super().before_command()
        if self.number % 3 == 0 and self.path.exists():
            self.change(
                "UPDATE meta SET value = 99 WHERE key = 'fold'",
                'DROP TABLE "records messages"',
                'CREATE TABLE "records messages" (id, other)',
                "INSERT INTO \"records messages\" VALUES ('qm-1', 'x')",
                "UPDATE \"records reservations\" SET status = 'other'",
            )


class ReadAllTheTime(Happening):
    """Another process reads it, for longer than anybody waits."""

    @contextmanager
    def during_command(self) -> Iterator[None]:
        if not self.path.exists():
            yield
            return
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            database.execute("BEGIN")
            database.execute("SELECT count(*) FROM lines").fetchall()
            yield


class Killed(Happening):
    """Each process is killed when it has done its work, and leaves its log."""

    @contextmanager
    def during_command(self) -> Iterator[None]:
        if not self.path.exists():
            yield
            return
        with closing(sqlite3.connect(self.path)) as database:
            database.execute("SELECT count(*) FROM lines").fetchall()
            yield
            copies = [Path(f"{self.path}{suffix}") for suffix in ("", "-wal")]
            kept = [each.read_bytes() for each in copies if each.exists()]
        self.remove()
        for path, data in zip(copies, kept, strict=False):
            path.write_bytes(data)


def leave_log(path: Path) -> None:
    """Has a log stay behind, with a change in it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("INSERT OR REPLACE INTO meta VALUES ('left behind', 1)")
        data = {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-wal")}
    for suffix, each in data.items():
        Path(f"{path}{suffix}").write_bytes(each)


def _random_bytes(data: bytes, dice: random.Random) -> bytes:
    return dice.randbytes(len(data))


def _half(data: bytes, _dice: random.Random) -> bytes:
    return data[: len(data) // 2]


def _text(_data: bytes, _dice: random.Random) -> bytes:
    return b"this is no database\n" * 500


def _nothing(_data: bytes, _dice: random.Random) -> bytes:
    return b""


def _header(data: bytes, dice: random.Random) -> bytes:
    return dice.randbytes(100) + data[100:]


def _pages(data: bytes, dice: random.Random) -> bytes:
    """All pages but the first, which says what the tables are."""
    return data[:4096] + dice.randbytes(max(0, len(data) - 4096))


def _one_page(data: bytes, dice: random.Random) -> bytes:
    number = dice.randrange(1, max(2, len(data) // 4096))
    return data[: number * 4096] + dice.randbytes(4096) + data[(number + 1) * 4096 :]


DAMAGES = (_random_bytes, _half, _text, _nothing, _header, _pages, _one_page)

WORLDS: dict[str, type[Happening]] = {
    "deleted": Deleted,
    "deleted without its log": DeletedWithoutItsLog,
    "stale": Stale,
    "damaged": Damaged,
    "another fold": AnotherFold,
    "read all the time": ReadAllTheTime,
    "killed": Killed,
}
