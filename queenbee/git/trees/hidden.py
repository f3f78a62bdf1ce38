"""Files at whose changes git was told not to look: `assume-unchanged` and `skip-worktree`.

Neither `git status` nor `git add` knows of an edit there, and some git commands overwrite it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.text import shell_word, suggested
from queenbee.git.run import as_the_user, git, line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def hidden_in(listed: Iterable[str]) -> list[str]:
    """Returns the files with such a flag in what `git ls-files -v -z` lists."""
    return [each[2:] for each in listed if each[:1] == "S" or each[:1].islower()]


def hidden_files(tree: str) -> list[str]:
    """Returns the files with such a flag that are there."""
    said = git("ls-files", "-v", "-z", cwd=tree, repository={}).split(b"\0")
    return _there(tree, hidden_in(map(os.fsdecode, said)))


def changed_of(tree: str, hidden: Sequence[str]) -> list[str]:
    """Returns those of the files that are there with other content than in the index."""
    here = _there(tree, hidden)
    if not here:
        return []
    how = ("--literal-pathspecs", "ls-files", "-s", "-z", "--", *here)
    stored = git(*how, cwd=tree, repository={}).split(b"\0")
    said = {os.fsdecode(each.split(b"\t", 1)[-1]): each for each in stored}
    return [each for each in here if _blob(tree, each).encode() not in said.get(each, b"")]


def show_hidden(tree: str) -> None:
    """Has git look at them again. Raises `ExternalFailure`."""
    here = hidden_files(tree)
    if here:  # One flag at a time.
        as_the_user("update-index", "--no-assume-unchanged", "--", *here, cwd=tree)
        as_the_user("update-index", "--no-skip-worktree", "--", *here, cwd=tree)


def way_to_show(tree: str, path: str) -> str:
    """Returns the commands that have git look at a file again."""
    update = f"{suggested('git -C', tree)} update-index"
    path = shell_word(path)
    return f"{update} --no-skip-worktree {path} && {update} --no-assume-unchanged {path}"


def _there(tree: str, paths: Iterable[str]) -> list[str]:
    return [each for each in paths if os.path.lexists(os.path.join(tree, each))]


def _blob(tree: str, path: str) -> str:
    return line("hash-object", "--", path, cwd=tree, repository={}) or "?"
