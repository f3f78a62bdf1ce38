"""Whether a process still runs, for tests of what must leave none."""

from __future__ import annotations


def is_alive(pid: int) -> bool:
    """Returns whether a process still runs; one that only waits to be reaped does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False
