"""A clone's memory of a hive in PostgreSQL: made again from the database whatever becomes of it."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import postgres_server
import psycopg
import pytest
from hives import QuickQueen, git

from queenbee import Hive
from queenbee.errors import Busy, Held, QueenError, StoreError
from queenbee.store.carriers.postgres import carried_memory, connection
from queenbee.store.carriers.postgres.carried_memory import CarriedMemory
from queenbee.store.carriers.postgres.connection import Answer, Connection, End, Row
from queenbee.store.carriers.postgres.ddl import chained

Open = Callable[..., Hive]


@pytest.fixture
def hive_name(server: postgres_server.Server, beads: Path) -> str:
    return postgres_server.use(beads, server)


@pytest.fixture
def open_for(repo: Path, hive_name: str) -> Open:
    def opened(droid: str, at: Path = repo) -> Hive:
        return Hive.open(at, droid=droid, env=postgres_server.environment())

    return opened


@pytest.fixture
def other(repo: Path, beads: Path, hive_name: str, tmp_path: Path) -> Path:
    """Another clone of the same repository."""
    git(tmp_path, "clone", "-q", str(repo), "other")
    shutil.copytree(beads, tmp_path / "other" / ".beads", dirs_exist_ok=True)
    return tmp_path / "other"


def holders(hive: Hive) -> dict[str, str]:
    return {each.issue_id: each.droid for each in hive.assignments.find()}


def lines_in(hive: Hive) -> list[bytes]:
    memory = hive.engine.memory
    return [raw for (raw,) in memory.database.ask("SELECT raw FROM lines ORDER BY kind, seq")]  # type: ignore[misc]


def damage(hive: Hive) -> None:
    """Changes a bit of each line that is known here."""
    with contextlib.closing(sqlite3.connect(hive.engine.memory.database.path)) as db, db:
        db.execute("UPDATE lines SET raw = CAST(replace(raw, 'src/', 'SRC/') AS BLOB)")


class TestAnotherClone:
    def test_sees_every_write(self, open_for: Open, other: Path) -> None:
        ui, far = open_for("ui"), open_for("far", other)
        for number in range(3):
            ui.assignments.claim(f"qb-{number}")
            assert holders(far) == {f"qb-{n}": "ui" for n in range(number + 1)}
            far.assignments.assign(f"qb-{number}", "docs", reassign=True)
            assert holders(ui)[f"qb-{number}"] == "docs"
            ui.assignments.assign(f"qb-{number}", "ui", reassign=True)
        assert holders(ui) == holders(far)
        assert lines_in(ui) == lines_in(far)

    def test_is_heard_when_a_turn_begins(self, open_for: Open, other: Path) -> None:
        ui = open_for("ui")
        ui.assignments.claim("qb-0")
        open_for("far", other).assignments.claim("qb-1")
        with ui.transaction():
            assert holders(ui) == {"qb-0": "ui", "qb-1": "far"}

    @pytest.mark.parametrize("at_once", [1, 3, 8])
    def test_fetches_a_long_hive_piece_by_piece(
        self, open_for: Open, other: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in (connection, carried_memory):
            monkeypatch.setattr(module, "AT_ONCE", at_once)
        ui = open_for("ui")
        for number in range(8):
            ui.assignments.claim(f"qb-{number}")
        assert len(holders(open_for("far", other))) == 8
        assert len([*ui.engine.carrier.connection.lines("assignments")]) == 8

    def test_of_another_database_shares_no_memory(
        self, open_for: Open, repo: Path, beads: Path, server: postgres_server.Server
    ) -> None:
        paths = set()
        for hive in ("", "another"):
            if hive:
                postgres_server.use(beads, server, hive)
            for url in (server.url, "postgresql://elsewhere/x", "service=x", "not an address"):
                opened = Hive.open(repo, droid="ui", env={postgres_server.URL: url})
                paths.add(opened.engine.memory.database.path)
        assert len(paths) == 8

    def test_of_the_same_database_shares_it_whatever_the_password(self, repo: Path) -> None:
        beads = repo / ".beads"
        (beads / "queen.toml").write_text('[engine]\nkind = "postgres"\nhive = "x"\n')
        urls = ("postgresql://a:b@host/x", "postgresql://c@host/x")
        hives = [Hive.open(repo, droid="ui", env={postgres_server.URL: url}) for url in urls]
        assert len({hive.engine.memory.database.path for hive in hives}) == 1


class TestAMemoryThatIsLost:
    def test_between_two_writes_is_fetched_again(self, open_for: Open) -> None:
        ui = open_for("ui")
        ui.reservations.reserve("src/a.py")
        shutil.rmtree(Path(ui.engine.memory.database.path).parent)
        with pytest.raises(Held):
            open_for("api").reservations.reserve("src/a.py")
        ui.reservations.reserve("src/b.py")
        assert len(open_for("api").reservations.find()) == 2

    def test_amid_a_turn_takes_no_lease_with_it(self, open_for: Open) -> None:
        """What is asked again in a turn must be all there."""
        open_for("ui").reservations.reserve("src/a.py")
        api = open_for("api")
        with api.transaction():
            damage(api)
            assert [each.droid for each in api.reservations.find()] == ["ui"]
        assert list(Path(api.engine.memory.database.path).parent.glob("*.damaged-*"))

    @pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + b"x" * 8000])
    def test_to_other_content_is_fetched_again(self, open_for: Open, content: bytes) -> None:
        ui = open_for("ui")
        ui.reservations.reserve("src/a.py")
        ui.close()
        path = Path(ui.engine.memory.database.path)
        for each in path.parent.iterdir():
            each.unlink()
        path.write_bytes(content)
        assert [each.droid for each in open_for("api").reservations.find()] == ["ui"]

    def test_to_a_link_is_refused(self, open_for: Open, tmp_path: Path) -> None:
        ui = open_for("ui")
        path = Path(ui.engine.memory.database.path)
        path.parent.mkdir(parents=True)
        outside = tmp_path / "outside"
        outside.write_bytes(b"")
        path.symlink_to(outside)
        with contextlib.suppress(StoreError):
            ui.reservations.find()
        assert outside.read_bytes() == b""


def rows_of(*lines: bytes) -> list[Row]:
    """Returns rows of another database, after the line that is none."""
    rows = [Row(*End(), b"")]
    for number, line in enumerate(lines, start=1):
        rows.append(Row(number, chained(rows[-1].digest, line), line))
    return rows


FOREIGN = b'{"id":"qr-1","droid":"eve","pattern":"other/**","created_at":"2024-01-01T00:00:00Z"}'


@pytest.mark.parametrize("lines", [(), (FOREIGN,), (FOREIGN, FOREIGN)])
class TestAMemoryThatIsExchangedWithinATurn:
    """As by a process that asks a server at the same address which has other lines."""

    def exchange(self, hive: Hive, *lines: bytes) -> None:
        rows = rows_of(*lines)

        def after(known: Any) -> Answer:
            found = {k: rows[n:] if "res" in k else rows[:1] for k, (n, _) in known.items()}
            return Answer(0, 0, found)

        carrier: Any = SimpleNamespace(after=after, mutex=threading.RLock(), turn=None)
        memory = CarriedMemory(hive.layout, carrier)
        memory.refresh("reservations")
        memory.close()

    def test_makes_nobody_lose_a_lease(self, open_for: Open, lines: tuple[bytes, ...]) -> None:
        open_for("first").reservations.reserve("src/app.py")
        second = open_for("second")
        with pytest.raises(Busy), second.transaction() as tx:
            self.exchange(second, *lines)
            fields = {"id": "qr-9", "droid": "second", "pattern": "src/app.py"}
            tx.append("reservations", fields)
        assert [each.droid for each in open_for("third").reservations.find()] == ["first"]

    def test_numbers_no_line(self, open_for: Open, lines: tuple[bytes, ...]) -> None:
        open_for("first").reservations.reserve("src/app.py")
        second = open_for("second")
        self.exchange(second, *lines)
        second.reservations.reserve("src/other.py")
        assert len(open_for("third").reservations.find()) == 2


def _claim(repo: str, droid: str) -> None:
    hive = Hive.open(repo, droid=droid, env=postgres_server.environment())
    for number in range(15):
        hive.assignments.claim(f"qb-{droid}-{number}")
        hive.messages.inbox()


def test_many_processes_take_in_each_line_once(open_for: Open, repo: Path, hive_name: str) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_claim, args=(str(repo), f"d{n}")) for n in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    hive = open_for("ui")
    assert len(holders(hive)) == 60
    assert lines_in(hive) == postgres_server.lines(hive_name)


class TestPsycopg:
    def test_that_is_missing_is_named_with_what_installs_it(
        self, repo: Path, hive_name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in [name for name in sys.modules if ".carriers.postgres." in name]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(StoreError, match="without psycopg") as refused:
            Hive.open(repo, droid="ui", env=postgres_server.environment())
        assert "queenbee-hive[postgres]" in str(refused.value.hint)

    def test_is_not_loaded_for_a_hive_in_files(self, repo: Path) -> None:
        from start_up import QUEEN, loaded

        assert "psycopg" not in loaded(repo, QUEEN, "msg", "inbox")

    def test_keeps_its_warnings_to_itself(
        self, open_for: Open, server: postgres_server.Server, capfd: pytest.CaptureFixture[str]
    ) -> None:
        ui = open_for("ui")
        ui.assignments.claim("qb-1")
        server.cut(1)
        assert holders(ui)
        with contextlib.suppress(QueenError), ui.transaction() as tx:
            server.cut(1)
            tx.create("messages", {"from": "ui", "to": ["api"], "body": "x"})
        assert capfd.readouterr().err == ""


class TestAConnection:
    def test_stays_open_if_a_forked_child_closes_it(
        self, server: postgres_server.Server, hive_name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with contextlib.closing(Connection(server.url, hive_name)) as link:
            with monkeypatch.context() as forked:
                forked.setattr(os, "getpid", lambda: -1)
                link.close()
            assert link.db.execute("SELECT 1").fetchall() == [(1,)]

    def test_that_is_interrupted_is_closed(
        self, server: postgres_server.Server, hive_name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The answer would be taken for that of the next question."""

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        link = Connection(server.url, hive_name)
        monkeypatch.setattr(psycopg.Connection, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            link.ask({})
        assert link.db.closed

    def test_gets_more_than_a_socket_holds(self, open_for: Open) -> None:
        ui = open_for("ui")
        with ui.transaction() as tx:
            for _ in range(2000):
                tx.create("messages", {"from": "ui", "to": "api", "body": "x" * 1500})
        assert len(open_for("api").messages.inbox(limit=None)) == 2000


def test_an_answer_in_json_is_alone_on_its_stream(
    quick: QuickQueen, hive_name: str, server: postgres_server.Server
) -> None:
    ran = quick("claim", "--new", "qb-1", "--json", as_="ui")
    assert json.loads(ran.out)
    assert ran.err == ""
