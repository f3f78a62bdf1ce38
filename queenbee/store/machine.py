"""What this machine alone can tell or choose: where a repository's state is, its clock.

A clone must not choose where locks and memory are, so the choice is in the repository's own git
config, which git never delivers: `git config queenbee.state beads`. ADR 0015.
"""

from __future__ import annotations

import os

from queenbee.errors import Unreadable
from queenbee.store.git_trees import config_value

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterable

STATES = ("git", "beads")
CHOOSE = "git config queenbee.state"


def chosen_state(common_dir: str) -> str | None:
    """Returns where this machine keeps the state of a repository; None if it did not choose.

    Only the file `config` of the git directory counts: a setting of one worktree or of one user
    would give two processes two locks. Raises `Unreadable` for another value.
    """
    path = os.path.join(common_dir, "config")
    value = config_value(path, "queenbee", "state", includes=0)
    if value is not None and value not in STATES:
        raise Unreadable(
            f"{path}: queenbee.state cannot be {value!r}",
            hint=f"{CHOOSE} git, or: {CHOOSE} beads",
            path=path,
        )
    return value


def present_ms(folders: Iterable[str | None], now_ms: int) -> int:
    """Returns the clock's instant or, if that is later, the median of when the files of a hive and
    of git, which are in these folders, were written.

    A machine whose clock is behind, perhaps in 1970, would take every record for one from the
    future. Most of its files are then newer than its clock. The median counts, because a clock that
    ran ahead for an hour leaves a few such files as well.
    """
    times = sorted(_changed_ms(folders))
    return max(now_ms, times[(len(times) - 1) // 2])


def _changed_ms(folders: Iterable[str | None]) -> list[int]:
    """Returns when each file in the folders last changed, and QueenBee."""
    found = [os.stat(__file__).st_mtime_ns // 1_000_000]
    for folder in dict.fromkeys(filter(None, folders)):
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        changed = entry.stat(follow_symlinks=False)
                        found.append(changed.st_mtime_ns // 1_000_000)
        except OSError:
            continue
    return found
