"""Real processes wait for the same files: whoever waits first is served first."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hives import Queen, records

pytestmark = pytest.mark.slow

Process = subprocess.Popen[str]
PATIENCE_S = 30


def until(true: Callable[[], object]) -> None:
    """Waits until something is true, or fails."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


@pytest.fixture
def line(repo: Path) -> Path:
    return repo / ".git" / "queenbee" / "queue"


@pytest.fixture
def waiting(queen: Queen, line: Path) -> Iterator[Callable[..., Process]]:
    """Starts a process that waits, and returns once it is in the line."""
    started: list[Process] = []

    def wait(droid: str, *patterns: str, more: tuple[str, ...] = ("--wait", "60s")) -> Process:
        before = set(line.iterdir()) if line.exists() else set()
        process = queen.start("reserve", *patterns, *more, as_=droid)
        started.append(process)
        until(lambda: process.pid in pids(line))
        until(lambda: is_free(line.with_name("lock")))
        assert len(set(line.iterdir()) - before) == 1
        return process

    yield wait
    for process in started:
        process.kill()
        process.communicate()


def pids(line: Path) -> list[int]:
    """Returns the processes that have a place, dead or alive, first to last."""
    found = []
    for path in sorted(line.iterdir()) if line.exists() else ():
        try:
            if len(path.name) == 26:
                found.append(json.loads(path.read_text())["pid"])
        except FileNotFoundError:
            continue
    return found


def is_free(lock: Path) -> bool:
    """Returns whether nobody writes: a process that is stopped while it does would stop all."""
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def served(process: Process) -> bool:
    return process.wait(timeout=PATIENCE_S) == 0


def test_five_waiters_are_served_in_their_order(
    queen: Queen, waiting: Callable[..., Process], beads: Path, line: Path
) -> None:
    queen("reserve", "a.py", as_="holder")
    droids = [f"droid-{number}" for number in (3, 1, 5, 2, 4)]
    processes = [waiting(droid, "a.py") for droid in droids]
    queen("reserve", "release", "a.py", as_="holder")
    for droid, process in zip(droids, processes, strict=True):
        assert served(process)
        assert queen("reserve", "release", "a.py", as_=droid).code == 0
    granted = [
        row["droid"] for row in records(beads / "queen_reservations.jsonl") if row["rev"] == 1
    ]
    assert granted == ["holder", *droids]
    assert list(line.iterdir()) == []


def test_a_newcomer_that_polls_cannot_overtake(
    queen: Queen, waiting: Callable[..., Process], beads: Path
) -> None:
    queen("reserve", "a.py", as_="holder")
    first = waiting("birch", "src/**", "a.py")
    os.kill(first.pid, signal.SIGSTOP)  # It cannot come to its turn, and still has it.
    queen("reserve", "release", "a.py", as_="holder")
    for _ in range(3):
        refused = queen("reserve", "src/x.py", as_="newcomer")
        assert refused.code == 5
        assert "nobody holds it, but birch has waited for src/**, a.py" in refused.err
        assert "2nd in line after birch" in refused.err
    assert queen("reserve", "docs/x.md", as_="newcomer").code == 0
    os.kill(first.pid, signal.SIGCONT)
    assert served(first)


@pytest.mark.some(1)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_waiter_that_dies_holds_nobody_up(
    queen: Queen, waiting: Callable[..., Process], line: Path, how: signal.Signals
) -> None:
    queen("reserve", "a.py", as_="holder")
    first, second = waiting("birch", "a.py"), waiting("oak", "a.py")
    first.send_signal(how)
    first.wait(timeout=PATIENCE_S)
    queen("reserve", "release", "a.py", as_="holder")
    assert served(second)
    assert list(line.iterdir()) == []


def test_a_waiter_behind_one_that_is_killed_goes_on_by_itself(
    queen: Queen, waiting: Callable[..., Process]
) -> None:
    queen("reserve", "a.py", as_="holder")
    first, second = waiting("birch", "a.py", "b.py"), waiting("oak", "b.py")
    first.kill()
    first.wait(timeout=PATIENCE_S)
    assert served(second)


def test_a_wait_that_ends_gives_up_its_place(
    queen: Queen, waiting: Callable[..., Process], line: Path
) -> None:
    queen("reserve", "a.py", as_="holder")
    first = waiting("birch", "a.py", "b.py", more=("--wait", "1s"))
    assert first.wait(timeout=PATIENCE_S) == 6
    assert list(line.iterdir()) == []
    assert queen("reserve", "b.py", as_="oak").code == 0


def test_a_wide_pattern_is_not_starved_by_a_stream_of_narrow_ones(
    queen: Queen, waiting: Callable[..., Process]
) -> None:
    queen("reserve", "src/0.py", as_="narrow-0")
    wide = waiting("wide", "src/**")
    refused = [
        queen("reserve", f"src/{number}.py", as_=f"narrow-{number}").code for number in (1, 2, 3)
    ]
    assert refused == [5, 5, 5]
    queen("reserve", "release", "src/0.py", as_="narrow-0")
    assert served(wide)


def test_a_circle_of_waiters_is_named_instead_of_waited_for(
    queen: Queen, waiting: Callable[..., Process]
) -> None:
    queen("reserve", "a.py", as_="birch")
    queen("reserve", "b.py", as_="oak")
    birch = waiting("birch", "b.py")
    refused = queen("reserve", "a.py", "--wait", "60s", "--json", as_="oak")
    assert refused.code == 5
    assert refused.error["circle"] == ["oak", "birch"]
    assert "birch waits for b.py, which oak holds" in refused.error["message"]
    queen("reserve", "release", "b.py", as_="oak")
    assert served(birch)
