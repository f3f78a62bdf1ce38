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
from queenbee.store.engines.postgres import engine as engines
from queenbee.store.engines.postgres import turn
from queenbee.store.engines.postgres.cache import Cache
from queenbee.store.engines.postgres.connection import Row
from queenbee.store.engines.postgres.schema import chained

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
    other = Cache(hive.engine.folder, "reservations", 10)  # type: ignore[attr-defined]
    other.discard()
    if lines:
        other.take(rows_of(*lines), (0, b""))
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
            if left and arguments[1:] and self.fresh is not None and not again:
                left.pop()
                exchange(hive, *lines)
            return again

        record = turn.PostgresTurn.record

        def recorded(self: turn.PostgresTurn, *arguments: object) -> None:
            if not lines:  # Whoever discards a copy fetches it anew.
                opened("third").reservations.find()
            record(self, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(type(hive.engine), "take", taken)
        monkeypatch.setattr(turn.PostgresTurn, "record", recorded)
        hive.reservations.find()
        with suppress(QueenError):
            hive.reservations.reserve("src/app.py")
        assert not left
        hive.close()
        found = opened("third").reservations.find()
        return [each.droid for each in found]

    @pytest.mark.parametrize("lines", [(), (FOREIGN,), (FOREIGN, FOREIGN)])
    def test_does_not_lose_a_lease(
        self, opened: Open, monkeypatch: pytest.MonkeyPatch, lines: tuple[bytes, ...]
    ) -> None:
        assert self.grants(opened, monkeypatch, *lines) == ["first"]

    def writes(self, opened: Open, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Returns who got a file, when the copy is exchanged right before a turn writes."""
        opened("first").reservations.reserve("src/app.py")
        hive = opened("second")
        record = turn.PostgresTurn.record

        def recorded(self: turn.PostgresTurn, *arguments: object) -> None:
            exchange(hive, TestACopyThatIsExchangedWithinATurn.FOREIGN)
            record(self, *arguments)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(turn.PostgresTurn, "record", recorded)
            hive.reservations.reserve("src/other.py")
        hive.close()
        return [each.droid for each in opened("third").reservations.find()]

    def test_does_not_number_the_lines(self, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.writes(opened, monkeypatch) == ["first", "second"]


class TestRowsThatFollowAnotherFile:
    def test_are_not_appended_to_it(self, tmp_path: Path) -> None:
        ours = rows_of(b'{"id":"1"}', b'{"id":"2"}')
        foreign = rows_of(b'{"id":"3"}')
        cache = Cache(os.fspath(tmp_path), "reservations", 10)
        assert cache.take(foreign, (0, b""))
        first, second = ours
        assert not cache.take([second], (1, first.digest))
        assert cache.known().digest == foreign[-1].digest
        cache.close()
