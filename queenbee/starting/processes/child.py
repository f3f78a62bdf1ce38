"""A process of an agent with its minder, in a session and a process group of their own, which
outlive us if we are killed: the next run finds them by what was noted of the minder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.command_lines import CommandLine, command_line
from queenbee.errors import QueenError
from queenbee.starting.processes import minder
from queenbee.store import safe_open
from queenbee.store.droids.liveness import PROC, described, is_running, was_given

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

UNKNOWN = "it ended"
"""How a process ended that somebody else has reaped."""
_END = ".end"
GRACE_S = minder.GRACE_S + 2.0
"""So long a minder has to end all; then it ends as well."""
_TICK_S = 0.05
_MARK = "QUEEN_TEAM_LOG"
"""A variable that whatever an agent starts has, too."""


class Child:
    """One process, with all that it has started."""

    def __init__(
        self,
        process: str,
        popen: subprocess.Popen[bytes] | None = None,
        log: str = "",
        tail: IO[bytes] | None = None,
    ) -> None:
        self.process = process
        """The minder, as `liveness` notes it."""
        self._log = log
        self._popen = popen
        self._tail = tail
        self._printed = b""
        self._term_s: float | None = None
        """When it was asked to end."""
        self._how: str | None = None
        """How it ended; what it started may still run."""

    @classmethod
    def start(
        cls, argv: CommandLine, *, cwd: str, env: Mapping[str, str], log: str, said: str = ""
    ) -> Child:
        """Starts a program, with a file or nothing as its standard input; both its outputs go to
        the end of a log, of which no more is kept than `minder` says. Raises `OSError`.
        """
        # It has no name: only the minder writes to it, and only what its process has printed.
        tail = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the process has ended
        output = safe_open.open_file(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        given = safe_open.open_file(said, os.O_RDONLY) if said else subprocess.DEVNULL
        minded = [minder.__file__, str(tail.fileno()), log, *argv]
        try:
            popen = subprocess.Popen(
                command_line(sys.executable, "-I", "-S", values=minded),
                cwd=cwd,
                env={**env, _MARK: log},
                stdin=given,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(tail.fileno(),),
            )
        finally:
            for each in {output, given} - {subprocess.DEVNULL}:
                os.close(each)
        return cls(described(popen.pid), popen, log, tail)

    @property
    def pid(self) -> int:
        """The id of the minder, and of its group."""
        return int(self.process.split(" ")[1])

    @property
    def is_own(self) -> bool:
        """Whether this run has started it, and not an earlier one."""
        return self._popen is not None

    @property
    def is_stranger(self) -> bool:
        """Whether the process that runs is no minder, whatever the note of it says: whoever may
        write in the state folder could have named any.
        """
        return (
            self._popen is None
            and bool(is_running(self.process))
            and not was_given(self.pid, self._log)
        )

    def printed(self) -> bytes:
        """Returns the end of what it printed, once it has ended, and nothing that another process
        wrote; of one that an earlier run had started, the end of the log.
        """
        if self._popen is not None:
            return self._printed
        with suppress(OSError, QueenError):
            fd = safe_open.open_file(self._log, os.O_RDONLY)
            with os.fdopen(fd, "rb") as file:
                file.seek(max(0, os.fstat(fd).st_size - minder.TAIL_BYTES))
                return file.read(minder.TAIL_BYTES)
        return b""

    def ended(self) -> str | None:
        """Returns how it ended, or None while it runs, or what it started, which is asked to end.

        A process of another machine, or of a container that is gone, counts as ended once it was
        asked to end: nothing here is ended in its place.
        """
        if self._how is None:
            self._how = self._own_end()
            if self._how is not None and self._tail is not None:
                with self._tail, suppress(OSError):
                    self._tail.seek(0)
                    self._printed = self._tail.read()
        if self._how is not None and self._strays() and not self._is_overdue(2 * GRACE_S):
            self.stop()
            return None
        return self._how

    def _own_end(self) -> str | None:
        if self._popen is None:
            runs = is_running(self.process)
            if self.is_stranger:
                return UNKNOWN
            if runs is None and self._term_s is not None:
                return UNKNOWN
            if runs is not False:
                return None
            self._end_others()
            return self._noted_end()
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        # Before it is reaped, nobody else gets its number.
        self._signal(signal.SIGKILL)
        status = self._popen.wait()
        if status < 0:
            return f"it was ended by {signal.Signals(-status).name}"
        return _shown(str(status))

    def stop(self) -> None:
        """Asks it to end, and ends it some seconds later; to be called again until it has ended."""
        if self._term_s is None:
            self._term_s = time.monotonic()
            if self._how is None and is_running(self.process):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(self.pid, signal.SIGUSR1)
                self._signal(signal.SIGCONT)
            else:
                self._signal_all(signal.SIGTERM)
                self._signal_all(signal.SIGCONT)
        elif self._is_overdue(GRACE_S):
            self._signal_all(signal.SIGKILL)

    def end(self) -> None:
        """Ends it; returns when it has ended."""
        while self.ended() is None:
            self.stop()
            time.sleep(_TICK_S)

    def wait(self) -> None:
        """Returns when it has ended by itself."""
        while self.ended() is None:
            time.sleep(_TICK_S)

    def _end_others(self) -> None:
        """Ends what a process left running that somebody else has reaped.

        While its group has a process, nobody gets its number; without one, somebody may have.
        """
        is_gone = described(self.pid).endswith(" ") and not self.process.endswith(" ")
        if is_gone:  # Or it is there without a begin, until somebody waits for it.
            self._signal(signal.SIGKILL)

    def _noted_end(self) -> str:
        """Returns how a process ended that an earlier run had started."""
        try:
            return _shown(safe_open.read(f"{self._log}{_END}", 8).decode().strip())
        except (OSError, QueenError, ValueError):
            return UNKNOWN

    def _is_overdue(self, after_s: float) -> bool:
        return self._term_s is not None and time.monotonic() > self._term_s + after_s

    def _strays(self) -> list[int]:
        """Returns what it started and what then left its group, as the commands of Claude Code do;
        nothing where a system has no /proc.
        """
        found, mark = [], f"\0{_MARK}={self._log}\0".encode()
        for each in filter(str.isdigit, os.listdir("/proc") if self._log and PROC else ()):
            with suppress(OSError), open(f"/proc/{each}/environ", "rb") as file:
                if mark in b"\0" + file.read() and int(each) != os.getpid():
                    found.append(int(each))
        return found

    def _signal_all(self, number: signal.Signals) -> None:
        if self._how is None:  # Afterwards, its number may be another's.
            self._signal(number)
        for each in self._strays():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(each, number)

    def _is_ours(self) -> bool:
        """Returns whether its group has a minder that we started, or what that has started."""
        if self._popen is not None or was_given(self.pid, self._log):
            return True
        return any(_in_group(each, self.pid) for each in self._strays())

    def _signal(self, number: signal.Signals) -> None:
        if is_running(self.process) is None or self.pid < 2 or not self._is_ours():
            return
        with suppress(ProcessLookupError, PermissionError, OverflowError):
            os.killpg(self.pid, number)


def _in_group(pid: int, group: int) -> bool:
    with suppress(ProcessLookupError):
        return os.getpgid(pid) == group
    return False


def _shown(status: str) -> str:
    """Returns an exit status in words, as a shell gives it; empty for success."""
    with suppress(ValueError):
        return f"it was ended by {signal.Signals(int(status) - 128).name}"
    return f"it ended with status {status}" if status != "0" else ""
