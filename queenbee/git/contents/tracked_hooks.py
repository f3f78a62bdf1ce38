"""Hooks that are files of a branch: whoever made the branch made them, and they get no tokens."""

from __future__ import annotations

import os

from queenbee.git.contents.signing import signs
from queenbee.git.run import environment_of_user, line
from queenbee.store.git_files.host_tokens import without_tokens
from queenbee.store.git_trees import git_tree

_AGENT = {"SSH_AUTH_SOCK", "SSH_AGENT_PID"}


def has_tracked_hooks(tree: str) -> bool:
    """Returns whether git runs hooks from a folder in a worktree, such as husky's."""
    asked = ("config", "--type=path", "core.hooksPath")
    return bool(within(tree, line(*asked, cwd=tree, repository={}) or ""))


def within(tree: str, folder: str) -> str:
    """Returns the path of a folder from the top of a tree; empty if it is not in it."""
    path = os.path.relpath(os.path.join(tree, folder), tree) if folder else os.curdir
    return "" if path.split(os.sep)[0] in (os.curdir, os.pardir) else path


def kept_from_hooks(tree: str) -> set[str]:
    """Returns the variables without which a commit is made in a worktree: tokens, if its hooks are
    files of it; an ssh-agent only if nothing is signed.
    """
    if not has_tracked_hooks(tree):
        return set()
    env, here = environment_of_user(), git_tree(tree)
    kept = env.keys() & without_tokens(env, here.common_dir if here is not None else None).keys()
    return {*env} - kept - (_AGENT if signs(tree) else set())
