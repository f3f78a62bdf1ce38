"""A worktree of a landing, with the branch that lands, and the main one with the target."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, shell_word, suggested
from queenbee.errors import ExternalFailure, InvalidInput
from queenbee.git.landing.commands import (
    amended_as,
    differing,
    git,
    is_commit,
    line,
)
from queenbee.git.landing.judged.nested import lost_between
from queenbee.git.landing.refusals import (
    SHOWN,
    MainBlocked,
    NothingToLand,
    NotLanded,
    Unresolved,
    in_conflict,
    way_past,
)
from queenbee.git.objects import Objects
from queenbee.git.ownership import worktree_note
from queenbee.git.run import is_ancestor, names_in, user_git
from queenbee.git.trees.elsewhere import refuse_elsewhere
from queenbee.git.trees.hidden import changed_of, hidden_in, telling, way_to_show
from queenbee.git.trees.in_memory import merged_in_memory
from queenbee.git.trees.in_the_way import in_the_way
from queenbee.git.trees.own_branch import refuse_not_own
from queenbee.git.trees.silent_losses import submodules_lost
from queenbee.git.trees.submodules import replaced, unseen
from queenbee.git.upstream import Upstream, no_target
from queenbee.git.worktrees.left_locks import Where
from queenbee.services.waiting.landing_turn import folder_of
from queenbee.store.git_files.main_worktree import refuse_lost
from queenbee.store.git_files.worktrees import (
    Worktree,
    branch_head,
    commit_at,
    current_branch,
    real_ref,
    rebased,
    ref_target,
    remote_of,
    target_branch,
    target_ref,
    worktrees,
)
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

    from queenbee.git.landing.commands import Changed, Commands
    from queenbee.services.open_store import Store
    from queenbee.store.git_trees import GitTree
    from queenbee.store.layout import Layout

UNMERGED = frozenset({"DD", "AU", "UD", "UA", "DU", "AA", "UU"})
_HIVE = ".beads"


class Place:
    """A linked worktree with the branch that lands, and the main worktree with the target."""

    is_own = True
    """Whether it is somebody's, and not the hive's own checkout."""

    def __init__(
        self,
        store: Store,
        here: GitTree,
        branch: str,
        target: str,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.store = store
        self.layout: Layout = store.layout
        self.tell = tell
        self.folder: str = folder_of(store, target)
        """That of the line of those who land."""
        self.upstream: Upstream | None = Upstream.of_target(store.layout)
        """The branch of a remote on which work lands; None if it lands on one of here."""
        self.commands: Commands
        self.objects: Objects = Objects(here.tree)
        """Reads commits and files of commits; to be closed."""
        self.tree: str = here.tree
        self.git_dir: str = here.git_dir
        self.common_dir: str = here.common_dir
        self.main_tree: str = here.main_tree or ""
        """Empty in a bare repository."""
        self.branch: str = branch
        self.target: str = target
        self.own: Where = Where(here.tree, here.git_dir, here.common_dir, branch)
        self.untracked: list[str] = []
        """Files that git neither tracks nor ignores, but for the hive's own."""
        self._flagged: list[str] = []
        self.main: Where = Where(self.main_tree, here.common_dir, here.common_dir, self.target_name)

    @classmethod
    def of(cls, store: Store, tell: Callable[[str], None]) -> Self:
        """Returns the worktree that the actor is in. Raises as `landing_branch` does."""
        return cls(store, *landing_branch(store.layout), tell)

    @property
    def main_has_target(self) -> bool:
        """Whether the main worktree has the target checked out, and so follows it."""
        return self.upstream is None and self.main_is_on(self.target_ref)

    def main_is_on(self, ref: str) -> bool:
        """Returns whether the main worktree has a branch checked out."""
        branch = current_branch(self.common_dir)
        if branch is None or not self.main_tree:
            return False
        return real_ref(self.common_dir, f"refs/heads/{branch}") == real_ref(self.common_dir, ref)

    @property
    def target_ref(self) -> str:
        """The full name of the target."""
        return f"refs/heads/{self.target}" if self.upstream is None else self.upstream.ref

    @property
    def target_name(self) -> str:
        """What the target is called where it is."""
        return self.target if self.upstream is None else self.upstream.branch

    def tip(self) -> str:
        """Returns the commit of the target, of a remote as it was seen last."""
        return ref_target(self.common_dir, self.target_ref) or self.commit(self.target_ref)

    def refresh(self) -> None:
        """Looks where the target is, if that is a remote's. Raises `Unreachable`."""
        if self.upstream is not None:
            self.upstream.fetch()

    def head(self) -> str:
        """Returns the commit of this worktree."""
        branch = current_branch(self.git_dir)
        if branch is not None:
            return branch_head(self.common_dir, branch) or self.commit("HEAD")
        with suppress(OSError), open(os.path.join(self.git_dir, "HEAD"), encoding="ascii") as file:
            if is_commit(head := file.read().strip()):
                return head
        return self.commit("HEAD")

    def commit(self, name: str, kind: str = "commit") -> str:
        """Returns the id of a commit, or of its tree."""
        asked = ("rev-parse", "--verify", no_dash(f"{name}^{{{kind}}}"))
        return git(*asked, cwd=self.tree).decode().strip()

    @property
    def is_merging(self) -> bool:
        """Whether a merge is to be finished in this worktree."""
        return os.path.exists(os.path.join(self.git_dir, "MERGE_HEAD"))

    @property
    def is_rebasing(self) -> bool:
        """Whether a rebase is to be finished in this worktree."""
        return os.path.isdir(os.path.join(self.git_dir, "rebase-merge"))

    @property
    def other_side(self) -> str:
        """What git calls the commit that is merged or replayed on `HEAD` here."""
        return "REBASE_HEAD" if self.is_rebasing else "MERGE_HEAD"

    def open_files(self, others: str = "no") -> list[str]:
        """Returns the files that git tracks and that are not committed, each after the letters of
        `git status`; and those of the `others` that git then lists.
        """
        # Whatever the settings hide: what a check sees of it would not be what lands.
        wanted = (f"--untracked-files={others}", "--no-renames", "--ignore-submodules=untracked")
        return names_in(git("status", "--porcelain=v1", "-z", *wanted, cwd=self.tree))

    def refuse_unfinished(self) -> None:
        """Raises `NotLanded` if there is something to commit or a merge to finish first."""
        entries = self.open_files()
        open_ = [each[3:] for each in entries if each[:2] in UNMERGED]
        if open_ and not (self.is_merging or self.is_rebasing):
            raise in_conflict(self.git_dir, open_)
        if open_:
            raise self.conflict(open_)
        if self.is_rebasing:
            raise NotLanded(
                "a rebase is not finished in this worktree",
                hint="queen land --continue, or queen land --abort",
            )
        dirty = but_records(entries)
        submodules = self._submodules(dirty) if dirty else []
        if submodules:
            raise NotLanded(
                f"not at the commit that this branch has: {named(submodules, SHOWN)}",
                hint="git submodule update, then queen land again; if you moved it: git add and "
                "git commit it",
                files=submodules,
            )
        if dirty or self.is_merging:
            what = f"not committed: {named(dirty, SHOWN)}" if dirty else "a merge is open"
            raise NotLanded(
                what,
                hint="queen land --continue" if self.is_merging else "queen land -m 'WHAT YOU DID'",
                files=dirty,
            )

    def look(self) -> None:
        """Finds the files that git does not track, and those that it was told not to look at."""
        others = ("--cached", "--others", "--exclude-standard")
        listed = telling(git("ls-files", "-v", *others, "-z", cwd=self.tree))
        untracked = (each[2:] for each in listed if each[0] == "?")
        own = [each for each in untracked if not each.startswith(f"{_HIVE}/")]
        self.untracked = [*(f"{each}/" for each in unseen(self.tree)), *own][:SHOWN]
        self._flagged = hidden_in(listed)

    def refuse_hidden(self) -> None:
        """Raises `NotLanded` if a file that git was told not to look at has changed."""
        changed = changed_of(self.tree, self._flagged)
        if changed:
            raise NotLanded(
                f"git was told not to look at these files, which have changed: "
                f"{named(changed, SHOWN)}",
                hint=f"{way_to_show(self.tree, changed[0])}, then commit it or take it back",
                files=changed,
            )

    def _submodules(self, paths: Sequence[str]) -> list[str]:
        listed = git("--literal-pathspecs", "ls-files", "-s", "-z", "--", *paths, cwd=self.tree)
        return [each.partition("\t")[2] for each in names_in(listed) if each[:6] == "160000"]

    def refuse_overwriting(self, target: str, *, replays: bool = False) -> None:
        """Raises `NotLanded` if bringing the target here would overwrite a file that git ignores:
        git itself takes those for worthless.

        A rebase, which `replays` the commits, first writes all files of the target, and then those
        of each commit: also the ones that the branch stopped tracking, and that are here ignored.
        """
        merged, _ = merged_in_memory(self.tree, "HEAD", target)
        asked = ("merge-base", "HEAD", no_dash(target))
        if not merged and user_git(*asked, cwd=self.tree)[0] != 1:
            what = f"git does not say which files {named([self.target])} would bring here"
            raise NotLanded(what, hint=f"{suggested('git merge-tree --write-tree HEAD', target)}")
        merged = merged or "HEAD"  # Without a commit in common, git refuses to merge.
        # Of the result: git also moves files of the target into folders that the branch renamed.
        added = ("diff-tree", "-r", "--name-only", "--no-renames", "--diff-filter=A", "-z")
        new = set(names_in(git(*added, "HEAD", no_dash(merged), "--", cwd=self.tree)))
        met = [merged]
        if replays:
            new.update(
                names_in(git("ls-tree", "-r", "-z", "--name-only", no_dash(target), cwd=self.tree))
            )
            commits = git("rev-list", no_dash(f"{target}..HEAD"), "--", cwd=self.tree)
            met += [target, *commits.decode().split()]
            files = ("diff-tree", "--stdin", "--no-commit-id", "-r", "-m", "-z", "--name-only")
            new.update(names_in(git(*files, "--no-renames", cwd=self.tree, stdin=commits)))
        if submodules := replaced(self.tree, *met):
            loss = submodules_lost(self.tree, submodules)
            raise NotLanded(
                f"{named([self.target])}: {loss.what}",
                hint=f"{loss.way}; then queen land again",
                files=submodules,
            )
        lost = in_the_way(self.tree, new)
        if lost:
            raise NotLanded(
                f"{named([self.target])} has files that are here without git: {named(lost, SHOWN)}",
                hint="move them away, then queen land again",
                files=lost,
            )

    def changed(self, tree: str, issue_id: str | None) -> Changed:
        """Returns what differs from the target. Raises `NothingToLand` if nothing does, with what
        ends the issue, and `NotLanded` for a commit of another repository that only `tree` has.
        """
        changed = differing(self.tree, self.tip(), self.head())
        if not changed and self.has(self.head()):
            is_dirty = git("status", "--porcelain=v1", "--", ".", f":(exclude){_HIVE}", cwd=tree)
            done = "if it is done all the same: queen complete" if issue_id else "queen next"
            but = "" if is_dirty else ", and nothing else has changed"
            raise NothingToLand(
                f"nothing to land: {self.target} has all commits of this worktree{but}",
                hint="commit your work: queen land -m 'WHAT YOU DID'" if is_dirty else done,
            )
        if refusal := lost_between(tree, self.target_ref, self.head(), changed):
            raise refusal
        return changed

    def has(self, commit: str) -> bool:
        """Returns whether the target has a commit."""
        return self.tip() == commit or self.is_ancestor(commit, self.target_ref)

    def landed_as(self, commit: str, before: str, ref: str = "") -> str | None:
        """Returns the commit by which the target, or another branch, has one that was to move it
        from `before`; None if it has not. A hook may have amended it.
        """
        ref = ref or self.target_ref
        tip = ref_target(self.common_dir, ref) or self.commit(ref)
        if tip == before:
            return None
        if tip == commit or self.is_ancestor(commit, ref):
            return commit
        with suppress(ExternalFailure):  # One of them is not here.
            return amended_as(self.tree, commit, f"{before}..{ref}")
        return None

    def is_linear(self, since: str, head: str = "HEAD") -> bool:
        """Returns whether the commits of this worktree, or up to `head`, since another one have no
        merge among them.
        """
        asked = ("rev-list", "--max-count=1", "--merges", no_dash(f"{since}..{head}"))
        return line(*asked, cwd=self.tree) is None

    def is_ancestor(self, before: str, after: str) -> bool:
        """Returns whether a commit comes before another, or is the same."""
        return before == after or is_ancestor(before, after, cwd=self.tree)

    def cannot_move(self, head: str, said: str, way: str = "") -> MainBlocked:
        """Returns the refusal for a commit that git does not check out in the main worktree, with
        what makes room there if git cannot stash it.
        """
        tree = self.main_tree
        asked = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
        changed = {each[3:] for each in names_in(git(*asked, cwd=tree))}
        moved = set(differing(tree, commit_at(tree), head))
        files = sorted(changed & moved)
        # The records change all the time, and are in the way of none but themselves.
        others = [each for each in files if not each.startswith(f"{_HIVE}/")]
        files = others or files
        what = f"{tree} cannot be moved to {head[:10]}: {' '.join(said.split())}"
        if not (way or others) and (closed := _not_writable(tree, moved)):
            hint = f"have its owner run: {suggested('chmod g+w', *closed[:SHOWN])}; then queen land"
            return MainBlocked(what, hint=hint, path=tree)
        return MainBlocked(
            what,
            hint="ask whoever works there; if it is you: "
            f"{way or way_past(tree, files)}; then queen land"
            if way or files
            else f"git -C {shell_word(tree)} status",
            files=files,
            path=tree,
        )

    def went_on(self, files: Sequence[str]) -> NotLanded:
        """Returns the refusal for a conflict that is not left to a droid who does something else
        by now.
        """
        what = f"{named([self.target])} and {named([self.branch])} conflict: {named(files, SHOWN)}"
        return NotLanded(
            f"{what}; nothing was landed, and your worktree was left as it is",
            hint="commit what you have there, then queen land, which leaves the conflict to you",
            files=files,
        )

    def conflict(self, files: Sequence[str], union: Sequence[str] = ()) -> NotLanded:
        """Returns the refusal for files that both sides changed."""
        hint = "resolve them, git add, then queen land --continue; or queen land --abort"
        from queenbee.core.conflicts.markers import union_setting  # noqa: PLC0415 - start-up

        if setting := union_setting(union[:SHOWN]):
            hint += f"; to keep what both added from now on: {setting}"
        return Unresolved(
            f"{named([self.target])} and {named([self.branch])} conflict: {named(files, SHOWN)}",
            hint=hint,
            files=files,
            union=list(union),
        )


