"""How a hook of the repository is run by itself, where git runs none for a step."""

from __future__ import annotations

from functools import cache

from queenbee.git.run import git

HOOK_ALIAS = (
    'alias.queen-hook=!f() { hook=$(git rev-parse --git-path "hooks/$1"); shift 2; '
    '[ ! -x "$hook" ] || "$hook" "$@"; }; f'
)
HOOK_BY_ALIAS = ("-c", HOOK_ALIAS, "queen-hook")
"""The same for a hook that reads, and for git before 2.36."""
HOOK = {True: ("hook", "run", "--ignore-missing"), False: HOOK_BY_ALIAS}
"""With this, the name of a hook and `--`, git runs it; the second way is for git before 2.36."""


@cache
def runs_hooks(cwd: str) -> bool:
    """Returns whether this git has a command that runs a hook."""
    return b"hook" in git("--list-cmds=builtins", cwd=cwd, repository={}).split()
