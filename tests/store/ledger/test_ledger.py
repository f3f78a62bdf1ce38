"""A ledger and its journal are one: what either holds counts, and each heals the other."""

from __future__ import annotations

import os

import pytest
from extent import examples
from hypothesis import given, settings
from raw_files import content_if_any as content
from raw_files import record
from record_lines import any_lines

from queenbee.errors import Unreadable, Unwritable
from queenbee.store.files import START
from queenbee.store.ledger.batch import Position
from queenbee.store.ledger.journal import Journal
from queenbee.store.ledger.ledger import Ledger


def line(number, text="said"):
    return b'{"id":"qm-%d","rev":1,"body":"%s"}' % (number, text.encode())


@pytest.fixture
def ledger(tmp_path):
    return open_ledger(tmp_path)


def open_ledger(folder):
    (folder / "journal").mkdir(exist_ok=True)
    return Ledger(str(folder / "queen_messages.jsonl"), str(folder / "journal" / "messages.jsonl"))


def put(path, data):
    with open(path, "wb") as file:
        file.write(data)


def everything(ledger):
    batch = Ledger(ledger.path, ledger.journal_path).read()
    return [*batch.tracked, *batch.journal_only]


class TestAppending:
    def test_writes_to_both_files(self, ledger):
        record(ledger, line(1), line(2))
        assert content(ledger.path) == line(1) + b"\n" + line(2) + b"\n"
        assert content(ledger.journal_path) == content(ledger.path)

    def test_leaves_no_announcement_behind(self, ledger):
        record(ledger, line(1), line(2))
        assert os.listdir(os.path.dirname(ledger.journal_path)) == ["messages.jsonl"]

    def test_of_nothing_changes_nothing(self, ledger):
        record(ledger, line(1))
        before = content(ledger.path), content(ledger.journal_path)
        record(ledger)
        assert (content(ledger.path), content(ledger.journal_path)) == before

    def test_by_another_process_in_between_is_not_undone(self, ledger, tmp_path):
        other = open_ledger(tmp_path)
        for number in range(6):
            record((ledger, other)[number % 2], line(number))
        assert everything(ledger) == [line(number) for number in range(6)]
        assert content(ledger.path) == content(ledger.journal_path)


class TestHealing:
    """Git took lines out of the tracked file."""

    @pytest.mark.parametrize("left", [b"", line(1) + b"\n", line(2) + b"\n"])
    def test_restores_missing_lines_at_the_next_append(self, ledger, left):
        record(ledger, line(1), line(2))
        put(ledger.path, left)
        record(ledger, line(3))
        assert sorted(content(ledger.path).splitlines()) == [line(1), line(2), line(3)]

    def test_waits_for_a_write(self, ledger):
        record(ledger, line(1))
        put(ledger.path, b"")
        assert everything(ledger) == [line(1)]
        assert content(ledger.path) == b""

    def test_brings_back_a_file_that_is_gone(self, ledger):
        record(ledger, line(1))
        os.unlink(ledger.path)
        record(ledger, line(2))
        assert content(ledger.path).splitlines() == [line(1), line(2)]

    def test_happens_once(self, ledger, tmp_path):
        for number in range(12):
            record(open_ledger(tmp_path), line(number))
            put(ledger.path, content(ledger.path)[: len(line(0)) + 1])
        record(open_ledger(tmp_path), line(12))
        assert sorted(content(ledger.path).splitlines()) == sorted(map(line, range(13)))
        assert len(content(ledger.journal_path).splitlines()) == 13

    def test_is_not_repeated_when_a_stash_comes_back(self, ledger):
        record(ledger, line(1))
        put(ledger.path, b"")
        record(ledger, line(2))
        put(ledger.path, line(1) + b"\n" + content(ledger.path))
        record(ledger, line(3))
        assert set(everything(ledger)) == {line(1), line(2), line(3)}
        assert len(content(ledger.journal_path).splitlines()) == 3

    def test_of_the_journal_brings_back_what_only_the_ledger_holds(self, ledger):
        record(ledger, line(1), line(2))
        os.unlink(ledger.journal_path)
        record(open_ledger_of(ledger), line(3))
        assert content(ledger.journal_path).splitlines() == [line(1), line(2), line(3)]


def foreign(ledger):
    """Returns what a process that reads the ledger first is told of lines from elsewhere."""
    ledger = open_ledger_of(ledger)
    return ledger.foreign(unrecorded=ledger.read().unrecorded)


def open_ledger_of(ledger):
    return Ledger(ledger.path, ledger.journal_path)