_ADD = "queen worktree add NAME, and work there"


def landing_branch(layout: Layout, droid: str | None = None) -> tuple[GitTree, str, str]:
    """Returns the worktree that the actor is in, the branch that lands, and the one on which it
    does. Raises `InvalidInput` if there is nothing to land, with where the `droid` works, or the
    main worktree has no branch, and `Conflict` for a branch that is not this worktree's own.
    """
    here, target = git_tree(layout.tree), target_branch(layout)
    if here is None or not here.linked:
        own = (each.path for each in worktrees(layout) if each.linked and each.droid == droid)
        raise _not_linked(here, target, next(own, None) if droid else None)
    refuse_elsewhere(here.tree)
    refuse_lost(layout)
    branch = _rebased(here.git_dir) or current_branch(here.git_dir)
    if branch is None or target is None or branch == target:
        top = here.main_tree or here.common_dir
        where = here.tree if branch is None or target is not None else top
        what = "a detached HEAD" if None in (branch, target) else f"{target} checked out"
        way = partial(way_to_a_branch, where, here.common_dir, but=branch)
        raise InvalidInput(f"{where} has {what}", hint=way(back=branch is not None))
    places = worktrees(layout)
    refuse_no_target(layout, here, target, places)
    place = Worktree(here.tree, here.git_dir, here.common_dir)
    refuse_not_own(layout, place, branch, places)
    return here, branch, target


