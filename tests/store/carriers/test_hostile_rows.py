"""Rows in the database that no engine of ours wrote: whoever may insert can insert anything."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import postgres_server
import psycopg
import pytest

from queenbee import Hive
from queenbee.store.carriers.postgres import carrying, connection, ddl
from queenbee.store.carriers.postgres.ddl import STEPS, chained
from queenbee.store.layout import Layout

_LINE = b'{"id":"qm-1","from":"eve","to":["bob"],"subject":"hi","created_at":"2024-01-01"}'
_FORGED = b'{"id":"qm-2","from":"eve","to":["bob"],"subject":"two","created_at":"2024-01-01"}'

Open = Callable[[], Hive]


@pytest.fixture
def hive_name(server: postgres_server.Server, beads: Path) -> str:
    return postgres_server.use(beads, server)


@pytest.fixture
def opened(repo: Path, hive_name: str) -> Open:
    return lambda: Hive.open(repo, droid="bob", env=postgres_server.environment())


def _insert(server: postgres_server.Server, hive: str, kind: str, *lines: bytes) -> None:
    """Appends lines with the digests that they should have."""
    with psycopg.connect(server.url, autocommit=True) as db:
        last = db.execute(
            "SELECT sequence, digest FROM queen_lines WHERE hive = %s AND kind = %s "
            "ORDER BY sequence DESC LIMIT 1",
            (hive, kind),
        ).fetchone()
        sequence, digest = last or (0, b"")
        for line in lines:
            sequence, digest = sequence + 1, chained(digest, line)
            db.execute(
                "INSERT INTO queen_lines (hive, kind, sequence, line, digest, turn) "
                "VALUES (%s, %s, %s, %s, %s, '')",
                (hive, kind, sequence, line, digest),
            )


def _snapshot(folder: Path) -> set[str]:
    """Returns all files and folders."""
    return {str(path) for path in folder.rglob("*")}


class TestAKindThatIsAPath:
    KINDS = ("../../../escaped", "../escaped", "a/b", ".hidden", "", "x" * 300, "a\nb")

    def test_is_no_kind(
        self, opened: Open, server: postgres_server.Server, hive_name: str, repo: Path
    ) -> None:
        for kind in self.KINDS:
            _insert(server, hive_name, kind, _LINE)
        _insert(server, hive_name, "messages", _LINE)
        hive = opened()
        before = _snapshot(repo.parent)
        assert hive.engine.memory.all_kinds() == ["messages"]
        for kind in hive.kinds():
            hive.state(kind)
        new = _snapshot(repo.parent) - before
        memory = r"/postgres(/[0-9a-f]{16}\.sqlite3(-wal|-shm)?)?|/last-good\.toml|/settings\.json"
        memory += "|/engine|/lock"
        ours = re.compile(rf"{re.escape(hive.layout.state_dir)}({memory})?")
        assert not [each for each in new if not ours.fullmatch(each)]
        carried = carrying.to_files(hive.layout, hive_name)
        assert list(carried) == ["messages"]
        assert not [each for each in _snapshot(repo.parent) if "escaped" in each]

    def test_may_not_even_make_a_folder(
        self,
        opened: Open,
        server: postgres_server.Server,
        hive_name: str,
        repo: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A reader that makes one before it refuses the kind is noticed."""

        def makes_a_folder(kind: str) -> bool:
            if kind == "../../../escaped":
                Path(opened().layout.state_dir, "postgres", kind).resolve().mkdir(
                    parents=True, exist_ok=True
                )
            return ddl.is_kind(kind)

        monkeypatch.setattr(connection, "is_kind", makes_a_folder)
        with pytest.raises(AssertionError, match="escaped"):
            self.test_is_no_kind(opened, server, hive_name, repo)


