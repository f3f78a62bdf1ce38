"""Whether a process still runs, for tests of what must leave none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Returns whether a process still runs; one that only waits to be reaped does not."""
    if sys.platform != "linux":
        ran = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
        return ran.stdout.strip()[:1] not in ("", "Z")
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def child(act: Callable[[], object]) -> Iterator[int]:
    """A forked child, which acts and then waits to be killed. It has acted when this begins, and
    it fails the test if that takes ten seconds or raises.
    """
    done, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(10)
            act()
            os.write(said, b"ok")
            signal.alarm(0)
            signal.pause()
        except BaseException as error:
            os.write(said, repr(error).encode())
        finally:
            os._exit(0)
    os.close(said)
    try:
        assert os.read(done, 4096) == b"ok"
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(done)


def pids(folder: Path) -> list[int]:
    """The processes that have written their id into a file of a folder."""
    return [int(path.read_text()) for path in sorted(folder.glob("*.pid"))]


def assert_gone(folder: Path, count: int) -> None:
    """So many processes have written their ids, and none of them is left."""
    started = pids(folder)
    assert len(started) == count, "the command did not get far enough to prove anything"
    assert [pid for pid in started if is_alive(pid)] == []
