"""Rotation moves lines and changes nothing else: not the state, here or in any clone."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal

import pytest
from extent import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_files import content_if_any as content
from raw_files import record

from queenbee.errors import Unwritable
from queenbee.store.index.indexed import Indexed
from queenbee.store.ledger import archive as archive_module
from queenbee.store.ledger import ledger as ledger_module
from queenbee.store.ledger import rotation
from queenbee.store.ledger.ledger import Ledger
from queenbee.store.state import Folded

KIND = "messages"
IDS = [f"qm-{n}" for n in range(5)]


def line(identifier, rev=1, **more):
    fields = {"id": identifier, "created_at": "2026-01-01T00:00:00.000Z", **more, "rev": rev}
    if not rev:
        del fields["rev"]
    return json.dumps(fields, separators=(",", ":")).encode()


def places(folder):
    os.makedirs(folder / "journal", exist_ok=True)
    return str(folder / "queen_messages.jsonl"), str(folder / "journal" / "messages.jsonl")


def put(path, data):
    """Replaces a file as git does: another inode."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        os.unlink(path)
    with open(path, "wb") as file:
        file.write(data)


def archived(ledger):
    """Returns the lines of all segments."""
    return [
        each
        for name in ledger.archive.listing()
        for each in content(ledger.archive.path(name)).splitlines()
    ]


def tracked_lines(folder):
    """Returns what a clone of this folder would get."""
    ledger = Ledger(*places(folder))
    return {*content(ledger.path).splitlines(), *archived(ledger)}


def state(folder):
    records = Folded(KIND, Ledger(*places(folder)))
    records.refresh()
    return {fields["id"]: fields for fields in records.everything()}


def always(_fields):
    return True


@pytest.fixture
def folder(tmp_path):
    """A ledger of three records, each with two lines."""
    ledger = Ledger(*places(tmp_path))
    for rev in (1, 2):
        record(ledger, *(line(each, rev) for each in IDS[:3]))
    return tmp_path


@pytest.fixture
def ledger(folder):
    return Ledger(*places(folder))


def is_second(fields):
    return fields["id"] == "qm-1"


class TestWhatMoves:
    def test_all_lines_of_a_closed_record_and_no_others(self, ledger):
        done = rotation.rotate(ledger, is_second)
        assert (done.records, done.lines) == (1, 2)
        assert archived(ledger) == [line("qm-1", 1), line("qm-1", 2)]
        left = content(ledger.path)
        assert left.splitlines() == [line(i, r) for r in (1, 2) for i in ("qm-0", "qm-2")]
        assert done.left_bytes == len(left)
        assert done.segments == [ledger.archive.path("queen_messages.1.jsonl")]

    def test_nothing_where_nothing_is_closed(self, ledger):
        before = content(ledger.path)
        done = rotation.rotate(ledger, lambda fields: False)
        assert (done.records, done.segments, content(ledger.path)) == (0, [], before)
        assert not os.path.exists(ledger.archive.folder)

    def test_only_the_newest_revision_is_asked(self, ledger):
        record(ledger, line("qm-1", 3, status="open"))
        rotation.rotate(ledger, lambda fields: "status" not in fields)
        assert {json.loads(each)["id"] for each in archived(ledger)} == {"qm-0", "qm-2"}

    def test_what_another_program_wrote_stays(self, ledger):
        record(ledger, line("qm-1", 0))
        rotation.rotate(ledger, always)
        assert content(ledger.path).splitlines() == [
            line("qm-1", 1),
            line("qm-1", 2),
            line("qm-1", 0),
        ]

    def test_lines_without_a_record_stay_byte_for_byte(self, ledger):
        rubbish = b'<<<<<<< ours\r\n\n{"_migration":"v2"}\n{torn\n'
        put(ledger.path, rubbish + content(ledger.path).replace(b"\n", b"\r\n"))
        rotation.rotate(ledger, is_second)
        assert content(ledger.path).startswith(rubbish)
        assert archived(ledger) == [line("qm-1", 1), line("qm-1", 2)]

    def test_segments_are_numbered_and_never_written_again(self, ledger):
        rotation.rotate(ledger, is_second)
        first = content(ledger.archive.path("queen_messages.1.jsonl"))
        rotation.rotate(ledger, always)
        assert list(ledger.archive.listing()) == [
            "queen_messages.1.jsonl",
            "queen_messages.2.jsonl",
        ]
        assert content(ledger.archive.path("queen_messages.1.jsonl")) == first

    def test_a_long_backlog_makes_several_segments(self, ledger, monkeypatch):
        monkeypatch.setattr(rotation, "SEGMENT_BYTES", 100)
        done = rotation.rotate(ledger, always)
        assert len(done.segments) == 3
        assert len(archived(ledger)) == 6

    def test_two_clones_that_move_the_same_write_the_same(self, folder, ledger, tmp_path_factory):
        other = tmp_path_factory.mktemp("other")
        lines = content(ledger.path).splitlines(keepends=True)
        random.Random(5).shuffle(lines)
        put(places(other)[0], b"".join(lines))
        clone = Ledger(*places(other))
        rotation.rotate(ledger, always)
        rotation.rotate(clone, always)
        name = "queen_messages.1.jsonl"
        assert content(ledger.archive.path(name)) == content(clone.archive.path(name))


