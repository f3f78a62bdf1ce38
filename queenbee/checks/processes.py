"""Runs one program in a session of its own: bounded in time and memory, and nothing of it stays.

Whatever the program started is in its process group, and the group ends with it: asked by
SIGTERM, after a short grace made to by SIGKILL. What gave itself another session (`setsid`) is
out of reach; it can neither hang the caller nor fill its memory, because its pipe is closed.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from dataclasses import dataclass

from queenbee.checks.bounds import LONGEST_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

CAP_BYTES = 1024 * 1024
"""Of each stream this much is kept: half from its beginning, half from its end."""

GRACE_S = 2.0
"""Between SIGTERM and SIGKILL: long enough for a test server to remove its socket."""

_TICK_S = 0.05
"""How late a request to end is noticed, and the end of a program whose child keeps the pipe."""

_DRAIN_S = 0.5
"""How long output that was written before the end is still read."""

_CHUNK_BYTES = 64 * 1024

_REQUESTS_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Output:
    """Is what a program wrote to one stream, with the middle left out beyond the cap."""

    head: bytes = b""
    tail: bytes = b""
    total_bytes: int = 0
    found: bool = True
    """Whether the text that was looked for occurred, in what was left out too."""

    @property
    def left_out_bytes(self) -> int:
        """The bytes between `head` and `tail` that were not kept."""
        return self.total_bytes - len(self.head) - len(self.tail)

    def data(self) -> bytes:
        """Returns what was kept, with a line in the middle that says what was not."""
        if not self.left_out_bytes:
            return self.head + self.tail
        return self.head + f"\n[… {self.left_out_bytes:,} bytes left out …]\n".encode() + self.tail

    def text(self) -> str:
        """Returns `data` as text; what is not UTF-8 shows as the replacement character."""
        return self.data().decode(errors="replace")


NOTHING = Output()
"""The output of what wrote none, or was never started."""


@dataclass(frozen=True)
class ProcessResult:
    """Is how a program ended; `exit_code` is negative for a signal, None if it did not exit."""

    ended: Literal["exited", "timed_out", "interrupted", "not_started"]
    exit_code: int | None
    duration_s: float
    stdout: Output
    stderr: Output
    problem: str = ""
    """Why it was not started."""


def run_process(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout_s: float,
    look_for: tuple[str, str] = ("", ""),
    on_tick: Callable[[float, str], None] | None = None,
    interrupts: Interrupts | None = None,
    cap_bytes: int = CAP_BYTES,
    grace_s: float = GRACE_S,
) -> ProcessResult:
    """Returns how the program ended and what it wrote; afterwards its process group is gone.

    `look_for` are two literal texts to find in standard output and standard error. `on_tick` is
    called about once a second with the seconds so far and the last line of output. What
    `interrupts` counts meanwhile ends the group too, and is told by `ended`; one more ends the
    grace.
    """
    started = time.monotonic()
    captures = _Capture(cap_bytes, look_for[0]), _Capture(cap_bytes, look_for[1])
    try:
        child = _start(argv, cwd, env)
    except (OSError, ValueError) as error:
        # ValueError: a NUL in an argument, the folder or a variable.
        problem = f"cannot be started: {error}"
        return ProcessResult("not_started", None, 0.0, NOTHING, NOTHING, problem)
    run = _Run(child, captures, interrupts or Interrupts())
    try:
        ended = run.wait(started + min(timeout_s, LONGEST_S), on_tick)
    finally:
        # Also for a caller's error in `on_tick`, and for SystemExit.
        run.stop(grace_s)
    exit_code = child.returncode if ended == "exited" else None
    spent_s = time.monotonic() - started
    return ProcessResult(ended, exit_code, spent_s, captures[0].output(), captures[1].output())


class Interrupts:
    """Counts the requests to end (Ctrl-C, SIGTERM, SIGHUP) that come while it is entered.

    They are counted and not raised: raised inside `Popen`, one would leave the program running
    with nobody who knows of it; a second one, as `timeout` sends it at once, would undo what
    the first had begun. Left alone is a signal that is ignored (`nohup`) or that the
    application handles itself, and all of them in another thread than the main one.
    """

    def __init__(self) -> None:
        self.count = 0
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

    def _note(self, number: int, frame: object) -> None:
        self.count += 1


def _start(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(argv),
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )


class _Run:
    """Is a started program: its output is read while it is waited for."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        captures: tuple[_Capture, _Capture],
        interrupts: Interrupts,
    ) -> None:
        self._child = child
        self._captures = captures
        self._interrupts = interrupts
        self._streams = selectors.DefaultSelector()
        for stream, capture in zip((child.stdout, child.stderr), captures, strict=True):
            assert stream is not None
            self._streams.register(stream, selectors.EVENT_READ, (capture, stream.close))

    def wait(
        self, deadline: float, on_tick: Callable[[float, str], None] | None
    ) -> Literal["exited", "timed_out", "interrupted"]:
        started = time.monotonic()
        next_tick = started + 1.0
        while self._child.poll() is None:
            if self._interrupts.count:
                return "interrupted"
            now = time.monotonic()
            if now >= deadline:
                return "timed_out"
            if on_tick is not None and now >= next_tick:
                next_tick = now + 1.0
                on_tick(now - started, self._captures[0].last_line())
            self._read(min(deadline - now, _TICK_S))
        return "exited"

    def stop(self, grace_s: float) -> None:
        """Ends what is left of the group."""
        try:
            self._end_group(signal.SIGTERM, grace_s)
            self._end_group(signal.SIGKILL, _DRAIN_S)
            self._drain()
        finally:
            for key in list(self._streams.get_map().values()):
                self._close(key)
            self._streams.close()
            self._reap()

    def _reap(self) -> None:
        try:
            self._child.wait(_DRAIN_S)
        except subprocess.TimeoutExpired:
            # It runs as another user (`sudo`), or hangs in the kernel: not ours to wait for.
            return

    def _end_group(self, number: signal.Signals, patience_s: float) -> None:
        # The group keeps its number while it has a member, so nobody else's can be meant here
        # but in the instant between its end and the next look, 50 ms at the most.
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
            # A member that runs as another user: alive, and not ours to end.
            return True
        return True

    def _drain(self) -> None:
        deadline = time.monotonic() + _DRAIN_S
        while self._streams.get_map() and time.monotonic() < deadline:
            self._read(_TICK_S)

    def _read(self, timeout_s: float) -> None:
        if not self._streams.get_map():
            try:
                self._child.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return
            # Only members with other standard streams are left to be waited for.
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
    """Keeps the beginning and the end of a stream, and looks for one text in all of it."""

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
            # What could be the beginning of the wanted text, had it been cut in two here.
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
    """Returns whether a process of the group still runs, and is not only waiting to be reaped.

    In a container whose first process reaps nobody, the dead stay members for ever. Where there
    is no `/proc` to tell them apart, they count as alive, and cost the grace.
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
                # After the name, which may hold anything: state, parent, group.
                state, _, member_of = file.read().rpartition(b")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(member_of) == group and state not in (b"Z", b"X"):
            return True
    return False
