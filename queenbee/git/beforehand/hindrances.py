"""What keeps work from landing here, whoever lands it: a look at a few files, before anybody works.

No check and no hook runs. What only a trial shows is left to that.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.checks.finding import check_setting
from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned, named, suggested
from queenbee.errors import ExternalFailure, InvalidInput, QueenError
from queenbee.git.landing.place import UNMERGED, but_records, refuse_no_target, way_to_a_branch
from queenbee.git.landing.refusals import SHOWN, MainBlocked
from queenbee.git.run import git, line, names_in, without_programs
from queenbee.git.trees.elsewhere import led_away
from queenbee.git.trees.hidden import changed_of, hidden_in, way_to_show
from queenbee.git.trees.open_operations import OPEN, open_operations
from queenbee.git.upstream import Upstream
from queenbee.git.worktrees.left_locks import Where, lock_paths
from queenbee.services.diagnosis import Diagnosis
from queenbee.services.waiting.landing_turn import name_of_line
from queenbee.store.git_files.worktrees import (
    are_several,
    branch_head,
    current_branch,
    is_checkout,
    noted_trees,
    remote_of,
    target_branch,
    target_ref,
    worktrees,
)
from queenbee.store.git_trees import git_tree, leads_to
from queenbee.store.settings import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.store.git_trees import GitTree
    from queenbee.store.layout import Layout

_LOOK_AGAIN_S, _AGAIN_S = 1.0, 0.05
"""A git that is at work holds its locks for a moment."""
_CONCLUDED = ("MERGE_HEAD", "CHERRY_PICK_HEAD")
"""What git wants concluded before it moves the branch of a worktree."""
_DETACHING = ("rebase-merge", "rebase-apply", "BISECT_LOG")
_ASIDE = " stash push -- . ':(exclude).beads'"
"""Puts all aside but the records."""
_USUAL = ("main", "master")


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Something in the way of landings, with the next command."""

    code: str
    """`no_target`, `main_unfinished`, `locked`, `main_changed`, `no_commit`, `no_check`, or
    `worktree_elsewhere`; for the doctor alone, `git_fails`, `push_unused`,
    `not_pushed` and `old_checkout`.
    """
    what: str
    hint: str
    path: str
    """What it was found in."""
    stops: bool = True
    """Whether nothing can land; else only what changes certain files."""

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {"code": self.code, "message": self.what, "hint": self.hint}

    @property
    def sentence(self) -> str:
        """What is in the way, with the next command."""
        return f"{self.what}; try: {self.hint}"


def hindrances(layout: Layout) -> list[Hindrance]:
    """Returns what keeps work from landing; an empty list outside git, and if nothing does.

    Raises `ExternalFailure` if git fails.
    """
    here = git_tree(layout.tree)
    if here is None:
        return []
    target = target_branch(layout)
    found = [*_open_in_main(here, target)]
    if target is None:
        return found or [_nowhere(here)]
    if remote_of(here.common_dir, target) is not None:
        found = []  # The main worktree follows if it can.
    elif not branch_head(here.common_dir, target) and current_branch(here.common_dir) == target:
        return found  # Nothing is committed yet; or only git can tell.
    try:
        refuse_no_target(layout, here, target, worktrees(layout))
    except InvalidInput as error:
        return [Hindrance("no_target", error.message, str(error.hint), here.common_dir)]
    except MainBlocked as error:  # Somebody's rebase of it.
        found.append(Hindrance("main_unfinished", error.message, str(error.hint), here.common_dir))
    has_target = here.main_tree is not None and current_branch(here.common_dir) == target
    if has_target and not found:
        found += _changed(str(here.main_tree))
    return [*_locks(here, target, has_target=has_target), *found, *_elsewhere(here)]


def _elsewhere(here: GitTree) -> Iterator[Hindrance]:
    """Yields the worktrees that nobody looks into, because they lead to another repository."""
    for tree, error in led_away(here.common_dir):
        yield Hindrance("worktree_elsewhere", error.message, str(error.hint), tree, stops=False)


