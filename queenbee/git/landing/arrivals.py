"""What came in from the target while a branch was worked on: one arrival for each landing; and
which landings a branch takes back, or brings back.

The target's reflog knows where each landing ended, if it has several commits. Without one, each
commit of the first-parent line is an arrival.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned, one_line, quotation, some
from queenbee.git.landing.commands import RAW, git, is_commit
from queenbee.git.run import names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from queenbee.git.landing.commands import Changed
    from queenbee.git.landing.place import Place

    Whose = Callable[[Sequence[str]], Mapping[str, Sequence[tuple[str, str]]]]
    """Returns the issues and their droids of those of the commits that completions name."""

_SHOWN = 3
_MOST_CHARS = 60
_HIVE = ".beads/"
_RECENT = ("--since=3.days", "--ignore-missing")
"""Over a weekend; a worktree whose files are older still lacks something that landed since."""
_MOST_NAMED = 200
"""So many files of a branch are looked up by name; git compares all of them sooner than more."""
_SEEN = "--max-count=200"
"""So many of the target's last moves are read: 0.01 s."""
_PARTS = ("rev-list", "--ignore-missing")
"""The commits that a landing brought; the first commit of all has none before it."""
_REVERTED = re.compile(r"^This reverts commit ([0-9a-f]{40,64})", re.MULTILINE)


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

    def credit(self, landed: Sequence[tuple[str, str]]) -> None:
        """Takes note of the issues that landed with it, and their droids."""
        (self.issue_id, self.droid), *self.beside = landed

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {name: each for name, each in asdict(self).items() if name != "author"}

    def taken_back(self) -> str:
        """Returns what is taken back of it, in words that are safe to show to an agent."""
        return f"{self.whose()}: {_listed(self.files)}"

    def whose(self) -> str:
        """Returns for which issues and by whom it landed, in words that are as safe."""
        if self.issue_id is not None and self.droid is not None:
            by: dict[str, list[str]] = {}
            for issue, droid in ((self.issue_id, self.droid), *self.beside):
                by.setdefault(_safe(droid), []).append(_safe(issue))
            whose = ", ".join(f"{', '.join(issues)} by {droid}" for droid, issues in by.items())
            return f"{whose} ({self.commit[:10]})"
        subject = quotation(one_line(self.subject, _MOST_CHARS))
        return f"{self.commit[:10]} {subject} by {_safe(self.author)}"


def sentences(arrivals: Sequence[Arrival]) -> list[str]:
    """Returns landings in words, those that changed the same files in one sentence; all names in it
    are safe to show to an agent.
    """
    by_files: dict[tuple[str, ...], list[Arrival]] = {}
    for each in arrivals:
        by_files.setdefault((*each.files,), []).append(each)
    found = []
    for files, alike in by_files.items():
        change = "change" if alike[1:] else "changes"
        also = f", which {change} {_listed(files)} too" if files else ""
        found.append(", ".join(each.whose() for each in alike) + also)
    return found


def _listed(files: Sequence[str]) -> str:
    return some([_safe(each) for each in files], _SHOWN)


