"""The copy of the database's lines on this machine, while other processes exchange it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import postgres_server
import pytest

from queenbee import Hive
from queenbee.errors import QueenError
from queenbee.store.engines.postgres import copy as copies
from queenbee.store.engines.postgres import engine as engines
from queenbee.store.engines.postgres import postgres_write
from queenbee.store.engines.postgres.connection import Row
from queenbee.store.engines.postgres.copy import Copy, End
from queenbee.store.engines.postgres.ddl import chained

Open = Callable[..., Hive]


@pytest.fixture
def opened(repo: Path, beads: Path, server: postgres_server.Server) -> Open:
    postgres_server.use(beads, server)
    return lambda droid: Hive.open(repo, droid=droid, env=postgres_server.environment())


def rows_of(*lines: bytes) -> list[Row]:
    """Returns rows of another database."""
    digest, rows = b"", []
    for number, line in enumerate(lines, start=1):
        digest = chained(digest, line)
        rows.append(Row("reservations", number, line, digest))
    return rows


def exchange(hive: Hive, *lines: bytes) -> None:
    """Does what a process with another database does to the copy, or, without lines, one that
    finds a fault in it.
    """
    other = Copy(hive.engine.folder, 10)  # type: ignore[attr-defined]
    other.discard("reservations")
    if lines:
        other.take("reservations", rows_of(*lines), End())
    other.close()


class TestACopyThatIsExchangedWithinATurn:
    """After the database agreed with it, and before it is read."""

    FOREIGN = b'{"id":"qr-1","droid":"eve","pattern":"other/**","created_at":"2024-01-01"}'

    def grants(self, opened: Open, monkeypatch: pytest.MonkeyPatch, *lines: bytes) -> list[str]:
        """Returns who got one file that two ask for."""
        opened("first").reservations.reserve("src/app.py")
        hive = opened("second")
        take = type(hive.engine).take
        left = [1]

        def taken(self: engines.PostgresEngine, *arguments: object) -> bool:
            again = take(self, *arguments)  # type: ignore[arg-type]
            if left and self is hive.engine and self.fresh is not None and not again:
                left.pop()
                exchange(hive, *lines)
            return again

        record = postgres_write.PostgresWrite.record

        def recorded(self: postgres_write.PostgresWrite, *arguments: object) -> None:
            if not lines:  # Whoever discards a copy fetches it anew.
                opened("third").reservations.find()
            record(self, *arguments)  # type: ignore[arg-type]

        begin = postgres_write.PostgresWrite.begin
        to_read = [1]

        def begun(self: postgres_write.PostgresWrite) -> None:
            if to_read and self._engine is hive.engine:
                to_read.pop()
                opened("third").reservations.reserve("docs/a.md")
            begin(self)

        monkeypatch.setattr(postgres_write.PostgresWrite, "begin", begun)
        monkeypatch.setattr(type(hive.engine), "take", taken)
        monkeypatch.setattr(postgres_write.PostgresWrite, "record", recorded)
        hive.reservations.find()
        with suppress(QueenError):
            hive.reservations.reserve("src/app.py")
        assert not left
        hive.close()
        found = opened("third").reservations.find()
        return [each.droid for each in found if each.pattern == "src/app.py"]

    @pytest.mark.parametrize("lines", [(), (FOREIGN,), (FOREIGN, FOREIGN)])
    def test_does_not_lose_a_lease(
        self, opened: Open, monkeypatch: pytest.MonkeyPatch, lines: tuple[bytes, ...]
    ) -> None:
        assert self.grants(opened, monkeypatch, *lines) == ["first"]

    def writes(self, opened: Open, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Returns who got a file, when the copy is exchanged right before a turn writes."""
        opened("first").reservations.reserve("src/app.py")
        hive = opened("second")
        record = postgres_write.PostgresWrite.record

        def recorded(self: postgres_write.PostgresWrite, *arguments: object) -> None:
            exchange(hive, TestACopyThatIsExchangedWithinATurn.FOREIGN)
            record(self, *arguments)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(postgres_write.PostgresWrite, "record", recorded)
            hive.reservations.reserve("src/other.py")
        hive.close()
        return [each.droid for each in opened("third").reservations.find()]

    def test_does_not_number_the_lines(self, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.writes(opened, monkeypatch) == ["first", "second"]


class TestRowsThatFollowAnotherFile:
    def test_are_not_appended_to_it(self, tmp_path: Path) -> None:
        ours = rows_of(b'{"id":"1"}', b'{"id":"2"}')
        foreign = rows_of(b'{"id":"3"}')
        copy = Copy(os.fspath(tmp_path), 10)
        assert copy.take("reservations", foreign, End())
        first, second = ours
        assert not copy.take("reservations", [second], End().after(first))
        assert copy.end("reservations").digest == foreign[-1].digest
        copy.close()


class TestACopy:
    KIND = "reservations"
    ROWS = rows_of(b"one", b"two", b"three")

    @pytest.fixture
    def copy(self, tmp_path: Path) -> Copy:
        return Copy(os.fspath(tmp_path), 10)

    def test_takes_rows_that_another_process_took_once(self, copy: Copy) -> None:
        assert copy.take(self.KIND, self.ROWS[:2], End())
        assert copy.take(self.KIND, self.ROWS, End())
        assert copy.take(self.KIND, self.ROWS[:1], End())
        found = copy.read(self.KIND, (0, 0), copy.end(self.KIND))
        assert found is not None
        assert found[0] == [b"one", b"two", b"three"]

    def test_is_read_piece_by_piece(self, copy: Copy) -> None:
        copy.take(self.KIND, self.ROWS, End())
        lines, at, since = [], copy.end(self.KIND), (0, 0)
        for _ in self.ROWS:
            found = copy.read(self.KIND, since, at, limit=1)
            assert found is not None
            lines += found[0]
            since = found[1].size, copies.sum_of(found[1].digest)
        assert lines == [b"one", b"two", b"three"]

    def test_that_was_exchanged_is_read_from_its_beginning(self, copy: Copy) -> None:
        copy.take(self.KIND, self.ROWS, End())
        old = End().after(self.ROWS[0])
        copy.discard(self.KIND)
        copy.take(self.KIND, rows_of(b"uno", b"due"), End())
        since = old.size, copies.sum_of(old.digest)
        found = copy.read(self.KIND, since, copy.end(self.KIND))
        assert found is not None
        assert (found[0], found[2]) == ([b"uno", b"due"], True)

    @pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\0" + b"x" * 8000])
    def test_that_is_damaged_is_begun_anew(self, copy: Copy, damage: bytes) -> None:
        copy.take(self.KIND, self.ROWS, End())
        copy.close()
        for path in Path(copy.path).parent.iterdir():
            path.unlink()
        Path(copy.path).write_bytes(damage)
        assert copy.end(self.KIND) == End()
        assert copy.take(self.KIND, self.ROWS, End())

    def test_that_is_a_link_is_not_followed(self, copy: Copy, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.write_bytes(b"")
        Path(copy.path).symlink_to(outside)
        with pytest.raises(QueenError, match="link"):
            copy.end(self.KIND)
        assert outside.read_bytes() == b""