class TestWhatArrives:
    """A pull, or a tool that knows nothing of journals, added lines to the tracked file."""

    def test_is_read_at_once(self, ledger):
        put(ledger.path, line(1) + b"\n")
        assert everything(ledger) == [line(1)]

    def test_enters_the_journal_at_the_next_append(self, ledger):
        record(ledger, line(1))
        put(ledger.path, content(ledger.path) + line(2, "foreign") + b"\n")
        assert line(2, "foreign") not in content(ledger.journal_path)
        record(ledger, line(3))
        assert content(ledger.journal_path).splitlines() == [line(1), line(2, "foreign"), line(3)]

    def test_survives_git_from_then_on(self, ledger):
        put(ledger.path, line(1, "foreign") + b"\n")
        record(ledger, line(2))
        put(ledger.path, b"")
        assert everything(ledger) == [line(1, "foreign"), line(2)]

    def test_is_counted_as_foreign_by_whoever_reads_it_first(self, ledger):
        record(ledger, line(1))
        assert foreign(ledger) == ""
        put(ledger.path, content(ledger.path) + line(2, "foreign") + b"\n")
        assert foreign(ledger)

    def test_stays_counted_once_it_is_in_the_journal(self, ledger):
        put(ledger.path, line(1, "foreign") + b"\n")
        record(ledger, line(2))
        assert foreign(ledger)

    def test_does_not_include_what_was_healed(self, ledger):
        record(ledger, line(1))
        put(ledger.path, b"")
        record(ledger, line(2))
        assert foreign(ledger) == ""


NASTY = {
    "conflict markers": b"<<<<<<< HEAD\n%s\n=======\n%s\n>>>>>>> theirs\n",
    "half a line joined to the next": b'{"id":"qm-9","rev":1,"bo%s\n%s\n',
    "a NUL block": b"\0" * 512 + b"\n%s\n%s\n",
    "a line of invalid UTF-8": b'{"id":"qm-9","body":"\xff\xfe"}\n%s\n%s\n',
    "CRLF": b"%s\r\n%s\r\n",
    "blank lines": b"\n\n%s\n   \n%s\n\n",
    "a byte order mark": b"\xef\xbb\xbf%s\n%s\n",
    "deep nesting": b'{"id":"qm-9","x":' + b"[" * 2_000 + b"]" * 2_000 + b"}\n%s\n%s\n",
    "a line over a mebibyte": b'{"id":"qm-9","x":"' + b"x" * 2**20 + b'"}\n%s\n%s\n',
    "no newline at the end": b"%s\n%s",
    "a torn line at the end": b'%s\n%s\n{"id":"qm-9","bo',
    "a torn multi-byte character": '%s\n%s\n{"id":"qm-9","body":"é'.encode()[:-1],
}


@pytest.mark.parametrize("nasty", NASTY.values(), ids=NASTY)
class TestNastyBytes:
    """Both lines of the template are recorded already; the ledger is then as it is shown."""

    def spoiled(self, ledger, nasty):
        record(ledger, line(1), line(2))
        put(ledger.path, nasty % (line(1), line(2)))
        return content(ledger.path)

    def test_hide_nothing(self, ledger, nasty):
        self.spoiled(ledger, nasty)
        assert {line(1), line(2)} <= set(everything(ledger))

    def test_are_not_taken_away_or_rewritten(self, ledger, nasty):
        before = self.spoiled(ledger, nasty)
        record(ledger, line(3))
        assert content(ledger.path).startswith(before)

    def test_do_not_touch_the_line_that_is_appended_next(self, ledger, nasty):
        self.spoiled(ledger, nasty)
        record(open_ledger_of(ledger), line(3))
        assert content(ledger.path).endswith(b"\n" + line(3) + b"\n")

    def test_never_enter_the_journal(self, ledger, nasty):
        self.spoiled(ledger, nasty)
        record(open_ledger_of(ledger), line(3))
        assert content(ledger.journal_path).splitlines() == [line(1), line(2), line(3)]


class TestALineWithoutItsNewline:
    def test_counts_where_it_is_whole(self, ledger):
        put(ledger.path, line(1))
        assert everything(ledger) == [line(1)]

    def test_enters_the_journal_once(self, ledger):
        put(ledger.path, line(1))
        record(ledger, line(2))
        record(open_ledger_of(ledger), line(3))
        assert content(ledger.journal_path).splitlines() == [line(1), line(2), line(3)]
        assert content(ledger.path).splitlines() == [line(1), line(2), line(3)]


