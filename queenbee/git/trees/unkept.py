"""Files of a worktree that no commit keeps as they are: git refuses to add them, such as one whose
line ends or name its settings forbid, or a filter leaves something out. They are kept beside it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.errors import ExternalFailure
from queenbee.git.run import git, names_in, user_git
from queenbee.git.trees.hidden import files_in
from queenbee.git.trees.set_aside import free_name
from queenbee.git.trees.special_files import add_all, special_files
from queenbee.store import safe_open

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_AT_ONCE = 500
_MOST = 100
_MOST_BYTES = 1 << 28
"""A larger file of a filter, such as one of Git LFS, is not compared."""


def add_taken(
    run: Callable[..., object],
    tree: str,
    options: Sequence[str],
    changed: Sequence[str],
    but: Sequence[str] = (),
) -> list[str]:
    """Has `run` add all of a worktree to an index, as `add_all` does, but those of the changed
    files that git refuses to add, which it returns. Raises `ExternalFailure`.
    """
    try:
        add_all(run, tree, options, but)
    except ExternalFailure:
        special = special_files(tree, changed)
        files = [each for each in changed if each not in special]
        found = _refused(run, tree, options, files)
        if not found:
            raise
        left_out = (f":(top,exclude,literal){each}" for each in found)
        add_all(run, tree, options, [*but, *left_out])
        return found
    return []


def _refused(
    run: Callable[..., object], tree: str, options: Sequence[str], paths: Sequence[str]
) -> list[str]:
    """Returns those of the files that `run`, which runs git, fails to add. Raises `ExternalFailure`
    if these are so many that it is not about them, as with a full disk.
    """
    found = list[str]()
    here = files_in(tree, paths)
    todo = [here[first : first + _AT_ONCE] for first in range(0, len(here), _AT_ONCE)]
    while todo:
        some = todo.pop()
        try:
            run("add", *options, "--force", "--", *(f":(top,literal){each}" for each in some))
        except ExternalFailure:
            half = len(some) // 2
            todo += [some[:half], some[half:]] if half else []
            found += [] if half else some
            if len(found) > _MOST:
                raise
    return sorted(found)


def shortened(tree: str, paths: Iterable[str]) -> list[str]:
    """Returns those of the files, as the index has them, that a checkout would not bring back as
    they are, since a filter leaves something out.
    """
    files = [each for each in files_in(tree, paths) if _is_file(os.path.join(tree, each))]
    asked = os.fsencode("".join(f"{each}\0" for each in files))
    how = ("check-attr", "-z", "--stdin", "filter")
    said = names_in(git(*how, cwd=tree, stdin=asked, repository={})) if files else []
    filtered = [
        path for path, value in zip(said[::3], said[2::3], strict=True) if value[:2] != "un"
    ]
    return [each for each in filtered if not _comes_back(tree, each)]


def _comes_back(tree: str, path: str) -> bool:
    status, out, _ = user_git("cat-file", "--filters", f":{path}", cwd=tree)
    return status == 0 and out == safe_open.read(os.path.join(tree, path))


def _is_file(path: str) -> bool:
    is_plain = os.path.isfile(path) and not os.path.islink(path)
    return is_plain and os.path.getsize(path) <= _MOST_BYTES


def keep_beside(tree: str, moved: Sequence[str], copied: Sequence[str]) -> str | None:
    """Returns a new folder beside a worktree that has these files of it, byte for byte; None if
    there are none. Those that are `moved` are there no more. Raises `Conflict`, `OSError`.
    """
    if not (moved or copied):
        return None
    top = free_name(tree)
    for each in (*moved, *copied):
        source, target = os.path.join(tree, each), os.path.join(top, each)
        safe_open.make_folder(os.path.dirname(target))
        with safe_open.At(source) as (name, folder):
            try:
                os.link(name, target, src_dir_fd=folder, follow_symlinks=False)
            except OSError:  # The disk has no links.
                safe_open.write(target, safe_open.read(source))
    for each in moved:
        safe_open.unlink(os.path.join(tree, each))
    return top
