"""A worktree that Claude Code makes or removes: it gets its name and its protection, and its leases
end with it.

A hook for these events replaces what Claude Code does by itself. It prints the path of what it
made; without a path, Claude Code reports that it failed. An exit status of 0 says that the worktree
was removed. `docs/worktrees.md`, section "Worktrees that Claude Code makes".
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from queenbee._hashing import sha256
from queenbee.core.names import ALWAYS_KNOWN, MAX_LENGTH, joined
from queenbee.core.text import HINT, printable
from queenbee.errors import InvalidInput, QueenError
from queenbee.git.worktrees.left_git_dirs import kept_of_gone
from queenbee.git.worktrees.preparing import prepare, seen_setup
from queenbee.git.worktrees.worktree_care import abandon, refuse_live
from queenbee.git.worktrees.worktree_making import add
from queenbee.hook import events
from queenbee.services.hive import Services
from queenbee.store.git_trees import git_tree
from queenbee.store.layout import discover

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.hook.answers import Plain
    from queenbee.hook.events import Event

_FAILED = 1
_HASH_CHARS = 8


def answer(event: Event, env: Mapping[str, str]) -> Plain:
    """Makes or removes a worktree; returns its path, or nothing."""
    if not event.worktree:
        raise InvalidInput("the event names no worktree")
    if event.kind == events.WORKTREE_CREATE:
        return f"{_made(Services(discover(event.cwd, env)), event.worktree, env)}\n", 0
    try:
        path = os.path.realpath(os.path.join(event.cwd, event.worktree))
        abandon(Services(discover(_main_tree(path) or _main_tree(event.cwd) or path, env)), path)
    except QueenError as error:
        hint = f"\n{HINT}{error.hint}" if error.hint else ""
        sys.stderr.write(f"queen-hook: {error.message}{hint}\n")
    return "", _FAILED if os.path.lexists(path) else 0


def _made(hive: Services, name: str, env: Mapping[str, str]) -> str:
    """Makes a worktree and sets it up; returns its path. Where that fails, it stays, and the same
    call made again goes on.
    """
    seen_setup(hive.layout)
    droid = _droid(name)
    refuse_live(hive.layout, lambda each: each.name == droid)
    made = add(hive, droid)
    path = made.path
    if made.kept is not None:
        _tell(kept_of_gone(path, made.kept))
    try:
        prepare(hive.layout, path, env=env, tell=_tell)
    except QueenError as error:
        hint = f"; try: {error.hint}" if error.hint else ""
        error.message = f"{path} was made, but is not ready: {error.message}{hint}"
        raise
    return path


def _tell(text: str) -> None:
    sys.stderr.write(f"queen-hook: {printable(text)}\n".encode(errors="replace").decode())


def _droid(name: str) -> str:
    """Returns the name of a worktree as that of a droid and of a branch: `a/b` is `a-b-`, and a
    part of a hash, so that it is not that of `a-b` or `a_b` as well; `human` is not a person's.
    """
    plain = "".join(char if char.isascii() and char.isalnum() else "-" for char in name)
    plain = plain.strip("-")
    if plain == name and len(name) <= MAX_LENGTH and name not in ALWAYS_KNOWN:
        return name
    part = sha256(name.encode(errors="surrogatepass")).hexdigest()[:_HASH_CHARS]
    return joined(plain or "agent", "-", part)


def _main_tree(path: str) -> str | None:
    found = git_tree(path) if os.path.isdir(path) else None
    return found.main_tree or found.tree if found is not None else None
