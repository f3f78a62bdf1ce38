"""What an agent of a team does not land: work that others have still to judge.

Names, releases and other issues change nothing about that: what counts is for what this worktree
was used since it was last empty, and on which branches its commits are.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.beads import DONE, is_sprint_bead
from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned, suggested
from queenbee.core.timestamps import instant_ms
from queenbee.errors import Conflict
from queenbee.git.contents.judging_bead import judging_bead
from queenbee.git.ownership import bead_branches, emptied_ms
from queenbee.git.run import git, line
from queenbee.store.codec import Unusable, decode
from queenbee.store.droids import roster
from queenbee.store.git_files.tree_id import is_of_tree, read_tree_id
from queenbee.store.git_files.worktrees import branch_head, target_branch, target_ref
from queenbee.workflows.completing import judged_first

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queenbee.git.landing.commands import Changed
    from queenbee.workflows.complete_hive import Hive

_TRACKER = ".beads/issues.jsonl"


def refuse_unjudged(hive: Hive, issues: Sequence[str | None]) -> None:
    """Raises `Conflict` in the worktree of an agent that `queen start` looks after: in a step of a
    sprint bead, under another name, and for work on an issue with checks that is neither completed
    nor one of those that land. What the work is, `refuse_unjudged_work` looks at.
    """
    entry = roster.of_tree(hive.layout)
    if entry is None:
        return
    if entry.is_judged:
        raise judged_first(entry.issue_id)
    if hive.actor != entry.name:
        raise Conflict(
            f"this is the worktree of {entry.name}, whom queen start looks after: {hive.actor} "
            "lands nothing from it",
            hint=f"land as {entry.name}: {suggested('queen land', as_=entry.name)}",
        )
    for issue_id in _used_for(hive, entry.name):
        if issue_id not in issues and _is_open(hive, issue_id) and _has_checks(hive, issue_id):
            raise Conflict(
                f"this worktree has work on {issue_id}, whose checks have not passed",
                hint=f"claim it again, and land it: {suggested('queen claim', issue_id)}",
            )


def refuse_unjudged_work(
    hive: Hive,
    issues: Sequence[str | None],
    *,
    tree: str,
    head: str,
) -> None:
    """Raises `Conflict` if what an agent of a team lands from a tree, at a commit, has commits of
    the branch of another sprint bead, whose verdict is open.
    """
    if roster.at(hive.layout, tree) is None:
        return
    for branch, bead_id in bead_branches(hive.layout).items():
        is_other = bead_id not in issues and _is_open(hive, bead_id)
        if is_other and _has_checks(hive, bead_id) and _has_commits_of(hive, branch, head):
            raise Conflict(
                f"this worktree has commits of {mentioned(branch)}, the branch of {bead_id}, which "
                "has not been judged",
                hint=suggested("git log", f"{target_branch(hive.layout)}..{branch}"),
            )


def refuse_ended_rows(
    hive: Hive, issues: Sequence[str | None], contents: Changed, tree: str
) -> None:
    """Raises `Conflict` if what an agent of a team lands from a tree ends the row of another issue
    in the tracker's file, whose checks have not passed. `contents` has the blobs of each file
    before and after.
    """
    blobs = contents.get(_TRACKER)
    if blobs is None or roster.at(hive.layout, tree) is None:
        return
    before, after = (_ended(blob, hive.layout.tree) for blob in blobs)
    for issue_id in sorted(after - before - {each for each in issues if each}):
        if _is_open(hive, issue_id) and _has_checks(hive, issue_id):
            raise Conflict(
                f"{_TRACKER}: it ends {mentioned(issue_id)}, whose checks have not passed",
                hint=suggested("git checkout", str(target_branch(hive.layout)), "--", _TRACKER),
            )


def _ended(blob: str, tree: str) -> set[str]:
    """Returns the issues that a tracker's file says are done or deleted."""
    if set(blob) == {"0"}:
        return set()
    found = set[str]()
    for line_ in git("cat-file", "blob", no_dash(blob), cwd=tree, repository={}).split(b"\n"):
        with suppress(Unusable):
            row = decode(line_)
            if row.get("status") in DONE:
                found.add(str(row.get("id")))
    return found


def _used_for(hive: Hive, droid: str) -> Iterator[str]:
    """Yields the issues that anybody had in this worktree since it was last empty."""
    since_ms, folder = emptied_ms(hive.layout), hive.layout.worktree
    tree_id = read_tree_id(hive.layout)
    for each in hive.assignments.find(status="all"):
        is_its = each.droid == droid or is_of_tree(each, tree_id)
        is_here = is_its and each.worktree == folder
        ended_ms = instant_ms(each.updated_at) or 0
        if is_here and (each.status == "active" or ended_ms > since_ms):
            yield each.issue_id


def _is_open(hive: Hive, issue_id: str) -> bool:
    return hive.issues.completion(issue_id) is None


def _has_checks(hive: Hive, issue_id: str) -> bool:
    issue = hive.issues.row(issue_id)
    is_sprint = issue is not None and (issue.team is not None or is_sprint_bead(issue.fields))
    is_made = issue_id in bead_branches(hive.layout).values()
    return is_sprint or is_made or judging_bead(hive, issue_id)[0] is not None


def _has_commits_of(hive: Hive, branch: str, head: str) -> bool:
    """Returns whether a commit has commits of a branch that are not on the main branch."""
    tree, target = hive.layout.tree, str(target_ref(hive.layout))
    if branch_head(str(hive.layout.common_dir), branch) is None:
        return False
    ref = f"refs/heads/{branch}"
    shared = (
        line("merge-base", "--all", no_dash(head), no_dash(ref), cwd=tree, repository={}) or ""
    ).split()
    more = ("rev-list", "--max-count=1", *map(no_dash, shared), "--not", no_dash(target), "--")
    return bool(shared and git(*more, cwd=tree, repository={}))