def in_diagnosis(layout: Layout) -> list[Diagnosis]:
    """Returns the same for the doctor: worth knowing where no worktree is, and else wrong."""
    lands = are_several(layout)
    try:
        found = [*hindrances(layout), *unborn(layout), *of_upstream(layout)]
        found += _old_checkouts(layout)
    except ExternalFailure as error:  # Such as a format that this git does not know.
        way = error.hint or f"{suggested('git -C', layout.tree)} status"
        found = [Hindrance("git_fails", error.message, way, layout.tree)]
    return [
        Diagnosis(
            *(each.code, each.path, each.what),
            hint=each.hint,
            severity="error" if lands and each.stops else "note",
        )
        for each in found
    ]


def unborn(layout: Layout) -> Iterator[Hindrance]:
    """Yields what a repository without a commit lacks, and whether it has no check yet."""
    here, commits = git_tree(layout.tree), ("HEAD", target_ref(layout) or "HEAD")
    asked = ("rev-parse", "--quiet", "--verify")
    if here is None or any(line(*asked, no_dash(each), cwd=here.tree) for each in commits):
        return
    git("rev-parse", "--git-dir", cwd=here.tree, repository={})  # Or it cannot be read.
    what = "there is no commit to begin with: nothing can land"
    yield Hindrance(
        "no_commit",
        what,
        "git add -A && git commit --allow-empty -m 'first commit'",
        here.tree,
    )
    if not layout.settings.land_check:
        what = "no check is set: nothing would show that what lands works"
        yield Hindrance("no_check", what, check_setting([]), layout.beads_dir, stops=False)


def of_upstream(layout: Layout) -> Iterator[Hindrance]:
    """Yields, where work lands on a remote's branch itself, that `land.push` changes nothing, and
    that the main worktree has commits of its own.
    """
    here, upstream = git_tree(layout.tree), Upstream.of_target(layout)
    if here is None or upstream is None:
        return
    if layout.settings.land_push:
        what = f"land.push changes nothing: each landing is on {upstream.name} at once"
        way = "queen config unset land.push"
        path = os.path.join(layout.beads_dir, FILE_NAME)
        yield Hindrance("push_unused", what, way, path, stops=False)
    tree, branch = here.main_tree, upstream.branch
    if tree is None or current_branch(here.common_dir) != branch:
        return
    between = f"{upstream.ref}..refs/heads/{branch}"
    count = line("rev-list", "--count", no_dash(between), "--", cwd=tree, repository={}) or "0"
    if count != "0":
        commits = "1 commit" if count == "1" else f"{count} commits"
        what = f"{branch} has {commits} that {upstream.name} lacks"
        yield Hindrance("not_pushed", what, upstream.way_to_push(tree), tree, stops=False)


def _old_checkouts(layout: Layout) -> Iterator[Hindrance]:
    """Yields the checkouts for landings that are broken, and those of branches on which work no
    longer lands.
    """
    here, target = git_tree(layout.tree), target_branch(layout)
    if here is None or target is None:
        return
    used = re.compile(
        rf"(.*-landing-|.*/){name_of_line(target)}(/checkout)?(-\d+)?(\.user\d+)?[a-z]?"
    )
    for tree, git_dir in noted_trees(here.common_dir):
        if not is_checkout(git_dir):
            continue
        if os.path.lexists(tree) and not leads_to(tree, git_dir):
            what = f"landings were checked in {mentioned(tree)}, which is no worktree any more"
            way = suggested("queen worktree remove", tree)
            yield Hindrance("broken_checkout", what, way, tree, stops=False)
        elif not used.fullmatch(tree):
            what = f"landings were checked in {mentioned(tree)}, but work lands on {target} now"
            way = suggested("queen worktree remove", tree)
            yield Hindrance("old_checkout", what, way, tree, stops=False)


