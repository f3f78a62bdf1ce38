"""On what a worktree stands: the target, or work of its own that is still to be merged.

A worktree keeps its branch. What it proposes is also on a reference of its own, so that the branch
begins anew with the next issue, and comes back to what was proposed when that is to be mended.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, shell_word, suggested
from queenbee.errors import Conflict, ExternalFailure
from queenbee.git.ownership import may_move
from queenbee.git.proposing.pushed import Pushed
from queenbee.git.run import as_the_user, git, is_ancestor, line, names_in, user_git
from queenbee.git.trees.elsewhere import refuse_elsewhere
from queenbee.git.trees.in_memory import merged_in_memory
from queenbee.git.trees.own_branch import is_own
from queenbee.git.trees.silent_losses import loss_by
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import Worktree, target_ref, worktrees
from queenbee.store.git_trees import git_tree
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.core.reviews.review import Review
    from queenbee.services.hive import Services
    from queenbee.store.layout import Layout

BEHIND = "queenbee-landed"
"""Says, in the git directory of a worktree, what landed of it that it does not have yet."""
_PROPOSED = "refs/queenbee/proposed"
_MOST_COMMITS = "--max-count=10000"


def ref_of(branch: str) -> str:
    """Returns the reference that keeps what was proposed on a branch of the remote."""
    return f"{_PROPOSED}/{branch}"


def keep_proposed(layout: Layout, branch: str, commit: str) -> None:
    """Keeps what was proposed, wherever the worktree goes on. Raises `ExternalFailure`."""
    as_the_user("update-ref", no_dash(ref_of(branch)), no_dash(commit), cwd=layout.tree)


def count_unproposed(layout: Layout) -> int:
    """Returns how many commits of this worktree the target has not, neither as they are nor as
    another one, and nothing proposes. Raises `ExternalFailure`.
    """
    target = str(target_ref(layout))
    merged = _behind(layout) or target
    missing = (no_dash(f"^{target}"), no_dash(f"^{merged}"), "--not", f"--glob={_PROPOSED}/*")
    return int(git("rev-list", "--count", "HEAD", *missing, "--", cwd=layout.tree))


def proposals(layout: Layout) -> list[str]:
    """Returns the branches at the remote by which this worktree's commits are proposed, and which
    are not seen to be merged.
    """
    asked = ("for-each-ref", "--format=%(refname:lstrip=3)", "--merged=HEAD")
    unmerged = f"--no-merged={target_ref(layout)}"
    found = user_git(*asked, unmerged, _PROPOSED, cwd=layout.tree)
    return found[1].decode(errors="surrogateescape").splitlines()


def forget_proposed(layout: Layout, review: Review) -> None:
    """Removes that reference, if it is where it was. Never fails."""
    with suppress(ExternalFailure):
        gone = ("update-ref", "-d", no_dash(ref_of(review.branch)), no_dash(review.head))
        as_the_user(*gone, cwd=layout.tree)


def stands_on(layout: Layout, said: Mapping[str, Review]) -> list[str]:
    """Returns the issues in review whose work was proposed from here, so that this worktree has it,
    and the target not.
    """
    reviews = Pushed(layout.tree).proposed(said) if said else {}
    if not reviews:
        return []
    commits = (_MOST_COMMITS, "HEAD", no_dash(f"^{target_ref(layout)}"), "--")
    try:
        own = {*git("rev-list", *commits, cwd=layout.tree, repository={}).decode().split()}
    except ExternalFailure:  # There is no commit, or no target.
        return []
    return [issue_id for issue_id, each in reviews.items() if each.head in own]


def refuse_standing(
    layout: Layout, reviews: Mapping[str, Review], issues: Mapping[str, Review | None]
) -> None:
    """Raises `Conflict` for a worktree whose work on `issues` brings along what other issues
    propose, or lacks what these have proposed already.
    """
    under = [each for each in stands_on(layout, reviews) if each not in issues]
    if under:
        first = Pushed(layout.tree).proposed(reviews)[under[0]]
        onto = suggested("git rebase --onto", str(target_ref(layout)).removeprefix("refs/remotes/"))
        raise Conflict(
            f"this stands on {first} ({named(under)}), which is not merged: it would be proposed "
            "twice",
            hint=f"{onto} {first.head[:10]}; or mend both together: "
            f"{suggested('queen land', *under, *issues)}",
            issues=under,
        )
    said = {name: each for name, each in issues.items() if each is not None}
    proposed = Pushed(layout.tree).reviews(said)
    lacks = [
        x for x, each in proposed.items() if not is_ancestor(each.head, "HEAD", cwd=layout.tree)
    ]
    if lacks:
        review = proposed[lacks[0]]
        raise Conflict(
            f"{lacks[0]} is proposed by {review}, and this worktree does not have what that has",
            hint=f"git merge {shell_word(ref_of(review.branch))}, then queen land",
        )


def bring(hive: Services, issue_id: str) -> str:
    """Brings this worktree to where the work on an issue begins or goes on: what was proposed of
    it, or the target. Moves only a clean worktree whose commits are kept elsewhere; returns what
    to say where it cannot, in words, else nothing.
    """
    layout = hive.layout
    reviews = Pushed(layout.tree).proposed(hive.assignments.in_review(hive.own_actor))
    here = git_tree(layout.tree)
    behind = _behind(layout)
    if here is None or not here.linked or not (reviews or behind):
        return ""
    head = line("rev-parse", "--verify", "HEAD", cwd=layout.tree, repository={}) or ""
    own = reviews.get(issue_id)
    wanted = own.head if own is not None else str(target_ref(layout))
    stands = stands_on(layout, reviews)
    if issue_id in stands or (own is None and not stands and head != behind):
        return ""
    if (head == behind or _is_kept(layout, head)) and _may_go(layout, here.tree, wanted):
        branch = Worktree(here.tree, here.git_dir, here.common_dir).branch
        go = ("checkout", "-q", "--no-overwrite-ignore", "--no-track", f"-B{branch}")
        with suppress(ExternalFailure):  # Something is in the way there.
            as_the_user(*go, no_dash(wanted), "--", cwd=layout.tree)
            _forget_behind(layout)
            return ""
    if own is not None:
        return (
            f"this worktree has something else: once that is proposed, queen next brings it to "
            f"{own}; or git switch --detach {shell_word(ref_of(own.branch))}"
        )
    if not stands:
        return ""
    first = reviews[stands[0]]
    return (
        f"this worktree stands on {first}, which is not merged yet: begin at {target_ref(layout)}"
    )


def keep_lacking(layout: Layout, branch: str, commit: str, within: str) -> str:
    """Keeps what was pushed to a branch on one below `unfinished/`, unless another commit has all
    of it, so that a merge would change nothing there; returns that branch, or nothing. Raises
    `ExternalFailure`.
    """
    from queenbee.git.unfinished import branch_part, keep_commit  # noqa: PLC0415 - start-up

    if is_ancestor(commit, within, cwd=layout.tree):
        return ""
    tree, listed = merged_in_memory(layout.tree, within, commit)
    has = line("rev-parse", "--verify", no_dash(f"{within}^{{tree}}"), cwd=layout.tree)
    if listed is None and tree == has:
        return ""
    return keep_commit(layout, branch_part(branch), commit)


def note_merged(layout: Layout, review: Review, commit: str) -> None:
    """Notes in the worktrees which have what was merged that the target has it otherwise: their own
    commands bring them there. Never fails.
    """
    if is_ancestor(review.head, str(target_ref(layout)), cwd=layout.tree):
        return  # Git sees by itself that it has landed.
    for each in worktrees(layout):
        if each.linked and each.head and is_ancestor(review.head, each.head, cwd=layout.tree):
            keep(os.path.join(each.git_dir, BEHIND), {"commit": commit, "head": review.head})


def _behind(layout: Layout) -> str:
    """Returns the commit of this worktree that has landed as another one; empty if none has."""
    said = recall(os.path.join(layout.git_dir or layout.state_dir, BEHIND))
    return str(said.get("head")) if isinstance(said, dict) else ""


def _forget_behind(layout: Layout) -> None:
    with suppress(OSError):
        safe_open.unlink(os.path.join(layout.git_dir or layout.state_dir, BEHIND))


def _is_kept(layout: Layout, head: str) -> bool:
    """Returns whether what was proposed, or a branch as a remote has it, has this commit."""
    asked = ("for-each-ref", "--count=1", f"--contains={head}", _PROPOSED, "refs/remotes")
    return bool(head) and bool(line(*asked, cwd=layout.tree, repository={}))


def _may_go(layout: Layout, tree: str, wanted: str) -> bool:
    """Returns whether the branch of this worktree is its own, and nothing is open there or would be
    lost on the way to a commit.
    """
    if not may_move(layout) or not is_own(layout, tree):
        return False
    refuse_elsewhere(tree)
    asked = ("status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames")
    status, out, _ = user_git(*asked, cwd=tree)
    open_ = [each for each in names_in(out) if not each[3:].startswith(".beads/")]
    return status == 0 and not open_ and loss_by(tree, "HEAD", wanted) is None
