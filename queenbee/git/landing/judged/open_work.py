"""What there is of the work on issues whose verdict is open, by content: the files that their
branches, what was kept of them, and those who released them had, and that the main branch lacks.

A name or a commit says little: a copy has other ones. A file with the same path and the same bytes
is the same work, whoever brings it, in whatever commit.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.timestamps import instant_ms
from queenbee.git.landing.commands import RAW, git, is_commit
from queenbee.git.ownership import bead_branches
from queenbee.git.unfinished import FOLDER, branch_part, commit_of_all, name_of
from queenbee.store import safe_open
from queenbee.store.droids import roster
from queenbee.store.git_files.worktrees import branch_head, target_branch, worktrees
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from queenbee.core.records import Assignment
    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout
    from queenbee.workflows.hive import Hive

Content = tuple[str, str]
"""A path from the top, and a blob."""

_RELEASED = "queenbee-released"
_MOST_BYTES = 2**22
_MOST_FILES = 10_000
_EMPTY = [each(b"blob 0\0").hexdigest() for each in (hashlib.sha1, hashlib.sha256)]
_AGAIN = re.compile(r"-\d+$")
"""How the names of branches end that keep work on an issue for another time."""


@dataclass
class OpenWork:
    """The work on one issue: where git has it, and what was noted of it."""

    tips: set[str] = field(default_factory=set)
    noted: set[Content] = field(default_factory=set)


def open_work(hive: Hive, is_open: Callable[[str], bool]) -> dict[str, OpenWork]:
    """Returns the work on issues that are `is_open`, by issue."""
    found = defaultdict[str, OpenWork](OpenWork)
    for issue_id, tips in _in_git(hive):
        if tips:
            found[issue_id].tips.update(tips)
    for place in worktrees(hive.layout):
        for issue_id, said in _notes(place.git_dir).items():
            found[issue_id].noted.update((str(path), str(blob)) for path, blob in said)
    return {each: work for each, work in found.items() if is_open(each)}


def contents_of(layout: Layout, works: Sequence[OpenWork]) -> set[Content]:
    """Returns what the main branch lacks of works: each file as any of their commits has it. Empty
    files are none of it.
    """
    found = {each for work in works for each in work.noted}
    tips = sorted({each for work in works for each in work.tips})
    return found | _contents(layout, layout.tree, tips) if tips else found


def note_released(hive: Hive, held: Assignment) -> None:
    """Notes what the worktree of an agent of a team has of an issue that it is about to release.

    Raises `ExternalFailure` and `OSError`.
    """
    layout, agent = hive.layout, roster.looked_after(hive.layout, held.droid)
    place = next((each for each in worktrees(layout) if agent and _is_at(each, agent)), None)
    if place is None or not place.linked:
        return
    commit = commit_of_all(place, place.droid or "queen", "released")
    contents = sorted(_contents(layout, place.path, [commit]))[:_MOST_FILES]
    note = {**_notes(place.git_dir), held.issue_id: [[*each] for each in contents]}
    open_ = {each: said for each, said in note.items() if hive.issues.completion(each) is None}
    keep(os.path.join(place.git_dir, _RELEASED), open_)


def _is_at(place: Worktree, agent: roster.Entry) -> bool:
    return os.path.realpath(place.path) == os.path.realpath(agent.path)


def _contents(layout: Layout, tree: str, tips: Sequence[str]) -> set[Content]:
    how = ("--no-show-signature", "--format=", *RAW, "-c")
    more = ("--diff-filter=d", "--ignore-missing", *map(no_dash, tips))
    target = no_dash(f"refs/heads/{target_branch(layout)}")
    listed = git("log", *how, *more, "--not", target, "--", cwd=tree)
    fields = iter(os.fsdecode(each).lstrip("\n") for each in listed.split(b"\0"))
    found = set[Content]()
    for said in fields:
        if said.startswith(":"):
            parents = len(said) - len(said.lstrip(":"))
            found.add((next(fields), said.split()[2 * parents + 1]))
    return {each for each in found if each[1] not in _EMPTY and not each[0].startswith(".beads/")}


def _in_git(hive: Hive) -> Iterator[tuple[str, list[str]]]:
    """Yields issues with refs and commits that have work on them."""
    layout = hive.layout
    for branch, issue_id in bead_branches(layout).items():
        if branch_head(str(layout.common_dir), branch) is not None:
            yield issue_id, [f"refs/heads/{branch}"]
    every = hive.assignments.find(status="all")
    yield from _kept(layout, every)
    moves = {os.path.basename(each.path): _moves(each.git_dir) for each in worktrees(layout)}
    for each in every:
        if each.status not in ("active", "completed") and each.worktree is not None:
            yield each.issue_id, _made_meanwhile(moves.get(each.worktree, ()), each)


def _kept(layout: Layout, every: Sequence[Assignment]) -> Iterator[tuple[str, list[str]]]:
    """Yields the branches that keep unfinished work, each with its issue."""
    names = {name_of(each): each.issue_id for each in every}
    names |= {branch_part(f"{each.issue_id}-while-judged"): each.issue_id for each in every}
    how = ("for-each-ref", "--format=%(refname)", f"refs/heads/{FOLDER}", f"refs/heads/{FOLDER}-*")
    for ref in os.fsdecode(git(*how, cwd=layout.tree)).split():
        name = ref.removeprefix(f"refs/heads/{FOLDER}")[1:]
        issue_id = names.get(name) or names.get(_AGAIN.sub("", name))
        if issue_id is not None:
            yield issue_id, [ref]


def _moves(git_dir: str) -> list[tuple[int, str]]:
    """Returns the commits at which a worktree was, each with when it came there (ms since 1970)."""
    try:
        log = safe_open.read(os.path.join(git_dir, "logs", "HEAD"), _MOST_BYTES)
    except OSError:
        return []
    every = (each.partition(b"\t")[0].decode(errors="replace").split() for each in log.splitlines())
    return [
        (int(words[-2]) * 1000, words[1])
        for words in every
        if len(words) > 3 and words[-2].isdecimal() and is_commit(words[1])
    ]


def _made_meanwhile(moves: Iterable[tuple[int, str]], held: Assignment) -> list[str]:
    """Returns the commits at which a worktree was while somebody had an issue there; its branch may
    have left them since.
    """
    began_ms, ended_ms = instant_ms(held.created_at) or 0, instant_ms(held.updated_at) or 0
    return [commit for at_ms, commit in moves if began_ms - 1000 < at_ms <= ended_ms]


def _notes(git_dir: str) -> dict[str, list[list[str]]]:
    said = recall(os.path.join(git_dir, _RELEASED), _MOST_BYTES)
    return said if isinstance(said, dict) else {}
