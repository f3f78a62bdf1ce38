"""Databases with something wrong: what a command answers, and what the doctor says."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import postgres_server
import psycopg
import pytest
from hives import QuickQueen, git

from queenbee import Hive
from queenbee.errors import QueenError, StoreError, Taken, Unreachable, Unwritable
from queenbee.services.care.doctor import examine
from queenbee.store.carriers.postgres import carrying, health

Open = Callable[..., Hive]


@pytest.fixture
def hive_name(server: postgres_server.Server, beads: Path) -> str:
    return postgres_server.use(beads, server)


@pytest.fixture
def open_for(repo: Path, hive_name: str) -> Iterator[Open]:
    opened: list[Hive] = []

    def open_for(droid: str, **settings: str) -> Hive:
        env = {**postgres_server.environment(), **settings}
        opened.append(Hive.open(repo, droid=droid, env=env))
        return opened[-1]

    yield open_for
    for each in opened:
        each.close()


def admin(server: postgres_server.Server, *statements: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as db:
        for each in statements:
            db.execute(each.encode())


@contextlib.contextmanager
def restricted(server: postgres_server.Server, *grants: str) -> Iterator[str]:
    """Makes a user with these rights and a password, which the server really asks for; yields its
    address without the password.
    """
    hba = server.folder / "pg_hba.conf"
    before = hba.read_text()
    admin(server, "CREATE USER agent PASSWORD 'right'", *grants)
    hba.write_text(f"local all agent scram-sha-256\n{before}")
    admin(server, "SELECT pg_reload_conf()")
    try:
        yield server.url.replace("//postgres:@", "//agent@")
    finally:
        hba.write_text(before)
        admin(server, "SELECT pg_reload_conf()", "DROP OWNED BY agent", "DROP USER agent")


def codes(hive: Hive) -> list[str]:
    return [each.code for each in examine(hive) if each.code not in {"attributes"}]


class TestThePassword:
    @pytest.mark.parametrize("said", ["", ":wrong"])
    def test_a_wrong_one_is_refused_and_not_repeated(
        self, server: Any, open_for: Open, said: str
    ) -> None:
        with restricted(server) as url:
            hive = open_for("ui", QUEEN_DATABASE_URL=url.replace("agent@", f"agent{said}@"))
            with pytest.raises(StoreError, match="refuses the connection") as caught:
                hive.assignments.claim("qb-1")
            assert "password" in caught.value.message
            assert "wrong" not in caught.value.message
            assert "QUEEN_DATABASE_URL" in str(caught.value.hint)
            (found,) = examine(hive)
            assert "wrong" not in f"{found.file} {found.message}"

    def test_the_right_one_is_enough_with_these_rights(self, server: Any, open_for: Open) -> None:
        """Those that the documentation names."""
        grants = (
            "GRANT SELECT, INSERT ON queen_lines TO agent",
            "GRANT SELECT ON queen_hives, queen_schema TO agent",
        )
        with restricted(server, *grants) as url:
            hive = open_for("ui", QUEEN_DATABASE_URL=url.replace("agent@", "agent:right@"))
            assert hive.assignments.claim("qb-1")
            assert codes(hive) == []
            with pytest.raises(Unwritable, match="refuses this user") as caught:
                carrying.to_files(hive.layout, hive.layout.settings.engine_hive)
            assert "owner of the tables" in str(caught.value.hint)

    def test_lines_that_only_files_have_are_handed_to_the_owner(
        self, server: Any, beads: Path, quick: QuickQueen, tmp_path: Path
    ) -> None:
        """Also where git ignores them. One that looks like a secret keeps nobody out."""
        (beads / "queen.toml").write_text('issues = "off"\n')
        assert quick("claim", "--new", "x-1", as_="bee").code == 0
        token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        (beads / "queen_messages.jsonl").write_text(f'{{"id":"qm-1","rev":1,"body":"{token}"}}\n')
        hive = postgres_server.use(beads, server)
        (beads / ".gitignore").write_text("queen_*.jsonl\n")
        grants = (
            "GRANT SELECT, INSERT ON queen_lines TO agent",
            "GRANT SELECT ON queen_hives, queen_schema TO agent",
        )
        with restricted(server, *grants) as url:
            env = {postgres_server.URL: url.replace("agent@", "agent:right@")}
            assert quick("status", as_="bee", env=env).code == 7
            use = ("hive", "engine", "use", "postgres", "--hive", hive)
            done = quick(*use, env=env)
            assert done.code == 7 and "git add -f '.beads/*queen_*.jsonl'" in done.err, done
            assert "queen_messages.jsonl:1: not sent" in done.err, done
            git(beads.parent, "add", "-f", ".beads/*queen_*.jsonl", ".beads")
            git(beads.parent, "commit", "-qm", "Hand over")
            git(tmp_path, "clone", "-q", str(beads.parent), "owner")
            done = QuickQueen(tmp_path / "owner")(*use)
            assert done.code == 0 and "queen_messages.jsonl:1: not sent" in done.err, done
            done = quick(*use, env=env)
            assert done.code == 0 and "queen_messages.jsonl:1: not sent" in done.err, done
            assert quick("claim", "--new", "x-1", as_="cat", env=env).code == 5
        assert token not in str(postgres_server.lines(hive)) + done.out + done.err

    def test_without_the_right_to_write_one_may_read(self, server: Any, open_for: Open) -> None:
        open_for("api").assignments.claim("qb-1")
        grant = "GRANT SELECT ON queen_lines, queen_hives, queen_schema TO agent"
        with restricted(server, grant) as url:
            hive = open_for("ui", QUEEN_DATABASE_URL=url.replace("agent@", "agent:right@"))
            assert [each.droid for each in hive.assignments.find()] == ["api"]
            with pytest.raises(Unwritable, match="refuses this user"):
                hive.assignments.claim("qb-2")
            assert [(each.code, each.severity) for each in hive.engine.faults()] == [
                ("read_only", "note")
            ]


def limit_files(server: postgres_server.Server, pid: int, size: int) -> None:
    """Limits the files of a process of the server, as the user that it runs as."""
    program = shutil.which("prlimit")
    if program is None:
        pytest.skip("prlimit is missing")
    user = server.folder.stat().st_uid
    command = [program, f"--pid={pid}", f"--fsize={size}"]
    subprocess.run(command, check=True, user=user if os.geteuid() == 0 else None)


def test_a_disk_that_takes_no_more_refuses_and_loses_nothing(server: Any, open_for: Open) -> None:
    """The limit on the size of files is the system's: the server cannot write beyond it."""
    ui = open_for("ui")
    ui.messages.send("human", "before")
    size = 2**24  # The logs that the server writes ahead have this size already.
    with psycopg.connect(server.url, autocommit=True) as db:
        filler = server.new_hive()
        insert = (
            "INSERT INTO queen_lines SELECT %s, 'messages', n, repeat('x', 1900)::bytea, '', '' "
            "FROM generate_series(1, 9000) AS n"
        )
        db.execute("SET session_replication_role = replica")  # These rows are in no chain.
        db.execute(insert, (filler,))
    connection = ui.engine.carrier.connection  # type: ignore[attr-defined]
    limit_files(server, connection.db.info.backend_pid, size)
    sent = 1
    with pytest.raises(QueenError, match="nothing was written") as caught:
        for _ in range(200):
            ui.messages.send("human", "x" * 1500)
            sent += 1
    assert "could not extend file" in caught.value.message
    ui.close()
    assert len(open_for("human").messages.inbox()) == sent
    assert ui.messages.send("human", "after")