def _not_linked(here: GitTree | None, target: str | None, own: str | None) -> InvalidInput:
    """Returns the refusal of a landing from the main worktree: a branch there needs its own."""
    branch = current_branch(here.git_dir) if here is not None else None
    remote = remote_of(here.common_dir, target) if here is not None and target else None
    main = (target or "").removeprefix(f"{remote}/") if remote is not None else target
    if branch is None or main is None or branch == main:
        hint = f"{suggested('cd', own)} && queen land" if own else _ADD
        return InvalidInput("this is not a linked worktree: there is nothing to land", hint=hint)
    way = (
        f"{suggested('git switch', main)} && {suggested('queen worktree add NAME', branch=branch)}"
    )
    return InvalidInput(
        f"{branch} is checked out in the main worktree: it lands from a worktree of its own",
        hint=f"{way}; then queen land there",
    )


def refuse_no_target(
    layout: Layout, here: GitTree, target: str, places: Sequence[Worktree]
) -> None:
    """Raises `InvalidInput` if there is no target, or a linked worktree has it checked out, which
    would not follow.
    """
    ref = str(target_ref(layout))
    asked = ("rev-parse", "--quiet", "--verify", no_dash(ref))
    is_there = ref_target(here.common_dir, ref) or line(*asked, cwd=here.tree)
    if not is_there:
        what, way = no_target(here.common_dir, target)
        raise InvalidInput(what, hint=way)
    if remote_of(here.common_dir, target):
        return
    real = real_ref(here.common_dir, ref)
    for each in places:
        # That of an agent is put right, if it is a symbolic reference.
        is_theirs = each.branch == target or worktree_note(each) is None
        if each.linked and each.branch and is_theirs and _leads_to(here, each.branch, real):
            raise InvalidInput(
                f"{each.path} has {each.branch} checked out, on which work lands",
                hint=f"git -C {shell_word(each.path)} switch -c NAME",
            )
    refuse_rebased(layout, places)


