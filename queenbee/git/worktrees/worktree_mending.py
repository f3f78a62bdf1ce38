"""Puts the worktree of an agent right, whatever the agent has done to it: nothing is lost.

Models check out a commit, remove `.git`, or leave a rebase open, and the next issue would find the
worktree so. Called while nothing of the agent runs. Only what QueenBee made is put right.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from queenbee.checks.consent import Consent
from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned, shell_word, suggested
from queenbee.errors import Conflict, ExternalFailure, Unreadable
from queenbee.git.ownership import note_branch, note_emptied, takes_over, worktree_note
from queenbee.git.run import as_the_user, line
from queenbee.git.trees.elsewhere import bring_home
from queenbee.git.trees.hidden import show_hidden
from queenbee.git.trees.in_the_way import between, has_repository, repositories
from queenbee.git.trees.open_operations import open_operations
from queenbee.git.trees.own_branch import leads_elsewhere, refuse_symbolic
from queenbee.git.trees.set_aside import free_name, set_aside
from queenbee.git.trees.submodules import (
    come_to,
    in_modules,
    left_in_modules,
    links,
    replaced,
    repository_of,
    unseen,
)
from queenbee.git.unfinished import (
    WorktreeKeeper,
    branch_part,
    commits_alone,
    keep_commits,
    keep_inside,
    nested_in,
    status_of,
)
from queenbee.git.worktrees.inner_repositories import (
    has_changes,
    has_work,
)
from queenbee.git.worktrees.left_git_dirs import git_dirs_of, kept_of_gone, let_go
from queenbee.git.worktrees.left_locks import Where, remove_locks
from queenbee.git.worktrees.preparing import prepare_again
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import Worktree, target_ref
from queenbee.store.git_trees import whole
from queenbee.store.whole_files import write_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from queenbee.services.hive import Services

_YOUNG_S = 3.0
"""A lock of the index that is younger may be that of a git which we do not see."""
_TRIES = 20
_ANOTHER = "the main branch has another commit of it"
_MOST_KEPT = 50
"""So many of the last commits of a branch are looked at."""


class WorktreeMender:
    """Puts one worktree right that QueenBee made at `path`, with a branch; `make` makes it again on
    that branch, once nothing is there any more.
    """

    def __init__(self, hive: Services, path: str, branch: str, make: Callable[[], object]) -> None:
        self._hive = hive
        self._path = path
        self._branch = branch
        self._make = make
        common_dir = hive.layout.common_dir
        assert common_dir is not None
        self._common_dir = common_dir

    def mend(
        self, name: str, *, keeps_merge: bool, abort: Callable[[], None] = lambda: None
    ) -> Iterator[str]:
        """Yields what it has put right, a sentence each; what was there is on `unfinished/NAME`.

        `abort` takes back a landing that was killed. Raises `Conflict` if it cannot be put right,
        and as `put_back` and `make` do; then nothing is lost.
        """
        git_dir = self._git_dir()
        is_there = os.path.lexists(self._path)
        if is_there:
            self._refuse_somebodys(git_dir)
        yield from self._own_again(git_dir, name)
        # Nothing but that says that a folder is the one we made, and not a person's in its place.
        if git_dir is None or leads_to(os.path.join(self._path, ".git")) != git_dir:
            if is_there:
                yield self._set_aside(name, "its .git is gone, or leads elsewhere")
            yield from self._made_again(git_dir, name)
            return
        self._refuse_open(git_dir)
        yield from self._restored(git_dir)
        self._remove_locks(git_dir)
        if not self._is_fit(git_dir, keeps_merge=keeps_merge):
            abort()
        if not self._is_fit(git_dir, keeps_merge=keeps_merge):
            yield self._put_back(git_dir, name)

    def _own_again(self, git_dir: str | None, name: str) -> Iterator[str]:
        """Yields that its branch led to another one, once it is a branch of its own again: at its
        last commit that is not the other's, as the reflogs say. What it had besides is kept.
        """
        aim = leads_elsewhere(self._common_dir, self._branch)
        if aim is None:
            return
        ref, layout = f"refs/heads/{self._branch}", self._hive.layout
        was = commits_in(os.path.join(self._common_dir, "logs", ref))
        if git_dir is not None and Worktree("", git_dir, self._common_dir).branch == self._branch:
            was += commits_in(os.path.join(git_dir, "logs", "HEAD"))
        known = (*reversed(was), str(target_ref(layout)))
        last = (tip for each in known if (tip := self._tip(each)) and not self._is_of(aim, tip))
        if (tip := next(last, None)) is None:
            refuse_symbolic(layout, self._branch)
        as_the_user("update-ref", "--no-deref", ref, no_dash(str(tip)), cwd=self._common_dir)
        kept = keep_commits(layout, branch_part(name), was[-_MOST_KEPT:])
        said = (
            f"{mentioned(self._branch)} led to {mentioned(aim)}, and is a branch of its own again"
        )
        yield f"{said}; what it had is kept: {suggested('git log', kept)}" if kept else said

    def _is_of(self, branch: str, commit: str) -> bool:
        """Returns whether another branch has a commit that has not landed."""
        how = ("rev-list", "--count", no_dash(commit), "--not")
        ask = partial(line, cwd=self._common_dir, repository={})
        landed = ask(*how, str(target_ref(self._hive.layout)), "--") == "0"
        return not landed and ask(*how, f"refs/heads/{branch}", "--") == "0"

    def _refuse_somebodys(self, git_dir: str | None) -> None:
        """Raises `Conflict` for what is no folder, and for the worktree of somebody else where ours
        was, also if its repository is not there.
        """
        path, other = self._path, leads_to(os.path.join(self._path, ".git"))
        linked = _link_to(git_dir) if git_dir is not None and other != git_dir else ""
        if linked or os.path.islink(path) or not os.path.isdir(path):
            raise Conflict(
                f"{mentioned(linked or path)} is no folder any more",
                hint=suggested("mv", linked or path, f"{linked or path}.other"),
            )
        known = git_dirs_of(self._common_dir, path)
        if other == git_dir:  # After `git worktree repair` two may name it, and it leads to either.
            other = next((each for each in known if each != git_dir), None)
        if other is None or not _is_of_worktree(other, path):
            return
        if os.path.isdir(other) or os.path.dirname(os.path.dirname(other)) != self._common_dir:
            raise self._of_another(other, git_dir)  # Else its agent removed that.

    def _of_another(self, other: str, git_dir: str | None) -> Conflict:
        """Returns that this is the worktree of another git directory, and how it stays that."""
        path, aside = self._path, f"{self._path}.other"
        whose = os.path.dirname(os.path.dirname(other))
        moves = suggested("mv", path, aside)
        repairs = f"{suggested('git -C', aside)} worktree repair"
        if not os.path.isdir(other):
            what = f"a worktree of {mentioned(whose)}, which is not there"
            own = f"{suggested('git -C', self._common_dir)} worktree repair"
            hint = f"if that is this repository, which was moved: {own}; else: {moves}"
        elif whose != self._common_dir and git_dir is not None:
            what = f"a worktree of another repository, {mentioned(whose)}"
            forgets = suggested("rm -r", git_dir)
            hint = f"if this is a copy of that: {forgets}; else: {moves} && {repairs}"
        else:
            leads = f"echo gitdir: {shell_word(other)} > {shell_word(f'{aside}/.git')}"
            what = f"another worktree, that of {mentioned(other)}"
            hint = f"{moves} && {leads} && {repairs}"
        return Conflict(f"{mentioned(path)} is {what}", hint=hint)

    def _refuse_open(self, git_dir: str) -> None:
        """Raises `Conflict` for what a person has under way in what they have handed over."""
        note = worktree_note(Worktree(self._path, git_dir, self._common_dir))
        if note is not None and note.keeps_work and (open_ := open_operations(git_dir)):
            raise Conflict(
                f"{mentioned(self._path)}, which was handed over, has {open_[0]} open",
                hint=f"end it first: {suggested('git -C', self._path)} status",
            )

    def _restored(self, git_dir: str) -> Iterator[str]:
        """Yields what it has restored in the git directory: `HEAD`, and that nothing there leads to
        another folder.
        """
        head = os.path.join(git_dir, "HEAD")
        if safe_open.is_there(head) and not whole(head).strip():  # As a power loss leaves it.
            write_document(head, f"ref: refs/heads/{self._branch}\n".encode())
            yield f"{mentioned(head)} was empty, and names {mentioned(self._branch)} again"
        for name in bring_home(git_dir):
            yield f"{name} in git's settings of {mentioned(self._path)} alone was removed"

    def clear(self, name: str, issue_id: str = "ISSUE") -> Iterator[str]:
        """Yields what it has kept of work that is not on the main branch, of an issue if that is
        known, a sentence each: the worktree is on it then. Keeps the work there, once, if a person
        has handed it over.

        Called after `mend`; raises as that does.
        """
        git_dir = self._git_dir() or ""
        place = Worktree(self._path, git_dir, self._common_dir)
        if takes_over(place):
            return
        Consent.of(self._hive).require_target()
        show_hidden(self._path)
        to, name = str(target_ref(self._hive.layout)), branch_part(name)
        nested = (*nested_in(status_of(place)), *self._nested_in_the_way(place, to))
        yield from self._nested_aside(name, nested)
        for each in unseen(self._path):
            yield self._emptied(name, os.path.join(self._path, each), git_dir)
        for each in replaced(self._path, to):
            folder = os.path.join(self._path, each)
            yield self._emptied(name, folder, git_dir, "the main branch has other files there")
        kept = WorktreeKeeper(self._hive).put_back(place, branch=self._branch, name=name, to=to)
        # Those that were committed stay, in place of nothing.
        yield from self._nested_aside(name, nested_in(status_of(place)))
        yield from self._submodules(name, self._path, git_dir)
        for each in left_in_modules(git_dir) if git_dir else ():
            if os.path.isdir(each) and has_work(each):
                yield self._modules_aside(name, "a submodule was there no more, and has work", each)
                prepare_again(git_dir)
        note_emptied(git_dir, self._hive.now_ms())
        if kept.branch is not None or kept.aside is not None:
            yield kept.sentence(issue_id)

    def _nested_aside(self, name: str, nested: Iterable[str]) -> Iterator[str]:
        why = "no commit can have a repository of its own"
        for each in dict.fromkeys(each.rstrip("/") for each in nested):
            yield self._set_aside(name, why, os.path.join(self._path, each))

    def _submodules(self, name: str, tree: str, git_dir: str) -> Iterator[str]:
        """Yields what it has set aside of submodules: they are at the commits that a tree has."""
        for path, commit in links(tree).items():
            folder = os.path.join(tree, path)
            if not os.path.lexists(os.path.join(folder, ".git")):
                continue
            if not self._is_at(folder, git_dir, commit):
                yield self._emptied(name, folder, git_dir)
            elif os.path.lexists(os.path.join(folder, ".git")):
                yield from self._submodules(name, folder, git_dir)
            else:  # It is to be fetched.
                prepare_again(git_dir)

    def _is_at(self, folder: str, git_dir: str, commit: str) -> bool:
        """Returns whether a submodule is at a commit, or comes to it, as far as nothing is lost by
        that.
        """
        own = repository_of(folder)
        if own is None or not own.startswith(os.path.join(git_dir, "modules", "")):
            return False
        place = Worktree(folder, own, own)
        if has_changes(folder) or open_operations(own):
            return False
        return place.head == commit or (not commits_alone(place) and come_to(folder, commit))

    def _emptied(self, name: str, folder: str, git_dir: str, why: str = _ANOTHER) -> str:
        """Sets aside what is in the folder of a submodule, for the set-up to get that anew."""
        said = self._set_aside(name, why, folder)
        safe_open.make_folder(folder)
        prepare_again(git_dir)
        return said

    def _nested_in_the_way(self, place: Worktree, to: str) -> list[str]:
        """Returns the ignored repositories where the files of a commit are to be."""
        ways = between(self._path, place.head or to, to)
        return [each for each in ways if has_repository(os.path.join(self._path, each))]

    def _is_fit(self, git_dir: str, *, keeps_merge: bool) -> bool:
        """Returns whether it is on its branch, with nothing open but a merge for its droid."""
        kept = {"MERGE_HEAD"} if keeps_merge else set()
        place = Worktree(self._path, git_dir, self._common_dir)
        return place.branch == self._branch and kept.issuperset(open_operations(git_dir))

    def _put_back(self, git_dir: str, name: str) -> str:
        place = Worktree(self._path, git_dir, self._common_dir)
        how = f"was on branch {mentioned(place.branch)}" if place.branch else "was on no branch"
        if open_ := open_operations(git_dir):
            how = f"had {open_[0]} open"
        has_tip = self._tip(f"refs/heads/{self._branch}") is not None
        if not has_tip:
            Consent.of(self._hive).require_target()
        to = None if has_tip else target_ref(self._hive.layout)
        keeper = WorktreeKeeper(self._hive)
        kept = keeper.put_back(place, branch=self._branch, name=branch_part(name), to=to).branch
        note = worktree_note(place)
        if not has_tip and note is not None:  # Its note went with the branch.
            note_branch(self._hive.layout, replace(note, keeps_work=False))
        said = f"{mentioned(self._path)} {how}, and is back on {mentioned(self._branch)}"
        return f"{said}; what it had is kept: {suggested('git log', kept)}" if kept else said

    def _made_again(self, git_dir: str | None, name: str) -> Iterator[str]:
        """Makes it again, on its branch, with the commits that this has."""
        kept = None
        if git_dir is not None:
            layout, name = self._hive.layout, branch_part(name)
            kept = let_go(layout, git_dir, self._path, branch=self._branch, name=name)
            inner = in_modules(git_dir)
            self._have_no_folder(inner)  # Where they were, there will be others.
            if any(map(has_work, inner)):
                modules = os.path.join(git_dir, "modules")  # Of a folder that was moved, perhaps.
                copy = free_name(modules)
                shutil.copytree(modules, copy, symlinks=True, copy_function=_copied)
                yield self._set_aside(name, "submodules have what no remote has", copy)
        self._make()
        yield kept_of_gone(self._path, kept)

    def _set_aside(self, name: str, why: str, path: str = "") -> str:
        """Gives the folder, or one in it, another name beside it."""
        layout, path = self._hive.layout, path or self._path
        kept = keep_inside(layout, path, name)
        said = set_aside(layout, path, self._path, why, self._git_dir() or "")
        return f"{said}; its last commits are kept: {suggested('git log', *kept)}" if kept else said

    def _modules_aside(self, name: str, why: str, top: str) -> str:
        """Sets repositories of submodules aside whose folders are gone: one, or all in a folder."""
        self._have_no_folder((top, *repositories(top)))
        return self._set_aside(name, why, top)

    def _have_no_folder(self, found: Iterable[str]) -> None:
        """Has repositories of submodules be those of the folder that leads to them."""
        for each in found:
            unset = ("config", f"--file={os.path.join(each, 'config')}", "--unset-all")
            with suppress(ExternalFailure):
                as_the_user(*unset, "core.worktree", cwd=self._common_dir)

    def _remove_locks(self, git_dir: str) -> None:
        """Removes the locks of a git that was killed. Raises `Conflict` while one is at work."""
        where = Where(self._path, git_dir, self._common_dir, self._branch)
        for lock in remove_locks(where, 0):
            with suppress(FileNotFoundError):
                age_s = time.time() - os.lstat(lock).st_mtime
                if not 0 <= age_s < _YOUNG_S and not _git_runs_in(self._path, git_dir):
                    os.unlink(lock)  # A complete index, as a `git commit` leaves that was killed.
                    continue
                raise Conflict(
                    f"git is at work in {mentioned(self._path)}: {lock}",
                    hint=suggested("git -C", self._path, "status"),
                )

    def _git_dir(self) -> str | None:
        """Returns the git directory that QueenBee made for this folder, also if the folder is gone.
        Raises `Conflict` if only that of somebody else names it.
        """
        known = git_dirs_of(self._common_dir, self._path)
        for git_dir in known:
            note = worktree_note(Worktree(self._path, git_dir, self._common_dir))
            if note is not None and note.branch == self._branch:
                return git_dir
        if known:
            raise Conflict(
                f"{mentioned(self._path)} is a worktree that QueenBee did not make for "
                f"{mentioned(self._branch)}",
                hint=f"{suggested('git worktree move', self._path, f'{self._path}.other')}, then "
                "the same again",
            )
        return None

    def _tip(self, revision: str) -> str | None:
        repository = {"GIT_DIR": self._common_dir}
        how = ("rev-parse", "--verify", "--quiet", "--end-of-options", revision)
        return line(*how, cwd=self._common_dir, repository=repository)


def commits_in(log: str) -> list[str]:
    """Returns the commits that a reflog names, the newest last."""
    with suppress(OSError, Unreadable):
        entries = safe_open.read(log).decode(errors="replace").split("\n")
        return [said[1] for each in entries if len(said := each.split(" ", 2)) == 3]
    return []


def leads_to(dot_git: str) -> str | None:
    """Returns the git directory that a `.git` file names, or None for anything else."""
    with suppress(OSError, Unreadable):
        if not os.path.islink(dot_git):
            said = whole(dot_git).removeprefix("gitdir:").strip(" ")
            return os.path.realpath(os.path.join(os.path.dirname(dot_git), said))
    return None


def _copied(source: str, target: str) -> None:
    """Copies a file of a repository; git never changes an object."""
    if f"{os.sep}objects{os.sep}" in source:
        with suppress(OSError):
            os.link(source, target, follow_symlinks=False)
            return
    if os.path.isfile(source):
        shutil.copy2(source, target)


def _link_to(git_dir: str) -> str:
    """Returns the link that is where git has the folder of a worktree; empty if that is none."""
    with suppress(OSError, Unreadable):
        named = os.path.dirname(os.path.join(git_dir, whole(os.path.join(git_dir, "gitdir"))))
        return named if os.path.islink(named) else ""
    return ""


def _is_of_worktree(git_dir: str, path: str) -> bool:
    """Returns whether a git directory, which may be gone, is that of a linked worktree, of which no
    other folder than this one is there.
    """
    if not os.path.isdir(git_dir):
        return os.path.basename(os.path.dirname(git_dir)) == "worktrees"
    with suppress(OSError, Unreadable):
        dot_git = os.path.join(git_dir, whole(os.path.join(git_dir, "gitdir")))
        return os.path.dirname(os.path.realpath(dot_git)) == path or leads_to(dot_git) != git_dir
    return False


def _git_runs_in(*folders: str) -> bool:
    """Returns whether a git that this user can see works in one of these folders."""
    for each in filter(str.isdigit, safe_open.names_in("/proc")):
        with (
            suppress(OSError),
            open(f"/proc/{each}/comm", encoding="utf-8", errors="replace") as it,
        ):
            if it.read().startswith("git"):
                cwd = os.readlink(f"/proc/{each}/cwd")
                if any(f"{cwd}/".startswith(f"{folder}/") for folder in folders):
                    return True
    return False
