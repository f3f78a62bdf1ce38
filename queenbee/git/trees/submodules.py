"""The submodules of a worktree: repositories of their own, of which git keeps a commit's name.

Those of a linked worktree are in its git directory, below `modules`, and go with that. In the
folder of one that is not there, such as before `git submodule update`, git sees no files.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.errors import ExternalFailure, QueenError, Unreadable
from queenbee.git.run import as_the_user, git, line, names_in
from queenbee.git.trees.in_the_way import repositories
from queenbee.store import safe_open
from queenbee.store.files import stamp_of
from queenbee.store.git_trees import config_value, git_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LINK = "160000 "
_MODE, _EXTENSIONS = b"\0\0\xe0\0", (b"link", b"sdir")
"""How an index has that mode; a split and a sparse index have entries elsewhere."""
_LISTED = ("ls-files", "--stage", "-z", "--full-name", "--", ":/")
_NO_HOOKS = {"core.hooksPath": os.devnull}


def links(tree: str, run: Callable[..., bytes] | None = None) -> dict[str, str]:
    """Returns the submodules in the index of a worktree, each with its commit; `run` may run git
    with another index. Raises `ExternalFailure`.
    """
    if run is None and not _may_have_links(tree):
        return {}
    listed = run(*_LISTED) if run is not None else git(*_LISTED, cwd=tree, repository={})
    entries = (each.partition("\t") for each in names_in(listed))
    return {path: said.split()[1] for said, _, path in entries if said.startswith(_LINK)}


def _may_have_links(tree: str) -> bool:
    """Returns whether the index may have a submodule, without git: it says the mode of each entry,
    or that there are others elsewhere.
    """
    try:
        here = git_tree(tree)
        path = os.path.join(here.git_dir if here is not None else "", "index")
        return _names_links(path, tuple(stamp_of(path)))
    except (OSError, QueenError):
        return True


@lru_cache(maxsize=8)
def _names_links(path: str, _: tuple[int, ...]) -> bool:
    """Returns the same of an index with this stamp: one of a large tree takes 20 ms to read."""
    data = safe_open.read(path)
    return any(each in data for each in (_MODE, *_EXTENSIONS))


def unseen(tree: str, run: Callable[..., bytes] | None = None) -> list[str]:
    """Returns the submodules that are not there, and have files in their folder all the same."""
    return [each for each in links(tree, run) if _has_files(os.path.join(tree, each))]


def replaced(tree: str, *commits: str) -> list[str]:
    """Returns the submodules with anything in their folder for which one of the commits has a file
    or a link, or one above: git would remove that folder without a word. Raises
    `ExternalFailure`.
    """
    full = [each for each in links(tree) if _is_full(os.path.join(tree, each))]
    files = set[str]()
    for commit in commits if full else ():
        ways = sorted({way for each in full for way in _ways(each)})
        how = ("ls-tree", "--full-tree", "-z", no_dash(commit), "--", *ways)
        listed = (each.partition("\t") for each in names_in(git(*how, cwd=tree, repository={})))
        files.update(path for said, _, path in listed if said.split()[1] == "blob")
    return [each for each in full if not files.isdisjoint(_ways(each))]


def show_unseen(tree: str, run: Callable[..., bytes]) -> None:
    """Has git see those files, in the index with which `run` runs it: as those of any folder."""
    for each in unseen(tree, run):
        run("update-index", "--force-remove", "--", each)


def repository_of(folder: str) -> str | None:
    """Returns the git directory of the repository that a folder is; None if it is none."""
    with suppress(Unreadable):
        here = git_tree(folder)
        return here.git_dir if here is not None and here.tree == folder else None
    return None


def in_modules(git_dir: str) -> list[str]:
    """Returns the repositories that go with the git directory of a worktree."""
    return [*repositories(os.path.join(git_dir, "modules"))]


def left_in_modules(git_dir: str) -> list[str]:
    """Returns those of them that belong to no folder, or to one where they are not there any more,
    those above first.
    """
    found = ((each, _tree_of(each)) for each in in_modules(git_dir))
    return [each for each, tree in found if tree is None or repository_of(tree) != each]


def come_to(folder: str, commit: str) -> bool:
    """Brings a submodule with nothing of its own to a commit, or has it be there no more until `git
    submodule update` fetches that; returns False where git refuses.
    """
    try:
        known = ("rev-parse", "--verify", "--quiet", no_dash(f"{commit}^{{commit}}"))
        if line(*known, cwd=folder, repository={}) is not None:
            asked = ("checkout", "-q", "--no-overwrite-ignore", "--detach")
            as_the_user(*asked, no_dash(commit), "--", cwd=folder, config=_NO_HOOKS)
        else:
            nothing = git("mktree", cwd=folder, repository={}).decode().strip()
            how = ("read-tree", "-m", "-u")
            as_the_user(*how, no_dash(nothing), cwd=folder, config=_NO_HOOKS)
            safe_open.unlink(os.path.join(folder, ".git"))
    except ExternalFailure:
        return False
    return True


def carried(git_dir: str, top: str) -> dict[str, str]:
    """Returns the repositories in the git directory of a worktree that belong to a folder, or to
    one below it: each by the path from there.
    """
    own = os.path.join(git_dir, "modules", "")
    found = {each: repository_of(each) or "" for each in (top, *repositories(top))}
    return {
        os.path.relpath(each, top): where
        for each, where in found.items()
        if where.startswith(own) and _tree_of(where) == each
    }


def carry(found: Mapping[str, str], top: str) -> None:
    """Moves those repositories into the folder, now that it is elsewhere: they stay whole when the
    worktree is removed.
    """
    moved: dict[str, str] = {}
    parent = os.path.dirname(top)  # Git looks at no setting that is about to change.
    for path, was in found.items():  # Those above come first.
        folder = os.path.normpath(os.path.join(top, path))
        dot_git = os.path.join(folder, ".git")
        above = next((each for each in moved if was.startswith(os.path.join(each, ""))), None)
        now = dot_git if above is None else moved[above] + was[len(above) :]
        safe_open.unlink(dot_git)
        if above is None:
            moved[was] = shutil.move(was, dot_git)
        else:
            safe_open.write(dot_git, os.fsencode(f"gitdir: {os.path.relpath(now, folder)}\n"))
        setting = (f"--file={os.path.join(now, 'config')}", "core.worktree")
        as_the_user("config", *setting, no_dash(os.path.relpath(folder, now)), cwd=parent)


def _tree_of(git_dir: str) -> str | None:
    said = config_value(os.path.join(git_dir, "config"), "core", "worktree", includes=0)
    return os.path.realpath(os.path.join(git_dir, said)) if said else None


def _ways(path: str) -> list[str]:
    """Returns a path and the folders above it."""
    parts = path.split("/")
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]


def _is_full(folder: str) -> bool:
    return not os.path.islink(folder) and os.path.isdir(folder) and bool(os.listdir(folder))


def _has_files(folder: str) -> bool:
    if os.path.islink(folder) or os.path.lexists(os.path.join(folder, ".git")):
        return False
    return any(
        names or any(os.path.islink(os.path.join(where, each)) for each in folders)
        for where, folders, names in os.walk(folder)
    )