def refuse_rebased(layout: Layout, places: Sequence[Worktree] | None = None) -> None:
    """Raises `MainBlocked` if somebody's rebase of the target is not finished: its end moves the
    target to what it was, or to what that became, and what landed meanwhile would be off it.
    """
    here = git_tree(layout.tree)
    real = real_ref(here.common_dir, str(target_ref(layout))) if here is not None else ""
    for each in worktrees(layout) if places is None else places:
        for branch in rebased(each.git_dir):
            if here is None or not _leads_to(here, branch, real):
                continue
            in_it = suggested("git -C", each.path)
            raise MainBlocked(
                f"a git rebase of {branch}, on which work lands, is not finished in {each.path}; "
                "nothing was landed",
                hint=f"{in_it} rebase --continue, or {in_it} rebase --abort",
            )


def _not_writable(tree: str, paths: Iterable[str]) -> list[str]:
    """Returns the folders of a worktree in which this user may not write such files."""
    found = set()
    for each in paths:
        folder = os.path.dirname(os.path.join(tree, each))
        while not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        found.add(folder)
    return sorted(each for each in found if not os.access(each, os.W_OK))


def _leads_to(here: GitTree, branch: str, ref: str) -> bool:
    return real_ref(here.common_dir, f"refs/heads/{branch}") == ref


