"""A hive in which a version up to 0.2 worked: it kept its lines in journals."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from memory_places import Place, joined, line, put

from queenbee.store.memory.database import Database

BEFORE = [line("qm-1"), line("qm-2"), line("qm-1", 2, read=True)]
TAKEN = [line("qm-3"), line("qm-3", 2, read=True)]
"""What `git checkout` took out of the ledger."""
ARCHIVED = [line("qm-4"), line("qm-4", 2, read=True)]
CUT_OFF = [line("qm-5"), line("qm-6")]
"""Two lines of one transaction: their writer was killed amid the second one."""


class Old(Place):
    """The same folders, as such a version knows them."""

    @property
    def journal(self) -> Path:
        return Path(self.layout.journal_path("messages"))

    def old_files(self) -> set[str]:
        return {path.name for path in self.state_dir.glob("journal/*")}

    def write_as_before(self, *lines: bytes) -> None:
        """Appends as such a version does; without a journal, it begins one with the ledger."""
        if not self.journal.exists():
            put(self.journal, joined(self.content().splitlines()))
            put(Path(f"{self.journal}.gained"), b".")
        for path in (self.journal, self.ledger()):
            with path.open("ab") as file:
                file.write(joined(lines))


@pytest.fixture
def old(tmp_path: Path) -> Old:
    place = Old(tmp_path)
    put(place.ledger(), joined(BEFORE))
    put(place.segment(1), joined(ARCHIVED))
    whole, cut_off = joined([*BEFORE, *ARCHIVED, *TAKEN]), joined(CUT_OFF)
    put(place.journal, whole + cut_off[:-9])
    put(Path(f"{place.journal}.intent"), f"{len(whole)} {len(cut_off)}".encode())
    put(Path(f"{place.journal}.gained"), b".")
    put(Path(f"{place.journal}.archived"), b'{"mark":[1,2,3]}\n')
    return place


class TestAnOldHive:
    def test_loses_nothing(self, old: Old) -> None:
        state = old.state()
        assert set(state) == {"qm-1", "qm-2", "qm-3", "qm-4"}
        assert [state[each]["rev"] for each in sorted(state)] == [2, 1, 2, 2]

    def test_is_not_changed_by_readers(self, old: Old) -> None:
        before = old.old_files(), old.content()
        old.state()
        assert (old.old_files(), old.content()) == before

    def test_has_in_its_ledger_after_a_write_what_git_took_and_no_more(self, old: Old) -> None:
        old.record(line("qm-7"))
        assert old.content() == joined([*BEFORE, *TAKEN, line("qm-7")])
        assert {*old.recorded()} == {*BEFORE, *TAKEN, *ARCHIVED, line("qm-7")}

    def test_its_journal_is_removed_once_its_lines_are_on_disk(
        self, old: Old, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sync, there = Database.sync, list[bool]()

        def noting(database: Database) -> None:
            sync(database)
            there.append(old.journal.exists())

        monkeypatch.setattr(Database, "sync", noting)
        old.record(line("qm-7"))
        assert there == [True]
        assert old.old_files() == set()
        assert not old.journal.parent.exists()

    def test_its_journal_stays_where_the_disk_does_not_confirm(
        self, old: Old, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(_database: Database) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        with monkeypatch.context() as patch:
            patch.setattr(Database, "sync", fails)
            old.record(line("qm-7"))
        assert old.journal.exists()
        old.record(line("qm-8"))
        assert old.old_files() == set()
        assert {*old.state()} == {"qm-1", "qm-2", "qm-3", "qm-4", "qm-7", "qm-8"}

    def test_one_kind_after_the_other_is_taken_over(self, old: Old) -> None:
        leases = Path(old.layout.journal_path("reservations"))
        put(leases, joined([line("qr-1")]))
        old.record(line("qm-7"))
        assert old.old_files() == {leases.name}
        old.write({"reservations": []})
        assert old.recorded("reservations") == [line("qr-1")]
        assert old.content("reservations") == joined([line("qr-1")])
        assert not leases.exists()


def test_the_old_version_may_work_there_again_and_the_new_one_after_it(old: Old) -> None:
    old.record(line("qm-7"))
    old.write_as_before(line("qm-8"))
    assert "qm-8" in old.state()
    put(old.ledger(), joined(BEFORE))  # A checkout; only the new journal has that line now.
    assert {"qm-3", "qm-7", "qm-8"} <= set(old.state())
    old.record(line("qm-9"))
    assert old.old_files() == set()
    lines = old.content().splitlines()
    assert len(lines) == len({*lines})
    assert {*lines} == {*BEFORE, *TAKEN, line("qm-7"), line("qm-8"), line("qm-9")}
    assert len(old.recorded()) == len({*old.recorded()}) == len(lines) + len(ARCHIVED)
    old.write_as_before(line("qm-10"))
    assert "qm-10" in old.state()
