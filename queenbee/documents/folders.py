"""Where the documents of a hive are, and how to tell that they changed. Cheap to import.

They belong to the hive, not to one worktree: two worktrees must not see different documents.
"""

from __future__ import annotations

import os

from queenbee.store.layout import Layout

Stamp = tuple[tuple[str, int, int, int], ...]


def bead_dirs(layout: Layout) -> tuple[str, str, str]:
    """Returns the folders of Ralph beads: standalone, active, completed."""
    return (
        os.path.join(layout.root, ".ralph", "beads"),
        os.path.join(layout.beads_dir, "active"),
        os.path.join(layout.beads_dir, "completed"),
    )


def bead_notes(layout: Layout) -> str:
    """Returns the file that says which bytes QueenBee last wrote to each bead of the hive."""
    return os.path.join(layout.state_dir, "beads.json")


def gates_dir(layout: Layout) -> str:
    """Returns the folder of phase gates."""
    return os.path.join(layout.root, ".claude", "state", "validation")


def evidence_dir(layout: Layout) -> str:
    """Returns the folder of the evidence: the output of checks."""
    return os.path.join(layout.beads_dir, "evidence")


def lock_path(layout: Layout) -> str:
    """Returns the lock file under which bead and gate files are rewritten.

    Not the hive's own lock: rewriting a file waits for the disk, and messages must not.
    """
    return os.path.join(layout.state_dir, "documents.lock")


def run_lock_path(layout: Layout, name: str, number: int) -> str:
    """Returns the lock file of the loop over a bead; the number tells similar names apart."""
    return os.path.join(layout.state_dir, f"run-{name}-{number:08x}.lock")


def json_stamp(folder: str) -> Stamp:
    """Returns a value that changes whenever a `*.json` file in the folder does; else empty."""
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
        # It cannot be listed; reading it will say why.
        return ((folder, 0, 0, 0),)
    return tuple(sorted(found))


def _stamp(entry: os.DirEntry[str]) -> tuple[int, int, int]:
    try:
        status = entry.stat()
    except OSError:
        # A dangling link, or a file that was just removed.
        return (0, 0, 0)
    return status.st_ino, status.st_size, status.st_mtime_ns
