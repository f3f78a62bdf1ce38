"""How a hook of the repository is run by itself, where git runs none for a step."""

from __future__ import annotations

import os
from functools import cache

from queenbee.git.run import git

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
