"""Which issues are about files that somebody is in.

An issue names its files in its text (`src/app.py`, `README.md`): those that exist in the working
tree count.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

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


def contested_issues(
    hive: Services, found: Mapping[str, Standing], actor: str
) -> dict[str, set[str]]:
    """Returns for each startable issue the files that others are in: they hold a lease on it, or
    work on an issue that names it. Issues without such files are left out.
    """
    tree = hive.layout.tree
    busy = {
        path
        for each in found.values()
        if each.state == "active" and each.holder != actor
        for path in files_of(each.issue, tree)
    }
    contested: dict[str, set[str]] = {}
    has_leases = any(lease.droid != actor for lease in hive.reservations.find())
    if not busy and not has_leases:
        return contested
    for each in found.values():
        if each.startable(actor):
            files = files_of(each.issue, tree)
            free = sorted(files - busy) if has_leases else []
            held = {one.path for one in hive.reservations.check(free) if one.status == "held"}
            if met := (files & busy) | held:
                contested[each.issue.id] = met
    return contested
