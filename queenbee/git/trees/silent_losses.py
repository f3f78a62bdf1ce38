"""What git takes from a worktree without a word when it brings it to another commit: a person's
link in place of a folder, a folder in place of a file, the deletion of a file, and a submodule with
all that is in it. And what it would wait for.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, suggested
from queenbee.git.run import git, names_in
from queenbee.git.trees.in_the_way import is_folder, only_in
from queenbee.git.trees.submodules import replaced

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_SHOWN = 5
_NOTHING, _SUBMODULE = "000000", "160000"
_READ = (".gitattributes", ".gitignore")


class Loss(NamedTuple):
    """Something that would be lost."""

    what: str
    """In words."""
    way: str = ""
    """What makes room, if git cannot stash it."""


def loss_by(tree: str, before: str, after: str) -> Loss | None:
    """Returns what a worktree would lose if git brought it from one commit to another; None if git
    itself refuses whatever is in its way. Raises `ExternalFailure`.
    """
    if submodules := replaced(tree, after):
        return submodules_lost(tree, submodules)
    modes = _modes(tree, before, after)
    above = _folders_above(modes)
    if stuck := _no_files(tree, above):
        return Loss(f"git would wait for what is no file: {named(stuck, _SHOWN)}", "remove it")
    # Of a file that goes, too: somebody may have staged others in its place.
    files = (path for path, (_, new) in modes.items() if new != _SUBMODULE)
    folders = [each for each in files if is_folder(tree, each)]
    links = [each for each in above if os.path.islink(os.path.join(tree, each))]
    deleted = _deleted(tree, modes)
    if not (links or deleted or folders):
        return None
    # What a sparse checkout leaves out is not there, and git writes nothing below it.
    listed = names_in(git("ls-files", "-v", "-z", cwd=tree, repository={}))
    left_out = {each[2:] for each in listed if each[:1] == "S"}
    written = modes.keys() - left_out
    if links := [each for each in links if any(path.startswith(f"{each}/") for path in written)]:
        return Loss(f"links are where git has folders: {named(links, _SHOWN)}")
    if deleted := [each for each in deleted if each not in left_out]:
        return Loss(f"deleted, and not committed: {named(deleted, _SHOWN)}")
    if own := only_in(tree, [each for each in folders if each not in left_out]):
        what = f"in no commit, and in folders where it has files: {named(own, _SHOWN)}"
        return Loss(what, "move them away")
    return None


def submodules_lost(tree: str, submodules: list[str]) -> Loss:
    """Returns the same for submodules in whose place a commit has other files."""
    return Loss(
        f"submodules with files in them are where it has others: {named(submodules, _SHOWN)}",
        "keep what you need of that, then "
        + suggested(f"{suggested('git -C', tree)} submodule deinit", *submodules[:_SHOWN]),
    )


def _modes(tree: str, before: str, after: str) -> dict[str, tuple[str, str]]:
    """Returns what differs between two commits, each with its modes in them."""
    how = ("diff-tree", "-r", "--raw", "--no-renames", "--ignore-submodules=none", "-z")
    fields = names_in(git(*how, no_dash(before), no_dash(after), "--", cwd=tree, repository={}))
    return {path: (said[1:7], said[8:14]) for said, path in zip(*[iter(fields)] * 2, strict=True)}


def _folders_above(paths: Collection[str]) -> list[str]:
    """Returns the folders of files that are to change, but for what was a file there. Git removes a
    link in place of one without a word, where it writes below it.
    """
    folders = set[str]()
    for path in paths:
        folder = os.path.dirname(path)
        while folder and folder not in folders:
            folders.add(folder)
            folder = os.path.dirname(folder)
    return sorted(folders.difference(paths))


def _no_files(tree: str, folders: Iterable[str]) -> list[str]:
    """Returns what git reads in these folders and would open for ever, such as a FIFO."""
    found = []
    for path in (os.path.join(each, name) for each in ("", *folders) for name in _READ):
        with suppress(OSError):
            mode = os.lstat(os.path.join(tree, path)).st_mode
            found += [path] * (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode))
    return found


def _deleted(tree: str, modes: Mapping[str, tuple[str, str]]) -> list[str]:
    """Returns the files that are not there, and that git would write again; no records, which any
    command writes again.
    """
    return [
        path
        for path, (old, new) in modes.items()
        if old not in (_NOTHING, _SUBMODULE)
        and new != _NOTHING
        and not path.startswith(".beads/")
        and not os.path.lexists(os.path.join(tree, path))
    ]
