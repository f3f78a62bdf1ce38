"""A worktree whose own git settings say that its files are elsewhere, or its repository.

Git believes `core.worktree` in the `config.worktree` of a linked worktree: what git does "there" is
then done to any folder. It believes `commondir`: what git does there then runs hooks of another
repository. And it believes the file `.git`: what git does there is then done to the branch of
another worktree. Nothing of ours makes that, and nothing of ours follows it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.text import mentioned, shell_word, suggested
from queenbee.errors import Conflict
from queenbee.git.run import as_the_user
from queenbee.store.git_files import worktrees
from queenbee.store.git_trees import config_value, git_tree, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queenbee.store.git_trees import GitTree

_NAMES = ("worktree", "bare")


def refuse_elsewhere(tree: str) -> None:
    """Raises `Conflict` for a linked worktree whose settings name another folder, or none, or whose
    git directory leads to another repository than the one that has it, or is of another folder.
    """
    here = git_tree(tree)
    if here is None or not here.linked:
        return
    if not _is_at_home(here):
        raise Conflict(
            f"git's directory of {mentioned(tree)}, {here.git_dir}, leads to another repository, "
            f"{mentioned(here.common_dir)}",
            hint=f"if nobody meant that: echo ../.. > {shell_word(here.git_dir)}/commondir",
        )
    own = os.path.dirname(os.path.join(here.git_dir, whole(os.path.join(here.git_dir, "gitdir"))))
    if not os.path.isdir(own) or not os.path.samefile(own, here.tree):
        there = here.common_dir if os.path.lexists(own) else here.tree
        raise Conflict(
            f"the .git of {mentioned(tree)} leads to the branch and index of another worktree, "
            f"{mentioned(own)}",
            hint=f"{suggested('git -C', there)} worktree repair",
        )
    for name in _said(here.git_dir):
        raise Conflict(
            f"git's settings of {mentioned(tree)} alone say core.{name}: its files would be those "
            "of another folder",
            hint=f"{suggested('git -C', tree)} config --worktree --unset-all core.{name}",
        )


def led_away(common_dir: str | None) -> Iterator[tuple[str, Conflict]]:
    """Yields the worktrees that nobody looks into, each with the reason: they lead to another
    repository.
    """
    for tree in worktrees.led_away(common_dir) if common_dir is not None else ():
        try:
            refuse_elsewhere(tree)
        except Conflict as error:
            yield tree, error


def tell_led_away(common_dir: str | None, tell: Callable[[str], None]) -> None:
    """Tells the same, with the way out."""
    for _, error in led_away(common_dir):
        tell(f"{error.message}; nobody looks into it; try: {error.hint}")


def _is_at_home(here: GitTree) -> bool:
    """Returns whether a linked worktree is one of `worktrees/` of its repository; a submodule's
    directory, which has no such place, is no linked worktree.
    """
    above = os.path.dirname(os.path.dirname(here.git_dir))
    return os.path.realpath(above) == os.path.realpath(here.common_dir)


def bring_home(git_dir: str) -> Iterator[str]:
    """Removes such settings; yields their names. Raises `ExternalFailure`."""
    for name in _said(git_dir):
        as_the_user(
            *("config", f"--file={_file(git_dir)}", "--unset-all", f"core.{name}"), cwd=git_dir
        )
        yield f"core.{name}"


def _said(git_dir: str) -> list[str]:
    path = _file(git_dir)
    return [each for each in _NAMES if config_value(path, "core", each, includes=0) is not None]


def _file(git_dir: str) -> str:
    return os.path.join(git_dir, "config.worktree")
