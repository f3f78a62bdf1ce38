"""Speaking to the server by libpq: what comes back, and what an error or a fork leaves."""

from __future__ import annotations

import os
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
from queenbee.errors import StoreError
from queenbee.store.engines.postgres import libpq
from queenbee.store.engines.postgres.libpq import Link, PgError, Statement

ECHO = "SELECT $1::bytea"
DIVIDED = "SELECT 1 / $1::bigint"


@pytest.fixture
def link(server: postgres_server.Server) -> Iterator[Link]:
    opened = Link(server.url, {})
    yield opened
    opened.close()


def asked(link: Link, query: str, *values: libpq.Value) -> bytes | None:
    (((value,),),) = link.run(Statement(query, values))
    return value


class TestACommand:
    @pytest.fixture
    def hive(self, repo: Path, beads: Path, server: Any) -> Path:
        postgres_server.use(beads, server)
        return repo

    def test_does_not_import_psycopg(self, hive: Path, server: postgres_server.Server) -> None:
        program = f"import os; os.environ[{postgres_server.URL!r}] = {server.url!r}\n{QUEEN}"
        for arguments in (("msg", "inbox"), ("claim", "qb-1", "--new"), ("reserve", "a/**")):
            modules = loaded(hive, program, *arguments)
            assert "queenbee.store.engines.postgres.libpq" in modules
            assert not {"psycopg", "asyncio"} & modules

    def test_fetches_a_long_hive_piece_by_piece(
        self, hive: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("connection", "engine"):
            monkeypatch.setattr(f"queenbee.store.engines.postgres.{name}.AT_ONCE", 3)
        env = postgres_server.environment()
        with Hive.open(hive, droid="ui", env=env) as ui:
            for number in range(8):
                ui.assignments.claim(f"qb-{number}")
            for path in (hive / ".git" / "queenbee" / "postgres").glob("*"):
                path.unlink()
        with Hive.open(hive, droid="ui", env=env) as ui:
            assert len(ui.assignments.find()) == 8

    @pytest.mark.parametrize(
        ("url", "code", "said"),
        [
            ("postgresql://127.0.0.1:1/x", 6, "cannot be reached"),
            ("no address", 7, 'missing "="'),
        ],
    )
    def test_is_refused(self, url: str, code: int, said: str, hive: Path) -> None:
        ran = subprocess.run(
            [sys.executable, "-P", "-c", QUEEN, "claim", "qb-1", "--new"],
            cwd=hive,
            env={**os.environ, "QUEEN_DROID": "ui", postgres_server.URL: url},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == code
        assert said in ran.stderr


def test_a_hive_in_a_database_needs_libpq(
    repo: Path, beads: Path, server: postgres_server.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres_server.use(beads, server)
    for name in [name for name in sys.modules if "engines.postgres." in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("ctypes.CDLL", missing)
    with pytest.raises(StoreError, match="without libpq") as refused:
        Hive.open(repo, droid="ui", env=postgres_server.environment())
    assert "queenbee-hive[postgres]" in str(refused.value.hint)


def missing(path: str) -> None:
    raise OSError(path)


class TestAConnection:
    def test_is_given_up_if_the_server_does_not_answer(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/x"
            began_s = time.monotonic()
            with pytest.raises(PgError, match="timeout"):
                Link(address, {"connect_timeout": 2})
            assert time.monotonic() - began_s < 30

    @pytest.mark.parametrize("conninfo", ["postgresql://127.0.0.1:1/x", "bad", "port=x", "a=b"])
    def test_that_is_refused_has_no_state(self, conninfo: str) -> None:
        with pytest.raises(PgError) as caught:
            Link(conninfo, {})
        assert caught.value.sqlstate == ""

    def test_takes_what_is_said_beside_the_address(self, server: Any) -> None:
        link = Link(server.url, {"application_name": "queen of tests"})
        assert asked(link, "SELECT current_setting('application_name')") == b"queen of tests"
        link.close()

    def test_hears_announcements(self, link: Link, server: Any) -> None:
        link.run(Statement("LISTEN here"))
        assert not link.was_told(0)
        with psycopg.connect(server.url, autocommit=True) as db:
            db.execute("NOTIFY here")
        assert link.was_told(10)
        assert not link.was_told(0)

    def test_keeps_warnings_to_itself(self, link: Link, capfd: pytest.CaptureFixture[str]) -> None:
        link.run(Statement("DO $$ BEGIN RAISE WARNING 'look'; END $$"))
        assert capfd.readouterr().err == ""

    def test_that_was_lost_is_closed(self, link: Link) -> None:
        killing = Statement("SELECT pg_terminate_backend(pg_backend_pid())")
        with pytest.raises(PgError) as caught:
            link.run(killing, Statement(ECHO, (b"a",)))
        assert caught.value.sqlstate in ("", "57P01")
        assert link.closed
        with pytest.raises(PgError):
            asked(link, "SELECT 1")

    def test_can_be_closed_twice_and_is_of_no_use_then(self, link: Link) -> None:
        link.close()
        link.close()
        assert link.closed
        with pytest.raises(PgError):
            asked(link, "SELECT 1")

    def test_stays_open_if_a_forked_child_closes_it(self, link: Link) -> None:
        child = os.fork()
        if not child:
            link.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert asked(link, "SELECT '1'") == b"1"


def prepared(link: Link) -> int:
    query = "SELECT count(*) FROM pg_prepared_statements WHERE statement !~ 'pg_prepared'"
    return number(link, query)


def number(link: Link, query: str) -> int:
    other = Statement(query)
    link._used.discard(query)
    return int.from_bytes(link.run(other)[0][0][0] or b"", "big")


class TestStatements:
    def test_have_their_results(self, link: Link) -> None:
        for _ in range(3):  # Once as it is, once prepared, once by its name.
            found = link.run(Statement(ECHO, (b"a\0",)), Statement(ECHO, (b"b",)))
            assert found == [[[b"a\0"]], [[b"b"]]]
        assert asked(link, "SELECT null") is None
        assert asked(link, "SELECT ''") == b""

    def test_are_prepared_when_they_are_used_again(self, link: Link) -> None:
        """A pooler may give the connection of a command with one question to another one."""
        for names in (0, 1, 1):
            link.run(Statement(ECHO, (b"a",)))
            assert prepared(link) == names

    def test_get_arrays_as_they_are(self, link: Link) -> None:
        query = "SELECT $1::text[] = ARRAY['ä', ''], $2::bigint[] = '{-1,9}'::bigint[], $3::bytea[]"
        ((row,),) = link.run(Statement(query, (["ä", ""], [-1, 9], [b"\0\xff"])))
        assert row[0] == row[1] == b"\1"
        assert (row[2] or b"").endswith(b"\0\0\0\2\0\xff")

    def test_may_be_more_than_a_socket_holds(self, link: Link) -> None:
        """Both sides write at once: whoever only sent would wait for ever."""
        data = b"x" * 3_000_000
        for rows in link.run(*[Statement(ECHO, (data,))] * 4):
            assert rows == [[data]]

    def test_are_not_run_after_an_error(self, link: Link) -> None:
        link.run(Statement("CREATE TEMPORARY TABLE made (number bigint)"))
        insert = Statement("INSERT INTO made VALUES ($1::bigint)", (1,))
        with pytest.raises(PgError, match=r"^division by zero$") as caught:
            link.run(Statement(DIVIDED, (0,)), insert)
        assert caught.value.sqlstate == "22012"
        assert number(link, "SELECT count(*) FROM made") == 0

    def test_leave_the_connection_usable_after_an_error(self, link: Link) -> None:
        for divisor in (0, 1, 0, 1, 0, 1):
            both = Statement(ECHO, (b"a",)), Statement(DIVIDED, (divisor,))
            if divisor:
                assert len(link.run(*both)) == 2
            else:
                with pytest.raises(PgError):
                    link.run(*both)

    def test_that_are_interrupted_close_the_connection(
        self, link: Link, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The answer would be taken for that of the next question."""

        def interrupted(_: Link) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Link, "_wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            link.run(Statement(ECHO, (b"a",)))
        assert link.closed
