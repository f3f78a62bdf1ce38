"""How a hook of the repository is run by itself, where git runs none for a step."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from queenbee.git.run import git, user_git
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
