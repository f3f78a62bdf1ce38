"""What a worktree has in no commit, where git would write another file: ignored files, which git
takes for worthless, repositories, and what is in a folder in place of that file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.git.run import git, names_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

IGNORED = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
"""Lists what git ignores, a folder of such files as one that ends with a slash."""
_LISTED = ("ls-files", "-z")
_STAGED = ("diff-index", "--cached", "--name-only", "--diff-filter=d", "-z", "HEAD")
_BARE = {"HEAD", "objects", "refs"}
"""What git takes a folder for a repository by."""


def in_the_way(tree: str, paths: Collection[str]) -> list[str]:
    """Returns what is there without git, and would have to go to write these files: what has the
    name of one or of one of its folders, or `only_in` a folder of that name, or the repository that
    it is in.
    """
    there = {path: way for path in paths if (way := _in_the_way(tree, path)) is not None}
    known = set(names_in(git("ls-files", "-z", "--", cwd=tree, repository={}))) if there else set()
    ways = {way for path, way in there.items() if not {path, way} & known}
    folders = {way for way in ways if is_folder(tree, way)}
    return sorted({*ways - folders, *only_in(tree, folders)})


def only_in(tree: str, folders: Collection[str]) -> list[str]:
    """Returns what is in folders of a worktree, and not in the commit that is checked out: staged,
    untracked or ignored, FIFOs, sockets and repositories. Git takes what is staged, and what it
    cannot add, without a word when it writes a file there.

    A folder in which git has nothing, and which has files, counts as one.
    """
    if not folders:
        return []
    listed, staged = (
        set(names_in(git("--literal-pathspecs", *how, "--", *folders, cwd=tree, repository={})))
        for how in (_LISTED, _STAGED)
    )
    above = {path[:end] for path in listed for end, sign in enumerate(path) if sign == "/"}
    found = (each for folder in folders for each in _unlisted(tree, folder, listed, above))
    return sorted({*staged, *found})


def between(tree: str, before: str, after: str) -> list[str]:
    """Returns the same for a move from one commit to another."""
    if before == after:
        return []
    added = ("diff-tree", "-r", "--name-only", "--no-renames", "--diff-filter=AT", "-z")
    commits = (no_dash(before), no_dash(after), "--")
    return in_the_way(tree, names_in(git(*added, *commits, cwd=tree, repository={})))


def repositories(top: str) -> Iterator[str]:
    """Yields the repositories below a folder, submodules too, whether git ignores them or not."""
    for folder, folders, files in os.walk(top):
        if folder != top and (".git" in (*folders, *files) or {*folders, *files} >= _BARE):
            yield folder
        if ".git" in folders:
            folders.remove(".git")


def ignored_in(tree: str) -> list[str]:
    """Returns what git ignores in a worktree, a folder of such files as one that ends with a slash.
    Raises `ExternalFailure`.
    """
    return names_in(git(*IGNORED, cwd=tree, repository={}))


def has_repository(path: str) -> bool:
    """Returns whether a folder is a repository, or has one below it; a link to one is no folder."""
    if os.path.islink(path):
        return False
    return os.path.lexists(os.path.join(path, ".git")) or any(repositories(path))


def is_folder(tree: str, path: str) -> bool:
    """Returns whether a path of a worktree is a folder, and no link to one."""
    whole = os.path.join(tree, path)
    return os.path.isdir(whole) and not os.path.islink(whole)


def _unlisted(tree: str, path: str, listed: set[str], above: set[str]) -> Iterator[str]:
    whole = os.path.join(tree, path)
    if path in listed:
        return
    is_plain = is_folder(tree, path) and not os.path.lexists(os.path.join(whole, ".git"))
    try:
        inside = os.listdir(whole) if is_plain else None
    except OSError:  # Nobody can say what is in there.
        inside = None
    if inside is None or (path not in above and any(files for _, _, files in os.walk(whole))):
        yield path
        return
    for each in inside:
        yield from _unlisted(tree, f"{path}/{each}", listed, above)


def _in_the_way(tree: str, path: str) -> str | None:
    end = path.find("/")
    while end >= 0:
        folder = os.path.join(tree, path[:end])
        if not os.path.lexists(folder):
            return None
        if os.path.islink(folder) or not os.path.isdir(folder):
            return path[:end]
        if os.path.lexists(os.path.join(folder, ".git")):
            return path[:end] if os.path.lexists(os.path.join(tree, path)) else None
        end = path.find("/", end + 1)
    return path if os.path.lexists(os.path.join(tree, path)) else None
