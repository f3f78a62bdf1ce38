"""Connections through libpq itself: when there is one, and that it gets into nobody's way."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import postgres_server
import psycopg
import pytest
from start_up import QUEEN, loaded

from queenbee import Hive
from queenbee.store.engines.postgres import connection, libpq
from queenbee.store.engines.postgres.statements import Statement, Statements, Value


@pytest.fixture
def link(server: postgres_server.Server) -> Iterator[libpq.Link]:
    opened = libpq.connect(server.url, {})
    assert opened is not None
    yield opened
    opened.close()


def asked(link: libpq.Link, query: str, *values: Value) -> bytes | None:
    (result,) = Statements(link).run(Statement(query, *values))
    return result.get_value(0, 0)


class TestACommand:
    @pytest.fixture
    def hive(self, repo: Path, beads: Path, server: Any) -> Path:
        postgres_server.use(beads, server)
        return repo

    def run(self, hive: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Runs `queen` in a process of its own, where nothing has imported psycopg."""
        return subprocess.run(
            [sys.executable, "-P", "-c", QUEEN, *arguments],
            cwd=hive,
            env={**os.environ, "QUEEN_DROID": "ui", **env},
            capture_output=True,
            text=True,
            timeout=60,
        )

    @pytest.mark.parametrize(
        "arguments",
        [("msg", "inbox"), ("claim", "qb-1"), ("reserve", "a/**"), ("engine", "status")],
    )
    def test_gets_the_same_answer_as_with_psycopg(
        self, arguments: tuple[str, ...], hive: Path
    ) -> None:
        """`PSYCOPG_IMPL` names the one to use, so that psycopg it is."""
        first = self.run(hive, *arguments)
        assert (first.returncode, first.stderr) == (0, "")
        assert self.run(hive, *arguments, PSYCOPG_IMPL="binary").returncode == 0

    def test_does_not_import_psycopg(
        self, hive: Path, server: postgres_server.Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program = f"import os; os.environ[{postgres_server.URL!r}] = {server.url!r}\n{QUEEN}"
        for arguments in (("msg", "inbox"), ("claim", "qb-1"), ("reserve", "a/**")):
            modules = loaded(hive, program, *arguments)
            assert "queenbee.store.engines.postgres.libpq" in modules
            assert not {"psycopg", "asyncio"} & modules

    def test_imports_it_if_there_is_much_to_read(
        self, hive: Path, server: postgres_server.Server
    ) -> None:
        env = {postgres_server.URL: server.url}
        with Hive.open(hive, droid="ui", env=env) as ui:
            for number in range(5):
                ui.assignments.claim(f"qb-{number}")
        package = "queenbee.store.engines.postgres"
        program = (
            f"import os; os.environ[{postgres_server.URL!r}] = {server.url!r}\n"
            f"from {package} import connection, engine\n"
            f"connection.AT_ONCE = engine.AT_ONCE = 3\n{QUEEN}"
        )
        shutil.rmtree(hive / ".git" / "queenbee" / "postgres")
        assert "psycopg" in loaded(hive, program, "assignments")
        assert "psycopg" not in loaded(hive, program, "assignments")

    @pytest.mark.parametrize(
        ("url", "code", "said"),
        [
            ("postgresql://127.0.0.1:1/x", 6, "cannot be reached"),
            ("no address", 7, 'missing "="'),
        ],
    )
    def test_is_refused_as_with_psycopg(self, url: str, code: int, said: str, hive: Path) -> None:
        with_it, without = (
            self.run(hive, "claim", "qb-1", **{postgres_server.URL: url}, **more)
            for more in ({"PSYCOPG_IMPL": "binary"}, {})
        )
        assert with_it.returncode == code
        assert said in with_it.stderr
        assert (with_it.returncode, with_it.stderr) == (without.returncode, without.stderr)


class TestThereIsNone:
    def test_if_the_server_does_not_answer_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """psycopg then tries each address of a name for as long as the command may take."""
        monkeypatch.setattr(libpq, "PATIENCE_S", 0.05)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/x"
            began_s = time.monotonic()
            assert libpq.connect(address, {}) is None
            assert time.monotonic() - began_s < 5

    @pytest.mark.parametrize("conninfo", ["postgresql://127.0.0.1:1/x", "bad", "port=x", "a=b"])
    def test_if_it_refuses(self, conninfo: str) -> None:
        assert libpq.connect(conninfo, {}) is None

    def test_without_psycopgs_wheel(self, monkeypatch: pytest.MonkeyPatch, server: Any) -> None:
        monkeypatch.setattr(libpq.PathFinder, "find_spec", lambda _: None)
        assert libpq.connect(server.url, {}) is None

    def test_where_psycopg_is_imported(self, server: Any) -> None:
        opened = connection.Connection(server.url, "h", name="n", patience_s=5, durable=True)
        try:
            assert isinstance(opened.db, psycopg.Connection)
        finally:
            opened.close()


class TestALink:
    def test_returns_values_as_they_are(self, link: libpq.Link) -> None:
        assert asked(link, "SELECT $1::bytea", Value(b"a\0b")) == b"a\0b"
        assert asked(link, "SELECT null") is None

    def test_takes_what_is_said_beside_the_address(self, server: Any) -> None:
        link = libpq.connect(server.url, {"application_name": "queen of tests"})
        assert link is not None
        assert asked(link, "SELECT current_setting('application_name')") == b"queen of tests"
        link.close()

    def test_hears_announcements(self, link: libpq.Link, server: Any) -> None:
        Statements(link).run(Statement("LISTEN here"))
        assert link.notifies() is None
        with psycopg.connect(server.url, autocommit=True) as db:
            db.execute("NOTIFY here")
        asked(link, "SELECT 1")
        assert link.notifies()
        assert link.notifies() is None

    def test_keeps_warnings_to_itself(
        self, link: libpq.Link, capfd: pytest.CaptureFixture[str]
    ) -> None:
        Statements(link).run(Statement("DO $$ BEGIN RAISE WARNING 'look'; END $$"))
        assert capfd.readouterr().err == ""

    def test_that_was_lost_is_closed(self, link: libpq.Link) -> None:
        with pytest.raises(psycopg.OperationalError):
            asked(link, "SELECT pg_terminate_backend(pg_backend_pid())")
        assert link.closed

    def test_can_be_closed_twice_and_is_of_no_use_then(self, link: libpq.Link) -> None:
        link.close()
        link.close()
        assert link.closed
        with pytest.raises(psycopg.OperationalError):
            asked(link, "SELECT 1")

    def test_stays_open_if_a_forked_child_closes_it(self, link: libpq.Link) -> None:
        child = os.fork()
        if not child:
            link.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert asked(link, "SELECT '1'") == b"1"
