"""What is not committed, and how a person commits what belongs to the hive, and nothing else."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.text import shell_word
from queenbee.errors import ExternalFailure
from queenbee.git.contents.landing_messages import commit_options
from queenbee.git.run import git, names_in, without_programs
from queenbee.store.git_files.ignore_files import is_ignored_by_git
from queenbee.store.git_trees import git_tree, name_in_index
from queenbee.store.settings import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.store.layout import Layout


def uncommitted(
    folder: str, root: str, config: Mapping[str, str] | None = None, which: str = "normal"
) -> dict[str, str]:
    """Returns the files of a folder that are not committed, from the root, each with the two
    letters of `git status`. Raises `ExternalFailure`.
    """
    wanted = ("--porcelain=v1", "-z", f"--untracked-files={which}", "--no-renames")
    said = git("status", *wanted, "--", folder, cwd=root, config=config, repository={})
    return {each[3:]: each[:2] for each in names_in(said)}


def settings_to_commit(layout: Layout, tree: str = "") -> str:
    """Returns the command that commits the settings of the hive, or those in the `.beads` of a
    worktree; empty where git does not have them yet, or there is nothing to commit.
    """
    folder, root = (f"{tree}/.beads", tree) if tree else (layout.beads_dir, layout.root)
    path = os.path.join(folder, FILE_NAME)
    if layout.common_dir is None:
        return ""
    with suppress(OSError, ExternalFailure):
        if {"??"} >= {*uncommitted(path, root, without_programs(root, {})).values()}:
            return ""
        name = shell_word(os.path.relpath(path, root))
        options = commit_options(layout.settings, "settings")
        return f"git -C {shell_word(root)} commit {options} -- {name}"
    return ""


def hive_to_commit(layout: Layout, cwd: str) -> str:
    """Returns the command, as typed in `cwd`, that commits a hive which git does not have yet, or
    its settings if these have changed; empty if there is nothing to commit, or git ignores it.
    """
    here = git_tree(layout.root)
    folder = os.path.relpath(layout.beads_dir, here.tree) if here is not None else os.pardir
    if here is None or folder.startswith(os.pardir):
        return ""
    name = f"{folder}/{FILE_NAME}"
    if name_in_index(here.git_dir, f"{name}\0") is not None:
        return settings_to_commit(layout)
    if is_ignored_by_git(layout, name, os.environ):
        return ""
    to_git = "git" if os.path.realpath(cwd) == here.tree else f"git -C {shell_word(here.tree)}"
    commit = f"commit {commit_options(layout.settings, 'hive')} -- {shell_word(folder)}"
    return f"{to_git} add {shell_word(folder)} && {to_git} {commit}"
