"""What git has under way in a worktree, as the files in its git directory say."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.errors import Unreadable
from queenbee.git.run import git
from queenbee.store import safe_open

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OPEN: dict[str, tuple[str, ...]] = {
    "rebase-merge": ("rebase", "--quit"),
    "rebase-apply/applying": ("am", "--quit"),
    "rebase-apply": ("rebase", "--quit"),
    "MERGE_HEAD": ("merge", "--quit"),
    "CHERRY_PICK_HEAD": ("cherry-pick", "--quit"),
    "REVERT_HEAD": ("revert", "--quit"),
    "sequencer": ("cherry-pick", "--quit"),
    "BISECT_LOG": ("bisect", "reset", "HEAD"),
    "NOTES_MERGE_PARTIAL": ("notes", "merge", "--abort"),
}
"""What git has under way in a worktree whose git directory has these files, and what quits it: the
files of the worktree stay as they are.
"""


def open_operations(git_dir: str) -> list[str]:
    """Returns what git has under way in a worktree, as the names of the files in `OPEN`."""
    return [name for name in OPEN if os.path.lexists(os.path.join(git_dir, name))]


KEPT = "Queen-Kept: yes"
"""The last line of each commit that QueenBee makes of what it keeps. A landing looks for it."""
_OF_ONE = ("worktree", "bisect", "rewritten")
"""Below `refs/`, each worktree has its own of these."""
_AM = "rebase-apply"
_SAYS = {*(name.split("/")[0] for name in OPEN), "MERGE_AUTOSTASH", "BISECT_START", "BISECT_HEAD"}
"""What git notes of it: where it began, what is left to do, and what it put aside."""
_ID = re.compile(rb"\b([0-9a-f]{40,64})\b")
_STEP = re.compile(
    rb"^[ \t]*(?:(?:pick|revert|reword|edit|squash|fixup|merge|[presfm])[ \t]+(?:-[cC][ \t]+)?"
    rb"|# [a-z]+: \[)([0-9a-f]{4,64})\b",
    re.MULTILINE,
)
"""What is left of a cherry-pick is in short. Of other words, also of subjects, none is a commit."""
_FIELDS = (
    "abort-safety amend autostash head onto orig-head original-commit rewritten rewritten-list "
    "rewritten-pending squash-onto stopped-sha update-refs"
)
_STEPS = ("todo", "done", "git-rebase-todo", "git-rebase-todo.backup", "BISECT_LOG")
_KNOWN = {
    **dict.fromkeys((*_FIELDS.split(), *_SAYS), _ID),
    **dict.fromkeys(_STEPS, _STEP),
}
"""How each of those files names commits."""
_MOST_BYTES = 1 << 24


def own_refs(git_dir: str) -> list[str]:
    """Returns the objects of the references that only the worktree of a git directory has, below
    `refs/worktree/` and the like. Raises `ExternalFailure`.
    """
    how = ("for-each-ref", "--format=%(objectname)", *(f"refs/{each}/" for each in _OF_ONE))
    return git(*how, cwd=git_dir, repository={"GIT_DIR": git_dir}).decode().split()


def own_commits(git_dir: str) -> list[str]:
    """Returns the commits that only the worktree of a git directory may have: its `HEAD`, first,
    those of its own references, and all that is named by what git has under way. Raises
    `ExternalFailure`.
    """
    words = dict.fromkeys(("HEAD", *own_refs(git_dir), *_named(git_dir)))
    asked = "".join(f"{each}^{{commit}}\n" for each in words).encode()
    how = ("cat-file", "--batch-check=%(objectname)")
    said = git(*how, cwd=git_dir, repository={"GIT_DIR": git_dir}, stdin=asked).decode()
    return [each for each in said.splitlines() if " " not in each]  # Others: `… missing`.


def _named(git_dir: str) -> Iterator[str]:
    """Yields the commits that those files name. What `git am` applies is a file itself."""
    for name in sorted(_SAYS):
        path = os.path.join(git_dir, name)
        inside = (os.path.join(path, each) for each in safe_open.names_in(path))
        for each in (path, *inside):
            if (pattern := _KNOWN.get(os.path.basename(each))) is not None:
                with suppress(OSError, Unreadable):
                    ids = pattern.findall(safe_open.read(each, _MOST_BYTES))
                    yield from (commit.decode() for commit in ids)


def waiting_patches(git_dir: str, run: Callable[..., bytes]) -> list[str]:
    """Returns a new commit, on no branch, with the patches of a `git am` under way, which are
    nowhere else; `run` runs git. Raises `ExternalFailure` and `OSError`.
    """
    top = os.path.join(git_dir, _AM)
    if not os.path.lexists(os.path.join(top, "applying")):
        return []
    where = {"cwd": top, "repository": {"GIT_DIR": git_dir}}
    with os.scandir(top) as found:
        names = [x.name for x in found if x.name.isdigit() and x.is_file(follow_symlinks=False)]
    blobs = run("hash-object", "-w", "--no-filters", "--", *names, **where).decode().split()
    rows = (f"100644 blob {blob}\t{name}\n" for blob, name in zip(blobs, names, strict=True))
    tree = run("mktree", stdin="".join(rows).encode(), **where).decode().strip()
    about = "-mthe patches of a git am that was not finished"
    return [run("commit-tree", no_dash(tree), about, f"-m{KEPT}", **where).decode().strip()]
