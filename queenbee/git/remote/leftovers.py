"""What a fetch leaves behind when it is ended: git removes it only after two weeks.

A fetch over a link that is too slow is ended after `sync.timeout`, again and again: each time, all
that had come by then would stay on the disk. ADR 0029.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

_PREFIX = "tmp_pack_"
_PROCESSES = "/proc"
_IDLE_S = 3600.0
"""Where it cannot be told which files are in use: nobody waits so long for the next byte."""


def packs(common_dir: str) -> set[str]:
    """Returns the names of the packs of a repository that are not complete yet."""
    try:
        return {each for each in os.listdir(_folder(common_dir)) if each.startswith(_PREFIX)}
    except OSError:
        return set()


def remove(common_dir: str, before: set[str]) -> None:
    """Removes the incomplete packs that were not there before a fetch that has failed, unless
    another fetch, which somebody else began meanwhile, still writes one of them.
    """
    folder = _folder(common_dir)
    new = packs(common_dir) - before
    if not new:
        return
    used = open_files()
    for name in new:
        path = os.path.join(folder, name)
        with suppress(OSError):
            status = os.lstat(path)
            if status.st_uid != os.geteuid():
                continue  # Whether it is in use is not ours to see.
            if used is None and abs(time.time() - status.st_mtime) < _IDLE_S:
                continue
            if used is None or (status.st_dev, status.st_ino) not in used:
                os.unlink(path)


def _folder(common_dir: str) -> str:
    return os.path.join(common_dir, "objects", "pack")


def open_files() -> set[tuple[int, int]] | None:
    """Returns the files that processes have open, by device and inode, as far as this user can see;
    None where that cannot be told.
    """
    if not os.path.isdir(_PROCESSES):
        return None
    found = set()
    for process in filter(str.isdecimal, os.listdir(_PROCESSES)):
        folder = os.path.join(_PROCESSES, process, "fd")
        with suppress(OSError):
            for each in os.listdir(folder):
                with suppress(OSError):
                    status = os.stat(os.path.join(folder, each))
                    found.add((status.st_dev, status.st_ino))
    return found