def test_a_server_restarted_under_load_keeps_every_yes(server: Any, open_for: Open) -> None:
    said: list[str] = []
    stop = threading.Event()

    def claim(name: str) -> None:
        hive = open_for(name)
        number = 0
        while not stop.is_set():
            number += 1
            with contextlib.suppress(Unreachable):
                said.append(str(hive.assignments.claim(f"qb-{name}-{number}").issue_id))

    threads = [threading.Thread(target=claim, args=(f"d{n}",)) for n in range(3)]
    for each in threads:
        each.start()
    try:
        for mode in ("fast", "immediate"):
            before = len(said)
            while len(said) < before + 5:
                time.sleep(0.01)
            server.stop(mode)
            server.start()
        before = len(said)
        while len(said) < before + 5:
            time.sleep(0.01)
    finally:
        stop.set()
        for each in threads:
            each.join()
    there = [str(each.issue_id) for each in open_for("api").assignments.find()]
    assert set(said) <= set(there)
    assert len(there) == len(set(there))


class TestTheDoctor:
    def test_finds_nothing_in_a_sound_hive(self, open_for: Open) -> None:
        ui = open_for("ui")
        ui.assignments.claim("qb-1")
        assert codes(ui) == []

    def test_says_that_the_database_cannot_be_reached(self, open_for: Open) -> None:
        url = "postgresql://somebody:secret@127.0.0.1:1/team"
        (found,) = examine(open_for("ui", QUEEN_DATABASE_URL=url))
        assert (found.code, found.file) == ("unreachable", "127.0.0.1:1/team")
        assert "secret" not in found.message

    def test_says_that_there_is_no_address(self, repo: Path, hive_name: str) -> None:
        with Hive.open(repo, droid="ui", env={}) as hive:
            (found,) = examine(hive)
        assert "nothing says where" in found.message

    @pytest.mark.parametrize(
        ("change", "undo", "said"),
        [
            (
                "INSERT INTO queen_schema (step) VALUES (99)",
                "DELETE FROM queen_schema WHERE step = 99",
                "version 99, which this QueenBee does not know",
            ),
            (
                "ALTER TABLE queen_schema RENAME TO queen_away",
                "ALTER TABLE queen_away RENAME TO queen_schema",
                "has no tables for QueenBee, or older ones",
            ),
            (
                "UPDATE queen_hives SET in_use = false",
                "UPDATE queen_hives SET in_use = true",
                "was carried back from the database to files",
            ),
            (
                # Other tests' hives have lines, which name them.
                """UPDATE queen_hives SET hive = 'away-' || hive WHERE hive NOT LIKE 'away-%'
                AND hive NOT IN (SELECT hive FROM queen_lines)""",
                "UPDATE queen_hives SET hive = substr(hive, 6) WHERE hive LIKE 'away-%'",
                "has no hive",
            ),
        ],
    )
    def test_says_that_the_tables_are_not_those_it_knows(
        self, server: Any, open_for: Open, change: str, undo: str, said: str
    ) -> None:
        admin(server, change)
        try:
            (found, *_) = examine(open_for("ui"))
            assert said in found.message
            assert found.severity == "error"
        finally:
            admin(server, undo)

    def test_says_that_the_server_takes_no_writes(self, server: Any, open_for: Open) -> None:
        """As after a failover, or in maintenance."""
        admin(server, "ALTER SYSTEM SET default_transaction_read_only = on")
        admin(server, "SELECT pg_reload_conf()")
        try:
            ui = open_for("ui")
            while "read_only" not in codes(ui):
                ui.close()
            with pytest.raises(Unreachable, match="read-only"):
                ui.assignments.claim("qb-1")
        finally:
            admin(server, "SET default_transaction_read_only = off", _RESET)
            admin(server, "SELECT pg_reload_conf()")

    def test_need_not_replace_a_memory_that_differs(self, open_for: Open) -> None:
        """Whoever reads it does: what is in the database is fetched again."""
        ui = open_for("ui")
        for number in range(3):
            ui.assignments.claim(f"qb-{number}")
        assert len(ui.assignments.find()) == 3
        path = ui.engine.memory.database.path
        ui.close()
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as memory:
            memory.execute("UPDATE lines SET raw = CAST(replace(raw, 'qb-0', 'qb-X') AS BLOB)")
        api = open_for("api")
        with pytest.raises(Taken):
            api.assignments.claim("qb-0")
        assert codes(api) == ["set_aside"]  # The one that differed is beside it.


