"""A command that goes on if whoever called it is ended: clients end one after minutes, and a check
may take longer.

There are three processes. The one that was called shows what the second one prints, and ends with
its status. The second one does the work. The third one stands between them: once it ends, the work
is no longer below its caller, who may end all that it has started. Until then, an end of any of
them is that of all.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.cli.exits import GOES_ON

if TYPE_CHECKING:
    from typing import NoReturn

    from queenbee.services.waiting.landing_record import LandingRecord

ATTACHED = "QUEEN_LAND_ATTACHED"
"""The variable that keeps the command in one process, which ends with its caller."""
_AGAIN_S = 0.03
_AT_FIRST_S = 0.001
"""The first of its pauses once the worker reports nothing more: as a rule it is ending then."""
_WITHOUT = frozenset({"--abort", "--result", "--help", "-h", "--accept-check"})
_CHUNK_BYTES = 2**16
_OF_PATIENCE = 0.9
"""A wait ends so much before the caller leaves."""
_KILLED = 137
_SHOWN_AS = bytes(
    ord("?") if each < ord(" ") and each not in b"\n\t" else each for each in range(256)
)
"""What a file says that others may have written moves no cursor and sets no title."""
_SAID = (
    b"queen: the landing goes on by itself, you need not wait: the answer comes with a later "
    b"command, or with: queen land --result\n"
)


class Worker:
    """The process that does the work."""

    def __init__(self, report: int, hold: int) -> None:
        self._report = report
        self._hold = hold
        self._record: LandingRecord | None = None
        self.landed: str | None = None
        """The commit with which the work landed."""
        self.followed: str | None = None
        """The commit of the target that its worktree has then: records may have followed."""
        self._until_s = float("inf")
        self.said: str = ""
        """Why it did not land."""

    @property
    def is_watched(self) -> bool:
        """Whether somebody still waits for the result."""
        ask = select.poll()
        ask.register(self._report, 0)
        return not ask.poll(0)  # Only that the other end is closed is reported.

    def left_s(self, wait_s: int) -> int:
        """Returns as much of a wait as ends while its caller is there to see what comes of it."""
        return int(max(0, min(wait_s, self._until_s - time.monotonic())))

    def leave(
        self, record: LandingRecord, patience_s: float, *, takes_next: bool, **said: object
    ) -> None:
        """Goes on without the caller, who shows what is printed for some time, and then takes the
        next issue if that is asked for. Raises `Busy`.
        """
        outputs = record.begin(**said)
        self._record, self._until_s = record, time.monotonic() + patience_s * _OF_PATIENCE
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, each in enumerate((nothing, *outputs)):
            os.dup2(each, number)
            os.close(each)
        self._show(record, patience_s, os.getpid(), takes_next=takes_next)

    def hand_over(self, record: LandingRecord, patience_s: float, *, takes_next: bool) -> NoReturn:
        """Ends, and leaves it to the caller to show a landing that is under way, or has ended."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        pid = int(str(record.read().get("pid") or 0))
        self._show(record, patience_s, pid, takes_next=takes_next)
        os._exit(0)

    def end(self, status: int) -> None:
        """Says how it ended."""
        with suppress(OSError):
            if self._record is not None:
                commits = {"landed": self.landed, "followed": self.followed}
                self._record.end(status, **commits, said=self.said, is_told=self.is_watched)
            else:
                os.write(self._report, f"status {status}\n".encode())

    def _show(
        self, record: LandingRecord, patience_s: float, pid: int, *, takes_next: bool
    ) -> None:
        with suppress(BrokenPipeError):
            folder = os.fsencode(os.path.dirname(record.path)).hex()
            line = f"shows {pid} {patience_s} {folder} {int(takes_next)}\n"
            os.write(self._report, line.encode())
        os.close(self._hold)


worker: Worker | None = None
"""What this process is, if it does the work of another one."""
has_left: bool = False
"""Whether this process has left a landing to go on, and only takes the next issue."""


def is_unseen() -> bool:
    """Returns whether nobody sees what this process prints before it has ended."""
    return worker is not None and not worker.is_watched


def begin(arguments: list[str]) -> int | None:
    """Returns the exit status of a command that goes on, in the process that was called; None in
    the one that does the work, in one that has left it and takes the next issue, and for all other
    commands.
    """
    global worker, has_left  # noqa: PLW0603 - what this process is
    if arguments[:1] != ["land"] or _WITHOUT & {*arguments} or os.environ.get(ATTACHED):
        return None
    (report, into), (held, hold) = os.pipe(), os.pipe()
    if os.fork():
        for each in (into, held, hold):
            os.close(each)
        shown = _Shown(report, draws="--json" not in arguments and sys.stderr.isatty())
        status = shown.until_the_end()
        has_left = status == GOES_ON and shown.takes_next
        return None if has_left else status
    if os.fork():
        for each in (report, into, hold):
            os.close(each)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.read(held, 1)  # Until the worker leaves, or ends.
        os._exit(0)
    os.close(report)
    os.close(held)
    os.write(into, f"pid {os.getpid()}\n".encode())
    worker = Worker(into, hold)
    return None


