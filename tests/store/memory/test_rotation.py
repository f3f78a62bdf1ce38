"""Rotation moves lines and changes nothing else: not the state, here or in any clone."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from memory_places import KIND, Fields, Place, joined, line, put, state_of

from queenbee.errors import Unreadable, Unwritable
from queenbee.store.memory import archive as archive_module
from queenbee.store.memory import intake, rotation
from queenbee.store.memory.files_memory import FilesMemory
from queenbee.store.memory.recorded import Recorded

IDS = [f"qm-{n}" for n in range(3)]
SECOND = [line("qm-1", 1), line("qm-1", 2)]
FIRST_SEGMENT = "queen_messages.1.jsonl"


def always(_fields: Fields) -> bool:
    return True


def never(_fields: Fields) -> bool:
    return False


def is_second(fields: Fields) -> bool:
    return bool(fields["id"] == "qm-1")


def refuse(*_args: object) -> Any:
    raise Unwritable("it cannot be written: No space left on device")


@pytest.fixture
def empty(tmp_path: Path) -> Place:
    return Place(tmp_path / "hive")


@pytest.fixture
def place(empty: Place) -> Place:
    """Three records, each with two lines."""
    for rev in (1, 2):
        empty.record(*(line(each, rev) for each in IDS))
    return empty


class TestWhatMoves:
    def test_all_lines_of_a_closed_record_and_no_others(self, place: Place) -> None:
        done = place.rotate(is_second)
        assert (done.records, done.lines) == (1, 2)
        assert place.archived() == SECOND
        left = [line(each, rev) for rev in (1, 2) for each in ("qm-0", "qm-2")]
        assert place.content() == joined(left)
        assert done.left_bytes == len(place.content())
        assert done.segments == [str(place.segment(1))]

    def test_nothing_where_nothing_is_closed(self, place: Place) -> None:
        before = place.content()
        done = place.rotate(never)
        assert (done.records, done.segments, place.content()) == (0, [], before)
        assert not (place.beads / "archive").exists()

    def test_only_the_newest_revision_is_asked(self, place: Place) -> None:
        place.record(line("qm-1", 3, status="open"))
        place.rotate(lambda fields: "status" not in fields)
        assert {json.loads(each)["id"] for each in place.archived()} == {"qm-0", "qm-2"}

    def test_what_another_program_wrote_stays(self, place: Place) -> None:
        with place.ledger().open("ab") as file:
            file.write(line("qm-1", 0) + b"\n")
        place.rotate(always)
        assert place.content() == joined([*SECOND, line("qm-1", 0)])

    def test_lines_without_a_record_stay_byte_for_byte(self, place: Place) -> None:
        rubbish = b'<<<<<<< ours\r\n\n{"_migration":"v2"}\n{torn\n'
        put(place.ledger(), rubbish + place.content().replace(b"\n", b"\r\n"))
        place.rotate(is_second)
        assert place.content().startswith(rubbish)
        assert place.archived() == SECOND

    def test_segments_are_numbered_and_never_written_again(self, place: Place) -> None:
        place.rotate(is_second)
        first = place.segment(1).read_bytes()
        place.rotate(always)
        assert list(place.archive().listing()) == [FIRST_SEGMENT, "queen_messages.2.jsonl"]
        assert place.segment(1).read_bytes() == first

    def test_a_long_backlog_makes_several_segments(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rotation, "SEGMENT_BYTES", 100)
        assert len(place.rotate(always).segments) == 3
        assert len(place.archived()) == 6

    def test_two_clones_that_move_the_same_write_the_same(
        self, place: Place, tmp_path: Path
    ) -> None:
        other = Place(tmp_path / "other")
        lines = [*place.content().splitlines(), line("qm-2", 2, body="met in a merge")]
        put(place.ledger(), joined(lines))
        random.Random(5).shuffle(lines)
        put(other.ledger(), joined(lines))
        for each in (place, other):
            each.rotate(always)
        assert place.segment(1).read_bytes() == other.segment(1).read_bytes()

    def test_the_oldest_stand_first_over_all_segments(
        self, empty: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By when their records were made, then by id, then by revision."""
        monkeypatch.setattr(rotation, "SEGMENT_BYTES", 100)
        made = {"qm-9": "2025-01-01T00:00:00.000Z", "qm-3": "2026-01-01T00:00:00.000Z"}
        lines = [
            line(identifier, rev, created_at=created_at)
            for identifier, created_at in (*made.items(), ("qm-4", made["qm-3"]))
            for rev in (1, 2, 10)
        ]
        empty.record(*lines[::-1])
        assert len(empty.rotate(always).segments) == 5
        assert empty.archived() == lines

    def test_it_says_how_far_it_is_and_when_it_ends(self, place: Place) -> None:
        said: list[float] = []
        place.rotate(always, lambda done, total: said.append(done / total))
        assert said == sorted(said)
        assert said[-1] == 1
        assert all(each < 1 for each in said[:-1])


