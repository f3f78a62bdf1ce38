"""How a hook of the repository is run by itself, where git runs none for a step."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING

from queenbee.errors import QueenError
from queenbee.git.hook_scripts import CHAINED, block, whole_hook
from queenbee.git.run import git, line, user_git
from queenbee.store import safe_open
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Iterable

HOOK_ALIAS = (
    'alias.queen-hook=!f() { hook=$(git rev-parse --git-path "hooks/$1"); shift 2; '
    '[ ! -x "$hook" ] || "$hook" "$@"; }; f'
)
HOOK_BY_ALIAS = ("-c", HOOK_ALIAS, "queen-hook")
"""With this, the name of a hook and `--`, any git runs it, and it can read."""
HOOK_BY_GIT = ("hook", "run", "--ignore-missing")
"""The same by git's own command, if `runs_hooks`: git has that since 2.36."""
_LFS = re.compile(
    rb"#!/bin/sh\n(command -v git-lfs >/dev/null 2>&1 \|\| \{ (echo|printf) >&2"
    rb'( "([^"`$\\]|\\n)*")+; exit 2; \}\n)?git lfs pre-push "\$@"\s*'
)
"""The whole `pre-push` of Git LFS, as any version of it writes that."""
_MOST_BYTES = 2**16


@cache
def runs_hooks() -> bool:
    """Returns whether this git has a command that runs a hook."""
    return b"hook" in git("--list-cmds=builtins", cwd=os.sep, repository={}).split()


def hooks_there(root: str, names: Iterable[str]) -> set[str]:
    """Returns those of some hooks that git may find: all of them, if a setting says where to look
    or what to run.
    """
    here = git_tree(root)
    asked = ("config", "--get-regexp", r"^(core\.hookspath|hook\.)")
    if here is None or user_git(*asked, cwd=root)[0] != 1:  # 1: there is no such setting.
        return {*names}
    folder = os.path.join(here.common_dir, "hooks")
    return {each for each in names if os.path.lexists(os.path.join(folder, each))}


def is_of_lfs(tree: str) -> bool:
    """Returns whether the `pre-push` that git runs in a worktree is Git LFS' alone, which sends
    files and runs nothing of a branch; also behind our guard.
    """
    path = line("rev-parse", "--git-path", "hooks/pre-push", cwd=tree, repository={})
    guard, whole = (each.encode() for each in (block("pre-push"), whole_hook("pre-push")))
    try:
        text = safe_open.read(os.path.join(tree, path or ""), _MOST_BYTES)
        if text == whole:
            text = safe_open.read(os.path.join(tree, f"{path}{CHAINED}"), _MOST_BYTES)
    except (OSError, QueenError):
        return False
    return _LFS.fullmatch(text.replace(guard, b"")) is not None


def within(tree: str, folder: str) -> str:
    """Returns the path of a folder from the top of a tree; empty if it is not in it."""
    path = os.path.relpath(os.path.join(tree, folder), tree) if folder else os.curdir
    return "" if path.split(os.sep)[0] in (os.curdir, os.pardir) else path
