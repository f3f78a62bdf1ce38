"""Documents are read at once and replaced in one step."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
from contextlib import contextmanager

import pytest
from raw_files import content

from queenbee.errors import NotFound, Unreadable, Unwritable
from queenbee.store import whole_files
from queenbee.store.whole_files import create_document, read_document, write_document


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "plan.json")


class TestReading:
    def test_gives_the_bytes(self, path):
        write_document(path, b"one\r\ntwo")
        assert read_document(path) == b"one\r\ntwo"

    def test_leaves_out_a_leading_byte_order_mark(self, path):
        write_document(path, b"\xef\xbb\xbf{}\xef\xbb\xbf")
        assert read_document(path) == b"{}\xef\xbb\xbf"

    def test_of_a_missing_file_says_so(self, path):
        with pytest.raises(NotFound, match="does not exist"):
            read_document(path)

    @pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
    def test_of_a_special_file_is_refused_without_waiting(self, path, make):
        make(path)
        with pytest.raises(Unreadable):
            read_document(path)

    def test_of_a_file_that_is_too_large_is_refused(self, path):
        write_document(path, b"12345")
        assert read_document(path, max_bytes=5) == b"12345"
        with pytest.raises(Unreadable, match="larger than 4 bytes"):
            read_document(path, max_bytes=4)


class TestWriting:
    def test_makes_missing_folders(self, tmp_path):
        path = str(tmp_path / "a" / "b" / "plan.json")
        write_document(path, b"x")
        assert content(path) == b"x"

    @pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755])
    def test_keeps_the_mode(self, path, mode):
        write_document(path, b"old")
        os.chmod(path, mode)
        write_document(path, b"new")
        assert stat.S_IMODE(os.stat(path).st_mode) == mode

    def test_of_a_new_file_heeds_the_umask(self, path):
        before = os.umask(0o027)
        try:
            write_document(path, b"x")
        finally:
            os.umask(before)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o640

    def test_leaves_no_other_file_behind(self, path):
        write_document(path, b"x")
        assert os.listdir(os.path.dirname(path)) == ["plan.json"]

    def test_syncs_the_bytes_before_the_name_and_the_name_after(self, path, monkeypatch):
        steps = []
        replace, fsync = os.replace, os.fsync
        monkeypatch.setattr(
            os, "replace", lambda *names, **at: (steps.append("rename"), replace(*names, **at))
        )
        monkeypatch.setattr(os, "fsync", lambda fd: (steps.append("sync"), fsync(fd)))
        write_document(path, b"x")
        assert steps == ["sync", "rename", "sync"]

    @pytest.mark.parametrize("step", ["open", "fchmod", "fsync", "replace"])
    def test_that_fails_leaves_the_old_file_and_nothing_else(self, path, monkeypatch, step):
        write_document(path, b"old")

        def fails(*_args, **_kwargs):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(whole_files.os, step, fails)
            with pytest.raises(Unwritable, match="No space left"):
                write_document(path, b"new")
        assert content(path) == b"old"
        assert os.listdir(os.path.dirname(path)) == ["plan.json"]

    def test_by_two_at_once_leaves_what_the_last_one_wrote(self, path, monkeypatch):
        """While one waits for the disk, the other one writes the same file."""
        fsync, theirs = os.fsync, [b"theirs"]

        def meanwhile(fd):
            if theirs:
                write_document(path, theirs.pop())
            fsync(fd)

        monkeypatch.setattr(os, "fsync", meanwhile)
        write_document(path, b"ours")
        assert content(path) == b"ours"
        assert os.listdir(os.path.dirname(path)) == ["plan.json"]

    @pytest.mark.parametrize("step", ["open", "fchmod", "fsync", "replace"])
    def test_that_is_killed_leaves_the_old_file(self, path, step):
        write_document(path, b"old")
        child = os.fork()
        if child == 0:
            setattr(whole_files.os, step, lambda *_a, **_k: os.kill(os.getpid(), signal.SIGKILL))
            write_document(path, b"new")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status)
        assert content(path) == b"old"

    def test_over_a_folder_is_refused(self, path):
        os.mkdir(path)
        with pytest.raises(Unwritable):
            write_document(path, b"x")


class TestCreating:
    def test_a_document_makes_it_and_its_folder(self, tmp_path):
        path = str(tmp_path / "archive" / "one.jsonl")
        assert create_document(path, b"x")
        assert content(path) == b"x"
        assert os.listdir(tmp_path / "archive") == ["one.jsonl"]

    @pytest.mark.parametrize("links", [True, False])
    def test_one_whose_name_is_taken_leaves_it_alone(self, path, monkeypatch, links):
        if not links:
            monkeypatch.setattr(whole_files.os, "link", unsupported)
        assert create_document(path, b"first")
        assert not create_document(path, b"second")
        assert content(path) == b"first"
        assert os.listdir(os.path.dirname(path)) == ["plan.json"]


def unsupported(*_args, **_at):
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_a_folder_that_git_removes_meanwhile_is_made_again(tmp_path):
    path = tmp_path / "beads" / "issues.jsonl"

    @contextmanager
    def removed_once():
        if not removed:
            removed.append(path.parent)
            shutil.rmtree(path.parent)
        yield True

    removed = []
    assert whole_files.write_while(str(path), b"x\n", removed_once)
    assert path.read_bytes() == b"x\n"
    assert os.listdir(path.parent) == [path.name]
