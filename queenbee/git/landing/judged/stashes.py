"""What was put into the stash, which all worktrees share, also what was taken out of it since."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.errors import ExternalFailure
from queenbee.git.landing.commands import git
from queenbee.store import safe_open

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.git.landing.judged.reflogs import Reflog
    from queenbee.store.layout import Layout

_SUBJECT = re.compile(r"(?:WIP on|On) (\(no branch\)|[^:]+): ")
_FOLDER = re.compile(r"[0-9a-f]{2}")
_LOG = ("log", "--no-show-signature", "--format=%H%x00%ct%x00%P%x00%s")


@dataclass(frozen=True, slots=True)
class Stash:
    """A commit of the stash, when it was made, upon which one, and what it says of its branch."""

    commit: str
    at_s: int
    parent: str
    branch: str | None

    def is_of(self, branch: str | None, log: Reflog, began_s: int, ended_s: int | None) -> bool:
        """Returns whether a worktree made it while somebody had an issue there: one that is on this
        branch, or, for one that names no branch, was at its parent.
        """
        if not (began_s <= self.at_s and (ended_s is None or self.at_s <= ended_s)):
            return False
        return self.branch == branch if self.branch is not None else self.parent in log.commits()


def stashes_since(layout: Layout, since_s: int) -> Iterator[Stash]:
    """Yields the stashes that were made since then. Of those that were taken out or dropped, git
    has the objects, in files of their own, until it packs or prunes them.
    """
    tree = layout.tree
    listed = _loose(os.path.join(str(layout.common_dir), "objects"), since_s)
    asked = "".join(f"{each}\n" for each in listed).encode()
    types = git("cat-file", "--batch-check", cwd=tree, stdin=asked).decode() if asked else ""
    commits = [each.split()[0] for each in types.splitlines() if each.split()[1:2] == ["commit"]]
    stdin = "".join(f"{each}\n" for each in commits).encode()
    said = git(*_LOG, "--no-walk", "--stdin", "--", cwd=tree, stdin=stdin) if commits else b""
    with suppress(ExternalFailure):  # There is no stash.
        said += git(*_LOG, "--walk-reflogs", "refs/stash", "--", cwd=tree)
    lines = said.decode(errors="surrogateescape").splitlines()
    for each in {line for line in lines if line}:
        commit, at_s, parents, subject = each.split("\0", 3)
        named = _SUBJECT.match(subject)
        if named is not None and " " in parents and int(at_s) >= since_s:
            branch = None if named[1] == "(no branch)" else named[1]
            yield Stash(commit, int(at_s), parents.split()[0], branch)


def _loose(folder: str, since_s: int) -> Iterator[str]:
    """Yields the objects in files of their own that were written since then."""
    for first in filter(_FOLDER.fullmatch, safe_open.names_in(folder)):
        with suppress(OSError), os.scandir(os.path.join(folder, first)) as entries:
            for each in entries:
                if len(each.name) >= 38 and each.stat().st_mtime >= since_s:
                    yield first + each.name
