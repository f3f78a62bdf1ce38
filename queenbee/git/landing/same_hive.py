"""Whether everybody still has the hive that they have now, once a branch has landed.

A `.beads/redirect` leads to another folder, a few settings say where the state and the lines are,
and a configuration of `bd` makes it the owner of the tracker. Landed, they would leave everybody
without their issues, claims and mail, or with a file that each command refuses.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, shell_word
from queenbee.errors import Unreadable
from queenbee.git.contents.hive_files import refuse_unreadable
from queenbee.git.landing.commands import git
from queenbee.git.landing.judged.judging import settings_in, settings_path
from queenbee.git.landing.refusals import NotLanded
from queenbee.store.layout import BEADS
from queenbee.store.settings import SETTINGS, Settings
from queenbee.store.tracker.issue_owner import owner_by, owner_in

if TYPE_CHECKING:
    from collections.abc import Collection

    from queenbee.git.landing.place import Place

_LINKS = frozenset({"120000", "160000"})
_FOLDER = "040000"
_OF_FILES = (".jsonl", ".toml")
"""How the names of a hive's files end."""
_WHERE = ("state", "engine.kind", "engine.hive")
"""The settings that say where the hive is."""
_LEADING = re.compile(r"(?s:.*/)?(?:(?i:\.beads/redirect)|(?!\.beads/)(?i:\.beads)/(?s:.*))")
"""A redirect for who works in some folder, or what some systems take for a file of `.beads/`."""


def refuse_other_hive(place: Place, changed: Collection[str]) -> None:
    """Raises `NotLanded` if the commit of a checkout would leave everybody without the hive that
    the target has, or with files of it that nobody can read.
    """
    if any(each.partition("/")[0] == BEADS for each in changed):
        _refuse_replaced(place)
    try:
        refuse_unreadable(place.tree, "HEAD", changed)
    except Unreadable as error:
        hint = f"correct it here, git commit, then queen land again: {error.hint}"
        raise NotLanded(f"{error.message}; nothing was landed", hint=hint) from error
    _refuse_led_away(place, changed)


def _refuse_replaced(place: Place) -> None:
    """Refuses to replace or remove the hive, or to put links into it, or folders in place of its
    files: the records of everybody would go with it.
    """
    theirs, ours = _hive(place, place.target_ref), _hive(place, "HEAD")
    is_kept = ours.get(BEADS) == _FOLDER or not (theirs or ours)
    wrong = [] if is_kept else [BEADS]
    for path, mode in ours.items() if theirs else ():
        is_wrong = mode in _LINKS or (mode == _FOLDER and path.endswith(_OF_FILES))
        wrong += [path] if is_wrong and theirs.get(path) != mode else []
    for path in wrong[:1]:
        what = f"{named([place.branch])} replaces {named([path])}"
        raise _refusal(place, path, f"{what}, where the records of everybody are")


def _hive(place: Place, revision: str) -> dict[str, str]:
    listed = git("ls-tree", "-r", "-t", "-z", no_dash(revision), "--", BEADS, cwd=place.tree)
    entries = (each.partition(b"\t") for each in listed.split(b"\0") if each)
    return {os.fsdecode(path): said.split()[0].decode() for said, _, path in entries}


def _refuse_led_away(place: Place, changed: Collection[str]) -> None:
    layout, path = place.layout, settings_path(place.layout)
    top = os.path.dirname(path) or BEADS
    own = {f"{folder}/redirect" for folder in (BEADS, top)}
    for each in sorted(each for each in changed if each in own or _LEADING.fullmatch(each)):
        raise _other_hive(place, each, f"changes {named([each])}")
    if owner_in(layout.beads_dir) is None:
        for each in sorted(each for each in changed if each.startswith(f"{top}/")):
            if owner_by({each.removeprefix(f"{top}/").split("/")[0]}):
                raise _other_hive(place, each, f"has {named([each])} of bd or br")
    if path not in changed:
        return
    revisions = (place.target_ref, "HEAD")
    under, ours = (settings_in(place.objects, each, path) or Settings() for each in revisions)
    for setting in (each for each in SETTINGS if each.name in _WHERE):
        value = getattr(ours, setting.attribute)
        if value != getattr(under, setting.attribute):
            raise _other_hive(place, path, f"sets {setting.name} to {value} in {named([path])}")


def _other_hive(place: Place, path: str, what: str) -> NotLanded:
    return _refusal(place, path, f"this branch {what}, which would give everybody another hive")


def _refusal(place: Place, path: str, what: str) -> NotLanded:
    return NotLanded(
        f"{what}; nothing was landed",
        hint=f"git checkout --no-overlay {shell_word(place.target)} -- {shell_word(path)}, and "
        "commit that",
        files=[path],
    )
