"""Which issues are about files that somebody is in.

An issue names its files in its text (`src/app.py`, `README.md`): those that exist in the working
tree count.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from queenbee.services.work.members import live_leases

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.core.beads import Issue
    from queenbee.core.readiness import Standing
    from queenbee.services.hive import Services

_PATH = re.compile(r"(?<![\w/.-])[\w.-]+(?:/[\w.-]+)*\.\w{1,8}(?![\w/-])", re.ASCII)
_TEXTS = ("title", "description", "design", "acceptance_criteria", "notes")
_AT_MOST_CHARS = 20_000
"""What is read of one text: longer ones are logs."""


def files_of(issue: Issue, tree: str) -> set[str]:
    """Returns the files of the working tree that the texts of an issue name, from its root."""
    named: set[str] = set()
    for name in _TEXTS:
        text = issue.fields.get(name)
        if isinstance(text, str):
            named.update(_PATH.findall(text[:_AT_MOST_CHARS]))
    return {each for each in named if os.path.isfile(os.path.join(tree, each))}


class Occupied:
    """Which startable issues name files that others have reserved, or are in."""

    def __init__(self) -> None:
        self.reserved: set[str] = set()
        """The issues that name a file which another droid holds."""
        self.contested: set[str] = set()
        """The issues that name a file which an issue of another droid names too."""


def occupied(hive: Services, found: Mapping[str, Standing], actor: str) -> Occupied:
    """Returns which startable issues are about files that others hold or are in."""
    tree = hive.layout.tree
    busy = {
        path
        for each in found.values()
        if each.state == "active" and each.holder != actor
        for path in files_of(each.issue, tree)
    }
    result = Occupied()
    has_leases = any(lease.droid != actor for lease in live_leases(hive))
    if not busy and not has_leases:
        return result
    named = {
        each.issue.id: files_of(each.issue, tree)
        for each in found.values()
        if each.startable(actor)
    }
    # Each file once: many issues name the same ones.
    paths = sorted(set().union(*named.values())) if has_leases else []
    checked = hive.reservations.check(paths) if paths else []
    held = {path for path, one in zip(paths, checked, strict=True) if one.status == "held"}
    for issue_id, files in named.items():
        if files & busy:
            result.contested.add(issue_id)
        if files & held:
            result.reserved.add(issue_id)
    return result
