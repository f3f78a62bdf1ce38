"""Merges `queen.toml` by key where git finds a conflict, or makes a text that cannot be read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.errors import QueenError
from queenbee.git.landing.commands import git, line
from queenbee.store import safe_open
from queenbee.store.settings import is_readable

if TYPE_CHECKING:
    from queenbee.git.landing.commands import Commands

PATH = ".beads/queen.toml"
_BASE = "1"


def resolve(commands: Commands, tree: str, target_stage: int) -> bool:
    """Resolves a conflict in the settings: the target's with what the branch changed. Returns
    whether both changed different keys, so that it could.
    """
    from queenbee.store.settings_file.merging import merged  # noqa: PLC0415 - start-up

    base, ours, theirs = (
        _text(tree, f":{stage}:{PATH}")
        for stage in (_BASE, str(target_stage), str(5 - target_stage))
    )
    text = merged(base or "", ours or "", theirs or "")
    if text is None:
        return False
    safe_open.write(os.path.join(tree, PATH), text.encode())
    return commands("add", "--", PATH, cwd=tree).status == 0


def mend(commands: Commands, tree: str, target: str) -> None:
    """Replaces settings that a merge with the target left unreadable in the last commit, such as
    one table from each side, if both sides could be read.
    """
    path = os.path.join(tree, PATH)
    if not os.path.lexists(path) or is_readable(safe_open.read(path).decode(errors="replace")):
        return  # Git need not be asked.
    text = _text(tree, f"HEAD:{PATH}")
    if text is None or is_readable(text):
        return
    from queenbee.store.settings_file.merging import merged  # noqa: PLC0415 - start-up

    parents = git("rev-list", "--parents", "-n", "1", "HEAD", "--", cwd=tree).decode().split()[1:]
    base = line("merge-base", *map(no_dash, parents), cwd=tree) if len(parents) == 2 else None
    if base is None or target not in parents:
        return
    sides = [_text(tree, f"{each}:{PATH}") or "" for each in (base, *parents)]
    both = merged(*sides)
    if both is None:
        return
    if safe_open.read(path).decode(errors="replace") == text:
        safe_open.write(path, both.encode())
    blob = git("hash-object", "-w", "--stdin", cwd=tree, stdin=both.encode()).decode().strip()
    commands("update-index", "--cacheinfo", f"100644,{blob},{PATH}", cwd=tree)
    commands("commit", "--amend", "--no-edit", "--no-verify", cwd=tree)


def _text(tree: str, name: str) -> str | None:
    try:
        return git("cat-file", "blob", no_dash(name), cwd=tree).decode()
    except (QueenError, UnicodeDecodeError):
        return None
