"""Append-only files: read from a mark, appended to, taken back, synced."""

from __future__ import annotations

import errno
import os
import threading

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from queenbee.errors import DurabilityUnknown, Unreadable, Unwritable
from queenbee.store import files
from queenbee.store.files import (
    START,
    Appender,
    Mark,
    Original,
    read_after,
    split_lines,
)

LINES = st.lists(st.binary(min_size=1, max_size=6).filter(lambda each: b"\n" not in each))


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "ledger.jsonl")


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def replace(path, data):
    """Writes a file as git does: the old one is removed, and the new one may get its inode."""
    os.unlink(path)
    write(path, data)


class TestReadingOn:
    def test_begins_with_everything(self, path):
        write(path, b"a\nb\n")
        chunk = read_after(path, START)
        assert (chunk.lines, chunk.rest, chunk.restarted) == (b"a\nb\n", b"", False)

    def test_continues_from_the_mark(self, path):
        write(path, b"a\n")
        mark = read_after(path, START).end
        with open(path, "ab") as file:
            file.write(b"b\nc\n")
        assert read_after(path, mark).lines == b"b\nc\n"

    def test_finds_nothing_in_a_missing_file(self, path):
        chunk = read_after(path, START)
        assert (chunk.lines, chunk.rest, chunk.restarted) == (b"", b"", False)

    def test_keeps_what_no_newline_ends_apart_and_reads_it_again(self, path):
        write(path, b"a\nb")
        chunk = read_after(path, START)
        assert (chunk.lines, chunk.rest) == (b"a\n", b"b")
        with open(path, "ab") as file:
            file.write(b"c\n")
        assert read_after(path, chunk.end).lines == b"bc\n"

    @pytest.mark.parametrize(
        "now", [b"", b"a\n", b"a\nX\n", b"X\nb\n", b"a\nb", b"XXXX\nb\n", b"a\nXYZ\nb\n"]
    )
    def test_begins_anew_where_the_file_was_rewritten(self, path, now):
        write(path, b"a\nb\n")
        mark = read_after(path, START).end
        write(path, now)
        chunk = read_after(path, mark)
        assert chunk.restarted
        assert chunk.lines + chunk.rest == now

    def test_begins_anew_where_git_put_a_file_with_the_same_end_in_its_place(self, path):
        last = b'{"id":"q"}' * 20 + b"\n"
        write(path, b"ours  \n" + last)
        mark = read_after(path, START).end
        replace(path, b"theirs\n" + last)
        assert read_after(path, mark).lines == b"theirs\n" + last

    def test_begins_anew_where_the_file_is_gone(self, path):
        write(path, b"a\n")
        mark = read_after(path, START).end
        os.unlink(path)
        assert read_after(path, mark).restarted

    def test_stops_at_the_given_offset(self, path):
        write(path, b"a\nb\nc\n")
        assert read_after(path, START, stop=4).lines == b"a\nb\n"

    @given(LINES, st.data())
    @settings(max_examples=examples(100))
    def test_in_any_pieces_reads_what_reading_at_once_does(self, tmp_path_factory, lines, data):
        path = str(tmp_path_factory.mktemp("pieces") / "ledger")
        whole = b"".join(line + b"\n" for line in lines)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
        mark, read = START, b""
        for cut in [*cuts, len(whole)]:
            write(path, whole[:cut]) if mark == START else append(path, whole[:cut])
            chunk = read_after(path, mark)
            mark, read = chunk.end, read + chunk.lines
        assert read == whole


def append(path, data):
    with open(path, "r+b") as file:
        file.write(data)


class TestWhatIsNoLedger:
    def test_a_directory_is_refused(self, path):
        os.mkdir(path)
        with pytest.raises(Unreadable, match="not a regular file"):
            read_after(path, START)

    def test_a_fifo_is_refused_without_waiting_for_its_other_end(self, path):
        os.mkfifo(path)
        with pytest.raises(Unreadable, match="not a regular file"):
            read_after(path, START)

    def test_a_symbolic_link_is_refused(self, path, tmp_path):
        write(str(tmp_path / "elsewhere"), b"secret\n")
        os.symlink(tmp_path / "elsewhere", path)
        with pytest.raises(Unreadable, match="symbolic link"):
            read_after(path, START)

    @pytest.mark.parametrize(
        "make", [os.mkdir, os.mkfifo, lambda path: os.symlink("/dev/full", path)]
    )
    def test_is_not_written_to(self, path, make):
        make(path)
        with pytest.raises((Unreadable, Unwritable)):
            Appender(path)

    def test_a_device_is_refused(self):
        with pytest.raises(Unreadable, match="not a regular file"):
            Appender("/dev/null")