class TestAfterwards:
    def test_the_state_is_what_it_was(self, folder, ledger):
        before = state(folder)
        rotation.rotate(ledger, is_second)
        assert state(folder) == before

    def test_a_clone_has_the_same_state(self, folder, ledger, tmp_path_factory):
        rotation.rotate(ledger, is_second)
        clone = tmp_path_factory.mktemp("clone") / "x"
        shutil.copytree(folder, clone, ignore=shutil.ignore_patterns("journal"))
        assert state(clone) == state(folder)
        record(Ledger(*places(clone)), line("qm-9"))
        record(ledger, line("qm-9"))
        assert state(clone) == state(folder)

    def test_a_write_puts_nothing_back(self, ledger):
        rotation.rotate(ledger, is_second)
        left = content(ledger.path)
        record(ledger, line("qm-9"))
        record(Ledger(ledger.path, ledger.journal_path), line("qm-8"))
        assert content(ledger.path) == left + line("qm-9") + b"\n" + line("qm-8") + b"\n"

    def test_an_archived_record_is_updated_in_the_ledger(self, folder, ledger):
        rotation.rotate(ledger, always)
        record(ledger, line("qm-1", 3, read=True))
        assert state(folder)["qm-1"]["read"] is True
        assert content(ledger.path).splitlines() == [line("qm-1", 3, read=True)]

    def test_what_git_takes_from_the_ledger_still_comes_back(self, folder, ledger):
        rotation.rotate(ledger, is_second)
        left = content(ledger.path)
        put(ledger.path, b"")
        record(Ledger(ledger.path, ledger.journal_path), line("qm-9"))
        assert content(ledger.path) == left + line("qm-9") + b"\n"

    def test_a_segment_that_git_took_away_comes_back_to_the_ledger(self, folder, ledger):
        before = state(folder)
        rotation.rotate(ledger, is_second)
        shutil.rmtree(ledger.archive.folder)
        assert state(folder) == before
        record(ledger, line("qm-9"))
        assert {line("qm-1", 1), line("qm-1", 2)} <= tracked_lines(folder)

    def test_a_segment_that_is_elsewhere_again_changes_nothing(self, folder, ledger):
        rotation.rotate(ledger, is_second)
        name = ledger.archive.path("queen_messages.1.jsonl")
        put(name, content(name))
        left = content(ledger.path)
        record(ledger, line("qm-9"))
        assert content(ledger.path) == left + line("qm-9") + b"\n"

    def test_a_merge_that_brings_old_lines_back_is_harmless(self, folder, ledger):
        before, old = state(folder), content(ledger.path)
        rotation.rotate(ledger, is_second)
        put(ledger.path, old)
        assert state(folder) == before
        record(ledger, line("qm-9"))
        journal = content(ledger.journal_path).splitlines()
        assert len(journal) == len(set(journal)) == 7
        rotation.rotate(ledger, is_second)
        assert archived(ledger) == [line("qm-1", 1), line("qm-1", 2)]
        assert line("qm-1", 1) not in content(ledger.path).splitlines()

    def test_what_a_merge_brought_back_and_git_took_again_is_not_put_back(self, folder, ledger):
        old = content(ledger.path)
        rotation.rotate(ledger, is_second)
        left = content(ledger.path)
        put(ledger.path, old)
        record(ledger)
        put(ledger.path, left)
        record(Ledger(*places(folder)), line("qm-9"))
        assert content(ledger.path) == left + line("qm-9") + b"\n"

    def test_a_rotation_reads_no_segment_that_was_written_before(self, ledger, monkeypatch):
        rotation.rotate(ledger, is_second)
        monkeypatch.setattr(archive_module.Archive, "read", refuse)
        rotation.rotate(ledger, always)
        assert len(archived(ledger)) == 6

    def test_a_segment_of_another_clone_takes_its_lines_out_of_ours(self, folder, ledger):
        """A pull: the other clone rotated, and added a record."""
        before = state(folder)
        moved = [line("qm-1", 1), line("qm-1", 2), line("qm-7")]
        put(ledger.archive.path("queen_messages.4.jsonl"), b"\n".join([*moved, b""]))
        kept = [each for each in content(ledger.path).splitlines() if each not in moved]
        put(ledger.path, b"\n".join([*kept, b""]))
        assert set(state(folder)) - set(before) == {"qm-7"}
        record(ledger, line("qm-9"))
        assert content(ledger.path).splitlines() == [*kept, line("qm-9")]
        assert line("qm-7") in content(ledger.journal_path).splitlines()
        assert ledger.foreign(unrecorded=False)

    def test_without_its_note_a_write_still_puts_nothing_back(self, folder, ledger):
        rotation.rotate(ledger, is_second)
        left = content(ledger.path)
        os.unlink(ledger.journal_path + ".archived")
        record(Ledger(ledger.path, ledger.journal_path), line("qm-9"))
        assert content(ledger.path) == left + line("qm-9") + b"\n"

    @pytest.mark.parametrize("noise", [b"", b"{}", b"[]\n", b'{"mark":[1,2,3]}\n', b"\xff" * 90])
    def test_a_note_that_says_nothing_is_none(self, folder, ledger, noise):
        before = state(folder)
        rotation.rotate(ledger, is_second)
        put(ledger.journal_path + ".archived", noise)
        assert state(folder) == before
        left = content(ledger.path)
        record(Ledger(ledger.path, ledger.journal_path), line("qm-9"))
        assert content(ledger.path) == left + line("qm-9") + b"\n"

    def test_a_note_whose_kept_lines_were_cut_off_is_none(self, folder, ledger):
        rotation.rotate(ledger, is_second)
        note = ledger.journal_path + ".archived"
        put(note, content(note)[:-9])
        record(Ledger(ledger.path, ledger.journal_path), line("qm-9"))
        assert tracked_lines(folder) == {*content(ledger.journal_path).splitlines()}

    def test_messages_keep_their_order_of_arrival_over_a_rotation(self, ledger):
        rotation.rotate(ledger, is_second)
        record(ledger, line("qm-9"))
        after = ledger.journal.arrived_after(line("qm-1", 1))
        assert after == [line("qm-2", 1), *(line(i, 2) for i in IDS[:3]), line("qm-9")]


