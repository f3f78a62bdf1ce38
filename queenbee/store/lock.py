"""Locks between processes: a short one for writing, and one for work that takes longer.

`KernelLock` guards the ledgers. It is held for a millisecond or two, to read, check and append.
`LongLock` is held while documents are rewritten, or while checks run. The kernel releases either
when its holder dies, so a lock is never stale. ADR 0004 and ADR 0010.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from _thread import allocate_lock, start_new_thread
from contextlib import suppress
from functools import cache

from queenbee.errors import Busy, Unreadable, Unwritable
from queenbee.store import giving_up, safe_open
from queenbee.store.machine import CHOOSE

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from filelock import BaseFileLock

DEFAULT_TIMEOUT_S = 10.0
_NOTE_BYTES = 160
"""More than any note needs: a name has at most 64 characters."""
_LOOK_S = 1.0
"""Between two looks whether the file that is waited for is still the lock's, and is wanted."""
_POLL_S = 0.01
"""Between two tries for a long lock, whose holder waits for a disk or for programs."""


_open: set[KernelLock] = set()
"""The locks of this process that have a file open."""
_waiting: set[int] = set()
"""The descriptors with which threads of this process wait."""


def _let_go_in_child() -> None:
    """Closes the files of locks in a forked child: a flock is held until all who share it close
    it, so a child would keep the lock for its life.
    """
    for lock in list(_open):
        # Unlocking would release the parent's lock.
        fd, lock._fd = lock._fd, -1
        os.close(fd)
    _open.clear()
    for fd in _waiting:
        os.close(fd)
    _waiting.clear()


os.register_at_fork(after_in_child=_let_go_in_child)


