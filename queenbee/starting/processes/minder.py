"""Minds one process of an agent: bounds what it prints, and ends all that it started.

This file is run as a program, so that it outlives a `queen start` that is killed. It imports
nothing of ours: it starts in 20 ms and takes 12 MB. What it reads comes from one pipe, which only
that process and what it starts have. On Linux, whatever these leave running becomes a child of
ours, also without the environment and the session that it began with.

SIGUSR1 asks us to end it all. Other signals are for the program: one that says `kill 0` means its
own processes.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from queenbee.core.command_lines import CommandLine

HALF_BYTES = 32 * 2**20
"""The output is in two files of at most this size, FILE and FILE.1: a night of a talkative client
is some MB, and of one that floods only the end matters."""
TAIL_BYTES = 2**18
"""So much of the end is handed to whoever started it: a report of a QA agent is a few KB."""
GRACE_S = 4.0
"""Between SIGTERM and SIGKILL."""
_MOST_S = 4.0
"""So long we wait for what SIGKILL does not end: another user's, or stuck in the kernel."""
_CHUNK_BYTES = 2**16
_MOST_LEFT_BYTES = 2**20
"""A pipe holds no more on Linux."""
_TRIES, _AGAIN_S = 50, 0.01
_TICK_S, _LONGEST_S = 0.05, 60.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS = (
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1, signal.SIGPIPE,
    signal.SIGXFSZ,
)  # fmt: skip
"""What we, or Python, do not leave to the program."""
_SUBREAPER, _DUMPABLE = 36, 4
"""`PR_SET_CHILD_SUBREAPER` and `PR_SET_DUMPABLE` in Linux' prctl.h."""


def main(tail: int, log: str, argv: CommandLine) -> int:
    """Runs a program whose outputs go to a log, which is our standard output; returns its status as
    a shell gives it, once nothing of it runs any more.
    """
    os.set_inheritable(tail, False)
    # By its handle: what is put in the place of the folder later gets nothing.
    folder, name = os.open(os.path.dirname(log), _FOLDER), os.path.basename(log)
    _forget_end(folder, name)
    _show_life(folder, name)
    _become_parent()
    asked: list[float] = []
    wake = _signals(asked)
    out, into = os.pipe()
    output, status = _Output(folder, name), 127
    try:
        pid = _start(argv, into)
    except OSError as error:
        os.write(into, f"{argv[0]}: {error.strerror}\n".encode(errors="backslashreplace"))
        os.close(into)
    else:
        os.close(into)
        status = _listen(pid, out, wake, asked, output)
    _drain(out, output)
    with suppress(OSError):
        os.write(tail, output.tail[-TAIL_BYTES:])
    os.close(out)
    _end_rest()
    _forget_end(folder, name)
    with suppress(OSError):  # Whatever the program may have put there, this makes a file.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        end = os.open(f"{name}.end", flags, 0o600, dir_fd=folder)
        os.write(end, f"{status}\n".encode())
    return status


def _show_life(folder: int, name: str) -> None:
    """Locks a file for as long as we run, which can be told from any PID namespace. Nothing of the
    program gets it, so the lock ends with us.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    with suppress(OSError):
        fd = os.open(f"{name}.alive", flags, 0o600, dir_fd=folder)
        for _ in range(_TRIES):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:  # Somebody looks at it, which takes microseconds.
                time.sleep(_AGAIN_S)


def _signals(asked: list[float]) -> int:
    """Returns a pipe that can be read after each signal; `asked` gets the times of SIGUSR1."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGUSR1, lambda *_: asked.append(time.monotonic()))
    wake, awake = os.pipe()
    os.set_blocking(awake, False)
    signal.set_wakeup_fd(awake, warn_on_full_buffer=False)
    return wake