def _open_in_main(here: GitTree, target: str | None) -> Iterator[Hindrance]:
    """Yields what is to be finished in the main worktree before the target can move there, or
    before it is known what the target is.
    """
    tree = here.main_tree
    if tree is None:
        return
    branch, open_ = current_branch(here.common_dir), open_operations(here.common_dir)
    if branch is not None and branch == target:
        stops = [each for each in open_ if each in _CONCLUDED]
    else:
        stops = [each for each in open_ if each in _DETACHING and target is None]
    for each in stops[:1]:
        yield _unfinished(tree, OPEN[each][0])


def _unfinished(tree: str, command: str) -> Hindrance:
    ways = (
        ["bisect reset"] if command == "bisect" else [f"{command} --continue", f"{command} --abort"]
    )
    hint = ", or ".join(f"{suggested('git -C', tree)} {each}" for each in ways)
    what = f"a {command} is not finished in {mentioned(tree)}; nothing can land until it is"
    return Hindrance("main_unfinished", what, hint, tree)


def _nowhere(here: GitTree) -> Hindrance:
    """Returns the hindrance of a main worktree on no branch, where no target is set."""
    top = here.main_tree or here.common_dir
    usual = next((each for each in _USUAL if branch_head(here.common_dir, each)), "BRANCH")
    way = way_to_a_branch(top, here.common_dir, back=True, but=None)
    return Hindrance(
        "no_target",
        f"{mentioned(top)} is on no branch, and none is set on which work lands",
        f"{suggested('queen config set land.target', usual)}; or {way}",
        top,
    )


def _locks(here: GitTree, target: str, *, has_target: bool) -> Iterator[Hindrance]:
    """Yields the locks of git that keep the target from moving; those of a git at work go."""
    where = Where(here.main_tree or "", here.common_dir, here.common_dir, target)
    paths = lock_paths(where) if has_target else lock_paths(where)[-1:]
    until_s = time.monotonic() + _LOOK_AGAIN_S
    while locks := [each for each in paths if os.path.lexists(each)]:
        if time.monotonic() >= until_s:
            what = f"git is at work, or was killed: {named(locks, SHOWN)}; nothing can land"
            hint = f"if no git command runs there: {suggested('rm', *locks)}"
            yield Hindrance("locked", what, hint, locks[0])
            return
        time.sleep(_AGAIN_S)


def _changed(tree: str) -> Iterator[Hindrance]:
    """Yields what is changed in a main worktree that has the target, and would be overwritten."""
    wanted = ("--untracked-files=no", "--no-renames", "--ignore-submodules=all")
    status = ("status", "--porcelain=v1", "-z", *wanted)
    config = without_programs(tree, {})
    entries = names_in(git(*status, cwd=tree, config=config, repository={}))
    changed = but_records(entries)
    if any(each[:2] in UNMERGED for each in entries):
        what = f"conflicts are not resolved in {mentioned(tree)}; nothing can land until they are"
        yield Hindrance("main_unfinished", what, f"{suggested('git -C', tree)} status", tree)
    elif changed:
        what = f"not committed in {mentioned(tree)}: {named(changed, SHOWN)}"
        in_it = suggested("git -C", tree)
        back = f"after the landing: {in_it} stash pop"
        yield _in_the_way(tree, what, f"{in_it}{_ASIDE}; {back}; or commit it there")
    hidden = hidden_in(names_in(git("ls-files", "-v", "-z", cwd=tree, repository={})))
    with suppress(QueenError):
        changed = changed_of(tree, hidden)
    if hidden and changed:
        what = f"changed in {mentioned(tree)}, where git was told not to look: "
        yield _in_the_way(tree, what + named(changed, SHOWN), way_to_show(tree, changed[0]))


def _in_the_way(tree: str, what: str, hint: str) -> Hindrance:
    what = f"{what}; a landing that changes it, too, waits"
    return Hindrance("main_changed", what, hint, tree, stops=False)
