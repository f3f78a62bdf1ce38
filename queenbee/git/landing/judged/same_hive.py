"""Whether everybody still has the hive that they have now, once a branch has landed.

A `.beads/redirect` leads to another folder, a few settings say where the state and the lines are,
and a configuration of `bd` makes it the owner of the tracker. Landed, they would leave everybody
without their issues, claims and mail, or with a file that each command refuses.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from queenbee.core.text import named, shell_word
from queenbee.git.landing.judged.judging import settings_in, settings_path
from queenbee.git.landing.refusals import NotLanded
from queenbee.store.git_files.worktrees import target_branch, target_ref
from queenbee.store.layout import BEADS
from queenbee.store.settings import SETTINGS, Settings
from queenbee.store.tracker.issue_owner import owner_by, owner_in

if TYPE_CHECKING:
    from collections.abc import Collection

    from queenbee.git.objects import Objects
    from queenbee.store.layout import Layout

_WHERE = ("state", "engine.kind", "engine.hive")
"""The settings that say where the hive is."""
_LEADING = re.compile(r"(?s:.*/)?(?:(?i:\.beads/redirect)|(?!\.beads/)(?i:\.beads)/(?s:.*))")
"""A redirect for who works in some folder, or what some systems take for a file of `.beads/`."""


def refuse_other_hive(layout: Layout, objects: Objects, changed: Collection[str]) -> None:
    """Raises `NotLanded` if `HEAD`, where `objects` reads, would lead everybody to another hive
    than the target.
    """
    path, target = settings_path(layout), str(target_ref(layout))
    folders = {BEADS, os.path.dirname(path) or BEADS}
    own = {f"{folder}/redirect" for folder in folders}
    for each in sorted(each for each in changed if each in own or _LEADING.fullmatch(each)):
        raise _other_hive(layout, each, f"changes {named([each])}")
    if owner_in(layout.beads_dir) is None:
        top = f"{os.path.dirname(path) or BEADS}/"
        for each in sorted(each for each in changed if each.startswith(top)):
            if owner_by({each.removeprefix(top).split("/")[0]}):
                raise _other_hive(layout, each, f"has {named([each])} of bd or br")
    if path not in changed:
        return
    under, ours = (settings_in(objects, each, path) or Settings() for each in (target, "HEAD"))
    for setting in (each for each in SETTINGS if each.name in _WHERE):
        value = getattr(ours, setting.attribute)
        if value != getattr(under, setting.attribute):
            raise _other_hive(layout, path, f"sets {setting.name} to {value} in {named([path])}")


def _other_hive(layout: Layout, path: str, what: str) -> NotLanded:
    target = shell_word(str(target_branch(layout)))
    return NotLanded(
        f"this branch {what}, which would give everybody another hive; nothing was landed",
        hint=f"git checkout --no-overlay {target} -- {shell_word(path)}, and commit that",
        files=[path],
    )