class TestLongLived:
    """What was read before git came by is not taken for what is there now."""

    def test_a_reader_sees_that_the_only_segment_was_emptied(self, tmp_path):
        ledger = Ledger(*places(tmp_path))
        put(ledger.archive.path("queen_messages.1.jsonl"), line("qm-1") + b"\n")
        reader = Folded(KIND, Ledger(*places(tmp_path)))
        reader.refresh()
        assert reader.get("qm-1")
        put(ledger.archive.path("queen_messages.1.jsonl"), b"")
        reader.refresh()
        assert reader.get("qm-1") is None

    def test_a_writer_of_an_empty_hive_puts_no_pulled_segment_into_the_ledger(self, tmp_path):
        ledger = Ledger(*places(tmp_path))
        record(ledger)
        put(ledger.archive.path("queen_messages.1.jsonl"), line("qm-1") + b"\n")
        record(ledger, line("qm-2"))
        assert content(ledger.path) == line("qm-2") + b"\n"

    def test_a_writer_takes_no_line_twice_that_another_one_put_back(self, folder, ledger):
        rotation.rotate(ledger, always)
        shutil.rmtree(ledger.archive.folder)
        record(Ledger(*places(folder)))
        record(ledger, line("qm-9"))
        journal = content(ledger.journal_path).splitlines()
        assert len(journal) == len(set(journal)) == 7