def _rebased(git_dir: str) -> str | None:
    """Returns the branch whose rebase is not finished in a worktree, or None."""
    for folder in ("rebase-merge", "rebase-apply"):
        with (
            suppress(OSError, UnicodeDecodeError),
            open(os.path.join(git_dir, folder, "head-name")) as file,
        ):
            name = file.read().rstrip("\n")
            return name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else None
    return None


def way_to_a_branch(tree: str, common_dir: str, *, back: bool, but: str | None) -> str:
    """Returns the command that gives a detached worktree a branch: `back` to one that it had, as
    also if that has its commits; else a new one with the commits that it has now.
    """
    full = line("rev-parse", "--symbolic-full-name", "@{-1}", cwd=tree, repository={})
    before = (full or "").removeprefix("refs/heads/")
    alone = ("rev-list", "--count", "HEAD", "--not", "@{-1}", "--")
    back = back or line(*alone, cwd=tree, repository={}) == "0"
    for name in (before, "main", "master") if back else ():
        if name and name != but and branch_head(common_dir, name):
            return f"git -C {shell_word(tree)} switch {shell_word(name)}"
    names = (f"{os.path.basename(tree)}{end}" for end in ("", *(f"-{n}" for n in range(2, 100))))
    free = next((each for each in names if not branch_head(common_dir, each)), "NAME")
    return f"git -C {shell_word(tree)} switch -c {shell_word(free)}"


def but_records(entries: Sequence[str]) -> list[str]:
    """Returns the files of entries of `git status`, without those of the hive: the records that git
    carries change while anybody works.
    """
    return [each[3:] for each in entries if not each[3:].startswith(f"{_HIVE}/")]
