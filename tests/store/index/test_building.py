"""The first reader of a long ledger builds its index."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from queenbee.store.index import tables
from queenbee.store.index.indexed import Indexed
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


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_of_a_process_that_is_killed_is_done_again(place: Place) -> None:
    killed = (
        "import os, sys; from queenbee.store.index import indexed, tables\n"
        "from queenbee.store.ledger.ledger import Ledger\n"
        "tables.Tables.sort = lambda self: os._exit(9)\n"
        f"indexed.Indexed({KIND!r}, Ledger(*sys.argv[1:3]), sys.argv[3]).refresh()"
    )
    command = [sys.executable, "-c", killed, *place.ledger, place.index]
    assert subprocess.run(command, check=False).returncode == 9
    again, truth = place.opened(), Folded(KIND, Ledger(*place.ledger))
    truth.refresh()
    assert again.everything() == truth.everything()
    [[whole]] = again._index.tables.ask("PRAGMA integrity_check")
    assert whole == "ok"
    again.close()


def test_is_waited_for_by_those_who_come_meanwhile(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    building, waiting, answers = threading.Event(), threading.Event(), list[int]()
    sort, begin = tables.Tables.sort, tables.Tables.transaction

    def held(self: tables.Tables) -> None:
        building.set()
        assert waiting.wait(30)
        sort(self)

    def noticed(self: tables.Tables) -> object:
        waiting.set()
        return begin(self)

    def read() -> None:
        found = place.opened()
        answers.append(len(found.everything()))
        found.close()

    monkeypatch.setattr(tables.Tables, "sort", held)
    first = threading.Thread(target=read)
    first.start()
    assert building.wait(30)
    monkeypatch.setattr(tables.Tables, "transaction", noticed)
    second = threading.Thread(target=read)
    second.start()
    for each in (first, second):
        each.join(60)
    assert answers == [COUNT, COUNT]


class TestTheLog:
    """What the first process reads after all others have ended: a killed one leaves it."""

    def log_bytes(self, place: Place) -> int:
        return os.path.getsize(f"{place.index}-wal")

    def test_of_a_new_index_is_emptied_at_once(self, place: Place) -> None:
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
        [[wait_ms]] = mine._index.tables.ask("PRAGMA busy_timeout")
        assert wait_ms == int(tables._WAIT_S * 1000)
        reader.close()
        mine.ledger.append([b'{"id":"qm-z","rev":1}']).close()
        mine.refresh()
        assert self.log_bytes(place) == 0
        mine.close()
