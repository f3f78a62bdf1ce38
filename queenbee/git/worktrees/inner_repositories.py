"""The repositories in a worktree, submodules or not: what only they have would go with it."""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee.core.text import mentioned, some, suggested
from queenbee.errors import Conflict, ExternalFailure, Unreadable
from queenbee.git.run import git, line, settings, without_programs
from queenbee.git.trees.in_the_way import ignored_in, repositories
from queenbee.git.trees.open_operations import open_operations
from queenbee.git.trees.submodules import in_modules, repository_of
from queenbee.git.unfinished import all_changed
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import Worktree
from queenbee.store.git_trees import git_tree, whole

_NAMED = 5
_STATUS = ("status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=none")


def refuse_nested(path: str, git_dir: str) -> None:
    """Raises `Conflict` for what would be lost with the repositories in a worktree, and with those
    of its submodules, whether these are there or not.
    """
    nested = [*repositories(path)]
    there = {repository_of(each) for each in nested}
    gone = [each for each in in_modules(git_dir) if each not in there]
    every = [*nested, *gone]
    busy = [each for each in every if is_busy(each)]
    if busy:
        raise Conflict(
            f"a git command is under way in a repository in {path}: {some(busy, _NAMED)}",
            hint=suggested("git -C", busy[0], "status"),
            files=busy,
        )
    own = [each for each in every if has_own_commits(each, path)]
    if own:
        raise Conflict(
            f"a repository in {path} has commits that no remote has: {some(own, _NAMED)}",
            hint=f"{suggested('git -C', own[0])} log --all --not --remotes",
            files=own,
        )
    staged = [each for each in gone if has_staged(each)]
    open_ = [*(each for each in nested if has_changes(each)), *staged]
    if open_:
        raise Conflict(
            f"a repository in {path} has what is not committed: {some(open_, _NAMED)}",
            hint=suggested("git -C", open_[0], *(["diff", "--cached"] if staged else ["status"])),
            files=open_,
        )


def refuse_inner(path: str, git_dir: str) -> None:
    """Raises `Conflict` for a linked worktree in a worktree that is not of a repository in it:
    whoever made that has more in it than commits.
    """
    own = tuple(os.path.join(os.path.realpath(each), "") for each in (path, git_dir))
    for each in repositories(path):
        if not f"{_other_of(each)}/".startswith(own):
            moves = suggested("git worktree move", each, f"{path}.{os.path.basename(each)}")
            removes = suggested("git worktree remove", each)
            raise Conflict(
                f"there is another worktree in {mentioned(path)}: {mentioned(each)}",
                hint=f"{moves}; if nothing in it is needed: {removes}",
                worktree=each,
            )


def _other_of(tree: str) -> str:
    """Returns where the repository of a linked worktree is or was; of another folder, itself."""
    try:
        here = git_tree(tree)
        is_linked = here is not None and here.tree == tree and here.linked
        return here.common_dir if here is not None and is_linked else os.path.realpath(tree)
    except Unreadable:  # It is away.
        to = whole(os.path.join(tree, ".git")).removeprefix("gitdir:").lstrip(" ")
        return os.path.realpath(os.path.join(tree, to))


def is_busy(repository: str) -> bool:
    """Returns whether a git command is under way in a worktree of a repository."""
    own = repository_of(repository) or repository
    linked = os.path.join(own, "worktrees")
    every = (own, *(os.path.join(linked, each) for each in safe_open.names_in(linked)))
    return any(map(open_operations, every))


def has_work(repository: str) -> bool:
    """Returns whether a repository without its files has something that no remote has."""
    return is_busy(repository) or has_own_commits(repository) or has_staged(repository)


def has_own_commits(repository: str, within: str = "") -> bool:
    """Returns whether a repository has commits that no remote has, or if git does not say so. A
    remote in the folder `within` does not count: it goes with it.
    """
    # Branches, the stash and a detached HEAD: without a commit, that is nothing.
    head = ["HEAD"] if line("rev-parse", "--verify", "HEAD", cwd=repository, repository={}) else []
    try:
        inner = [f"--exclude={each}/*" for each in _remotes_in(repository, within)]
        how = ("rev-list", "--max-count=1", "--all", *head, "--not", *inner, "--remotes", "--")
        return bool(git(*how, cwd=repository, repository={}))
    except ExternalFailure:
        return True


def _remotes_in(repository: str, within: str) -> list[str]:
    """Returns the remotes of a repository that are in a folder. Raises `ExternalFailure`."""
    if not within:
        return []
    above = f"{os.path.realpath(within)}{os.sep}"
    found = []
    for _, key, url in settings(r"^remote\..*\.url$", cwd=repository):
        path = os.path.realpath(os.path.join(repository, url.removeprefix("file://")))
        if path.startswith(above):
            found.append(key.removeprefix("remote.").removesuffix(".url"))
    return found


def has_staged(repository: str) -> bool:
    """Returns whether a repository, of which the files may be gone, has staged what its commit has
    not, or if git does not say so.
    """
    has_head = line("rev-parse", "--verify", "HEAD", cwd=repository, repository={}) is not None
    how = ("diff-index", "--cached", "--diff-filter=d", "--name-only", "HEAD", "--")
    try:
        if has_head:
            return bool(git(*how, cwd=repository, repository={}))
        return bool(git("ls-files", cwd=repository, repository={}))
    except ExternalFailure:
        return True


def ignored_with_nested(tree: str) -> list[str]:
    """Returns what git ignores in a worktree and in the repositories there, files first; nothing if
    git does not say so.
    """
    with suppress(ExternalFailure):
        found = ignored_in(tree)
        for each in repositories(tree):
            path = f"{os.path.relpath(each, tree)}/"
            if not path.startswith(tuple(way for way in found if way.endswith("/"))):
                found += [f"{path}{way}" for way in ignored_in(each)]
        return sorted(found, key=lambda each: (each.endswith("/"), each))
    return []


def has_changes(repository: str) -> bool:
    """Returns whether a repository has something that is not committed, also where git was told not
    to look, or if git does not say.
    """
    try:
        here = git_tree(repository)
        if here is not None and here.tree == repository:
            return bool(all_changed(Worktree(here.tree, here.git_dir, here.common_dir)))
        config = without_programs(repository, {})
        return bool(git(*_STATUS, cwd=repository, config=config, repository={}))
    except (OSError, ExternalFailure):
        # One without a worktree has nothing else.
        return os.path.lexists(os.path.join(repository, ".git"))
