"""Whether another program's database or configuration owns the tracker's issues."""

from __future__ import annotations

import os

from queenbee.errors import QueenError
from queenbee.store import safe_open

_DOLT = frozenset({"dolt", "embeddeddolt"})
_IN_DOLT = rb'"(?:backend|database)"\s*:\s*"dolt"|"dolt_(?:mode|database)"'
_CONFIGURATION = frozenset({"metadata.json", "config.yaml"})
OF_BR = ".br_history"
"""Where `br` keeps older versions of the file."""


def owner_in(beads_dir: str) -> str | None:
    """Returns what shows that Beads' `bd` or `br` owns the tracker: `dolt` for a database of `bd`,
    here or only described, or `files` for another one or a configuration; None if nobody owns it.
    """
    try:
        names = set(os.listdir(beads_dir))
    except OSError:
        return None
    if "metadata.json" in names and _is_in_dolt(os.path.join(beads_dir, "metadata.json")):
        return "dolt"
    return owner_by(names)


def owner_by(names: set[str]) -> str | None:
    """Returns the same for a folder in which these names are, say what is in them."""
    if names & _DOLT:
        return "dolt"
    found = names & _CONFIGURATION or any(name.endswith(".db") for name in names)
    return "files" if found else None


OWNED = "owned-issues.jsonl"
"""The copy of the rows of a program with a database of its own, in the state folder."""


def _is_in_dolt(path: str) -> bool:
    import re  # noqa: PLC0415 - start-up

    try:
        return re.search(_IN_DOLT, safe_open.read(path, 65_536)) is not None
    except (OSError, QueenError):
        return False