def test_it_says_how_far_it_is_and_when_it_ends(ledger):
    said = []
    rotation.rotate(ledger, always, lambda done, total: said.append(done / total))
    assert said == sorted(said)
    assert said[-1] == 1
    assert all(each < 1 for each in said[:-1])


class TestWhenItIsDue:
    def test_below_the_limit_it_is_not(self, ledger):
        size = os.path.getsize(ledger.path)
        assert rotation.is_due(ledger, size)
        assert not rotation.is_due(ledger, size + 1)

    def test_what_is_left_must_grow_by_a_quarter_first(self, ledger):
        rotation.rotate(ledger, lambda fields: False)
        assert not rotation.is_due(ledger, 1)
        record(ledger, *(line("qm-3", rev) for rev in range(1, 3)))
        assert rotation.is_due(ledger, 1)

    def test_no_ledger_is_none_that_is_due(self, tmp_path):
        assert not rotation.is_due(Ledger(*places(tmp_path)), 0)


class TestAppendedMeanwhile:
    """Another program does not take our lock."""

    def test_lines_appended_before_the_ledger_is_replaced_are_kept(self, ledger, monkeypatch):
        foreign = line("qm-8", 0)
        create = rotation.create_document

        def append_first(path, data):
            with open(ledger.path, "ab") as file:
                file.write(foreign + b"\n")
            return create(path, data)

        monkeypatch.setattr(rotation, "create_document", append_first)
        rotation.rotate(ledger, is_second)
        assert content(ledger.path).splitlines()[-1] == foreign
        record(ledger, line("qm-9"))
        assert foreign in content(ledger.journal_path).splitlines()

    def test_a_ledger_that_git_takes_away_in_between_is_healed(self, folder, ledger, monkeypatch):
        create = rotation.create_document

        def rewrite_first(path, data):
            put(ledger.path, b"")
            return create(path, data)

        monkeypatch.setattr(rotation, "create_document", rewrite_first)
        rotation.rotate(ledger, is_second)
        record(ledger, line("qm-9"))
        assert tracked_lines(folder) == set(content(ledger.journal_path).splitlines())

    def test_a_segment_that_git_brings_in_that_moment_is_not_replaced(self, ledger, monkeypatch):
        create = rotation.create_document
        theirs = line("qm-7") + b"\n"

        def pull_first(path, data):
            if not os.path.exists(path):
                put(path, theirs)
                monkeypatch.setattr(rotation, "create_document", create)
            return create(path, data)

        monkeypatch.setattr(rotation, "create_document", pull_first)
        done = rotation.rotate(ledger, is_second)
        assert done.segments == [ledger.archive.path("queen_messages.2.jsonl")]
        assert archived(ledger) == [theirs[:-1], line("qm-1", 1), line("qm-1", 2)]


def refuse(*_args):
    raise Unwritable("it cannot be written: No space left on device")


class TestFailed:
    @pytest.fixture
    def full(self, monkeypatch):
        """A disk that takes no segment."""
        monkeypatch.setattr(rotation, "create_document", refuse)

    def test_nothing_has_moved(self, folder, ledger, full):
        before, left = state(folder), content(ledger.path)
        with pytest.raises(Unwritable):
            rotation.rotate(ledger, always)
        assert (state(folder), content(ledger.path)) == (before, left)

    def test_it_is_put_off_until_the_ledger_has_grown(self, ledger, full):
        assert rotation.is_due(ledger, 1)
        with pytest.raises(Unwritable):
            rotation.rotate(ledger, always)
        assert not rotation.is_due(ledger, 1)
        record(ledger, *(line("qm-3", rev) for rev in range(1, 3)))
        assert rotation.is_due(ledger, 1)

    def test_one_that_was_cut_off_behind_its_segments_is_made_up_for(
        self, folder, ledger, monkeypatch
    ):
        before = state(folder)
        with monkeypatch.context() as patch:
            patch.setattr(rotation.Original, "replace_by", refuse)
            with pytest.raises(Unwritable):
                rotation.rotate(ledger, always)
        ledger = Ledger(*places(folder))
        ledger.read()
        rotation.rotate(ledger, always)
        assert content(ledger.path) == b""
        assert len(archived(ledger)) == 6
        assert state(folder) == before

    def test_what_a_killed_one_wrote_aside_is_swept_away(self, ledger):
        rotation.rotate(ledger, is_second)
        aside = [
            os.path.join(os.path.dirname(ledger.path), ".queen_messages.jsonl.0a1b2c3d.tmp"),
            ledger.archive.path(".queen_messages.2.jsonl.0a1b2c3d.tmp"),
        ]
        others = ledger.archive.path(".queen_reservations.2.jsonl.0a1b2c3d.tmp")
        for path in (*aside, others):
            put(path, b"x")
        rotation.rotate(ledger, always)
        assert not any(map(os.path.exists, aside))
        assert os.path.exists(others)


