"""Whether a process still runs, for tests of what must leave none."""

from __future__ import annotations

import subprocess
import sys


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