class KernelLock:
    """A lock on one file, between processes. Not reentrant: the store serialises its threads.

    Used as a context manager. Raises `Busy`, which names the holder, after `timeout_s`,
    and `Unwritable` if the lock file cannot be opened. The file is never removed. After `release`,
    it stays open for the next turn, until `close`.
    """

    def __init__(
        self,
        path: str,
        *,
        holder: str,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        prepare: Callable[[], object] | None = None,
    ) -> None:
        self.path = path
        self.holder = holder
        self.timeout_s = timeout_s
        self._prepare = prepare
        """Called before the file is opened: it may have to be made, and its folder too."""
        self._fd = -1
        self._inode = (-1, -1)

    def __enter__(self) -> KernelLock:
        try:
            if not self._try():
                self._wait()
        except OSError as error:
            self.close()
            raise _unusable(self.path, "locked", error) from error
        except BaseException:
            self.close()  # Interrupted: neither this nor a thread that waits may keep the lock.
            raise
        # All notes have one length: truncating the file would cost ten times a write.
        note = _note(self.holder).ljust(_NOTE_BYTES)
        with suppress(OSError):  # On a full disk, the lock is held anyway.
            os.pwrite(self._fd, note, 0)
        return self

    def _wait(self) -> None:
        deadline_s = time.monotonic() + self.timeout_s
        place = None
        while (left_s := deadline_s - time.monotonic()) > 0:
            giving_up.refuse()
            if self._fd < 0:  # The file was removed: the place on it is worth nothing.
                place = None
                if self._try():
                    return
            elif place is None:
                place = _Place(self._fd)
            elif place.is_served(min(left_s, _LOOK_S)) and self._is_ours():
                return
            elif not self._is_ours():
                self.close()
        raise _busy(self.path, self.path, self.timeout_s)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
        self.close()

    def release(self) -> None:
        """Lets others have the lock, and leaves the file open."""
        if self._fd >= 0:
            # A child that was forked and has not come to close its descriptor would hold it on.
            with suppress(OSError):
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def confirm(self) -> None:
        """Raises `Busy` if the lock file was removed, since another process may hold a new one; and
        in a child that was forked while the lock was held, since its parent holds it.
        """
        if self._fd < 0:
            raise Busy(
                "this process was forked during a write, which is its parent's",
                hint="try again; nothing was written",
                lock=self.path,
            )
        try:
            if _inode(os.lstat(self.path)) == self._inode:
                return
        except (FileNotFoundError, NotADirectoryError):
            pass
        raise Busy(
            f"the lock {self.path} was removed while it was held",
            hint="try again; nothing was written",
            lock=self.path,
        )

    def _try(self) -> bool:
        if self._fd < 0:
            self._open()
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = True
        except BlockingIOError:
            locked = False
        if self._is_ours():
            return locked
        self.close()
        return False

    def _is_ours(self) -> bool:
        """Returns whether the open file is the lock's. If somebody removed it since, two processes
        could each hold a lock, on two files.
        """
        try:
            return _inode(os.stat(self.path)) == self._inode
        except FileNotFoundError:
            return False

    def _open(self) -> None:
        if self._prepare is not None:
            self._prepare()
        try:
            self._fd = safe_open.open_file(self.path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise _unusable(self.path, "opened", error) from error
        _open.add(self)  # Before it is locked, for a fork by another thread.
        self._inode = _inode(os.fstat(self._fd))

    def close(self) -> None:
        """Closes the file, which releases the lock; harmless if it is closed."""
        _open.discard(self)
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class _Place:
    """A place among those who wait for a lock, in the order in which the kernel serves them.

    A thread waits there, since such a wait has no deadline. Whoever gives up closes the file, and
    the lock that the thread then gets ends with its own descriptor.
    """

    def __init__(self, fd: int) -> None:
        self._served = allocate_lock()
        self._served.acquire()
        self._error: OSError | None = None
        own = os.dup(fd)
        _waiting.add(own)  # Before the thread begins, for a fork.
        start_new_thread(self._wait, (own,))

    def _wait(self, fd: int) -> None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
        except OSError as error:
            self._error = error
        _waiting.discard(fd)
        os.close(fd)
        self._served.release()

    def is_served(self, timeout_s: float) -> bool:
        """Returns whether the lock is had within so many seconds. Raises `OSError`."""
        served = self._served.acquire(timeout=timeout_s)
        if self._error is not None:
            raise self._error
        return served


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


class LongLock:
    """A lock on one file for work that takes longer than a turn at writing, by filelock.

    Used as a context manager. Raises `Busy`, which names the holder, after `timeout_s`,
    and `Unwritable` if the lock file cannot be opened.
    """

    def __init__(self, path: str, *, holder: str, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        self.path = path
        self.holder = holder
        self.timeout_s = timeout_s
        self._note_path = f"{path}.holder"  # Some versions of filelock empty the lock file.
        self._lock: BaseFileLock | None = None

    def __enter__(self) -> LongLock:
        from filelock import FileLock, Timeout  # noqa: PLC0415 - start-up

        # filelock opens the file by its path, with O_NOFOLLOW.
        safe_open.refuse_links(self.path)
        try:
            # It also gives the file a mode: that of a file that other users may lock, if they share
            # the folder.
            fd = safe_open.open_file(self.path, os.O_RDWR | os.O_CREAT)
            mode = stat.S_IMODE(os.fstat(fd).st_mode)
            if mode & 0o600 != 0o600:  # By a umask; filelock refuses such a mode.
                mode |= 0o600
                os.fchmod(fd, mode)
            os.close(fd)
            lock = FileLock(self.path, timeout=self.timeout_s, mode=mode)
            lock.acquire(poll_interval=_POLL_S)
        except Timeout as error:
            raise _busy(self.path, self._note_path, self.timeout_s) from error
        except OSError as error:
            raise _unusable(self.path, "opened", error) from error
        self._lock = lock
        with suppress(OSError, Unreadable):  # On a full disk, the lock is held anyway.
            safe_open.write(self._note_path, _note(self.holder))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._lock is not None
        with suppress(OSError, Unreadable):  # The next holder overwrites a note that is left.
            safe_open.unlink(self._note_path)
        self._lock.release()


def excludes(path: str) -> bool:
    """Returns whether the file system keeps a lock exclusive; some network file systems grant it to
    everybody. True if there is no such file, or it cannot be opened.
    """
    files: list[int] = []
    try:
        for _ in range(2):
            files.append(safe_open.open_file(path, os.O_RDWR))
            fcntl.flock(files[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True  # It is held, by another process or by the first of ours.
    finally:
        for fd in files:
            os.close(fd)
    return False


def is_held(path: str, *, shared: bool = False) -> bool:
    """Returns whether somebody holds a lock on a file, as far as this machine can tell. With
    `shared`, also one that several hold at once; two that look at that at the same moment may take
    each other for one of them.
    """
    try:
        fd = safe_open.open_file(path, os.O_RDONLY)
    except (OSError, Unreadable):
        return False
    try:
        # A shared one where it tells: two that look do not take each other for the holder.
        fcntl.flock(fd, (fcntl.LOCK_EX if shared else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


def no_lock(path: str) -> Unwritable:
    """Returns the error for a file system on which locks do nothing."""
    return Unwritable(
        f"the file system of {path} grants a lock to everybody, so two droids could win at once",
        hint=f"keep the repository on a local disk, or its state elsewhere: {CHOOSE} git or beads",
        path=path,
    )


def _note(holder: str) -> bytes:
    """Returns who holds a lock, for the error of those who time out."""
    name = _name_of(holder)
    return b'{"pid": %d, "holder": %s, "since": %.3f}' % (os.getpid(), name, time.time())


@cache
def _name_of(holder: str) -> bytes:
    return json.dumps(holder).encode()


def _busy(path: str, note_path: str, timeout_s: float) -> Busy:
    try:
        note = json.loads(safe_open.read(note_path, 4096))
        who = f"{note['holder']} (process {note['pid']})"
    except (OSError, Unreadable, ValueError, KeyError, TypeError, RecursionError):
        note, who = {}, "another process"
    return Busy(
        f"timed out after {timeout_s:g} s: the hive is locked by {who}",
        hint="try again; nothing was written",
        lock=path,
        holder=note,
    )


def _unusable(path: str, done: str, error: OSError) -> Unwritable:
    what = f"the lock {path}" if done == "opened" else path
    return Unwritable(f"{what} cannot be {done}: {error.strerror}", path=path)