class TestAppending:
    def test_adds_at_the_end(self, path):
        write(path, b"a\n")
        appender = Appender(path)
        appender.append(b"b\n")
        appender.close()
        assert read_after(path, START).lines == b"a\nb\n"

    def test_ends_at_a_mark_that_reading_continues_from(self, path):
        write(path, b"a\n")
        appender = Appender(path)
        appender.append(b"b\n")
        assert appender.end() == read_after(path, START).end
        appender.close()

    def test_continues_after_a_short_write(self, path, monkeypatch):
        write_all = os.write
        monkeypatch.setattr(files.os, "write", lambda fd, data: write_all(fd, data[:3]))
        appender = Appender(path)
        appender.append(b"0123456789\n")
        appender.close()
        assert read_after(path, START).lines == b"0123456789\n"

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
    def test_that_fails_half_way_leaves_nothing(self, path, monkeypatch, number):
        write(path, b"a\n")
        calls = iter([3])
        write_all = os.write

        def fails_at_the_second_call(fd, data):
            for size in calls:
                return write_all(fd, data[:size])
            raise OSError(number, os.strerror(number))

        appender = Appender(path)
        monkeypatch.setattr(files.os, "write", fails_at_the_second_call)
        with pytest.raises(Unwritable, match="nothing was recorded") as refused:
            appender.append(b"0123456789\n")
        appender.close()
        assert refused.value.hint
        assert read_after(path, START).lines == b"a\n"

    def test_that_is_taken_back_leaves_nothing(self, path):
        write(path, b"a\n")
        appender = Appender(path)
        appender.append(b"b\n")
        appender.take_back()
        appender.close()
        assert read_after(path, START).lines == b"a\n"

    def test_is_not_taken_back_from_under_a_foreign_line(self, path):
        appender = Appender(path)
        appender.append(b"ours\n")
        with open(path, "ab") as file:
            file.write(b"foreign\n")
        appender.take_back()
        appender.close()
        assert read_after(path, START).lines == b"ours\nforeign\n"

    def test_that_cannot_be_taken_back_says_so(self, path, monkeypatch):
        appender = Appender(path)
        appender.append(b"b\n")

        def fails(fd, size):
            raise OSError(errno.EIO, "no")

        monkeypatch.setattr(files.os, "ftruncate", fails)
        with pytest.raises(Unwritable, match="cannot be removed from it"):
            appender.take_back()
        appender.close()

    def test_to_a_missing_folder_is_refused(self, tmp_path):
        with pytest.raises(Unwritable, match="cannot be created"):
            Appender(str(tmp_path / "gone" / "ledger"))


@pytest.mark.linux
class TestSyncing:
    def test_waits_for_the_disk(self, path, monkeypatch):
        synced = []
        monkeypatch.setattr(files.os, "fdatasync", lambda fd: synced.append(os.fstat(fd).st_ino))
        write(path, b"a\n")
        appender = Appender(path)
        appender.sync()
        assert synced == [os.stat(path).st_ino]
        appender.close()

    def test_of_a_new_file_syncs_its_name_too(self, path, monkeypatch):
        folders = []
        monkeypatch.setattr(files.safe_open, "sync_folder", folders.append)
        appender = Appender(path)
        appender.sync()
        appender.close()
        assert folders == [os.path.dirname(path)]

    def test_that_fails_says_that_durability_is_unknown_and_is_not_tried_again(
        self, path, monkeypatch
    ):
        calls = []

        def fails(fd):
            calls.append(fd)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(files.os, "fdatasync", fails)
        appender = Appender(path)
        with pytest.raises(DurabilityUnknown, match="did not confirm"):
            appender.sync()
        appender.close()
        assert len(calls) == 1


class TestLines:
    @pytest.mark.parametrize(
        ("data", "lines"),
        [
            (b"", []),
            (b"a\nb\n", [b"a", b"b"]),
            (b"a\r\nb\r\n", [b"a", b"b"]),
            (b"a\n\n  \n\t\r\nb", [b"a", b"b"]),
            (b"a\rb\x0bc\x0c\x85\xe2\x80\xa8d\n", [b"a\rb\x0bc\x0c\x85\xe2\x80\xa8d"]),
        ],
    )
    def test_are_split_on_newlines_only(self, data, lines):
        assert split_lines(data) == lines


def test_a_file_to_replace_that_the_disk_does_not_give_is_named(path, monkeypatch):
    write(path, b"x\n")

    def fail(*_args):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(files.os, "pread", fail)
    with pytest.raises(Unreadable, match=r"ledger\.jsonl cannot be read"):
        Original(path)


def test_marks_are_equal_when_they_mark_the_same_place():
    assert Mark(1, 2, b"x") == Mark(1, 2, b"x")
    assert Mark(1, 2, b"x") != Mark(1, 2, b"y")


def test_readers_and_a_writer_in_threads_never_meet_half_a_line(path):
    line = b"x" * 20_000 + b"\n"
    appender = Appender(path)
    writer = threading.Thread(target=lambda: [appender.append(line) for _ in range(50)])
    writer.start()
    mark, lines = START, []
    while len(lines) < 50:
        chunk = read_after(path, mark)
        mark = chunk.end
        lines.extend(split_lines(chunk.lines))
    writer.join()
    appender.close()
    assert set(lines) == {line[:-1]}