@pytest.mark.parametrize("torn", ["ledger", "journal"])
def test_truncation_at_any_byte_loses_nothing_and_the_next_append_is_whole(tmp_path, torn):
    lines = [line(1), line(2, "é\\u00e9"), line(3)]
    for size in range(sum(map(len, lines)) + len(lines) + 1):
        folder = tmp_path / str(size)
        folder.mkdir()
        ledger = open_ledger(folder)
        record(ledger, *lines)
        os.truncate(ledger.path if torn == "ledger" else ledger.journal_path, size)
        assert set(everything(ledger)) >= set(lines)
        record(open_ledger_of(ledger), line(4))
        assert set(everything(ledger)) >= {*lines, line(4)}
        for path in (ledger.path, ledger.journal_path):
            assert set(content(path).splitlines()) >= {*lines, line(4)}
            assert content(path).endswith(line(4) + b"\n")


class TestInPlaceOfTheLedger:
    MAKERS = {  # noqa: RUF012
        "a directory": os.mkdir,
        "a FIFO": os.mkfifo,
        "a symbolic link": lambda path: os.symlink("/etc/passwd", path),
        "a dangling link": lambda path: os.symlink("nowhere", path),
    }

    @pytest.fixture(params=MAKERS, ids=lambda name: name)
    def replaced(self, request, ledger):
        record(ledger, line(1))
        os.unlink(ledger.path)
        self.MAKERS[request.param](ledger.path)
        return ledger

    def test_something_else_cannot_be_read(self, replaced):
        with pytest.raises(Unreadable, match=r"queen_messages\.jsonl"):
            everything(replaced)

    def test_something_else_is_not_written_to_and_nothing_is_recorded(self, replaced):
        before = content(replaced.journal_path)
        with pytest.raises((Unreadable, Unwritable)):
            record(open_ledger_of(replaced), line(2))
        assert content(replaced.journal_path) == before

    def test_of_the_journal_something_else_cannot_be_used_either(self, tmp_path):
        ledger = open_ledger(tmp_path)
        os.mkdir(ledger.journal_path)
        with pytest.raises(Unreadable):
            everything(ledger)
        with pytest.raises((Unreadable, Unwritable)):
            record(ledger, line(1))
        assert content(ledger.path) == b""


@pytest.mark.slow
@given(any_lines(), any_lines())
@settings(max_examples=examples(150))
def test_any_two_files_are_read_as_the_union_of_their_lines_and_heal(
    tmp_path_factory, tracked, journal
):
    ledger = open_ledger(tmp_path_factory.mktemp("union"))
    put(ledger.path, b"".join(each + b"\n" for each in tracked))
    put(ledger.journal_path, b"".join(each + b"\n" for each in journal))
    assert set(everything(ledger)) == {*tracked, *journal}
    record(ledger, line(7))
    assert set(content(ledger.path).splitlines()) == {*tracked, *journal, line(7)}
    assert set(everything(ledger)) == {*tracked, *journal, line(7)}


def test_reading_again_returns_only_new_lines(ledger):
    record(ledger, line(1))
    position = ledger.read().position
    record(open_ledger_of(ledger), line(2))
    batch = ledger.read(position)
    assert (batch.tracked, batch.journal_only, batch.restarted) == ([line(2)], [], False)


def test_reading_on_begins_anew_where_git_rewrote_the_file(ledger):
    record(ledger, line(1), line(2))
    position = ledger.read().position
    put(ledger.path, line(2) + b"\n")
    batch = ledger.read(position)
    assert batch.restarted
    assert (batch.tracked, batch.journal_only) == ([line(2)], [line(1)])


def test_a_missing_ledger_is_an_empty_one(ledger):
    batch = ledger.read(Position())
    assert (batch.tracked, batch.journal_only) == ([], [])


def test_the_first_write_in_a_clone_does_not_read_back_what_it_copied(tmp_path, monkeypatch):
    """Its archive may be a hundred times as long as what is compared."""
    path, folder = tmp_path / "queen_messages.jsonl", tmp_path / "archive"
    folder.mkdir()
    lines = [b'{"id":"qm-%d","rev":1}' % number for number in range(100)]
    (folder / "queen_messages.1.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    path.write_bytes(b"")
    read, sizes = Journal.read, []

    def watched(self, since, *, limit=None):
        chunk = read(self, since, limit=limit)
        sizes.append(len(chunk.lines))
        return chunk

    monkeypatch.setattr(Journal, "read", watched)
    ledger = Ledger(str(path), str(tmp_path / "journal"))
    ledger.append([b'{"id":"qm-new","rev":1}'], Position(START, START, {})).close()
    assert sum(sizes) == 0
    assert len((tmp_path / "journal").read_bytes().splitlines()) == 101
