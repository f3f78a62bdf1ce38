"""The first reader of a long ledger writes its index once, straight to the file."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from queenbee.store.index import intake, tables
from queenbee.store.index.records import Indexed
from queenbee.store.ledger.ledger import Ledger
from queenbee.store.state import Folded

if TYPE_CHECKING:
    from pathlib import Path

KIND = "messages"
COUNT = 3_000


class Place:
    """A ledger of 3 MiB in a folder, and where its index goes."""

    def __init__(self, folder: Path) -> None:
        self.ledger = str(folder / "queen_messages.jsonl"), str(folder / "journal.jsonl")
        self.index = str(folder / "index.sqlite3")
        body = "x" * 900
        lines = [b'{"id":"qm-%05d","rev":1,"body":"%s"}' % (n, body.encode()) for n in range(COUNT)]
        Ledger(*self.ledger).append(lines).close()

    def opened(self) -> Indexed:
        found = Indexed(KIND, Ledger(*self.ledger), self.index)
        found.refresh()
        return found

    def mode(self) -> object:
        database = sqlite3.connect(self.index)
        [[mode]] = database.execute("PRAGMA journal_mode")
        database.close()
        return mode


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(intake, "LONG_WAL_BYTES", 1)
    return Place(tmp_path)


def test_goes_to_the_file_and_not_through_the_log(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[bool] = []
    sort = tables.Tables.sort

    def watched(self: tables.Tables) -> None:
        there.extend(os.path.lexists(place.index + each) for each in ("-wal", "-journal"))
        sort(self)

    monkeypatch.setattr(tables.Tables, "sort", watched)
    place.opened().close()
    assert there == [False, True]
    assert place.mode() == "wal"


def test_goes_through_the_log_if_another_process_has_the_index_open(place: Place) -> None:
    other = tables.Tables(KIND, place.index)
    mine = place.opened()
    assert len(mine.everything()) == COUNT
    mine.close()
    other.close()
    assert place.mode() == "wal"


def test_of_a_process_that_is_killed_is_done_again(place: Place) -> None:
    killed = (
        "import os, sys; from queenbee.store.index import intake, records, tables\n"
        "from queenbee.store.ledger.ledger import Ledger\n"
        "intake.LONG_WAL_BYTES = 1\n"
        "tables.Tables.sort = lambda self: os._exit(9)\n"
        f"records.Indexed({KIND!r}, Ledger(*sys.argv[1:3]), sys.argv[3]).refresh()"
    )
    command = [sys.executable, "-c", killed, *place.ledger, place.index]
    assert subprocess.run(command, check=False).returncode == 9
    assert os.path.getsize(place.index) > 1024 * 1024
    assert os.path.lexists(place.index + "-journal")
    again, truth = place.opened(), Folded(KIND, Ledger(*place.ledger))
    truth.refresh()
    assert again.everything() == truth.everything()
    [[whole]] = again._tables.ask("PRAGMA integrity_check")
    assert whole == "ok"
    again.close()
    assert place.mode() == "wal"


def test_that_ended_before_the_log_was_back_is_logged_from_the_next_change_on(place: Place) -> None:
    place.opened().close()
    database = sqlite3.connect(place.index)
    database.execute("PRAGMA journal_mode = DELETE")
    database.close()
    assert place.mode() == "delete"
    Ledger(*place.ledger).append([b'{"id":"qm-new","rev":1}']).close()
    place.opened().close()
    assert place.mode() == "wal"


def test_is_waited_for_by_those_who_come_meanwhile(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    building, waiting, answers = threading.Event(), threading.Event(), list[int]()
    sort, version = tables.Tables.sort, tables._version

    def held(self: tables.Tables) -> None:
        building.set()
        assert waiting.wait(30)
        sort(self)

    def noticed(database: sqlite3.Connection) -> object:
        [[patience_ms]] = database.execute("PRAGMA busy_timeout")
        if patience_ms > 1_000:
            waiting.set()
        return version(database)

    def read() -> None:
        found = place.opened()
        answers.append(len(found.everything()))
        found.close()

    monkeypatch.setattr(tables.Tables, "sort", held)
    first = threading.Thread(target=read)
    first.start()
    assert building.wait(30)
    monkeypatch.setattr(tables, "_OPEN_S", 0.01)
    monkeypatch.setattr(tables, "_version", noticed)
    second = threading.Thread(target=read)
    second.start()
    for each in (first, second):
        each.join(60)
    assert answers == [COUNT, COUNT]


class TestTheLog:
    """What the first process reads after all others have ended: a killed one leaves it."""

    def log_bytes(self, place: Place) -> int:
        return os.path.getsize(f"{place.index}-wal")

    def test_of_a_new_index_is_emptied_at_once(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(intake, "LONG_WAL_BYTES", 2**40)  # It goes through the log.
        mine = place.opened()
        assert self.log_bytes(place) == 0
        mine.close()

    def test_of_changes_stays_short(self, place: Place) -> None:
        mine = place.opened()
        for number in range(40):
            line = f'{{"id":"qm-x{number}","body":"{"x" * 60_000}","rev":1}}'
            mine.ledger.append([line.encode()]).close()
            mine.refresh()
            assert self.log_bytes(place) <= tables.LOG_BYTES
        mine.close()

    def test_is_left_to_the_next_change_while_another_process_reads(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mine, reader = place.opened(), sqlite3.connect(place.index, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM records").fetchone()
        monkeypatch.setattr(tables, "LOG_BYTES", 1)
        begun_s = time.monotonic()
        mine.ledger.append([b'{"id":"qm-y","rev":1}']).close()
        mine.refresh()
        assert mine.get("qm-y") is not None
        assert time.monotonic() - begun_s < tables._WAIT_S / 2
        assert self.log_bytes(place) > 0
        [[wait_ms]] = mine._tables.ask("PRAGMA busy_timeout")
        assert wait_ms == int(tables._WAIT_S * 1000)
        reader.close()
        mine.ledger.append([b'{"id":"qm-z","rev":1}']).close()
        mine.refresh()
        assert self.log_bytes(place) == 0
        mine.close()


def sorted_by(records: Indexed) -> set[object]:
    """Returns the columns that the SQL indexes of an index begin with."""
    names = {name for (name,) in records._tables.ask("SELECT name FROM sqlite_master")}
    made = tables._sql_indexes(KIND).items()
    return {column for name, (column, _) in made if name in names}


class TestSqlIndexes:
    """Those that a first inbox needs are made with a new index, others when they are asked for."""

    def test_that_few_need_are_made_by_the_first_who_asks(self, place: Place) -> None:
        records, truth = place.opened(), Folded(KIND, Ledger(*place.ledger))
        truth.refresh()
        assert sorted_by(records) == {"to", "end_key"}
        assert records.get("qm-00007") == truth.get("qm-00007")
        assert sorted_by(records) == {"to", "end_key", "id"}
        assert records.select({"from": "bob"}) == truth.select({"from": "bob"}) == []
        assert records.distinct("issue_id") == truth.distinct("issue_id")
        assert sorted_by(records) == {"to", "end_key", "id", "from", "issue_id"}
        records.close()
        again = place.opened()
        assert sorted_by(again) == {"to", "end_key", "id", "from", "issue_id"}
        again.close()

    def test_that_cannot_be_made_are_done_without(self, place: Place) -> None:
        records, truth = place.opened(), Folded(KIND, Ledger(*place.ledger))
        truth.refresh()
        records._tables.db.execute("PRAGMA query_only = 1")
        assert records.get("qm-00007") == truth.get("qm-00007")
        assert records._folded is None
        assert sorted_by(records) == {"to", "end_key"}
        records.close()

    def test_that_another_process_has_removed_are_made_again(self, place: Place) -> None:
        records = place.opened()
        records.get("qm-00007")
        other = tables.Tables(KIND, place.index)
        other.db.execute("DROP INDEX by_id")
        other.close()
        assert records.get("qm-00008") is not None
        assert "id" in sorted_by(records)
        records.close()

    def test_a_later_line_of_a_known_record_finds_it_without_them(self, place: Place) -> None:
        """Nothing is looked up for ids after the greatest."""
        place.opened().close()
        ledger, line = Ledger(*place.ledger), b'{"id":"qm-00007","rev":2,"body":"later"}'
        ledger.append([line]).close()
        records = place.opened()
        rows = records._tables.ask("SELECT count FROM records WHERE id = 'qm-00007'")
        assert rows == [(2,)]
        records.close()
