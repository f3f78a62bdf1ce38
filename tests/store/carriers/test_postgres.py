"""The engine over PostgreSQL: what it answers when the connection or the server is lost."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import postgres_server
import psycopg
import pytest
from hives import QuickQueen, git, records
from start_up import edit_event

from queenbee import Hive
from queenbee.errors import (
    Busy,
    OutcomeUnknown,
    StoreError,
    Taken,
    Unreachable,
    Unwritable,
)
from queenbee.hook.main import respond
from queenbee.store.carriers.postgres import carrying, connection, postgres_carrier
from queenbee.store.carriers.postgres.ddl import chained

Open = Callable[..., Hive]


@pytest.fixture
def hive_name(server: postgres_server.Server, beads: Path) -> str:
    return postgres_server.use(beads, server)


@pytest.fixture
def open_for(repo: Path, hive_name: str) -> Open:
    def opened(droid: str, **settings: str) -> Hive:
        env = {**postgres_server.environment(), **settings}
        return Hive.open(repo, droid=droid, env=env)

    return opened


def count(server: postgres_server.Server, hive: str) -> int:
    with psycopg.connect(server.url) as db:
        row = db.execute("SELECT count(*) FROM queen_lines WHERE hive = %s", (hive,)).fetchone()
    assert row is not None
    return int(row[0])


def cut(server: postgres_server.Server, keep: int = 0) -> None:
    """Ends every other connection, as an administrator can."""
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND pid <> %s",
            (keep,),
        )


class TestAConnectionThatIsLost:
    def test_between_two_commands_is_opened_again(self, open_for: Open, server: Any) -> None:
        ui = open_for("ui")
        ui.assignments.claim("qb-1")
        cut(server)
        assert [each.issue_id for each in ui.assignments.find()] == ["qb-1"]
        cut(server)
        assert ui.assignments.claim("qb-2")

    def test_within_a_turn_records_nothing(
        self, open_for: Open, server: Any, hive_name: str
    ) -> None:
        ui = open_for("ui")
        with pytest.raises(Unreachable, match="nothing was written"), ui.transaction() as tx:
            tx.create("messages", {"from": "ui", "to": ["api"], "body": "x"})
            cut(server)
        assert count(server, hive_name) == 0
        assert ui.assignments.claim("qb-1")

    @pytest.mark.parametrize("arrived", [True, False])
    def test_during_the_commit_is_a_yes_only_if_it_is_recorded(
        self,
        arrived: bool,
        open_for: Open,
        server: Any,
        hive_name: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Whether the server got the commit is what nobody on this side can tell."""
        ui = open_for("ui")
        lose_commit(monkeypatch, server, arrived=arrived)
        if arrived:
            assert ui.assignments.claim("qb-1")
        else:
            with pytest.raises(Unreachable, match="nothing was written"):
                ui.assignments.claim("qb-1")
        assert count(server, hive_name) == int(arrived)

    def test_an_outcome_that_nobody_can_tell_is_said_to_be_unknown(
        self, open_for: Open, server: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ui = open_for("ui")
        ui.layout.settings.lock_timeout_s = 0.5
        monkeypatch.setattr(postgres_carrier, "_LEAST_SEARCH_S", 0.5)
        lose_commit(monkeypatch, server, arrived=True, and_then=server.stop)
        try:
            with pytest.raises(OutcomeUnknown, match="whether it is recorded"):
                ui.assignments.claim("qb-1")
        finally:
            server.start()
        with pytest.raises(Taken):
            open_for("api").assignments.claim("qb-1")

    def test_the_same_turn_still_on_its_way_is_waited_for(
        self, open_for: Open, server: Any, hive_name: str
    ) -> None:
        """Asked without the lock, the database would say no, and commit afterwards."""
        other = connection.Connection(server.url, hive_name, name="t", patience_s=2, durable=True)
        asking = connection.Connection(server.url, hive_name, name="t", patience_s=2, durable=True)
        row = connection.Row(1, chained(b"", b"{}"), b"{}")
        other.begin({}, 1)
        found: list[bool] = []

        def ask() -> None:
            found.append(asking.is_recorded("messages", row.end, b"turn", 30))

        asker = threading.Thread(target=ask)
        asker.start()
        while not waiting_for_lock(server):
            time.sleep(0.01)
        other.commit({"messages": [row]}, b"turn")
        asker.join()
        assert found == [True]


def waiting_for_lock(server: postgres_server.Server) -> bool:
    with psycopg.connect(server.url) as db:
        row = db.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
    return row is not None and row[0] > 0


def lose_commit(
    monkeypatch: pytest.MonkeyPatch,
    server: postgres_server.Server,
    *,
    arrived: bool,
    and_then: Callable[[], None] = lambda: None,
) -> None:
    """Cuts the connection before or after the server got the next commit."""
    commit = connection.Connection.commit

    def losing(self: connection.Connection, *arguments: Any) -> None:
        monkeypatch.setattr(connection.Connection, "commit", commit)
        if arrived:
            commit(self, *arguments)
        cut(server)
        and_then()
        self.db.execute("SELECT 1")
        raise AssertionError("the connection was not cut")

    monkeypatch.setattr(connection.Connection, "commit", losing)


class TestAServerThatIsRestarted:
    def test_keeps_what_was_acknowledged(self, open_for: Open, server: Any) -> None:
        ui = open_for("ui")
        ui.assignments.claim("qb-1")
        server.stop("immediate")
        try:
            with pytest.raises(Unreachable, match="cannot be reached"):
                ui.assignments.claim("qb-2")
        finally:
            server.start()
        with pytest.raises(Taken):
            open_for("api").assignments.claim("qb-1")

    def test_a_database_put_back_to_an_older_state_replaces_the_cache(
        self, open_for: Open, server: Any, hive_name: str
    ) -> None:
        ui, api = open_for("ui"), open_for("api")
        ui.assignments.claim("qb-1")
        ui.assignments.claim("qb-2")
        assert len(api.assignments.find()) == 2
        with psycopg.connect(server.url) as db:
            db.execute("ALTER TABLE queen_lines DISABLE TRIGGER queen_append_only")
            db.execute("DELETE FROM queen_lines WHERE hive = %s AND sequence = 2", (hive_name,))
            db.execute("ALTER TABLE queen_lines ENABLE TRIGGER queen_append_only")
        assert [each.issue_id for each in api.assignments.find()] == ["qb-1"]
        assert api.assignments.claim("qb-2").droid == "api"

    def test_a_line_that_was_changed_is_refused(
        self, open_for: Open, server: Any, hive_name: str, repo: Path
    ) -> None:
        ui = open_for("ui")
        ui.assignments.claim("qb-1")
        with psycopg.connect(server.url) as db:
            db.execute("ALTER TABLE queen_lines DISABLE TRIGGER queen_append_only")
            db.execute("UPDATE queen_lines SET line = '{}' WHERE hive = %s", (hive_name,))
            db.execute("ALTER TABLE queen_lines ENABLE TRIGGER queen_append_only")
        for path in (repo / ".git" / "queenbee" / "postgres").glob("*"):
            path.unlink()
        with pytest.raises(StoreError, match="does not match its digest"):
            open_for("api").assignments.find()


def test_two_writers_never_get_the_same_issue(open_for: Open) -> None:
    won: list[str] = []

    def claim(name: str) -> None:
        hive = open_for(name)
        for number in range(5):
            with contextlib.suppress(Taken):
                won.append(str(hive.assignments.claim(f"qb-{number}").issue_id))

    threads = [threading.Thread(target=claim, args=(f"d{n}",)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(won) == [f"qb-{number}" for number in range(5)]


def test_without_its_lock_the_key_still_refuses_the_second_writer(
    open_for: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Correctness does not rest on the lock alone: a sequence number is given once."""
    monkeypatch.setattr(connection, "lock_key", lambda hive: time.monotonic_ns())
    ui, api = open_for("ui"), open_for("api")
    ui.assignments.claim("qb-0")
    with pytest.raises(Busy, match="at the same time"), ui.transaction() as tx:
        ui.state("assignments")
        api.assignments.claim("qb-1")
        tx.append("assignments", {"id": "qa-1", "issue_id": "qb-1", "droid": "ui"})
    assert [each.droid for each in api.assignments.find() if each.issue_id == "qb-1"] == ["api"]


def test_the_database_clock_decides(open_for: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose clock is an hour ahead sees the same leases as the others."""
    ui = open_for("ui")
    truth = time.time_ns() // 1_000_000
    monkeypatch.setattr(time, "time_ns", lambda: (truth + 3_600_000) * 1_000_000)
    lease = ui.reservations.reserve(["a.py"], ttl_s=600)[0]
    assert abs(lease.created_ms - truth) < 60_000
    assert open_for("api").reservations.find()


def test_a_waiter_is_woken_by_an_announcement(
    open_for: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queenbee.store.carriers.engine._ASK_S", 3600.0)
    ui, api = open_for("ui"), open_for("api")
    told: list[object] = []
    waiter = threading.Thread(target=lambda: told.extend(api.messages.wait(timeout_s=60)))
    waiter.start()
    while api.engine.carrier._listening is None:
        time.sleep(0.01)
    time.sleep(0.1)
    ui.messages.send("api", "hello")
    waiter.join()
    assert len(told) == 1


class TestFaults:
    def test_only_a_write_says_that_nothing_was_written(self, repo: Path, hive_name: str) -> None:
        env = {postgres_server.URL: "postgresql://u@127.0.0.1:1/x"}
        hive = Hive.open(repo, droid="ui", env=env)
        with pytest.raises(Unreachable) as read:
            hive.assignments.find()
        assert "nothing was written" not in f"{read.value} {read.value.hint}"
        with (
            pytest.raises(Unreachable, match=r"; nothing was written$"),
            hive.transaction(),
        ):
            pass

    def test_a_database_that_does_not_answer_is_named_once(
        self, repo: Path, hive_name: str, quick: QuickQueen
    ) -> None:
        for url, said in (
            ("postgresql://u@127.0.0.1:1/x", "cannot be reached"),
            ("", "nothing says where"),
        ):
            ran = quick(
                "claim", "--new", "qb-1", as_="ui", env={postgres_server.URL: url}, cwd=repo
            )
            assert ran.err.count(said) == 1

    def test_no_address_has_one_exit_status(
        self, repo: Path, hive_name: str, quick: QuickQueen
    ) -> None:
        for command in ("status", "hive engine use postgres", "hive engine use files"):
            ran = quick(*command.split(), env={postgres_server.URL: ""}, cwd=repo)
            assert ran.code == 7, command

    def test_no_address(self, repo: Path, hive_name: str) -> None:
        with pytest.raises(Unwritable, match="nothing says where") as caught:
            Hive.open(repo, droid="ui", env={}).assignments.find()
        assert "QUEEN_DATABASE_URL" in str(caught.value.hint)

    def test_no_server(self, repo: Path, hive_name: str) -> None:
        env = {postgres_server.URL: "postgresql://u:secret@127.0.0.1:1/x"}
        with pytest.raises(Unreachable) as caught:
            Hive.open(repo, droid="ui", env=env).assignments.find()
        assert "secret" not in caught.value.message

    def test_a_statement_that_takes_too_long(self, open_for: Open, server: Any) -> None:
        ui = open_for("ui")
        ui.assignments.find()
        db = ui.engine.carrier.connection
        assert db is not None
        db.db.execute("SET statement_timeout = 50")
        with (
            psycopg.connect(server.url) as other,
            other.transaction(),
        ):
            other.execute("LOCK TABLE queen_lines IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(Busy, match="statement timeout"):
                ui.assignments.claim("qb-1")
        assert ui.assignments.claim("qb-1")

    def test_a_lock_that_is_not_given_back(self, open_for: Open) -> None:
        ui, api = open_for("ui"), open_for("api")
        api.layout.settings.lock_timeout_s = 0.1
        with ui.transaction(), pytest.raises(Busy, match="locked by another"):
            api.assignments.claim("qb-1")

    def test_a_server_that_became_a_standby(self, open_for: Open, server: Any) -> None:
        ui = open_for("ui")
        ui.assignments.find()
        db = ui.engine.carrier.connection
        assert db is not None
        db.db.execute("SET default_transaction_read_only = on")
        with pytest.raises(Unreachable, match="read-only"):
            ui.assignments.claim("qb-1")

    def test_another_hive_is_refused(self, repo: Path, beads: Path, server: Any) -> None:
        server.new_hive()  # It makes the tables.
        postgres_server.use(beads, server, "of-nobody")
        env = postgres_server.environment()
        with pytest.raises(StoreError, match="no hive 'of-nobody'"):
            Hive.open(repo, droid="ui", env=env).assignments.claim("qb-1")


def test_the_guard_names_the_way_past_a_database_that_does_not_answer(
    quick: QuickQueen, hive_name: str
) -> None:
    away = {postgres_server.URL: "postgresql://127.0.0.1:1/none"}
    refused = quick("guard", "check", "src/app.py", env=away)
    assert refused.code == 6
    assert "cannot be reached" in refused.err
    assert "to proceed anyway: QUEEN_GUARD=warn" in refused.err
    assert quick("guard", "check", "src/app.py", env={**away, "QUEEN_GUARD": "warn"}).code == 0


class TestTheEditHook:
    """Where the database does not answer, an edit cannot be judged."""

    def respond(self, repo: Path) -> Any:
        event = json.loads(edit_event(repo, "a.py"))
        env = {postgres_server.URL: "postgresql://127.0.0.1:1/x", "QUEEN_DROID": "ui"}
        return respond(json.dumps(event).encode(), env, str(repo))

    def test_lets_it_pass_with_a_warning_and_logs_it(self, repo: Path, open_for: Open) -> None:
        open_for("ui").assignments.claim("qb-1")
        answer = self.respond(repo)
        assert "not guarded" in answer["systemMessage"]
        assert "permissionDecision" not in str(answer)
        log = (repo / ".git" / "queenbee" / "hook.log").read_text()
        assert "cannot be reached" in log

    def test_refuses_it_if_the_settings_say_so(
        self, repo: Path, beads: Path, hive_name: str
    ) -> None:
        with (beads / "queen.toml").open("a") as file:
            file.write('hook = "refuse"\n')
        assert self.respond(repo)["hookSpecificOutput"]["permissionDecision"] == "deny"


STEPS: dict[tuple[str, str], tuple[Any, str]] = {
    ("postgres", "verified"): (carrying, "_verified"),
    ("postgres", "committed"): (carrying, "note_engine"),
    ("postgres", "noted"): (carrying, "_write_settings"),
    ("files", "verified"): (carrying, "_take"),
    ("files", "committed"): (carrying, "_write_settings"),
    ("files", "noted"): (carrying.safe_open, "unlink"),
}
"""What comes next at each step."""


class TestCarryingOver:
    @pytest.fixture
    def lines(self, quick: QuickQueen, beads: Path, server: Any) -> list[dict[str, Any]]:
        quick("init")
        quick("config", "set", "issues", "off")
        for number in range(3):
            quick("claim", "--new", f"qb-{number}", as_="ui")
        return records(beads / "queen_assignments.jsonl")

    def test_there_and_back_keeps_every_line(
        self, quick: QuickQueen, beads: Path, lines: list[dict[str, Any]]
    ) -> None:
        ran = quick("hive", "engine", "use", "postgres", "--json")
        assert ran.json["kinds"]["assignments"] == {"lines": 3, "added": 3}
        assert quick("claim", "--new", "qb-9", as_="api").code == 0
        assert (beads / "queen_assignments.jsonl").read_bytes().count(b"\n") == 3
        status = quick("hive", "engine", "status", "--verify", "--json").json
        assert status["verified"] == {"assignments": 4}
        ran = quick("hive", "engine", "use", "files", "--json")
        assert ran.json["kinds"]["assignments"] == {"lines": 4, "added": 1}
        kept = records(beads / "queen_assignments.jsonl")
        assert kept[:3] == lines
        assert kept[3]["issue_id"] == "qb-9"
        assert quick("hive", "engine", "status", "--json").json == {"engine": "files"}
        assert quick("claim", "--new", "qb-9", as_="ui").code == 5

    def test_repeated_it_adds_what_came_to_the_files_since(
        self, quick: QuickQueen, beads: Path, lines: list[dict[str, Any]]
    ) -> None:
        quick("hive", "engine", "use", "postgres")
        with (beads / "queen_assignments.jsonl").open("a") as file:
            file.write('{"id":"qa-late","issue_id":"qb-7","droid":"far","rev":1}\n')
        assert quick("hive", "engine", "status", "--json").json["only_in_files"] == {
            "assignments": 1
        }
        assert quick("hive", "engine", "use", "postgres", "--json").json["kinds"][
            "assignments"
        ] == {
            "lines": 4,
            "added": 1,
        }
        assert quick("claim", "--new", "qb-7", as_="ui").code == 5

    def test_it_copies_lines_that_only_the_journal_has(
        self, quick: QuickQueen, beads: Path, lines: list[dict[str, Any]]
    ) -> None:
        """As after `git clean` or a checkout that removed the ledgers, before the next write."""
        (beads / "queen_assignments.jsonl").unlink()
        ran = quick("hive", "engine", "use", "postgres", "--json")
        assert ran.json["kinds"]["assignments"] == {"lines": 3, "added": 3}
        assert quick("claim", "--new", "qb-1", as_="api").code == 5

    @pytest.mark.some(2)
    @pytest.mark.parametrize("step", ["verified", "committed", "noted"])
    @pytest.mark.parametrize("kind", ["postgres", "files"])
    def test_interrupted_it_leaves_one_engine_in_use(
        self,
        kind: str,
        step: str,
        quick: QuickQueen,
        lines: list[dict[str, Any]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Before the switch the old one; in the midst of it neither, until it is repeated."""
        if kind == "files":
            quick("hive", "engine", "use", "postgres")
        quick("status", as_="ui")  # Which keeps these settings as the last good ones.

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        where, name = STEPS[kind, step]
        with monkeypatch.context() as patch:
            patch.setattr(where, name, interrupted)
            assert quick("hive", "engine", "use", kind).code == 130
        claimed = quick("claim", "--new", "qb-8", as_="ui")
        still_old = step == "verified" or (kind, step) == ("postgres", "committed")
        assert (claimed.code == 0) == still_old, claimed
        assert quick("hive", "engine", "use", kind).code == 0
        assert quick("claim", "--new", "qb-8", as_="ui").code == 0
        assert quick("claim", "--new", "qb-1", as_="api").code == 5

    def test_a_checkout_of_old_settings_does_not_bring_the_files_back_to_life(
        self, quick: QuickQueen, beads: Path, lines: list[dict[str, Any]]
    ) -> None:
        before = (beads / "queen.toml").read_bytes()
        quick("hive", "engine", "use", "postgres")
        (beads / "queen.toml").write_bytes(before)
        ran = quick("claim", "--new", "qb-8", as_="ui")
        assert ran.code == 7
        assert "queen hive engine use files" in ran.err

    def test_a_clone_that_has_not_heard_that_it_is_in_files_again_cannot_switch_back(
        self, quick: QuickQueen, repo: Path, tmp_path: Path, lines: list[dict[str, Any]]
    ) -> None:
        """Otherwise it would write to the database and the others to files: two grants."""
        quick("hive", "engine", "use", "postgres")
        other = tmp_path / "other"
        git(tmp_path, "clone", "-q", str(repo), str(other))
        shutil.copytree(repo / ".beads", other / ".beads")
        assert quick("claim", "--new", "qb-8", as_="far", cwd=other).code == 0
        quick("hive", "engine", "use", "files")
        for arguments in (
            ("claim", "--new", "qb-9", "--as", "far"),
            ("issue", "assignments"),
            ("hive", "engine", "use", "postgres"),
        ):
            ran = quick(*arguments, cwd=other)
            assert (ran.code, ran.out) == (7, ""), arguments
            assert "was carried back" in ran.err
            assert "hive engine use files" in ran.err
        assert quick("hive", "engine", "use", "files", cwd=other).code == 0
        assert quick("claim", "--new", "qb-8", as_="ui", cwd=other).code == 5
        assert quick("claim", "--new", "qb-8", as_="ui").code == 5

    def test_who_has_pulled_that_it_is_in_files_again_goes_on_there(
        self, quick: QuickQueen, beads: Path, lines: list[dict[str, Any]]
    ) -> None:
        """`queen.toml` of the pull says files; the note of this clone still says the database."""
        quick("hive", "engine", "use", "postgres")
        note = next(beads.parent.glob(".git/queenbee/engine"))
        noted = note.read_bytes()
        quick("hive", "engine", "use", "files")
        note.write_bytes(noted)
        ran = quick("claim", "--new", "qb-8", as_="ui")
        assert ran.code == 7
        assert "if the team went back to files, or to do so: queen hive engine use files" in ran.err
        assert quick("hive", "engine", "use", "postgres").code == 7
        assert quick("hive", "engine", "use", "files").code == 0
        assert quick("claim", "--new", "qb-8", as_="ui").code == 0
        assert quick("hive", "engine", "use", "postgres").code == 0

    def test_the_address_stays_out_of_the_repository(
        self, quick: QuickQueen, beads: Path, lines: list[dict[str, Any]]
    ) -> None:
        quick("hive", "engine", "use", "postgres")
        quick("claim", "--new", "qb-8", as_="ui")
        url = os.environ[postgres_server.URL].encode()
        for path in beads.parent.rglob("*"):
            assert not path.is_file() or url not in path.read_bytes()
