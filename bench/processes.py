"""Whole processes, timed from outside, each in turn with the floor it is compared with."""

from __future__ import annotations

import ctypes
import os
import resource
import statistics
import subprocess
import sys
import time
from contextlib import suppress

from bench.results import TIMES, Row

Command = list[str]

_ANSWERS = (0, 1)
"""Yes and no."""
_GIT_IDENTITY = ("-c", "user.name=Bench", "-c", "user.email=bench@example.com")
_SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` in Linux' prctl.h."""
_UNSET = ("PYTHONDONTWRITEBYTECODE", "QUEEN_DROID", "QUEEN_AGENT", "FACTORY_DROID", "QUEEN_GUARD")
"""An installed package has compiled modules: compiling them must not be timed."""


class Figure:
    """Medians of one command and its floor, run in turn, and the ratio pair by pair."""

    def __init__(self, wall_s: list[float], floor_s: list[float], peak_kib: int) -> None:
        ratios = sorted(one / other for one, other in zip(wall_s, floor_s, strict=True))
        self.median_s = statistics.median(wall_s)
        self.floor_s = statistics.median(floor_s)
        self.ratio = statistics.median(ratios)
        self.spread = ratios[len(ratios) // 10], ratios[-1 - len(ratios) // 10]
        self.peak_mib = peak_kib / 1024

    def row(self, name: str, *, goal: float | None = None) -> Row:
        """Returns the ratio to the floor as a row."""
        note = f"{self.median_s * 1000:.0f} ms of {self.floor_s * 1000:.0f}"
        if self.peak_mib:
            note += f", {self.peak_mib:.1f} MiB"
        return Row(name, self.ratio, TIMES, *self.spread, goal=goal, note=note)


def compare(command: Command, floor: Command, *, folder: str, runs: int) -> Figure:
    """Returns the figure of a command against its floor: A B A B …, after one run unmeasured."""
    for each in (command, floor):
        seconds(each, folder, allowed=_ANSWERS)
    wall_s, floor_s = [], []
    for _ in range(runs):
        wall_s.append(seconds(command, folder, allowed=_ANSWERS))
        floor_s.append(seconds(floor, folder))
    return Figure(wall_s, floor_s, _peak_kib(command, folder))


def python(*arguments: str) -> Command:
    """Returns a command that this interpreter runs."""
    return [sys.executable, *arguments]


def installed(name: str) -> Command:
    """Returns one of our commands as it was installed beside this interpreter."""
    return [os.path.join(os.path.dirname(sys.executable), name)]


def git(folder: str, *arguments: str) -> bytes:
    """Runs git in a folder, under a name of its own, and returns what it prints."""
    done = subprocess.run(git_command(*arguments), cwd=folder, check=True, capture_output=True)
    return done.stdout


def git_command(*arguments: str) -> Command:
    """Returns a git command that is to be timed."""
    return ["git", *_GIT_IDENTITY, *arguments]


def seconds(
    command: Command, folder: str, *, stdin: bytes = b"", allowed: tuple[int, ...] = (0,)
) -> float:
    """Returns how long one run takes. Raises `RuntimeError` for a status that is not allowed."""
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, env=_env())
    took = time.perf_counter() - begun
    if done.returncode not in allowed:
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr.decode()}")
    return took


def adopt() -> None:
    """Has what outlives its parent become a child of this process, which `spent` counts: a landing
    goes on without its caller. Does nothing on systems without this.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def spent() -> float:
    """Returns the processor time that all ended processes of this one have taken, in seconds."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _peak_kib(command: Command, folder: str) -> int:
    """Returns the peak memory of one run.

    It is a fresh child of a fresh child, since the kernel only tells the largest peak of all
    processes that a process has waited for.
    """
    ask = (
        "import resource, subprocess, sys; "
        "subprocess.run(sys.argv[1:], capture_output=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask, *command], cwd=folder, capture_output=True, env=_env()
    )
    return int(done.stdout)


def _env() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _UNSET}
