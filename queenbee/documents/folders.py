"""Where the documents of a hive lie, and what tells that they changed. Costs nothing to import.

They belong to the hive and not to the worktree one is in: two worktrees must not see two truths.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.store.layout import Layout

    Stamp = tuple[tuple[str, int, int, int], ...]


def bead_dirs(layout: Layout) -> tuple[str, str, str]:
    """Returns the folders of Ralph beads: standalone, active, completed."""
    return (
        os.path.join(layout.root, ".ralph", "beads"),
        os.path.join(layout.beads_dir, "active"),
        os.path.join(layout.beads_dir, "completed"),
    )


def gates_dir(layout: Layout) -> str:
    """Returns the folder of phase gates."""
    return os.path.join(layout.root, ".claude", "state", "validation")


def evidence_dir(layout: Layout) -> str:
    """Returns the folder of what checks printed."""
    return os.path.join(layout.beads_dir, "evidence")


def lock_path(layout: Layout) -> str:
    """Returns the lock under which bead and gate files are rewritten.

    Not the hive's own: rewriting a file waits for the disk, and messages must not wait for that.
    """
    return os.path.join(layout.state_dir, "documents.lock")


def run_lock_path(layout: Layout, name: str, number: int) -> str:
    """Returns the lock that the loop over a bead holds; the number tells like names apart."""
    return os.path.join(layout.state_dir, f"run-{name}-{number:08x}.lock")


def json_stamp(folder: str) -> Stamp:
    """Returns a value that changes whenever a `*.json` file of the folder does.

    Empty where there is none.
    """
    try:
        with os.scandir(folder) as entries:
            found = [
                (entry.path, *_stamp(entry))
                for entry in entries
                if entry.name.endswith(".json") and not entry.name.startswith(".")
            ]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError:
        # There is something that cannot be looked at: whoever reads it says why.
        return ((folder, 0, 0, 0),)
    return tuple(sorted(found))


def _stamp(entry: os.DirEntry[str]) -> tuple[int, int, int]:
    try:
        status = entry.stat()
    except OSError:
        # A link that leads nowhere, or a file that was removed at this moment.
        return (0, 0, 0)
    return status.st_ino, status.st_size, status.st_mtime_ns
