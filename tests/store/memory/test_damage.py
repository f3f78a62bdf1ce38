"""A memory whose bytes were changed answers nothing that its lines do not say."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from memory_places import KIND, Place, joined, line, put
from memory_worlds import Happening
from raw_files import remembered

from queenbee import Hive
from queenbee.errors import Held, Taken
from queenbee.store.memory import salvage
from queenbee.store.memory.database import Database
from queenbee.store.memory.files_memory import FilesMemory


@pytest.fixture
def ada(repo: Path) -> Hive:
    """A droid that holds three files and three issues."""
    hive = Hive.open(repo, droid="ada", env={})
    hive.reservations.reserve(["src/a.py", "src/held.py", "src/z.py"])
    for issue_id in ("shop-1", "shop-held", "shop-9"):
        hive.assignments.claim(issue_id)
    assert len(hive.reservations.find()) == len(hive.assignments.find()) == 3
    hive.close()
    return hive


@pytest.mark.parametrize("of", [0, 2, 5])
def test_a_changed_bit_gives_nobody_what_another_holds(ada: Hive, repo: Path, of: int) -> None:
    """Neither in what a grant holds nor in its status, its line, or the SQL indexes."""
    memory = Happening(repo)
    memory.change()
    whole = memory.path.read_bytes()
    places = list(re.finditer(rb"active|src/held\.py|shop-held", whole))
    assert len(places) > 10
    for found in places:
        changed = bytearray(whole)
        changed[found.start() + of % len(found[0])] ^= 1 << of
        memory.remove()
        memory.path.write_bytes(changed)
        with Hive.open(repo, droid="bob", env={}) as bob:
            with pytest.raises(Held):
                bob.reservations.reserve(["src/held.py"])
            with pytest.raises(Taken):
                bob.assignments.claim("shop-held")


@pytest.mark.parametrize("of", range(8))
def test_a_changed_bit_in_a_line_is_noticed(tmp_path: Path, of: int) -> None:
    place = Place(tmp_path)
    place.record(line("qm-1", 1, body="as it was"))
    path = place.state_dir / "hive.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    changed = bytearray(path.read_bytes())
    changed[changed.index(b"as it was") + of] ^= 1
    path.write_bytes(changed)
    assert place.state()["qm-1"]["body"] == "as it was"
    assert len(list(place.state_dir.glob("hive.sqlite3.damaged-*"))) == 1


def test_a_fold_that_is_made_anew_counts_each_grant_once(ada: Hive, repo: Path) -> None:
    """Else the memory would be taken for a damaged one."""
    memory = Happening(repo)
    memory.change("UPDATE meta SET value = 99 WHERE key = 'fold'")
    with Hive.open(repo, droid="bob", env={}) as bob:
        assert len(bob.reservations.find()) == len(bob.assignments.find()) == 3
        bob.rebuild_memory()
        assert len(bob.reservations.find()) == len(bob.assignments.find()) == 3
    assert list(memory.path.parent.glob("hive.sqlite3.damaged-*")) == []


def test_lines_on_both_sides_of_a_damaged_page_are_kept(tmp_path: Path) -> None:
    """Also those that git took away, which only the memory has."""
    place = Place(tmp_path)
    place.record(*(line(f"qm-{number:03}", 1, body="x" * 200) for number in range(200)))
    path = place.state_dir / "hive.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    place.ledger().write_bytes(b"")
    data = bytearray(path.read_bytes())
    at = data.index(b'"qm-100"') // 4096 * 4096
    data[at : at + 4096] = b"\xff" * 4096
    path.write_bytes(data)
    kept = place.state()
    assert {"qm-000", "qm-199"} <= kept.keys()
    assert len(kept) > 140


def test_a_new_memory_keeps_a_log_from_its_first_write_on(tmp_path: Path) -> None:
    """What a clone takes in before is written once, not to a log and then to the file."""
    place = Place(tmp_path)
    put(place.ledger(), joined(line(f"qm-{number:03}", body="x" * 200) for number in range(500)))
    assert len(place.state()) == 500
    path = place.state_dir / "hive.sqlite3"
    assert keeps_log(path) == "delete"
    place.record(line("qm-new"))
    assert keeps_log(path) == "wal"


@pytest.mark.linux
@pytest.mark.slow
@pytest.mark.parametrize("may_write", [True, False])
def test_a_first_intake_that_was_cut_off_shows_nothing_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_write: bool
) -> None:
    """Whoever may not undo it reads the ledger instead."""
    place = Place(tmp_path)
    put(place.ledger(), joined(line(f"qm-{n:05}", body="x" * 300) for n in range(30_000)))
    if not (child := os.fork()):
        with closing(FilesMemory(place.layout)) as memory:
            memory.progress = lambda done, total: os.kill(os.getpid(), signal.SIGKILL)
            memory.refresh(KIND)
    os.waitpid(child, 0)
    assert (place.state_dir / "hive.sqlite3-journal").stat().st_size
    if not may_write:
        monkeypatch.setattr(Database, "_on_disk", refused)
    assert len(place.state()) == 30_000
    assert list(place.state_dir.glob("hive.sqlite3.damaged-*")) == []


def keeps_log(path: Path) -> str:
    """Returns what SQLite calls the way in which a file undoes what was cut off."""
    with closing(sqlite3.connect(path)) as database:
        return str(database.execute("PRAGMA journal_mode").fetchone()[0])


def refused(_: Database) -> sqlite3.Connection:
    """Stands for a file that cannot be opened to write."""
    raise sqlite3.OperationalError("attempt to write a readonly database")


def test_an_older_memory_that_is_put_back_is_another_one(tmp_path: Path) -> None:
    """Its lines have numbers that others had meanwhile: what was sent up to one is asked anew."""
    place = Place(tmp_path)
    place.record(line("qm-1", 1))
    before = identity(place)
    path = place.state_dir / "hive.sqlite3"
    older = path.read_bytes()
    assert identity(place) == before
    path.rename(tmp_path / "it keeps its number")
    path.write_bytes(older)
    assert identity(place) != before


def identity(place: Place) -> str:
    with closing(FilesMemory(place.layout)) as memory:
        return memory.identity()


def test_a_kind_that_leads_elsewhere_is_no_kind(tmp_path: Path) -> None:
    place = Place(tmp_path / "repo")
    place.record(line("qm-1", 1))
    with closing(sqlite3.connect(place.state_dir / "hive.sqlite3")) as database, database:
        database.execute("INSERT INTO meta VALUES ('born x/../../../elsewhere', 1)")
    with closing(FilesMemory(place.layout)) as memory:
        assert memory.kinds() == ["messages"]


def damage(place: Place, *, of_lines: bool = False) -> None:
    """Leaves every line, or one whose checksum is another's, in a memory that is not as made."""
    with closing(sqlite3.connect(place.state_dir / "hive.sqlite3")) as database, database:
        database.execute("UPDATE lines SET sum = sum + 1" if of_lines else "CREATE TABLE more (x)")