class TestKilled:
    @pytest.mark.parametrize("step", ["create_document", "_note", "_write_segments", "_survey"])
    @pytest.mark.parametrize("after", [False, True])
    def test_at_any_step_nothing_is_lost_or_doubled(self, folder, ledger, step, after):
        before, lines = state(folder), set(content(ledger.journal_path).splitlines())
        original = getattr(rotation, step)

        def die(*args):
            if after:
                original(*args)
            os.kill(os.getpid(), signal.SIGKILL)

        child = os.fork()
        if child == 0:
            setattr(rotation, step, die)
            with contextlib.suppress(BaseException):
                rotation.rotate(Ledger(ledger.path, ledger.journal_path), is_second)
            os._exit(0)
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
        assert state(folder) == before
        assert tracked_lines(folder) == lines
        rotation.rotate(ledger, is_second)
        assert state(folder) == before
        assert tracked_lines(folder) == lines == set(content(ledger.journal_path).splitlines())


lines_of_ours = st.builds(
    lambda each, rev, read: line(each, rev, read=read),
    st.sampled_from(IDS),
    st.integers(1, 4),
    st.booleans(),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 1), st.lists(lines_of_ours, max_size=3)),
        st.tuples(st.just("rotate"), st.integers(0, 1), st.sets(st.sampled_from(IDS))),
        st.tuples(st.just("merge"), st.integers(0, 1), st.integers(0, 99)),
        st.tuples(st.just("lose"), st.integers(0, 1), st.integers(0, 3)),
        st.tuples(st.just("reset"), st.integers(0, 1), st.integers(0, 9)),
    ),
    max_size=9,
)


def merge(ours, theirs, seed):
    """Does what git's union driver may do, in a random order of lines: file by file."""
    names = {*ours.archive.listing(), *theirs.archive.listing()}
    pairs = [(ours.archive.path(name), theirs.archive.path(name)) for name in names]
    for mine, other in [(ours.path, theirs.path), *pairs]:
        lines = list({*content(mine).splitlines(), *content(other).splitlines()})
        random.Random(seed).shuffle(lines)
        if set(lines) != set(content(mine).splitlines()):
            put(mine, b"".join(each + b"\n" for each in lines))


def play(root, history, modules=(ledger_module, rotation)):
    """Plays a history over two clones; asserts after each step what must always hold."""
    shutil.rmtree(root, ignore_errors=True)
    folders = [root / "0", root / "1"]
    clones = [modules[0].Ledger(*places(folder)) for folder in folders]
    written = [set(), set()]
    for step, which, argument in history:
        mine, folder = clones[which], folders[which]
        if step == "write":
            known = {*tracked_lines(folder), *content(mine.journal_path).splitlines()}
            fresh = [each for each in dict.fromkeys(argument) if each not in known]
            record(mine, *fresh)
            written[which].update(fresh)
        elif step == "rotate":
            before = state(folder)
            modules[1].rotate(mine, lambda fields, closed=argument: fields["id"] in closed)
            assert state(folder) == before
        elif step == "merge":
            merge(mine, clones[1 - which], argument)
        elif step == "lose":
            for name in list(mine.archive.listing())[argument : argument + 1]:
                os.unlink(mine.archive.path(name))
        else:
            kept = content(mine.path).splitlines(keepends=True)
            put(mine.path, b"".join(kept[:argument]))
        assert written[which] <= {*tracked_lines(folder), *content(mine.journal_path).splitlines()}
        folded = state(folder)
        index = Indexed(KIND, Ledger(*places(folder)), str(folder / "journal" / "index"))
        index.refresh()
        assert {fields["id"]: fields for fields in index.everything()} == folded
        index.close()
    for which, mine in enumerate(clones):
        record(mine)
        # Healed: what was acknowledged is where git carries it, and once in the journal.
        assert written[which] <= tracked_lines(folders[which])
        journal = content(mine.journal_path).splitlines()
        assert len(journal) == len(set(journal))
        assert set(journal) == tracked_lines(folders[which])
    for which in (0, 1, 0):
        merge(clones[which], clones[1 - which], 7)
        record(clones[which])
    assert state(folders[0]) == state(folders[1])