class Incoming:
    """What there was before the target was brought into the branch."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._own = _own_head(place)

    def arrivals(self, tip: str, whose: Whose, changed: Sequence[str]) -> list[Arrival]:
        """Returns what the target got since then, up to `tip`, the newest first.

        `changed` are the files of the branch that count.
        """
        listed = log(self._place.common_dir, no_dash(f"{self._own}..{tip}"), "--")
        if not listed:
            return []
        commits = [each[0] for each in listed]
        records = whose(commits)
        ends = {*_reflog(self._place), *records} & {*commits} or {*commits}
        mine = set(changed)
        found: list[Arrival] = []
        for commit, author, subject, files in listed:
            if files and all(each.startswith(_HIVE) for each in files) and commit not in records:
                continue  # Records alone are no landing.
            shared = {each for each in files.keys() & mine if not each.startswith(_HIVE)}
            if commit in ends or not found:
                found.append(Arrival(commit, subject, author, sorted(shared)))
                if commit in records:
                    found[-1].credit(records[commit])
            else:
                found[-1].files = sorted({*found[-1].files, *shared})
        return found


_LOG = (
    *("--literal-pathspecs", "log", "--first-parent", "--diff-merges=first-parent", *RAW),
    *("--no-color", "--format=%x01%H%x00%an%x00%s%x00"),
)


@lru_cache(maxsize=16)
def log(where: str, *wanted: str) -> list[tuple[str, str, str, dict[str, str]]]:
    """Returns the commits of a range, on the target's first-parent line, the newest first, with
    their author, their subject and their files, each with the blob that it was before.
    """
    said = git(*_LOG, *wanted, cwd=where).decode(errors="surrogateescape")
    tokens = iter(each.lstrip("\n") for each in said.split("\0"))
    found: list[tuple[str, str, str, dict[str, str]]] = []
    for token in tokens:
        if token[:1] == "\1" and is_commit(token[1:]):
            found.append((token[1:], next(tokens), next(tokens), {}))
        elif token and found:
            found[-1][3][next(tokens)] = token.split()[2]
    return found


def undone(tree: str, since: str, target: str, changed: Changed) -> list[Arrival]:
    """Returns the landings of the last days after the commit `since` that HEAD takes back, the
    newest first, with the files that are in it as they were before these. Not those that a commit
    of it reverts by name, and no file that it has under another name.

    `changed` is what it brings.
    """
    now = {path: new for path, (old, new) in changed.items() if old != new and path[:7] != _HIVE}
    named = now if len(now) <= _MOST_NAMED else ()
    but = (f"^{since}",) if since else ()
    listed = log(tree, *_RECENT, no_dash(target), *but, "--", *named) if now else []
    later: dict[str, list[str]] = {}
    back: dict[str, list[str]] = {}
    for commit, _, _, files in listed:
        for path, old in files.items():
            later.setdefault(path, []).append(commit)
            if old == now.get(path):
                back.setdefault(path, [*later[path]])
    if not back:
        return []
    asked = ("diff", "-z", "-M", "--diff-filter=D", "--name-only", no_dash(target), "HEAD", "--")
    gone = set(names_in(git(*asked, cwd=tree)))
    kept = [path for path in back if set(now[path]) != {"0"} or path in gone]
    said = git("log", "--format=%B", no_dash(f"{target}..HEAD"), "--", cwd=tree).decode(
        errors="replace"
    )
    meant = {*_REVERTED.findall(said)}
    found = []
    for commit, author, subject, _ in listed:
        paths = sorted(path for path in kept if commit in back[path])
        parts = (
            meant and git(*_PARTS, no_dash(commit), f"^{commit}^", "--", cwd=tree).decode().split()
        )
        if paths and not meant.intersection(parts):
            found.append(Arrival(commit, subject, author, paths))
    return found


def taken_off(place: Place) -> set[str]:
    """Returns the commits that the target had when it was seen before, and has no longer."""
    moves = ("rev-list", "--walk-reflogs", _SEEN, no_dash(place.target_ref), "--")
    seen = git(*moves, cwd=place.tree).decode().split()
    gone = (*_PARTS, *map(no_dash, seen), f"^{place.tip()}", "--")
    return {*git(*gone, cwd=place.tree).decode().split()} if seen else set()


def brought_back(place: Place, head: str, gone: Collection[str]) -> list[str]:
    """Returns those of these commits that a branch would bring to the target, the newest first."""
    own = git("rev-list", no_dash(head), f"^{place.tip()}", "--", cwd=place.tree) if gone else b""
    return [each for each in own.decode().split() if each in gone]


def _own_head(place: Place) -> str:
    """Returns the commit of the branch, also while a rebase of it is not finished."""
    if place.is_rebasing:
        path = os.path.join(place.git_dir, "rebase-merge", "orig-head")
        with suppress(OSError), open(path, encoding="ascii") as file:
            return file.read().strip()
    return place.head()


def _reflog(place: Place) -> list[str]:
    """Returns where the target was; nothing where git keeps that elsewhere."""
    return _logged(os.path.join(place.common_dir, "logs", place.target_ref))


def _logged(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [each[1] for line in file if len(each := line.split(" ", 2)) == 3]
    except OSError:
        return []


def began(git_dir: str) -> str:
    """Returns the first commit that a worktree is known to have had; "" if none is."""
    return next(iter(_logged(os.path.join(git_dir, "logs", "HEAD"))), "")


def _safe(text: str) -> str:
    return mentioned(one_line(text, _MOST_CHARS))