def test_what_git_removed_outlives_a_damage_that_only_readers_come_upon(tmp_path: Path) -> None:
    """None of them writes anything that would make the file anew."""
    place = Place(tmp_path)
    place.record(line("qm-1"))
    place.ledger().write_bytes(b"")
    damage(place)
    assert [*place.state()] == ["qm-1"]
    assert remembered(place.state_dir, KIND) == [line("qm-1")]
    assert [*place.state()] == ["qm-1"]
    place.record(line("qm-2"))
    assert place.content() == joined([line("qm-1"), line("qm-2")])


def test_what_git_removed_outlives_one_damage_after_another(tmp_path: Path) -> None:
    """In one process, and where nobody opened the file in between, as after a kill."""
    place = Place(tmp_path)
    place.record(line("qm-1"))
    place.ledger().write_bytes(b"")
    with closing(FilesMemory(place.layout)) as memory:
        for _ in range(3):
            memory.asked(lambda: memory.database.meta("born"))
            memory.database.set_aside()
        memory.database.set_aside()
    assert [*place.state()] == ["qm-1"]


def test_few_files_stay_of_which_the_memory_has_every_line(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.record(line("qm-1"))
    damage(place, of_lines=True)
    for number in range(2, 8):
        with suppress(FileNotFoundError):
            place.ledger().unlink()
        place.state()
        place.record(line(f"qm-{number}"))
        damage(place)
        time.sleep(0.002)  # Their names say when they were set aside, in ms.
    assert {f"qm-{number}" for number in range(2, 8)} == {*place.state()}
    left = sorted(place.state_dir.glob("hive.sqlite3.damaged-*[0-9]"))
    assert [salvage.salvaged(str(path)).is_whole for path in left] == [False, True, True, True]