class TestAfterwards:
    def test_what_it_moved_stays_there_when_git_rewrites_the_ledger(self, place: Place) -> None:
        place.rotate(is_second)
        put(place.ledger(), place.content())
        place.record(line("qm-9"))
        assert not {*SECOND} & {*place.content().splitlines()}

    def test_the_state_is_what_it_was_here_and_in_a_clone(
        self, place: Place, tmp_path: Path
    ) -> None:
        before = place.state()
        place.rotate(is_second)
        assert place.state() == before
        shutil.copytree(
            place.beads, tmp_path / "c" / ".beads", ignore=shutil.ignore_patterns(".queenbee")
        )
        clone = Place(tmp_path / "c")
        assert clone.state() == before
        for each in (clone, place):
            each.record(line("qm-9"))
        assert clone.state() == place.state()

    def test_a_write_puts_nothing_back(self, place: Place) -> None:
        place.rotate(is_second)
        left = place.content()
        place.record(line("qm-9"))
        place.forget()
        place.record(line("qm-8"))
        assert place.content() == left + joined([line("qm-9"), line("qm-8")])

    def test_an_archived_record_is_updated_in_the_ledger(self, place: Place) -> None:
        place.rotate(always)
        place.record(line("qm-1", 3, read=True))
        assert place.state()["qm-1"]["read"] is True
        assert place.content() == joined([line("qm-1", 3, read=True)])

    def test_what_git_takes_from_the_ledger_still_comes_back(self, place: Place) -> None:
        place.rotate(is_second)
        left = place.content()
        put(place.ledger(), b"")
        place.record(line("qm-9"))
        assert place.content() == left + joined([line("qm-9")])

    def test_a_segment_that_git_took_away_comes_back_to_the_ledger(self, place: Place) -> None:
        before = place.state()
        place.rotate(is_second)
        shutil.rmtree(place.beads / "archive")
        assert place.state() == before
        place.record(line("qm-9"))
        assert {*SECOND} <= {*place.content().splitlines()}

    def test_a_segment_that_is_another_file_again_changes_nothing(self, place: Place) -> None:
        place.rotate(is_second)
        put(place.segment(1), place.segment(1).read_bytes())
        left = place.content()
        place.record(line("qm-9"))
        assert place.content() == left + joined([line("qm-9")])

    def test_a_merge_that_brings_old_lines_back_is_harmless(self, place: Place) -> None:
        before, old = place.state(), place.content()
        place.rotate(is_second)
        put(place.ledger(), old)
        assert place.state() == before
        place.record(line("qm-9"))
        assert len(place.recorded()) == len({*place.recorded()}) == 7
        place.rotate(is_second)
        assert place.archived() == SECOND
        assert not {*SECOND}.intersection(place.content().splitlines())

    def test_what_a_merge_brought_back_and_git_took_again_is_not_put_back(
        self, place: Place
    ) -> None:
        old = place.content()
        place.rotate(is_second)
        left = place.content()
        put(place.ledger(), old)
        place.record()
        put(place.ledger(), left)
        place.record(line("qm-9"))
        assert place.content() == left + joined([line("qm-9")])

    def test_a_rotation_reads_no_segment_that_was_written_before(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place.rotate(is_second)
        place.record()
        read = archive_module.Archive.read
        names: list[str] = []

        def noting(archive: archive_module.Archive, name: str) -> bytes:
            names.append(name)
            return read(archive, name)

        monkeypatch.setattr(archive_module.Archive, "read", noting)
        place.rotate(always)
        assert FIRST_SEGMENT not in names
        assert len(place.archived()) == 6

    def test_a_segment_of_another_clone_takes_its_lines_out_of_ours(self, place: Place) -> None:
        """A pull: the other clone rotated, and added a record."""
        before = place.state()
        moved = [*SECOND, line("qm-7")]
        put(place.segment(4), joined(moved))
        kept = [each for each in place.content().splitlines() if each not in moved]
        put(place.ledger(), joined(kept))
        assert set(place.state()) - set(before) == {"qm-7"}
        place.record(line("qm-9"))
        assert place.content() == joined([*kept, line("qm-9")])
        assert line("qm-7") in place.recorded()

    def test_a_loose_line_that_another_clone_archived_is_not_lost(self, place: Place) -> None:
        with place.ledger().open("ab") as file:
            file.write(line("qm-7") + b"\n")
        assert "qm-7" in place.state()
        put(place.segment(4), joined([line("qm-7")]))
        put(place.ledger(), place.content().replace(line("qm-7") + b"\n", b""))
        assert "qm-7" in place.state()
        place.record(line("qm-9"))
        assert line("qm-7") in place.recorded()
        assert line("qm-7") not in place.content().splitlines()


def test_a_long_history_that_a_write_takes_in_is_recorded_as_if_it_had_been_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines arrive, also those that come after one that was only read."""
    monkeypatch.setattr(intake, "_CHUNK_BYTES", 100)
    lines = [line(each, rev, body=rev) for each in IDS for rev in (0, 1, 2)]
    found = []
    for name, reads in (("a", 0), ("b", 1), ("c", len(lines))):
        place = Place(tmp_path / name)
        place.write({"assignments": [line("qa-1")]})  # What is read is kept from then on.
        put(place.ledger(), joined(lines[:reads]))
        place.state()
        with place.ledger().open("ab") as file:
            file.write(joined(lines[reads:]))
        with closing(FilesMemory(place.layout)) as memory:
            memory.write({KIND: [line("qm-9")]})
            state = Recorded(KIND, memory)
            state.refresh()
            assert not state.is_unrecorded
            found.append((state.foreign(), place.recorded(), state_of(memory)))
        assert place.content() == joined([*lines, line("qm-9")])
    assert found[0] == found[1] == found[2]
    assert found[0][:2] == ("1", [*lines, line("qm-9")])


def test_a_long_history_is_kept_whatever_was_asked_before_it(tmp_path: Path) -> None:
    """Else the first write would take in all of it once more."""
    place = Place(tmp_path / "hive")
    put(place.ledger(), joined([line("qm-1", body="x" * 100_000)]))
    with closing(FilesMemory(place.layout)) as reader:
        reader.kinds()
        assert "qm-1" in state_of(reader)
        assert Path(place.layout.memory_path).exists()


class TestLongLived:
    """What was read before git came by is not taken for what is there now."""

    def test_a_reader_sees_that_the_only_segment_was_emptied(self, empty: Place) -> None:
        put(empty.segment(1), joined([line("qm-1")]))
        with closing(FilesMemory(empty.layout)) as reader:
            assert "qm-1" in state_of(reader)
            put(empty.segment(1), b"")
            assert "qm-1" not in state_of(reader)

    def test_a_writer_of_an_empty_hive_puts_no_pulled_segment_into_the_ledger(
        self, empty: Place
    ) -> None:
        with closing(FilesMemory(empty.layout)) as writer:
            writer.write({KIND: []})
            put(empty.segment(1), joined([line("qm-1")]))
            writer.write({KIND: [line("qm-2")]})
        assert empty.content() == joined([line("qm-2")])

    def test_a_writer_takes_no_line_twice_that_another_one_put_back(self, place: Place) -> None:
        place.rotate(always)
        with closing(FilesMemory(place.layout)) as writer:
            state_of(writer)
            shutil.rmtree(place.beads / "archive")
            place.record()
            writer.write({KIND: [line("qm-9")]})
        assert len(place.recorded()) == len({*place.recorded()}) == 7
        assert len(place.content().splitlines()) == 7


class TestWhenItIsDue:
    def test_below_the_limit_it_is_not(self, place: Place) -> None:
        size = place.ledger().stat().st_size
        assert place.is_due(size)
        assert not place.is_due(size + 1)

    def test_what_is_left_must_grow_by_a_quarter_first(self, place: Place) -> None:
        place.rotate(never)
        assert not place.is_due(1)
        place.record(*(line("qm-3", rev) for rev in range(1, 3)))
        assert place.is_due(1)

    def test_no_ledger_is_none_that_is_due(self, empty: Place) -> None:
        assert not empty.is_due(0)


class TestInTheMeantime:
    """Another program does not take our lock, and neither does git."""

    @pytest.fixture
    def before_a_segment(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Lets something happen right before the first segment is written."""
        create = rotation.create_document

        def let(happen: Callable[[str], object]) -> None:
            def created(path: str, data: bytes) -> bool:
                monkeypatch.setattr(rotation, "create_document", create)
                happen(path)
                return create(path, data)

            monkeypatch.setattr(rotation, "create_document", created)

        return let

    def test_lines_appended_before_the_ledger_is_replaced_are_kept(
        self, place: Place, before_a_segment: Any
    ) -> None:
        foreign = line("qm-8", 0)

        def append(_path: str) -> None:
            with place.ledger().open("ab") as file:
                file.write(foreign + b"\n")

        before_a_segment(append)
        place.rotate(is_second)
        assert place.content().splitlines()[-1] == foreign
        place.record(line("qm-9"))
        assert foreign in place.recorded()

    def test_a_line_that_git_took_away_before_comes_back(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is in no segment, whatever became of the other lines of its record."""
        there = place.content()
        monkeypatch.setattr(
            rotation,
            "_sweep",
            lambda _tracked: put(place.ledger(), there.replace(SECOND[1] + b"\n", b"")),
        )
        place.rotate(is_second)
        assert place.archived() == SECOND[:1]
        place.record(line("qm-9"))
        assert SECOND[1] in place.content().splitlines()

    def test_a_ledger_that_git_takes_away_comes_back(
        self, place: Place, before_a_segment: Any
    ) -> None:
        before_a_segment(lambda _path: put(place.ledger(), b""))
        place.rotate(is_second)
        place.record(line("qm-9"))
        assert place.tracked() == {*place.recorded()}
        assert len(place.recorded()) == 7

    def test_a_segment_that_git_brings_is_not_replaced(
        self, place: Place, before_a_segment: Any
    ) -> None:
        before_a_segment(lambda path: put(path, joined([line("qm-7")])))
        assert place.rotate(is_second).segments == [str(place.segment(2))]
        assert place.archived() == [line("qm-7"), *SECOND]


class TestFailed:
    @pytest.fixture
    def full(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A disk that takes no segment."""
        monkeypatch.setattr(rotation, "create_document", refuse)

    def test_nothing_has_moved(self, place: Place, full: None) -> None:
        before, left = place.state(), place.content()
        with pytest.raises(Unwritable):
            place.rotate(always)
        assert (place.state(), place.content()) == (before, left)

    def test_it_is_put_off_until_the_ledger_has_grown(self, place: Place, full: None) -> None:
        assert place.is_due(1)
        with pytest.raises(Unwritable):
            place.rotate(always)
        assert not place.is_due(1)
        place.record(*(line("qm-3", rev) for rev in range(1, 3)))
        assert place.is_due(1)

    def test_behind_its_segments_it_is_made_up_for(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = place.state()
        with monkeypatch.context() as patch:
            patch.setattr(rotation.Original, "replace_by", refuse)
            with pytest.raises(Unwritable):
                place.rotate(always)
        place.rotate(always)
        assert place.content() == b""
        assert len(place.archived()) == 6
        assert place.state() == before

    def test_what_a_killed_one_wrote_aside_is_swept_away(self, place: Place) -> None:
        place.rotate(is_second)
        aside = [
            place.beads / ".queen_messages.jsonl.0a1b2c3d.tmp",
            place.beads / "archive" / ".queen_messages.2.jsonl.0a1b2c3d.tmp",
        ]
        others = place.beads / "archive" / ".queen_reservations.2.jsonl.0a1b2c3d.tmp"
        for path in (*aside, others):
            put(path, b"x")
        place.rotate(always)
        assert not any(path.exists() for path in aside)
        assert others.exists()


STEPS = ["create_document", "_note", "_write_segments", "_closed"]


@pytest.mark.some(3)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_step_nothing_is_lost_or_doubled(
    place: Place, step: str, after: bool
) -> None:
    before, lines = place.state(), {*place.recorded()}
    original = getattr(rotation, step)

    def die(*args: object) -> None:
        if after:
            original(*args)
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        setattr(rotation, step, die)
        with suppress(BaseException):
            place.rotate(is_second)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert place.state() == before
    assert place.tracked() == lines
    place.rotate(is_second)
    assert place.state() == before
    assert place.archived() == SECOND
    assert place.tracked() == lines == {*place.recorded()}


class TestTheOrderOfSegments:
    """Lines without `rev` say something by their place, and segments are read by number."""

    NUMBERS = (2, 10, 9)

    @pytest.fixture
    def pulled(self, empty: Place) -> Place:
        """Segments that other programs wrote: the same record in each, without `rev`."""
        for number in self.NUMBERS:
            put(empty.segment(number), joined([line("qm-1", 0, body=f"of {number}")]))
        return empty

    def said(self, place: Place) -> tuple[object, object]:
        fields = place.state()["qm-1"]
        return fields["body"], fields["rev"]

    def test_decides_what_the_record_says(self, pulled: Place) -> None:
        assert self.said(pulled) == ("of 10", 3)

    @pytest.mark.parametrize("begun", [False, True], ids=["a clone", "a pull"])
    def test_is_that_of_the_memory_which_outlives_them(
        self, pulled: Place, begun: bool, tmp_path: Path
    ) -> None:
        archive = pulled.beads / "archive"
        if begun:
            shutil.move(archive, tmp_path / "aside")
            pulled.record(line("qm-2"))
            shutil.move(tmp_path / "aside", archive)
        pulled.record(line("qm-3"))
        shutil.rmtree(archive)
        assert self.said(pulled) == ("of 10", 3)


class TestTheNamesOfSegments:
    def names(self, *numbers: object) -> list[str]:
        return [f"queen_messages.{number}.jsonl" for number in numbers]

    def test_of_other_files_are_nobodys(self, empty: Place) -> None:
        others = ("queen_messages.x.jsonl", "queen_issues.1.jsonl", "queen_messages.0.jsonl", "a")
        for name in others:
            put(empty.archive().path(name), joined([line("qm-1")]))
        assert empty.archive().listing() == {}
        assert empty.archive().next_name({}) == FIRST_SEGMENT

    def test_stand_in_the_order_of_their_numbers(self, empty: Place) -> None:
        names = self.names(1, 2, 9, 10, 11, 100)
        for name in sorted(names):
            put(empty.archive().path(name), b"\n")
        assert list(empty.archive().listing()) == names

    def test_of_one_number_stand_in_one_order_everywhere(
        self, empty: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        names = self.names("007", "07", "7", "8")
        for name in names:
            put(empty.archive().path(name), b"\n")
        monkeypatch.setattr(archive_module.os, "listdir", lambda _: names[::-1])
        assert list(empty.archive().listing()) == names

    def test_after_the_tenth_is_the_eleventh(self, empty: Place) -> None:
        names = dict.fromkeys(self.names(9, 10))
        assert [empty.archive().next_name(names)] == self.names(11)

    @pytest.mark.parametrize("digits", [9, 255 - len("queen_messages..jsonl")])
    def test_with_a_number_as_large_as_can_be_stop_no_rotation(
        self, empty: Place, digits: int
    ) -> None:
        """A clone can bring one: a larger number would be a name that no file system takes."""
        last = "9" * digits
        put(empty.archive().path(*self.names(last)), joined([line("qm-0")]))
        put(empty.segment(1), joined([line("qm-1")]))
        put(empty.ledger(), joined([line("qm-2")]))
        empty.rotate(always)
        assert list(empty.archive().listing()) == self.names(1, 2, last)
        assert set(empty.state()) == {"qm-0", "qm-1", "qm-2"}


def test_a_segment_that_git_takes_away_while_we_look_hides_no_other(
    empty: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 3):
        put(empty.segment(number), b"\n")
    stat = os.stat

    def take_away(path: Any, **more: Any) -> os.stat_result:
        if path == str(empty.segment(1)):
            os.unlink(path)
        return stat(path, **more)

    monkeypatch.setattr(archive_module.os, "stat", take_away)
    assert list(empty.archive().listing()) == [empty.segment(n).name for n in (2, 3)]


def test_a_folder_that_changed_just_now_is_listed_again(empty: Place) -> None:
    """Its clock may not have moved between two changes."""
    archive = empty.archive()
    put(empty.segment(1), b"\n")
    stamp = os.stat(archive.folder).st_mtime_ns
    assert len(archive.listing()) == 1
    put(empty.segment(2), b"\n")
    os.utime(archive.folder, ns=(stamp, stamp))
    assert len(archive.listing()) == 2


def test_an_archive_that_is_not_a_directory_is_refused_by_name(empty: Place) -> None:
    put(empty.beads / "archive", b"")
    with pytest.raises(Unreadable, match="archive is not a directory"):
        empty.state()
