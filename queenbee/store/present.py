"""The present as far as this machine can tell: its clock may have been reset to 1970.

A machine whose clock is behind would take every record for one from the future. The files that it
has written tell: most of them are then newer than the clock. The median counts, because a clock
that ran ahead for an hour leaves a few such files as well.
"""

from __future__ import annotations

import os
from statistics import median_low

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.store.layout import Layout


def present_ms(layout: Layout, now_ms: int) -> int:
    """Returns the clock's instant, or the median of what this hive's and git's files say if that
    is later.
    """
    times = changed_ms(layout)
    return max(now_ms, median_low(times)) if times else now_ms


def changed_ms(layout: Layout) -> list[int]:
    """Returns when each file of the hive, of its state and of git last changed, and QueenBee."""
    journals = os.path.join(layout.state_dir, "journal")
    found = [os.stat(__file__).st_mtime_ns // 1_000_000]
    folders = (layout.beads_dir, layout.state_dir, journals, layout.common_dir)
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