def _listen(pid: int, out: int, wake: int, asked: list[float], output: _Output) -> int:
    """Takes what the program prints until it has ended; returns its status."""
    poll, status = select.poll(), None
    poll.register(out, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while status is None:
        for fd, _ in poll.poll(1000 * (_TICK_S if asked else _LONGEST_S)):
            data = os.read(fd, _CHUNK_BYTES)
            if fd == out and data:
                output.add(data)
            elif fd == out:
                poll.unregister(out)
        if asked:
            _tell_all(_signal_at(asked[0]))
        status = _reaped(pid)
    return status


def _forget_end(folder: int, name: str) -> None:
    with suppress(OSError):
        os.unlink(f"{name}.end", dir_fd=folder)


class _Output:
    """What a program prints: the last of it in memory, and more in two files."""

    def __init__(self, folder: int, name: str) -> None:
        self.tail = bytearray()
        self._folder = folder
        self._name = name
        self._size = os.fstat(1).st_size
        if self._size > HALF_BYTES:  # Of a version that knew no bounds.
            self._empty()

    def add(self, data: bytes) -> None:
        """Adds to its end. What a full disk does not take is left out: the program goes on."""
        self.tail += data
        if len(self.tail) > 2 * TAIL_BYTES:
            del self.tail[:-TAIL_BYTES]
        if self._size + len(data) > HALF_BYTES:
            self._turn()
        with suppress(OSError):
            self._size += os.write(1, data)

    def _turn(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            where = {"src_dir_fd": self._folder, "dst_dir_fd": self._folder}
            os.replace(self._name, f"{self._name}.1", **where)
            new = os.open(self._name, flags, 0o600, dir_fd=self._folder)
        except OSError:
            self._empty()
            return
        for each in (1, 2):
            os.dup2(new, each)
        os.close(new)
        self._size = 0

    def _empty(self) -> None:
        with suppress(OSError):
            os.ftruncate(1, 0)
        self._size = 0


def _become_parent() -> None:
    """Makes what our children leave running ours, and our files nobody else's to open by /proc."""
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.prctl(_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(_DUMPABLE, 0, 0, 0, 0)


def _start(argv: CommandLine, into: int) -> int:
    """Returns the id of a process whose outputs go into a pipe. Raises `OSError`."""
    outputs = [(os.POSIX_SPAWN_DUP2, into, each) for each in (1, 2)]
    how: dict[str, Any] = {"file_actions": outputs, "setsigdef": _OURS}
    return os.posix_spawnp(argv[0], argv, os.environ, **how)


def _drain(out: int, output: _Output) -> None:
    """Adds what the program wrote before it ended, and nobody has read yet."""
    os.set_blocking(out, False)
    left = _MOST_LEFT_BYTES
    with suppress(BlockingIOError):
        while left > 0 and (data := os.read(out, _CHUNK_BYTES)):
            output.add(data)
            left -= len(data)


def _reaped(pid: int) -> int | None:
    """Buries what has ended; returns the status of the program, or None while it runs."""
    found = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == pid:
                status = os.waitstatus_to_exitcode(ended[1])
                found = status if status >= 0 else 128 - status
    return found


def _end_rest() -> None:
    began_s = time.monotonic()
    while _descendants() and time.monotonic() < began_s + GRACE_S + _MOST_S:
        _tell_all(_signal_at(began_s))
        time.sleep(_TICK_S)
        _reaped(0)
    _reaped(0)  # Whoever is above us need not bury what is ours.


_told: set[int] = set()
"""Who has got a SIGTERM."""


def _signal_at(asked_s: float) -> int:
    return signal.SIGTERM if time.monotonic() < asked_s + GRACE_S else signal.SIGKILL


def _tell_all(number: int) -> None:
    """Sends a signal to all that the program started, each SIGTERM once; without a /proc, to our
    group.
    """
    if sys.platform != "linux":
        if number == signal.SIGKILL or 0 not in _told:
            _told.add(0)
            os.killpg(0, number)
        return
    found = _descendants()
    for each in found if number == signal.SIGKILL else [one for one in found if one not in _told]:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(each, number)
            os.kill(each, signal.SIGCONT)
    _told.update(found)


def _descendants() -> list[int]:
    """Returns the processes below us that run; none where a system has no /proc."""
    if sys.platform != "linux":
        return []
    below: dict[int, list[int]] = {}
    for each in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{each}/stat", "rb") as file:
            # After the name, which may contain anything: state, parent.
            state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state not in (b"Z", b"X"):
                below.setdefault(int(parent), []).append(int(each))
    found = list(below.get(os.getpid(), []))
    for pid in found:
        found += below.get(pid, [])
    return found


if __name__ == "__main__":
    # The command line that `Child` was given: it is passed on word by word.
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))  # type: ignore[arg-type]