class _Shown:
    """What the process that was called does: it shows what the worker prints."""

    def __init__(self, report: int, *, draws: bool) -> None:
        self._draws = draws
        """Whether a terminal shows how long it takes, in a line of its own."""
        self._drawn: str | None = None
        self._is_whole = True
        """Whether what was shown ends with a line."""
        self._begun_s = time.monotonic()
        self.takes_next = False
        """Whether the next issue is asked for."""
        self._report = report
        self._buffer = b""
        self._status: int | None = None
        self._pid = 0
        self._record: LandingRecord | None = None
        self._read = [0, 0]
        self._until_s = 0.0
        self._signal = 0

    def until_the_end(self) -> int:
        """Returns the exit status."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {each: signal.getsignal(each) for each in numbers}
        for number in (each for each in numbers if before[each] != signal.SIG_IGN):
            signal.signal(number, self._note)
        is_open, status, again_s = True, None, _AT_FIRST_S
        while status is None:
            is_open = is_open and self._listen()
            if self._record is not None:
                status = self._look(self._record)
                if not is_open:
                    time.sleep(again_s)
                    again_s = min(2 * again_s, _AGAIN_S)
            elif not is_open:
                status = 128 + self._signal if self._status is None else self._status
        os.close(self._report)  # Whoever lands sees that nobody waits.
        for number, handler in before.items():
            signal.signal(number, handler)
        return status

    def _look(self, record: LandingRecord) -> int | None:
        """Shows what was printed since; returns the exit status if that is all."""
        has_ended = not record.is_under_way  # Before what it prints last is read.
        self._pump(record)
        spent_s = int(time.monotonic() - self._begun_s)
        if has_ended:
            self._draw("")
            said = record.read()
            record.is_new(str(said.get("droid")))  # It is told here.
            status = said.get("status")
            return status if isinstance(status, int) else _KILLED
        if self._signal not in (0, signal.SIGINT):
            status = 128 + self._signal
        elif time.monotonic() >= self._until_s:
            status = GOES_ON
        else:
            self._draw(f"working {spent_s} s" if spent_s else "")
            return None
        self._draw("")
        with suppress(OSError):
            os.write(2, _SAID)
        return status

    def _listen(self) -> bool:
        """Takes what the worker reports; returns whether it may report more."""
        if not select.select([self._report], [], [], _AGAIN_S)[0]:
            return True
        data = os.read(self._report, _CHUNK_BYTES)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for words in (each.split() for each in lines):
            if words[0] == b"pid":
                self._pid = int(words[1])
            elif words[0] == b"status":
                self._status = int(words[1])
            else:
                self.takes_next = words[4] == b"1"
                self._show(int(words[1]), float(words[2]), words[3])
        return bool(data)

    def _show(self, pid: int, patience_s: float, folder: bytes) -> None:
        from queenbee.services.waiting.landing_record import (  # noqa: PLC0415 - start-up
            LandingRecord,
        )

        self._record = LandingRecord(os.fsdecode(bytes.fromhex(folder.decode())))
        self._pid = pid
        self._until_s = time.monotonic() + patience_s
        if self._signal == signal.SIGINT:
            self._pass_on(self._signal)

    def _note(self, number: int, _: object) -> None:
        self._signal = number
        # A terminal sends its Ctrl-C also to the worker, as long as that has not left. Later on,
        # whoever types that takes the landing back.
        if (number == signal.SIGINT) == (self._record is not None):
            self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        if self._pid and (self._record is None or self._record.is_under_way):
            with suppress(OSError):
                os.kill(self._pid, number)

    def _pump(self, record: LandingRecord) -> None:
        for number, path in enumerate(record.outputs):
            with suppress(OSError), open(path, "rb") as file:
                file.seek(self._read[number])
                while data := file.read(_CHUNK_BYTES):
                    self._read[number] += len(data)
                    self._draw("")
                    self._is_whole = data.endswith(b"\n")
                    os.write(number + 1, data.translate(_SHOWN_AS))

    def _draw(self, text: str) -> None:
        """Shows this as the last line; the first time also in place of what the worker drew."""
        if self._draws and self._is_whole and text != self._drawn:
            self._drawn = text
            with suppress(OSError):
                os.write(2, f"\r\x1b[K{text}".encode())
