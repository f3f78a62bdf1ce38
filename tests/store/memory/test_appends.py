"""What a durable append costs: commits, statements and bytes; and what that must not break."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hives import git
from memory_places import Place, joined, line

from queenbee import Hive
from queenbee.store.memory.files_memory import FilesMemory
from queenbee.store.memory.recorded import Recorded

LOG_BYTES = 1024 * 1024


@pytest.fixture
def hive(tmp_path: Path) -> Iterator[Hive]:
    git(tmp_path, "init", "-q")
    (tmp_path / ".beads").mkdir()
    with Hive.open(tmp_path, droid="ui", env={}) as opened:
        opened.messages.send("api", "the first write makes the files")
        yield opened


def statements_of(hive: Hive, number: int) -> list[list[str]]:
    """Returns the statements that the write of each of some messages takes."""
    found: list[list[str]] = []
    for _ in range(number):
        found.append([])
        hive.engine.memory.database.db.set_trace_callback(found[-1].append)
        hive.messages.send("api", "hello")
        hive.engine.memory.database.db.set_trace_callback(None)
    return [each[each.index("BEGIN IMMEDIATE") :] for each in found]


def commits(statements: list[str]) -> int:
    return sum(each == "COMMIT" for each in statements)


class TestTheCostOfAnAppend:
    def test_is_one_commit_of_few_statements(self, hive: Hive) -> None:
        for statements in statements_of(hive, 3):
            assert commits(statements) == 1
            assert len(statements[: statements.index("COMMIT") + 1]) <= 12

    def test_is_two_where_the_file_belongs_to_somebody_else(
        self, hive: Hive, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only its owner can give a file a time."""

        def refused(*_: object, **__: object) -> None:
            raise PermissionError

        monkeypatch.setattr(os, "utime", refused)
        for statements in statements_of(hive, 3):
            assert commits(statements) == 2
        assert len(hive.messages.sent()) == 4

    def test_leaves_nothing_for_readers_to_take_in(self, hive: Hive, tmp_path: Path) -> None:
        hive.messages.send("api", "hello")
        with Hive.open(tmp_path, droid="api", env={}) as reader:
            seen: list[str] = []
            reader.engine.memory.database.db.set_trace_callback(seen.append)
            assert len(reader.messages.inbox()) == 2
        assert not [each for each in seen if each.startswith("BEGIN")]

    def test_of_leases_are_read_once_for_who_asks_about_a_path(
        self, hive: Hive, tmp_path: Path
    ) -> None:
        """The sum over all grants, and the search, go by the same rows."""
        hive.reservations.reserve(["src/**"])
        with Hive.open(tmp_path, droid="api", env={}) as reader:
            seen: list[str] = []
            reader.engine.memory.database.db.set_trace_callback(seen.append)
            [found] = reader.reservations.check(["src/a"])
        assert found.status == "held"
        assert len([each for each in seen if '"pattern"' in each]) == 1

    def test_in_bytes_is_twice_the_line(self, tmp_path: Path) -> None:
        """What the memory takes, beside the lines."""
        text, place = "Some text of ordinary length, about a task. " * 2, Place(tmp_path)
        more = {"from": "ui", "to": "api", "subject": "A subject", "body": text, "issue_id": "qb-1"}
        lines = [
            line(f"qm-{n:026}", **more, importance="normal", read=False) for n in range(10_000)
        ]
        for begin in range(0, len(lines), 1000):
            with closing(FilesMemory(place.layout)) as memory:
                memory.write({"messages": lines[begin : begin + 1000]})
        assert os.path.getsize(place.layout.memory_path) <= 2 * len(joined(lines))


def test_the_log_begins_anew_and_keeps_its_size(hive: Hive) -> None:
    sizes = []
    for _ in range(150):
        hive.messages.send("api", "hello")
        sizes.append(os.path.getsize(hive.layout.memory_path + "-wal"))
    assert sizes == sorted(sizes)
    assert sizes[-1] <= LOG_BYTES


class TestAForeignLine:
    """Of a program that writes no `rev`, the latest line wins, and may be one that was there."""

    def test_right_after_a_write_counts_again(self, tmp_path: Path) -> None:
        place, state = Place(tmp_path), ("open", "done", "open")
        first, second, third = (line("qm-1", 0, status=each) for each in state)
        for each in (first, second):
            append(place, each)
            assert place.state()
        place.record(line("qm-2"))
        append(place, third)
        assert place.state()["qm-1"]["status"] == "open"

    def test_in_the_place_of_another_one_is_seen(self, tmp_path: Path) -> None:
        """Also where neither inode nor size nor the end of the file changed."""
        place = Place(tmp_path)
        append(place, line("qm-1", body="a"))
        place.record(*[line(f"qm-{n}", body="x" * 200) for n in range(2, 50)])
        data = place.content().replace(b'"body":"a"', b'"body":"b"')
        with place.ledger().open("r+b") as file:
            file.write(data)
        assert any(b'"body":"b"' in each for each in lines_of(place))


