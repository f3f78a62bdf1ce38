"""Whole processes, timed from outside, in turn with the floor that they are compared with."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time

Command = list[str]


class Figure:
    """Medians of one command and its floor, run in turn, and the ratio pair by pair."""

    def __init__(self, wall_s: list[float], floor_s: list[float], peak_kib: int) -> None:
        ratios = sorted(one / other for one, other in zip(wall_s, floor_s, strict=True))
        self.median_s = statistics.median(wall_s)
        self.floor_s = statistics.median(floor_s)
        self.ratio = statistics.median(ratios)
        self.spread = ratios[len(ratios) // 10], ratios[-1 - len(ratios) // 10]
        self.peak_mib = peak_kib / 1024


def compare(
    command: Command, floor: Command, *, folder: str, runs: int, env: dict[str, str] | None = None
) -> Figure:
    """Returns the figure of a command against its floor: A B A B …, after one run unmeasured."""
    for each in (command, floor):
        _seconds(each, folder, env)
    wall_s, floor_s = [], []
    for _ in range(runs):
        wall_s.append(_seconds(command, folder, env))
        floor_s.append(_seconds(floor, folder, env))
    return Figure(wall_s, floor_s, _peak_kib(command, folder, env))


def python(*arguments: str) -> Command:
    """Returns a command that this interpreter runs."""
    return [sys.executable, *arguments]


def installed(name: str) -> Command:
    """Returns one of our commands as it was installed beside this interpreter."""
    return [os.path.join(os.path.dirname(sys.executable), name)]


def _seconds(command: Command, folder: str, env: dict[str, str] | None) -> float:
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, env=_env(env))
    took = time.perf_counter() - begun
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{command} left with {done.returncode}: {done.stderr.decode()}")
    return took


def _peak_kib(command: Command, folder: str, env: dict[str, str] | None) -> int:
    """Returns the peak memory of one run: of a fresh child of a fresh child, since the kernel
    only tells the largest of all that a process has waited for.
    """
    ask = (
        "import resource, subprocess, sys; "
        "subprocess.run(sys.argv[1:], capture_output=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    out = subprocess.run(
        [sys.executable, "-c", ask, *command], cwd=folder, capture_output=True, env=_env(env)
    )
    return int(out.stdout) if resource.RUSAGE_CHILDREN else 0


def _env(more: dict[str, str] | None) -> dict[str, str]:
    # Compiled modules are what an installed package has; their compilation is not to be timed.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**env, **(more or {})}
