"""The folders of the beads of a project that has no settings."""

from __future__ import annotations

from pathlib import Path

from queenbee.documents.ralph.bead_files import BeadFolders


def bead_folders(root: Path) -> BeadFolders:
    """Returns the folders of the beads of a project."""
    names = (".ralph/beads", ".beads/active", ".beads/completed")
    return BeadFolders(*(str(root / name) for name in names))