def test_a_torn_end_stays_as_it_is_and_spoils_no_line_after_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.record(line("qm-1"))
    with place.ledger().open("ab") as file:
        file.write(b'{"id":"qm-')
    for identifier in ("qm-2", "qm-3"):
        place.record(line(identifier))
    content = joined([line("qm-1"), b'{"id":"qm-', line("qm-2"), line("qm-3")])
    assert place.content() == content


def test_a_line_that_counts_as_one_of_another_record_comes_back_to_its_own(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.record(line("qm-1"), line("qm-2"))
    with closing(sqlite3.connect(place.layout.memory_path)) as database, database:
        database.execute("UPDATE lines SET first = 1 WHERE seq = 2")
    place.record(line("qm-1", 2))
    with closing(FilesMemory(place.layout)) as memory:
        state = Recorded("messages", memory)
        state.refresh()
        assert [len(state.history(each)) for each in ("qm-1", "qm-2")] == [2, 1]


def test_a_ledger_gets_what_another_worktree_recorded_after_it_was_restored(
    repo: Path, tmp_path: Path
) -> None:
    git(repo, "clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    for name in ("one", "two"):
        git(tmp_path / "bare.git", "worktree", "add", "-q", "-b", name, f"../{name}")
        (tmp_path / name / ".beads").mkdir(exist_ok=True)
    one, two = (Hive.open(tmp_path / name, droid="ui", env={}) for name in ("one", "two"))
    ledger = Path(one.layout.ledger_path("messages"))
    one.messages.send("api", "hello")
    with open(two.layout.ledger_path("messages"), "ab") as file:
        file.write(joined([line("qm-7")]))
    assert two.state("messages").is_unrecorded
    ledger.write_bytes(b"")
    for hive in (one, two, one):
        with hive.transaction() as tx:
            tx.touch("messages")
    assert len(ledger.read_bytes().splitlines()) == 2


def test_a_record_of_many_lines_outlives_the_loss_of_its_first(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.record(line("qm-9"))
    append(place, line("qm-1", 1, body="a"))
    append(place, line("qm-1", 2, body="b"))
    assert place.state()["qm-1"]["rev"] == 2
    place.ledger().write_bytes(joined([line("qm-9"), line("qm-1", 2, body="b")]))
    assert place.state()["qm-1"]["body"] == "b"
    place.record(line("qm-1", 3, body="c"))
    with closing(FilesMemory(place.layout)) as memory:
        state = Recorded("messages", memory)
        state.refresh()
        assert [each["rev"] for each in state.history("qm-1")] == [2, 3]
        memory.rebuild()
        assert [each["rev"] for each in state.history("qm-1")] == [2, 3]
    assert not list(place.state_dir.glob("*.damaged-*"))


def test_a_memory_of_another_version_is_made_anew_with_what_only_it_had(hive: Hive) -> None:
    path, ledger = hive.layout.memory_path, Path(hive.layout.ledger_path("messages"))
    hive.close()
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "DROP INDEX later_lines; ALTER TABLE lines RENAME TO others; "
            "CREATE TABLE lines (seq INTEGER PRIMARY KEY, kind TEXT, id TEXT, raw BLOB, "
            "sum INTEGER, loose INTEGER, archived INTEGER); "
            "INSERT INTO lines SELECT seq, kind, '', raw, sum, loose, archived FROM others; "
            "DROP TABLE others; PRAGMA user_version = 1"
        )
    ledger.unlink()
    assert len(hive.messages.sent()) == 1
    hive.messages.send("api", "hello")
    assert len(ledger.read_bytes().splitlines()) == 2


def append(place: Place, *lines: bytes) -> None:
    with place.ledger().open("ab") as file:
        file.write(joined(lines))


def lines_of(place: Place) -> list[bytes]:
    with closing(FilesMemory(place.layout)) as memory:
        memory.refresh("messages")
        query = "SELECT raw FROM lines WHERE kind = 'messages' ORDER BY seq"
        return [raw for (raw,) in memory.database.ask(query) if isinstance(raw, bytes)]