@pytest.mark.slow
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps)
def test_over_any_history_of_two_clones_nothing_is_lost_and_they_agree(tmp_path, history):
    play(tmp_path / "clones", history)


class TestTheOrderOfSegments:
    """Lines without `rev` say something by their place, and segments are read by number."""

    NUMBERS = (2, 10, 9)
    LATEST = 10

    @pytest.fixture
    def pulled(self, tmp_path):
        """Segments that other programs wrote: the same record in each, without `rev`."""
        ledger = Ledger(*places(tmp_path / "hive"))
        for number in self.NUMBERS:
            path = ledger.archive.path(f"queen_messages.{number}.jsonl")
            put(path, line("qm-1", 0, body=f"of {number}") + b"\n")
        return ledger

    def latest(self, ledger, *, index=False):
        fresh = ledger_module.Ledger(ledger.path, ledger.journal_path)
        index_path = ledger.journal_path + ".sqlite3"
        records = Indexed(KIND, fresh, index_path) if index else Folded(KIND, fresh)
        records.refresh()
        fields = records.get("qm-1")
        records.close()
        return fields["body"], fields["rev"]

    def expected(self):
        return f"of {self.LATEST}", len(self.NUMBERS)

    @pytest.mark.parametrize("index", [False, True])
    def test_decides_what_the_record_says(self, pulled, index):
        assert self.latest(pulled, index=index) == self.expected()

    @pytest.mark.parametrize("begun", [False, True], ids=["a clone", "a pull"])
    def test_is_that_of_the_journal_which_outlives_them(self, tmp_path, pulled, begun):
        if begun:
            shutil.move(pulled.archive.folder, tmp_path / "aside")
            record(pulled, line("qm-2"))
            shutil.move(tmp_path / "aside", pulled.archive.folder)
        record(pulled, line("qm-3"))
        shutil.rmtree(pulled.archive.folder)
        assert self.latest(Ledger(pulled.path, pulled.journal_path)) == self.expected()


_WRITE = ("write", 0, [line("qm-0"), line("qm-1")])
_ROTATE = ("rotate", 0, {"qm-0"})


@pytest.mark.parametrize(
    "history",
    [
        [_WRITE, _ROTATE],
        [_WRITE, _ROTATE, ("lose", 0, 0)],
        [_WRITE, ("merge", 1, 0), _ROTATE, ("merge", 0, 0), ("write", 0, [])],
    ],
    ids=[
        "the segment has the lines",
        "the segment vanishes",
        "the segment vanishes after a merge brought its lines back",
    ],
)
def test_no_line_is_lost_or_taken_for_a_new_one(tmp_path, history):
    play(tmp_path, history)


def test_a_rotation_keeps_no_more_than_the_names_of_its_kind(tmp_path):
    """Other files in the folder are nobody's segments."""
    ledger = Ledger(*places(tmp_path))
    for name in ("queen_messages.x.jsonl", "queen_issues.1.jsonl", "queen_messages.0.jsonl", "a"):
        put(ledger.archive.path(name), line("qm-1") + b"\n")
    assert ledger.archive.listing() == {}
    assert ledger.archive.next_name({}) == "queen_messages.1.jsonl"


def test_a_segment_that_git_takes_away_while_we_look_hides_no_other(tmp_path, monkeypatch):
    ledger = Ledger(*places(tmp_path))
    for number in (1, 2, 3):
        put(ledger.archive.path(f"queen_messages.{number}.jsonl"), b"\n")
    stat = os.stat

    def take_away(path, **more):
        if path == ledger.archive.path("queen_messages.1.jsonl"):
            os.unlink(path)
        return stat(path, **more)

    monkeypatch.setattr(archive_module.os, "stat", take_away)
    assert list(ledger.archive.listing()) == ["queen_messages.2.jsonl", "queen_messages.3.jsonl"]


def test_a_folder_that_changed_just_now_is_listed_again(tmp_path):
    """Its clock may not have moved between two changes."""
    archive = Ledger(*places(tmp_path)).archive
    put(archive.path("queen_messages.1.jsonl"), b"\n")
    stamp = os.stat(archive.folder).st_mtime_ns
    assert len(archive.listing()) == 1
    put(archive.path("queen_messages.2.jsonl"), b"\n")
    os.utime(archive.folder, ns=(stamp, stamp))
    assert len(archive.listing()) == 2


