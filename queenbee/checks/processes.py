"""Runs one program in its own session, bounded in time and memory, and cleans up after it.

Its process group ends with it: SIGTERM first, and SIGKILL after a short grace. docs/checks.md.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Literal, NamedTuple

from queenbee.checks.output import LONGEST_S, NOTHING, Output
from queenbee.core.command_lines import CommandLine
from queenbee.store import giving_up

CAP_BYTES = 1024 * 1024
"""How much of each stream is kept: half from its beginning, half from its end."""

GRACE_S = 2.0
"""Between SIGTERM and SIGKILL: long enough for a test server to remove its socket."""

_TICK_S = 0.05
"""The delay in noticing a request to end, or the end of a program whose child keeps the pipe."""

_DRAIN_S = 0.5
"""How long to go on reading output that was written before the end."""

_CHUNK_BYTES = 64 * 1024

_REQUESTS_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ProcessResult(NamedTuple):
    """How a program ended; `exit_code` is negative for a signal, None if it did not exit."""

    ended: Literal["exited", "timed_out", "interrupted", "not_started"]
    exit_code: int | None
    duration_s: float
    stdout: Output
    stderr: Output
    problem: str = ""
    """Why it was not started."""


class Program(NamedTuple):
    """One program to run, and its limits.

    `look_for` are two literal texts to find in standard output and standard error.
    """

    argv: CommandLine
    cwd: str
    env: Mapping[str, str]
    timeout_s: float
    look_for: tuple[str, str] = ("", "")
    cap_bytes: int = CAP_BYTES
    grace_s: float = GRACE_S
    pass_fds: tuple[int, ...] = ()
    """Descriptors that the program and its children keep open, for their locks."""
    joins_errors: bool = False
    """Whether what it says on standard error counts as said on standard output."""


def run_process(
    program: Program,
    *,
    on_tick: Callable[[float, str], None] | None = None,
    tick_s: float = 1.0,
    interrupts: Interrupts | None = None,
) -> ProcessResult:
    """Returns how the program ended and what it wrote; afterwards its process group is gone.

    `on_tick` is called about every `tick_s` with the seconds so far and the last line of output.
    A request to end that `interrupts` counts also ends the group, and `ended` says so; a second
    request cuts the grace period short.
    """
    started = time.monotonic()
    captures = tuple(_Capture(program.cap_bytes, text) for text in program.look_for)
    try:
        child = subprocess.Popen(
            program.argv,
            cwd=program.cwd,
            env=dict(program.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if program.joins_errors else subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            pass_fds=program.pass_fds,
        )
    except (OSError, ValueError) as error:
        # ValueError: a NUL in an argument, the folder or a variable.
        problem = f"cannot be started: {error}"
        return ProcessResult("not_started", None, 0.0, NOTHING, NOTHING, problem)
    run = _Run(child, captures, interrupts or Interrupts())
    try:
        ended = run.wait(started + min(program.timeout_s, LONGEST_S), on_tick, tick_s)
    finally:
        # Also after an error of the caller in `on_tick`, and after SystemExit.
        run.stop(program.grace_s)
    exit_code = child.returncode if ended == "exited" else None
    spent_s = time.monotonic() - started
    return ProcessResult(ended, exit_code, spent_s, captures[0].output(), captures[1].output())


class Interrupts:
    """Counts the requests to end (Ctrl-C, SIGTERM, SIGHUP) that arrive while it is entered.

    It counts them instead of raising: an exception inside `Popen` would leave the program running
    and unknown to us, and a second request, which `timeout` sends at once, would interrupt the
    cleanup after the first. A signal that is ignored (`nohup`) or that the application handles
    is left alone, and so are all signals outside the main thread.
    """

    def __init__(self, requests: Callable[[], int] = lambda: 0) -> None:
        """`requests` says how many have come in another way."""
        self._requests = requests
        self._count = 0
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in _REQUESTS_TO_END:
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]

    @property
    def count(self) -> int:
        """How many there were. Whoever gave up the call in this thread counts as one."""
        return self._count + self._requests() + giving_up.is_asked()

    def _note(self, number: int, frame: object) -> None:
        self._count += 1


class _Run:
    """A started program, whose output is read while we wait for it."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        captures: tuple[_Capture, ...],
        interrupts: Interrupts,
    ) -> None:
        self._child = child
        self._captures = captures
        self._interrupts = interrupts
        self._streams = selectors.DefaultSelector()
        for stream, capture in zip((child.stdout, child.stderr), captures, strict=True):
            if stream is not None:
                self._streams.register(stream, selectors.EVENT_READ, (capture, stream.close))

    def wait(
        self, deadline: float, on_tick: Callable[[float, str], None] | None, tick_s: float
    ) -> Literal["exited", "timed_out", "interrupted"]:
        started = time.monotonic()
        next_tick = started + tick_s
        while self._child.poll() is None:
            if self._interrupts.count:
                return "interrupted"
            now = time.monotonic()
            if now >= deadline:
                return "timed_out"
            if on_tick is not None and now >= next_tick:
                next_tick = now + tick_s
                on_tick(now - started, self._captures[0].last_line())
            self._read(min(deadline - now, _TICK_S))
        return "exited"

    def stop(self, grace_s: float) -> None:
        """Ends the rest of the group."""
        try:
            self._end_group(signal.SIGTERM, grace_s)
            self._end_group(signal.SIGKILL, _DRAIN_S)
            deadline = time.monotonic() + _DRAIN_S
            while self._streams.get_map() and time.monotonic() < deadline:
                self._read(_TICK_S)
        finally:
            for key in list(self._streams.get_map().values()):
                self._close(key)
            self._streams.close()
            # One that runs as another user (`sudo`), or hangs in the kernel, is not waited for.
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(_DRAIN_S)

    def _end_group(self, number: signal.Signals, patience_s: float) -> None:
        # The group keeps its number while it has a member, so this can only reach another group
        # in the moment between its end and the next look, at most 50 ms.
        if not self._signal_group(number):
            return
        deadline, known = time.monotonic() + patience_s, self._interrupts.count
        while time.monotonic() < deadline and self._group_lives():
            if number != signal.SIGKILL and self._interrupts.count > known:
                return
            self._read(_TICK_S / 5)

    def _group_lives(self) -> bool:
        self._child.poll()
        return self._signal_group(0) and _has_live_member(self._child.pid)

    def _signal_group(self, number: int) -> bool:
        try:
            os.killpg(self._child.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            # A member runs as another user: it is alive, and we cannot end it.
            return True
        return True

    def _read(self, timeout_s: float) -> None:
        if not self._streams.get_map():
            if self._child.returncode is None:
                with suppress(subprocess.TimeoutExpired):
                    self._child.wait(timeout_s)
            else:  # Only members with other standard streams are left to wait for.
                time.sleep(_TICK_S / 5)
            return
        for key, _ in self._streams.select(timeout_s):
            chunk = os.read(key.fd, _CHUNK_BYTES)
            if chunk:
                key.data[0].feed(chunk)
            else:
                self._close(key)

    def _close(self, key: selectors.SelectorKey) -> None:
        self._streams.unregister(key.fileobj)
        key.data[1]()


class _Capture:
    """Keeps the beginning and the end of a stream, and searches all of it for one text."""

    def __init__(self, cap_bytes: int, look_for: str) -> None:
        self._half = cap_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._wanted = look_for.encode(errors="surrogatepass")
        self._found = not self._wanted
        self._seam = b""

    def feed(self, chunk: bytes) -> None:
        self._total += len(chunk)
        if not self._found:
            text = self._seam + chunk
            self._found = self._wanted in text
            # This may be the beginning of the wanted text, split between two reads.
            self._seam = text[-len(self._wanted) + 1 :] if len(self._wanted) > 1 else b""
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def output(self) -> Output:
        tail = bytes(self._tail[-self._half :])
        return Output(bytes(self._head), tail, self._total, self._found)

    def last_line(self) -> str:
        recent = bytes(self._tail[-1024:] or self._head[-1024:])
        lines = recent.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _has_live_member(group: int) -> bool:
    """Returns whether a process of the group still runs, and is not merely a zombie.

    In a container whose first process reaps nothing, zombies stay members forever. Without
    `/proc` zombies count as alive and cost the grace period.
    """
    try:
        names = os.listdir("/proc")
    except OSError:
        return True
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # After the name, which may contain anything: state, parent, group.
                state, _, member_of = file.read().rpartition(b")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(member_of) == group and state not in (b"Z", b"X"):
            return True
    return False
