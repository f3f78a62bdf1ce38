"""Whether a process does nothing, which only Linux says."""

from __future__ import annotations

import os


def if_asleep(pid: int) -> list[str] | None:
    """Returns how much a process and its children have run, while all of them sleep; else None.

    If it says the same again, nothing has woken any of them. Reading a disk is no such sleep.
    """
    ran = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            folder = f"/proc/{pid}/task/{thread}"
            if _text(folder, "stat").rpartition(")")[2].split()[0] != "S":
                return None
            ran.append(_text(folder, "schedstat"))
            for child in _text(folder, "children").split():
                below = if_asleep(int(child))
                if below is None:
                    return None
                ran += below
    except OSError:  # It ends at this moment, or another system.
        return None
    return ran


def _text(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
        return file.read()