def test_segments_of_one_number_stand_in_one_order_everywhere(tmp_path, monkeypatch):
    ledger = Ledger(*places(tmp_path))
    names = [f"queen_messages.{number}.jsonl" for number in ("007", "07", "7", "8")]
    for name in names:
        put(ledger.archive.path(name), b"\n")
    monkeypatch.setattr(archive_module.os, "listdir", lambda _: names[::-1])
    assert list(ledger.archive.listing()) == names


def check_that_lines_stand_oldest_first(folder):
    """By when their records were made, then by id, then by revision: over all segments."""
    made = {"qm-9": "2025-01-01T00:00:00.000Z", "qm-3": "2026-01-01T00:00:00.000Z"}
    lines = [
        line(identifier, rev, created_at=created_at)
        for identifier, created_at in (*made.items(), ("qm-4", made["qm-3"]))
        for rev in (1, 2, 10)
    ]
    ledger = Ledger(*places(folder))
    record(ledger, *lines[::-1])
    rotation.rotate(ledger, always)
    assert len(ledger.archive.listing()) == 5
    assert archived(ledger) == lines


def check_that_lines_of_one_revision_stand_alike_in_all_clones(folder):
    """A merge brings two lines of one revision: each clone has them in another order."""
    lines = [line("qm-1", 1), line("qm-1", 2, body="ours"), line("qm-1", 2, body="theirs")]
    clones = [Ledger(*places(folder / name)) for name in ("one", "other")]
    for clone, brought in zip(clones, (lines, lines[::-1]), strict=True):
        record(clone, *brought)
        rotation.rotate(clone, always)
    assert archived(clones[0]) == archived(clones[1])


class TestTheOrderOfLines:
    @pytest.fixture(autouse=True)
    def _two_lines_a_segment(self, monkeypatch):
        monkeypatch.setattr(rotation, "SEGMENT_BYTES", 100)

    def test_is_oldest_first_over_all_segments(self, tmp_path):
        check_that_lines_stand_oldest_first(tmp_path)

    def test_is_the_same_in_all_clones(self, tmp_path):
        check_that_lines_of_one_revision_stand_alike_in_all_clones(tmp_path)


def check_that_segments_stand_in_the_order_of_their_numbers(folder):
    archive = archive_module.Archive(*places(folder))
    names = [f"queen_messages.{number}.jsonl" for number in (1, 2, 9, 10, 11, 100)]
    for name in sorted(names):
        put(archive.path(name), b"\n")
    assert list(archive.listing()) == names


def test_segments_stand_in_the_order_of_their_numbers(tmp_path):
    check_that_segments_stand_in_the_order_of_their_numbers(tmp_path)


def test_the_segment_after_the_tenth_is_the_eleventh(tmp_path):
    ledger = Ledger(*places(tmp_path))
    names = [f"queen_messages.{number}.jsonl" for number in (9, 10)]
    assert ledger.archive.next_name(dict.fromkeys(names)) == "queen_messages.11.jsonl"


def test_an_archive_that_is_not_a_directory_is_refused_by_name(tmp_path):
    ledger = Ledger(*places(tmp_path))
    put(ledger.archive.folder, b"")
    with pytest.raises(archive_module.Unreadable, match="archive is not a directory"):
        ledger.read()


@pytest.mark.parametrize("digits", [9, 255 - len("queen_messages..jsonl")])
def test_a_segment_whose_number_is_as_large_as_can_be_stops_no_rotation(tmp_path, digits):
    """A clone can bring one: a larger number would be a name that no file system takes."""
    ledger = Ledger(*places(tmp_path))
    last = f"queen_messages.{'9' * digits}.jsonl"
    put(ledger.archive.path(last), line("qm-0") + b"\n")
    put(ledger.archive.path("queen_messages.1.jsonl"), line("qm-1") + b"\n")
    put(ledger.path, line("qm-2") + b"\n")
    rotation.rotate(ledger, always)
    assert list(ledger.archive.listing()) == [f"queen_messages.{n}.jsonl" for n in (1, 2)] + [last]
    assert set(state(tmp_path)) == {"qm-0", "qm-1", "qm-2"}
