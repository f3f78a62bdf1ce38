"""What came in from the target while a branch was worked on: one arrival for each landing.

The target's reflog knows where each landing ended, if it has several commits. Without one, each
commit of the first-parent line is an arrival.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from queenbee.core.text import mentioned, one_line, quotation, some
from queenbee.git.landing.commands import git, is_commit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.git.landing.place import Place

    Whose = Callable[[Sequence[str]], Mapping[str, Sequence[tuple[str, str]]]]
    """Returns the issues and their droids of those of the commits that completions name."""

_SHOWN = 3
_MOST_CHARS = 60
_HIVE = ".beads/"


@dataclass(slots=True)
class Arrival:
    """A landing that came in: its commit, for which issue and by whom, and the files of it that
    the branch changes too.
    """

    commit: str
    subject: str
    author: str
    files: Sequence[str]
    issue_id: str | None = None
    """None if no completion names the commit."""
    droid: str | None = None
    beside: Sequence[tuple[str, str]] = ()
    """The other issues that landed in the same step, with their droids."""

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {name: each for name, each in asdict(self).items() if name != "author"}

    def sentence(self) -> str:
        """Returns it in words; all names in it are safe to show to an agent."""
        if self.issue_id is not None and self.droid is not None:
            landed = ((self.issue_id, self.droid), *self.beside)
            whose = ", ".join(f"{_safe(issue)} by {_safe(droid)}" for issue, droid in landed)
            whose += f" ({self.commit[:10]})"
        else:
            subject = quotation(one_line(self.subject, _MOST_CHARS))
            whose = f"{self.commit[:10]} {subject} by {_safe(self.author)}"
        if not self.files:
            return f"{whose}, in other files"
        changed = some([_safe(each) for each in self.files], _SHOWN)
        return f"{whose}, which changes {changed} too"


class Incoming:
    """What there was before the target was brought into the branch."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._own = _own_head(place)

    def arrivals(self, tip: str, whose: Whose, changed: Sequence[str]) -> list[Arrival]:
        """Returns what the target got since then, up to `tip`, the newest first.

        `changed` are the files of the branch that count.
        """
        tree = self._place.tree
        listed = log(tree, self._own, tip)
        if not listed:
            return []
        commits = [each[0] for each in listed]
        records = whose(commits)
        ends = {*_reflog(self._place), *records} & {*commits} or {*commits}
        mine = set(changed)
        found: list[Arrival] = []
        for commit, author, subject, files in listed:
            shared = {each for each in files & mine if not each.startswith(_HIVE)}
            if commit in ends or not found:
                found.append(Arrival(commit, subject, author, sorted(shared)))
                if commit in records:
                    (found[-1].issue_id, found[-1].droid), *found[-1].beside = records[commit]
            else:
                found[-1].files = sorted({*found[-1].files, *shared})
        return found


_LOG = (
    *("log", "--first-parent", "--diff-merges=first-parent", "--name-only", "--no-renames"),
    *("-z", "--no-color", "--format=%x01%H%x00%an%x00%s%x00"),
)


@lru_cache(maxsize=16)
def log(tree: str, own: str, tip: str) -> list[tuple[str, str, str, set[str]]]:
    """Returns the commits that only the target has, on its first-parent line, the newest first,
    with their author, their subject and their files.
    """
    said = git(*_LOG, f"{own}..{tip}", "--", cwd=tree).decode(errors="surrogateescape")
    tokens = [each.lstrip("\n") for each in said.split("\0")]
    found: list[tuple[str, str, str, set[str]]] = []
    at = 0
    while at < len(tokens):
        if tokens[at][:1] == "\1" and is_commit(tokens[at][1:]):
            found.append((tokens[at][1:], tokens[at + 1], tokens[at + 2], set()))
            at += 3
            continue
        if tokens[at] and found:
            found[-1][3].add(tokens[at])
        at += 1
    return found


def _own_head(place: Place) -> str:
    """Returns the commit of the branch, also while a rebase of it is not finished."""
    if place.is_rebasing:
        path = os.path.join(place.git_dir, "rebase-merge", "orig-head")
        with suppress(OSError), open(path, encoding="ascii") as file:
            return file.read().strip()
    return place.head()


def _reflog(place: Place) -> list[str]:
    """Returns where the target was; nothing where git keeps that elsewhere."""
    try:
        path = os.path.join(place.common_dir, "logs", place.target_ref)
        with open(path, encoding="utf-8", errors="replace") as file:
            return [each[1] for line in file if len(each := line.split(" ", 2)) == 3]
    except OSError:
        return []


def _safe(text: str) -> str:
    return mentioned(one_line(text, _MOST_CHARS))
