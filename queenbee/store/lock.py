"""The one lock of a hive: held to read, check and append, for a millisecond or less.

A kernel lock needs no staleness rule: the kernel releases it when its holder dies. The lock
file is never removed. ADR 0004 says why this is `flock` where there is one, and filelock
elsewhere.
"""

from __future__ import annotations

import json
import os
import sys
import time

from queenbee.errors import Busy, Unwritable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

if sys.platform != "win32":
    import fcntl

DEFAULT_TIMEOUT_S = 10.0
_NOTE_BYTES = 160
"""More than a note takes: a name has at most 64 characters."""
_FIRST_PAUSE_S = 0.000_2
_LONGEST_PAUSE_S = 0.004
"""Between two tries: the lock is held for about 0.3 ms, so a longer pause only wastes turns."""


class KernelLock:
    """A lock on one file, between processes. Not reentrant: the hive sees to threads.

    Used as a context manager. Raises `Busy`, which names the holder, when `timeout_s` runs
    out, and `Unwritable` where the lock file cannot be opened.
    """

    def __init__(self, path: str, *, holder: str, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        self.path = path
        self.holder = holder
        self.timeout_s = timeout_s
        self._fd = -1

    def __enter__(self) -> KernelLock:
        deadline = time.monotonic() + self.timeout_s
        pause_s = _FIRST_PAUSE_S
        while not self._try():
            if time.monotonic() >= deadline:
                raise self._busy()
            # Spreads the waiters; importing `random` would take longer than most of them wait.
            time.sleep(pause_s * (0.5 + os.urandom(1)[0] / 255))
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
        self._sign()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        fd, self._fd = self._fd, -1
        os.close(fd)  # The last descriptor of an open file takes its flock along.

    def confirm(self) -> None:
        """Raises `Busy` where the lock's file was removed: another process may hold a new one."""
        try:
            ours, theirs = os.fstat(self._fd), os.stat(self.path)
            if (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino):
                return
        except FileNotFoundError:
            pass
        raise Busy(
            f"the lock {self.path} was removed while it was held",
            hint="try again; nothing was written",
            lock=self.path,
        )

    def _sign(self) -> None:
        """Leaves a note of who holds the lock, for the message of those who wait in vain."""
        note = json.dumps({"pid": os.getpid(), "holder": self.holder, "since": time.time()})
        try:
            # Of one length, over the note before: cutting a file costs ten times a write.
            os.pwrite(self._fd, note.encode().ljust(_NOTE_BYTES), 0)
        except OSError:
            return  # A full disk: the lock is held all the same.

    def _try(self) -> bool:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        try:
            fd = os.open(self.path, flags, 0o666)
        except OSError as error:
            raise Unwritable(
                f"the lock {self.path} cannot be opened: {error.strerror}", path=self.path
            ) from error
        try:
            if sys.platform != "win32":
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Somebody may have removed the file between our open and our lock: then two
            # processes would each hold a lock, on two files.
            ours, theirs = os.fstat(fd), os.stat(self.path)
            if (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino):
                self._fd = fd
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        except OSError as error:
            os.close(fd)
            raise Unwritable(
                f"{self.path} cannot be locked: {error.strerror}", path=self.path
            ) from error
        except BaseException:
            os.close(fd)  # Interrupted: whoever catches that must not go on holding the lock.
            raise
        os.close(fd)
        return False

    def _busy(self) -> Busy:
        try:
            with open(self.path, "rb") as file:
                note = json.loads(file.read(4096))
            who = f"{note['holder']} (process {note['pid']})"
        except (OSError, ValueError, KeyError, TypeError):
            note, who = {}, "another process"
        return Busy(
            f"the hive is locked by {who} for longer than {self.timeout_s:g} s",
            hint="try again; nothing was written",
            lock=self.path,
            holder=note,
        )


class PortableLock(KernelLock):
    """The same lock by the filelock library, for systems that have no `flock`."""

    def __enter__(self) -> PortableLock:
        import filelock

        self._lock = filelock.FileLock(self.path, timeout=self.timeout_s, poll_interval=0.004)
        try:
            self._lock.acquire()
        except filelock.Timeout as error:
            raise self._busy() from error
        except OSError as error:
            raise Unwritable(
                f"{self.path} cannot be locked: {error.strerror}", path=self.path
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()

    def confirm(self) -> None:
        """Does nothing: where there is no `flock`, a file that is open cannot be removed."""


def hive_lock(path: str, *, holder: str, timeout_s: float) -> KernelLock:
    """Returns the lock that this system has."""
    kind = PortableLock if sys.platform == "win32" else KernelLock
    return kind(path, holder=holder, timeout_s=timeout_s)
