"""One lock for a hive: real processes wait for each other, and a dead one for nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from queenbee import Hive
from queenbee.errors import Busy, Unreadable, Unwritable
from queenbee.services.care import doctor
from queenbee.store import lock as lock_module
from queenbee.store.creating import init
from queenbee.store.layout import discover
from queenbee.store.lock import KernelLock, LongLock

HOLD = """
import sys
from queenbee.store.lock import KernelLock, LongLock
with KernelLock(sys.argv[1], holder="ui-engineer"):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "lock")


@pytest.fixture
def held(path):
    """Returns a process that holds the lock until it is told to let go, or killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def taken(path, timeout_s=0.0):
    """Returns whether the lock can be had."""
    with KernelLock(path, holder="me", timeout_s=timeout_s):
        return True


def test_a_free_lock_is_had_at_once(path):
    assert taken(path)


def test_a_wait_that_runs_out_names_the_holder(path, held):
    with pytest.raises(Busy) as refused:
        taken(path)
    assert "ui-engineer" in refused.value.message
    assert str(held.pid) in refused.value.message
    assert refused.value.details["holder"]["pid"] == held.pid
    assert "nothing was written" in refused.value.hint


def test_a_released_lock_goes_to_a_waiter(path, held):
    held.stdin.write("\n")
    held.stdin.flush()
    assert taken(path, timeout_s=30)


def test_a_holder_that_is_killed_frees_the_lock(path, held):
    held.send_signal(signal.SIGKILL)
    held.wait()
    assert taken(path)


def test_a_waiter_is_served_when_the_holder_is_killed(path, held):
    served = threading.Event()

    def wait():
        taken(path, timeout_s=30)
        served.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    held.kill()
    assert served.wait(30)
    waiter.join()


def test_a_deleted_lock_file_locks_nobody_out(path, held):
    os.unlink(path)
    assert taken(path)


def test_a_deleted_lock_file_is_noticed_by_its_holder(path):
    with KernelLock(path, holder="me", timeout_s=0) as lock:
        lock.confirm()
        os.unlink(path)
        with pytest.raises(Busy, match="was removed"):
            lock.confirm()
        with KernelLock(path, holder="another", timeout_s=0), pytest.raises(Busy):
            lock.confirm()


def test_a_lock_taken_on_a_file_that_is_gone_is_not_taken(path, monkeypatch):
    """Somebody deletes the file between our opening and our locking it."""
    flock, deleted = lock_module.fcntl.flock, []

    def delete_then_lock(fd, how):
        if not deleted:
            os.unlink(path)
            deleted.append(fd)
        flock(fd, how)

    monkeypatch.setattr(lock_module.fcntl, "flock", delete_then_lock)
    with KernelLock(path, holder="me", timeout_s=30) as lock:
        assert os.fstat(lock._fd).st_ino == os.stat(path).st_ino


def test_threads_take_turns(path):
    inside, most = [], []

    def turn():
        with KernelLock(path, holder="me", timeout_s=30):
            inside.append(1)
            most.append(len(inside))
            inside.pop()

    threads = [threading.Thread(target=lambda: [turn() for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 80


def until_waiting(path, count):
    """Returns once so many wait in the kernel for a lock on a file."""
    inode = f":{os.stat(path).st_ino} "
    while True:
        with open("/proc/locks", encoding="utf-8") as file:
            if sum("->" in line and inode in line for line in file) >= count:
                return
        time.sleep(0.001)


@pytest.mark.skipif(not os.path.exists("/proc/locks"), reason="nothing tells who waits")
class TestWaiters:
    def begin(self, path, served, name):
        def wait():
            with KernelLock(path, holder=name, timeout_s=30):
                served.append(name)

        waiter = threading.Thread(target=wait)
        waiter.start()
        return waiter

    def test_are_served_in_the_order_in_which_they_came(self, path, held):
        served, waiters = [], []
        for number in range(12):
            waiters.append(self.begin(path, served, f"{number}"))
            until_waiting(path, number + 1)
        held.kill()
        for each in waiters:
            each.join()
        assert served == [f"{number}" for number in range(12)]

    def test_that_are_killed_hold_up_nobody(self, path, held):
        killed = subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE)
        until_waiting(path, 1)
        served = []
        waiter = self.begin(path, served, "behind")
        until_waiting(path, 2)
        killed.kill()
        killed.communicate()
        held.kill()
        waiter.join()
        assert served == ["behind"]

    def test_that_gave_up_hold_up_nobody(self, path, held):
        with pytest.raises(Busy):
            taken(path, timeout_s=0.05)
        until_waiting(path, 1)  # The thread cannot be called back.
        held.kill()
        assert taken(path, timeout_s=30)
        assert taken(path, timeout_s=30)

    def test_that_gave_up_leave_nothing_to_a_forked_child(self, path, held):
        with pytest.raises(Busy):
            taken(path, timeout_s=0.05)
        until_waiting(path, 1)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        try:
            held.kill()
            assert taken(path, timeout_s=10)
        finally:
            os.close(writer)
            os.waitpid(child, 0)
            os.close(reader)

    def test_find_out_that_the_file_was_removed(self, path, held):
        served = []
        waiter = self.begin(path, served, "waiter")
        until_waiting(path, 1)
        os.unlink(path)
        waiter.join()
        assert served == ["waiter"]


def test_a_note_that_cannot_be_written_does_not_hinder(path, monkeypatch):
    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(lock_module.os, "pwrite", full)
    assert taken(path)
    assert taken(path)


@pytest.mark.parametrize(
    "note", [b"", b"{", b"[]", b'{"pid": 1}', b"\xff" * 5_000, b"null", b"[" * 4_000]
)
def test_a_holder_that_left_no_readable_note_is_another_process(path, held, note):
    with open(path, "wb") as file:
        file.write(note)
    with pytest.raises(Busy, match="another process"):
        taken(path)


def test_an_interrupted_wait_holds_nothing(path, monkeypatch):
    def interrupted(fd, how):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(lock_module.fcntl, "flock", interrupted)
        with pytest.raises(KeyboardInterrupt):
            taken(path)
    assert taken(path)


@pytest.mark.parametrize(
    ("make", "refusal"),
    [(os.mkdir, Unwritable), (lambda path: os.symlink("/tmp/elsewhere", path), Unreadable)],
    ids=["a directory", "a symbolic link"],
)
def test_a_path_that_is_not_a_lock_file_is_refused(path, make, refusal):
    make(path)
    with pytest.raises(refusal, match="lock"):
        taken(path)
    assert not os.path.exists("/tmp/elsewhere")


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(Unwritable, match="cannot be opened"):
        taken(str(tmp_path / "gone" / "lock"))


class TestAFileSystemWhoseLocksDoNothing:
    @pytest.fixture(autouse=True)
    def _everybody_gets_it(self, monkeypatch):
        monkeypatch.setattr(lock_module.fcntl, "flock", lambda *_: None)

    def test_is_noticed_by_init(self, repo):
        places = discover(str(repo), {}, must_exist=False)
        with pytest.raises(Unwritable, match="grants a lock to everybody"):
            init(places)

    def test_is_told_by_doctor(self, hive):
        hive.messages.send("api", "hello")
        told = [each for each in doctor.examine(hive) if each.code == "lock"]
        assert [each.severity for each in told] == ["error"]

    def test_is_not_seen_where_locks_work(self, path, monkeypatch):
        monkeypatch.undo()
        assert lock_module.excludes(path)
        assert taken(path)
        assert lock_module.excludes(path)
        with KernelLock(path, holder="me"):
            assert lock_module.excludes(path)
        assert taken(path)


class TestALockForLongerWork:
    """The promises of the lock for documents and for loops over a bead."""

    HOLD = HOLD.replace("KernelLock", "LongLock")

    def test_no_umask_takes_it_from_who_makes_it(self, path):
        before = os.umask(0o777)
        try:
            with LongLock(path, holder="me"):
                assert os.stat(path).st_mode & 0o777 == 0o600
        finally:
            os.umask(before)

    @staticmethod
    def taken(path, timeout_s=0.0):
        with LongLock(path, holder="me", timeout_s=timeout_s):
            return True

    @pytest.fixture
    def held(self, path):
        process = subprocess.Popen(
            [sys.executable, "-c", self.HOLD, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()
        process.communicate()

    def test_is_had_at_once_where_it_is_free_and_leaves_no_note(self, path):
        assert self.taken(path)
        assert not os.path.exists(f"{path}.holder")

    def test_names_its_holder_when_a_wait_times_out(self, path, held):
        for _ in range(2):  # A try must not take the note away.
            with pytest.raises(Busy) as refused:
                self.taken(path)
            assert f"ui-engineer (process {held.pid})" in refused.value.message
            assert refused.value.details["holder"]["pid"] == held.pid

    def test_excludes_another_lock_of_this_process(self, path):
        with LongLock(path, holder="me", timeout_s=0), pytest.raises(Busy):
            self.taken(path)

    def test_is_free_once_its_holder_is_done_or_killed(self, path, held):
        held.send_signal(signal.SIGKILL)
        held.wait()
        assert self.taken(path)
        assert self.taken(path)

    def test_serves_a_waiter(self, path, held):
        held.stdin.write("\n")
        held.stdin.flush()
        assert self.taken(path, timeout_s=30)

    @pytest.mark.parametrize("note", [None, b"", b"{", b"[]", b'{"pid": 1}', b"\xff" * 5_000])
    def test_is_held_by_another_process_where_the_note_cannot_be_read(self, path, held, note):
        os.unlink(f"{path}.holder")
        if note is not None:
            with open(f"{path}.holder", "wb") as file:
                file.write(note)
        with pytest.raises(Busy, match="another process"):
            self.taken(path)

    def test_is_held_though_its_note_cannot_be_written(self, path):
        os.mkdir(f"{path}.holder")
        with LongLock(path, holder="me", timeout_s=0), pytest.raises(Busy, match="another process"):
            self.taken(path)
        assert self.taken(path)

    @pytest.mark.parametrize(
        ("make", "refusal"),
        [(os.mkdir, Unwritable), (lambda path: os.symlink("/tmp/elsewhere", path), Unreadable)],
        ids=["a directory", "a symbolic link"],
    )
    def test_refuses_a_path_that_is_not_a_lock_file(self, path, make, refusal):
        make(path)
        with pytest.raises(refusal, match="lock"):
            self.taken(path)
        assert not os.path.exists("/tmp/elsewhere")


class TestTheThreadsOfOneHive:
    @pytest.fixture
    def hive(self, tmp_path):
        hive = Hive.open(tmp_path, droid="ui", env={}, beads_dir=make_hive(tmp_path))
        hive.layout.settings.lock_timeout_s = 30
        return hive

    def test_write_one_after_the_other(self, hive):
        def send():
            for number in range(10):
                hive.messages.send("api", f"{number}")

        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(hive.messages.sent()) == 40

    def test_write_nothing_once_the_lock_file_was_deleted(self, hive):
        with pytest.raises(Busy, match="was removed"), hive.transaction() as tx:
            tx.create("messages", {"from": "ui", "to": "api"})
            os.unlink(hive.layout.lock_path)
        assert hive.messages.sent() == []
        assert hive.messages.send("api", "afterwards")

    def test_write_nothing_while_something_else_has_the_name_of_the_folder(self, hive):
        state = hive.layout.state_dir
        with pytest.raises(Busy, match="was removed"), hive.transaction() as tx:
            tx.create("messages", {"from": "ui", "to": "api"})
            os.rename(state, state + ".away")
            with open(state, "w", encoding="utf-8"):
                pass
        os.unlink(state)
        os.rename(state + ".away", state)
        assert hive.messages.sent() == []

    def test_wait_as_long_as_their_command_says(self, hive):
        hive.layout.settings.lock_timeout_s = 0
        held = threading.Event()

        def write():
            with KernelLock(hive.layout.lock_path, holder="another", timeout_s=30):
                held.set()
                time.sleep(0.2)

        writer = threading.Thread(target=write)
        writer.start()
        held.wait(30)
        with pytest.raises(Busy, match="locked by another"):
            hive.reservations.reserve(["a.txt"])
        assert hive.reservations.reserve(["a.txt"], timeout_s=30)
        writer.join()
        assert hive.layout.settings.lock_timeout_s == 0

    def test_are_told_that_another_one_is_writing(self, hive):
        hive.layout.settings.lock_timeout_s = 0
        with hive.transaction(), pytest.raises(Busy, match="another thread"):
            hive.messages.send("api", "inside")
        assert hive.messages.send("api", "afterwards")


def make_hive(folder):
    from queenbee.store.layout import discover

    places = discover(str(folder), {}, beads_dir=str(folder / ".beads"), must_exist=False)
    init(places)
    return places.beads_dir