class TestALineThatIsNone:
    TWO = (_LINE + b"\n" + _FORGED, b"\n")
    """Rows of two lines, as a database may have that is older than their refusal."""
    LINES = (*TWO, b"", b"   ", b"torn {", b"\xff\0", _LINE + b"\r")

    @pytest.fixture(autouse=True)
    def _there(self, server: postgres_server.Server, hive_name: str) -> None:
        with psycopg.connect(server.url, autocommit=True) as db:
            db.execute("ALTER TABLE queen_lines DROP CONSTRAINT queen_one_line")
            _insert(server, hive_name, "messages", *self.LINES)
            db.execute(STEPS[1][0].encode())

    @pytest.mark.parametrize("line", TWO)
    def test_is_refused_if_it_is_two(
        self, line: bytes, server: postgres_server.Server, hive_name: str
    ) -> None:
        """Carried to files, it would be two lines of which no digest speaks."""
        with pytest.raises(psycopg.errors.CheckViolation, match="queen_one_line"):
            _insert(server, hive_name, "messages", line)

    def test_keeps_no_other_from_being_read_or_written(self, opened: Open) -> None:
        for number in range(3):
            hive = opened()
            hive.messages.send("eve", f"text {number}")
            sent = hive.state("messages").select({"from": "bob"})
            assert len(list(sent)) == number + 1

    def test_keeps_nobody_from_going_back_to_files(self, opened: Open, hive_name: str) -> None:
        hive = opened()
        hive.messages.send("eve", "kept")
        layout: Layout = hive.layout
        carrying.to_files(layout, hive_name)
        assert b"kept" in Path(layout.ledger_path("messages")).read_bytes()


class TestARowThatIsNotTheNext:
    """One such row would stop everybody. So the database refuses it, whoever inserts it."""

    @pytest.fixture
    def rows(self, opened: Open) -> Open:
        opened().messages.send("eve", "one")
        return opened

    def insert(self, url: str, hive: str, sequence: int, digest: bytes, line: bytes) -> None:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(
                "INSERT INTO queen_lines VALUES (%s, 'messages', %s, %s, %s, '')",
                (hive, sequence, line, digest),
            )

    @pytest.mark.parametrize("sequence", [2, 3, 2**63 - 1])
    def test_is_refused(
        self, rows: Open, server: postgres_server.Server, hive_name: str, sequence: int
    ) -> None:
        with pytest.raises(psycopg.errors.UniqueViolation, match="not the next one"):
            self.insert(server.url, hive_name, sequence, b"false", _LINE)
        with pytest.raises(psycopg.errors.UniqueViolation, match="not the next one"):
            self.insert(server.url, hive_name, sequence, chained(b"", _LINE), _LINE)
        assert rows().messages.send("eve", "two")

    def test_is_refused_to_whoever_makes_names_of_their_own(
        self, rows: Open, server: postgres_server.Server, hive_name: str
    ) -> None:
        """Their table in place of ours, and their function in place of the server's."""
        with psycopg.connect(server.url, autocommit=True) as db:
            db.execute(
                "DROP SCHEMA IF EXISTS eve CASCADE; DROP ROLE IF EXISTS eve; CREATE ROLE eve;"
                "CREATE SCHEMA eve AUTHORIZATION eve; GRANT SELECT, INSERT ON queen_lines TO eve;"
                "GRANT SELECT ON queen_hives TO eve; GRANT USAGE ON SCHEMA public TO eve;"
                "SET ROLE eve; SET search_path = eve, public;"
                "CREATE TEMP TABLE queen_lines (hive text, kind text, sequence bigint, "
                "digest bytea, line bytea);"
                "CREATE FUNCTION eve.sha256(bytea) RETURNS bytea LANGUAGE sql AS "
                "$$ SELECT 'false'::bytea $$"
            )
            with pytest.raises(psycopg.errors.UniqueViolation, match="not the next one"):
                db.execute(
                    "INSERT INTO public.queen_lines VALUES (%s, 'messages', 9, '{}', 'false', '')",
                    (hive_name,),
                )

    def test_that_an_older_database_has_is_named_and_left_behind(
        self, rows: Open, server: postgres_server.Server, hive_name: str
    ) -> None:
        with psycopg.connect(server.url, autocommit=True) as db:
            db.execute("ALTER TABLE queen_lines DISABLE TRIGGER queen_next_line")
            try:
                self.insert(server.url, hive_name, 2, b"false", _FORGED)
            finally:
                db.execute("ALTER TABLE queen_lines ENABLE TRIGGER queen_next_line")
        layout = rows().layout
        counts, (fault,) = carrying.verified(layout, hive_name)
        assert "messages" not in counts and "line 2 of messages" in fault.message
        carried = carrying.to_files(layout, hive_name)
        assert carried["messages"] == (1, 1)
        assert b"qm-2" not in Path(layout.ledger_path("messages")).read_bytes()
