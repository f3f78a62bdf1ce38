"""A write is on disk before it is acknowledged, and nobody waits for the disk under the lock."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import mmap
import os
import stat

import pytest
from raw_files import content, remembered

from queenbee import Hive
from queenbee.errors import DurabilityUnknown, QueenError, Unwritable
from queenbee.store import files
from queenbee.store.creating import init
from queenbee.store.layout import discover
from queenbee.store.memory.files_memory import FilesMemory


@pytest.fixture
def hive(tmp_path):
    return open_hive(tmp_path)


def open_hive(folder, droid="ui", **env):
    beads_dir = str(folder / ".beads")
    init(discover(str(folder), {}, beads_dir=beads_dir, must_exist=False))
    return Hive.open(folder, droid=droid, env=env, beads_dir=beads_dir)


def bytes_of(hive):
    """Returns the bytes of every ledger, and what is recorded."""
    found = {}
    for kind in hive.kinds():
        path = hive.layout.ledger_path(kind)
        if os.path.isfile(path) and (data := content(path)):
            found[path] = data
        if os.path.exists(hive.layout.memory_path):
            found[kind] = remembered(hive.layout.state_dir, kind)
    return found


@pytest.fixture
def syncs(hive, monkeypatch):
    """Records each wait for the disk: which file, and whether the hive's lock was held then."""
    seen = []

    def watching(original):
        def sync(fd):
            lock = os.open(hive.layout.lock_path, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = False
            except BlockingIOError:
                held = True
            finally:
                os.close(lock)
            seen.append((os.readlink(f"/proc/self/fd/{fd}"), held))
            original(fd)

        return sync

    hive.messages.send("api", "the first write makes the folders")
    monkeypatch.setattr(os, "fdatasync", watching(os.fdatasync))
    monkeypatch.setattr(os, "fsync", watching(os.fsync))
    return seen


@pytest.mark.linux
class TestAWriteThatIsAcknowledged:
    def test_is_on_disk(self, hive, syncs):
        hive.messages.send("api", "hello")
        assert syncs == [(hive.layout.memory_path + "-wal", False)]

    def test_waits_once_for_all_kinds_that_it_touched(self, hive, syncs):
        hive.assignments.assign("qb-1", "api")
        assert syncs == [(hive.layout.memory_path + "-wal", False)]

    def test_waited_for_the_disk_with_the_lock_let_go(self, hive, syncs):
        hive.assignments.claim("qb-1")
        hive.reservations.reserve(["src/**", "docs/**"], issue_id="qb-1")
        hive.assignments.complete("qb-1")
        assert syncs
        assert not any(held for _, held in syncs)

    def test_waiting_under_the_lock_is_caught(self, hive, syncs, monkeypatch):
        write = FilesMemory.write

        def write_and_sync(memory, lines):
            write(memory, lines)
            memory.sync()

        monkeypatch.setattr(FilesMemory, "write", write_and_sync)
        hive.messages.send("api", "hello")
        assert any(held for _, held in syncs)


@pytest.mark.linux
class TestBuffered:
    def test_by_setting_waits_for_no_disk(self, hive, syncs):
        hive.layout.settings.durability = "buffered"
        hive.messages.send("api", "hello")
        assert syncs == []

    def test_by_environment_waits_for_no_disk(self, tmp_path, monkeypatch):
        hive = open_hive(tmp_path, QUEEN_DURABILITY="buffered")
        hive.messages.send("api", "the first write makes the folders")
        monkeypatch.setattr(os, "fdatasync", pytest.fail)
        assert hive.messages.send("api", "hello")


@pytest.mark.linux
class TestASyncThatFails:
    @pytest.fixture
    def calls(self, hive, monkeypatch):
        hive.messages.send("api", "the first write makes the folders")
        calls = []

        def fails(fd):
            calls.append(fd)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(files.os, "fdatasync", fails)
        return calls

    def test_is_reported_as_durability_unknown(self, hive, calls):
        with pytest.raises(DurabilityUnknown, match="did not confirm"):
            hive.messages.send("api", "hello")

    def test_is_not_tried_again_as_if_it_had_worked(self, hive, calls):
        with pytest.raises(DurabilityUnknown):
            hive.messages.send("api", "hello")
        assert len(calls) == 1

    def test_leaves_the_line_to_be_read(self, hive, calls):
        with pytest.raises(DurabilityUnknown):
            hive.messages.send("api", "hello")
        assert hive.messages.sent()[0].body == "hello"

    def test_leaves_no_file_open_and_no_lock_held(self, hive, calls, monkeypatch):
        hive.close()
        gc.collect()  # Earlier tests may have left files that are closed only then.
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            with pytest.raises(DurabilityUnknown):
                hive.messages.send("api", "hello")
        hive.close()
        assert len(os.listdir("/proc/self/fd")) == before
        monkeypatch.undo()
        assert hive.messages.send("api", "afterwards")


@pytest.mark.linux
class TestWhereNoLogCanBeKept:
    """Some shared folders let no processes share the pages of a file, as SQLite's log needs."""

    @pytest.fixture
    def hive(self, tmp_path, monkeypatch):
        def refused(*_):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

        monkeypatch.setattr(mmap, "mmap", refused)
        return open_hive(tmp_path)

    def test_a_write_is_on_disk_once_its_journal_has_no_name(self, hive, syncs):
        hive.messages.send("api", "hello")
        assert syncs == [(hive.layout.state_dir, False)]
        assert not os.path.exists(hive.layout.memory_path + "-wal")

    def test_a_folder_that_knows_no_sync_refuses_no_write(self, tmp_path, monkeypatch):
        fsync = os.fsync

        def knows_files_only(fd):
            if stat.S_ISDIR(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            fsync(fd)

        monkeypatch.setattr(os, "fsync", knows_files_only)
        hive = open_hive(tmp_path)
        hive.messages.send("api", "hello")
        assert [each.body for each in hive.messages.sent()] == ["hello"]

    def test_a_sync_that_fails_is_reported(self, hive, monkeypatch):
        def fails(fd):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        hive.messages.send("api", "the first write makes the folders")
        monkeypatch.setattr(os, "fsync", fails)
        with pytest.raises(DurabilityUnknown, match="did not confirm"):
            hive.messages.send("api", "hello")


class TestTwoLedgersInOneTurn:
    @pytest.fixture
    def before(self, hive):
        hive.messages.send("api", "hello")
        return bytes_of(hive)

    def assigned(self, hive):
        """An assignment to somebody else, and the message that tells it."""
        return hive.assignments.assign("qb-1", "api")

    @pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("x", path)])
    def test_nothing_is_written_if_the_second_is_not_a_file(self, hive, before, make):
        path = hive.layout.ledger_path("messages")
        os.unlink(path)
        make(path)
        with pytest.raises(QueenError):
            self.assigned(hive)
        del before[path]
        assert bytes_of(hive) == before

    @pytest.mark.parametrize("nth", range(1, 4))
    def test_where_the_disk_is_full_at_the_nth_write_nothing_stays(
        self, hive, before, monkeypatch, nth
    ):
        calls, write = iter(range(1, 1_000)), os.write

        def fails(fd, data):
            if next(calls) >= nth:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(fd, data[:200])

        monkeypatch.setattr(files.os, "write", fails)
        with pytest.raises(Unwritable, match="nothing was recorded"):
            self.assigned(hive)
        monkeypatch.undo()
        assert bytes_of(hive) == before

    def test_where_the_second_is_interrupted_nothing_stays(self, hive, before, monkeypatch):
        append = files.Appender.append

        def interrupted(file, data):
            if file.path == hive.layout.ledger_path("messages"):
                raise KeyboardInterrupt
            append(file, data)

        monkeypatch.setattr(files.Appender, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            self.assigned(hive)
        monkeypatch.undo()
        assert bytes_of(hive) == before

    def test_the_next_turn_is_whole(self, hive, before, monkeypatch):
        def full(fd, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(files.os, "write", full)
            with pytest.raises(Unwritable):
                self.assigned(hive)
        assert self.assigned(hive).droid == "api"
        assert len(hive.messages.sent()) == 2


def test_an_error_in_the_middle_of_a_turn_writes_nothing(hive):
    before = bytes_of(hive)
    with pytest.raises(RuntimeError), hive.transaction() as tx:
        tx.create("messages", {"from": "ui", "to": "api"})
        raise RuntimeError
    assert bytes_of(hive) == before


def work(hive):
    hive.messages.send("api", "hello")
    hive.assignments.claim("qb-1")
    hive.assignments.release("qb-1")


def open_files(hive):
    """Returns the files of a hive that this process has open."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
    return sorted(path for path in found if path.startswith(hive.layout.root))


@pytest.mark.linux
def test_an_open_hive_holds_only_its_memory_open_between_writes(hive):
    for _ in range(3):
        work(hive)
        names = {os.path.basename(path) for path in open_files(hive)}
        assert names == {"hive.sqlite3", "hive.sqlite3-wal", "hive.sqlite3-shm"}
        assert len(open_files(hive)) == len(names)
    hive.close()
    assert open_files(hive) == []


def test_a_reader_waits_for_no_writer(hive, tmp_path):
    beads_dir = hive.layout.beads_dir
    for size in (1, 300):
        hive.messages.send_many({"to": "api", "body": "x" * 300} for _ in range(size))
        other = Hive.open(tmp_path, droid="api", env={}, beads_dir=beads_dir)
        other.layout.settings.lock_timeout_s = 0
        with hive.transaction():
            assert other.messages.inbox(limit=1)