_RESET = "ALTER SYSTEM RESET default_transaction_read_only"


class TestStatus:
    def test_says_where_the_hive_is_and_that_all_is_well(
        self, quick: QuickQueen, hive_name: str
    ) -> None:
        ran = quick("hive", "engine", "status", "--json")
        assert (ran.code, ran.json["hive"], ran.json["faults"]) == (0, hive_name, [])

    def test_says_what_is_wrong_and_ends_with_1(
        self, quick: QuickQueen, hive_name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(postgres_server.URL, "postgresql://u:secret@127.0.0.1:1/team")
        ran = quick("hive", "engine", "status")
        assert ran.code == 1
        assert "database: 127.0.0.1:1/team" in ran.out
        assert "cannot be reached" in ran.out
        assert "secret" not in ran.out
        assert quick("doctor").code == 1

    @pytest.mark.parametrize(
        "address",
        ["notaurl", "foo=1", "postgresql://127.0.0.1:99999/x", "postgresql://[", "port=x"],
    )
    def test_an_address_that_is_none_is_told_once(
        self, quick: QuickQueen, hive_name: str, monkeypatch: pytest.MonkeyPatch, address: str
    ) -> None:
        monkeypatch.setenv(postgres_server.URL, address)
        ran = quick("msg", "inbox", as_="ui")
        assert ran.code == 7
        assert ran.err.startswith("queen: the address of the database cannot be read: ")
        assert ran.err.count("queen: ") == 1

    @pytest.mark.parametrize(
        "address",
        [
            "secret",
            "host=127.0.0.1 port=1 password=a secret",
            "postgresql://u:%zzsecret@127.0.0.1:1/team",
            "postgresql://u:p@secret@127.0.0.1/team",
            'postgresql://u:p"@secret@127.0.0.1/team',
            "postgresql://u:secret/x@127.0.0.1:1/team",
            "postgresql://u:12/secret@127.0.0.1:1/team",
        ],
    )
    def test_an_address_that_is_read_amiss_shows_no_password(
        self, quick: QuickQueen, hive_name: str, monkeypatch: pytest.MonkeyPatch, address: str
    ) -> None:
        monkeypatch.setenv(postgres_server.URL, address)
        for words in (["msg", "inbox"], ["hive", "engine", "status"], ["doctor"]):
            ran = quick(*words, as_="ui")
            assert ran.code in (1, 6, 7)
            assert "secret" not in ran.out + ran.err

    @pytest.mark.parametrize(
        ("conninfo", "said"),
        [
            ("postgresql://me:secret@db.example:5433/team", "db.example:5433/team"),
            ("service=team", "service team"),
            ("host=/run/pg dbname=x password=secret", "/run/pg/x"),
            ("postgresql://[", "the database"),
            ("", "this machine/"),
        ],
    )
    def test_the_place_names_neither_user_nor_password(self, conninfo: str, said: str) -> None:
        assert health.place(conninfo) == said
