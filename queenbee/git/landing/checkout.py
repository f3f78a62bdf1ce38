"""The landing checkout: a worktree of the hive's own, in which branches are merged and checked.

It is made once and kept. Files that only somebody's worktree has are not there, so no check reads
them; what checks leave behind that git ignores stays, so that the next one is quick. It stands
beside the main worktree: within that, or in `.git`, tools would find the settings of the main
worktree, or take no file of it for theirs. Nobody else works in it, so a crash there needs no care:
each landing begins by putting it right. ADR 0025.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from queenbee.checks.noted_process import end_left
from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned, named, shell_word, suggested
from queenbee.errors import Busy, ExternalFailure, QueenError, Unreadable
from queenbee.git.landing.commands import Commands, differing
from queenbee.git.landing.judged.nested import registered
from queenbee.git.landing.place import Place, but_records
from queenbee.git.landing.refusals import LeftByCheck, NotLanded
from queenbee.git.run import configured, names_in, user_git, without_programs
from queenbee.git.trees.hidden import LOOKING
from queenbee.git.trees.in_the_way import has_repository, ignored_in, repositories
from queenbee.git.trees.submodules import links, repository_of
from queenbee.git.worktrees.preparing import SetupFailed, is_prepared, prepare
from queenbee.git.worktrees.slots import variables
from queenbee.services.waiting.landing_steps import Step
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import (
    CHECKOUT,
    CLOSED,
    Worktree,
    current_branch,
    is_checkout,
)
from queenbee.store.git_trees import GitTree, git_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

_WHOLE = (
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.sparseCheckout=false"),
    *("-c", "submodule.recurse=false"),
    *("-c", "core.splitIndex=false"),
)
"""Moving between commits is no event for anybody's hooks. A check reads all files."""
_STATUS = (
    *("status", "--porcelain=v1", "-z", "--no-renames"),
    *("--ignore-submodules=all", "--untracked-files=normal"),
)
_KEEPS = {"GIT_OPTIONAL_LOCKS": "1"}
"""Has it keep in the index what it has read, else the checkout after it would write all files. It
looks into no submodule, whose settings could name a hook for that.
"""
_UPDATE = ("submodule", "--quiet", "update", "--init", "--recursive", "--force", "--")
_UNFETCHED = (
    "queen land again once it can be fetched; or, if no check needs that submodule: git config "
    "-f .gitmodules submodule.NAME.update none"
)
_NOTE = "queenbee-check"
_KNOWN = "queenbee-known"
"""The index as git left it before a check or a hook could say anything in it."""
_LEFT_OPEN = ("rebase-merge", "rebase-apply")
_LOCKS = ("index.lock", "HEAD.lock")
_LEFT = "left-by-check"
"""The branch below `unfinished/` that keeps what a check changed."""
_MOST_NAMED = 3
_MOST = 20
"""So many checkouts there may be."""
_OF_TOOLS = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
"""What a check makes anew, and never misses."""


class Checkout(Place):
    """A landing checkout; locked until `close`."""

    is_own = False

    def __init__(self, here: GitTree, own: Place, step: Step, number: int) -> None:
        super().__init__(own.store, here, own.branch, own.target, own.tell)
        self.worktree: Place = own
        """That of whoever lands."""
        self._step = step
        self._number = number
        self._closed = os.path.join(here.git_dir, CLOSED)
        self._closed_ns = _changed_ns(self._closed)
        with suppress(OSError):
            os.unlink(self._closed)
        self.commands: Commands = own.commands.of(step)
        self._is_new = False
        """Whether it was made anew because git failed in it."""
        self.is_ready = False
        """Whether a check may have run since it got the files that it has."""
        self._failed: tuple[str | None, SetupFailed] | None = None
        """The files on which the set-up has failed, as a tree of git, and how."""
        self._compiled_at = ""
        """The commit up to which nothing is left that Python compiled from other files."""
        self._known = os.path.join(here.git_dir, _KNOWN)

    @classmethod
    def opened(cls, own: Place, number: int = 1) -> Self:
        """Returns a checkout for landings on the target of a worktree: each number has one. Makes
        it, also anew if it is broken; takes a later one where a process that lost its turn, or its
        git, is still at work. Raises `NotLanded`, and `Busy` if there is none.
        """
        path = checkout_path(own, number)
        if os.path.islink(path):  # What is there is not ours to clear.
            raise NotLanded(
                f"{mentioned(path)} is a link, where landings are checked; nothing was landed",
                hint=f"{suggested('rm', path)}, then queen land",
            )
        try:
            step = Step.of(own.folder, path, target=own.target)
        except Busy:
            if number >= _MOST:
                raise
            return cls.opened(own, number + 1)
        try:
            here = _at(path) or _made(own, step, path)
            return cls(here, own, step, number)
        except BaseException:
            step.close()
            raise

    @property
    def check_note(self) -> str:
        """The file in which a check is noted that runs here."""
        return os.path.join(self.git_dir, _NOTE)

    def close(self) -> None:
        """Lets go of it."""
        with suppress(OSError, QueenError):
            safe_open.write(self._closed, b"")
        self._step.end()
        self._step.close()
        self.objects.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def go_to(self, commit: str, *, sets_up: bool = True) -> None:
        """Gives it the files of a commit, byte for byte, and nothing else but what git ignores.

        What git remembers of them may have been made up by a check, and does not count. Where git
        fails, the checkout is made anew, unless something in it is somebody's.
        """
        end_left(self.check_note)
        if current_branch(self.git_dir) or self._is_newer(os.path.join(self.git_dir, "index")):
            self._keep_others()
        try:
            self._go_to(commit)
        except NotLanded:
            if not self._is_made_anew():
                raise
            self._go_to(commit)
        if sets_up:
            with suppress(SetupFailed):  # Hooks of a merge may need it; a check says if it failed.
                self._set_up()

    def _is_made_anew(self) -> bool:
        """Makes it anew, once, if nothing in it is somebody's; returns whether it did."""
        from queenbee.git.worktrees.worktree_mending import leads_to  # noqa: PLC0415 - start-up

        own = os.path.join(self.git_dir, "modules", "")
        led = (leads_to(os.path.join(each, ".git")) for each in repositories(self.tree))
        if self._is_new or current_branch(self.git_dir) is not None:
            return False
        if not all(each is not None and each.startswith(own) for each in led):
            return False
        self._is_new = True
        where = ("--force", "--force", "--", self.tree)
        self.commands("worktree", "remove", *where, cwd=self.worktree.tree, to_the_end=True)
        here = _made(self.worktree, self._step, self.tree)
        self.git_dir: str = here.git_dir
        return True

    def _go_to(self, commit: str) -> None:
        for name in _LEFT_OPEN:
            shutil.rmtree(os.path.join(self.git_dir, name), ignore_errors=True)
        for name in _LOCKS:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.git_dir, name))
        self._step.write("checkout", after=commit)
        left, other = self._left(commit)
        if any(self._is_newer(each[3:]) for each in left):
            self._run("read-tree", "HEAD")  # It is told from what a check has changed.
            self._keep_others()
            self._go_to(commit)
            return
        self._closed_ns = 0
        if left or self.head() != commit or current_branch(self.git_dir) is not None:
            self._run("checkout", "-q", "--force", "--detach", no_dash(commit), "--")
        untracked = [each[3:].rstrip("/") for each in left if each.startswith("??")]
        for way in untracked:
            if has_repository(path := os.path.join(self.tree, way)):
                self._set_aside(path)
        if untracked:
            self._run("clean", "-ffdq")
        with suppress(OSError):  # Then the next landing reads all files.
            shutil.copy2(os.path.join(self.git_dir, "index"), self._known)
        self._forget_compiled((*(each[3:] for each in left), *other))
        self._compiled_at = commit
        self.is_ready = False

    def _set_aside(self, path: str) -> None:
        from queenbee.git.trees.set_aside import set_aside  # noqa: PLC0415 - start-up
        from queenbee.git.unfinished import keep_inside  # noqa: PLC0415 - start-up

        keep_inside(self.layout, path, _LEFT)
        set_aside(self.layout, path, self.tree, "it is a repository of its own", self.git_dir)

    def _left(self, commit: str) -> tuple[list[str], Iterable[str]]:
        """Returns which files are not as git left them, as `git status` lists them, and those that
        the commit has otherwise. By what git knew before anything ran here, it reads those that
        have another time of change, which nobody can set back; where that is gone, it reads all.
        """
        how: Any = {"repository": _KEEPS, "config": LOOKING}
        ask = partial(user_git, *_WHOLE, *_STATUS, cwd=self.tree, **how)
        with suppress(OSError, ExternalFailure):
            # With the time of the index: what was written at that very moment is read, too.
            shutil.copy2(self._known, os.path.join(self.git_dir, "index"))
            status, said, _ = ask()
            if status == 0:
                return names_in(said), differing(self.tree, self.head(), commit)
        self._run("read-tree", no_dash(commit))
        return names_in(ask()[1]), ()

    def ready(self) -> dict[str, str]:
        """Makes it ready for a check of the commit that it has, as any worktree is set up; returns
        the variables that the check gets. Raises `SetupFailed`.
        """
        self.is_ready = True
        self._set_up()
        before, now = self._compiled_at, self.head()
        if before != now:
            self._forget_compiled(differing(self.tree, before, now))
            self._compiled_at = now
        try:
            self._put_submodules_right()
        except NotLanded:
            if not self._is_made_anew():
                raise
            self._go_to(now)
            self._put_submodules_right()
        return variables(self.layout, self.tree)

    def empty(self) -> bool:
        """Removes what git ignores, too, and sets it up again: what checks have left may decide
        what the next one says. Returns whether there was anything. Raises `SetupFailed`.
        """
        if not ignored_in(self.tree):
            return False
        self.tell(f"emptying {named([self.tree])} of what earlier checks have left")
        self._run("clean", "-ffdxq")
        self._prepare(again=True)
        return True

    def _put_submodules_right(self) -> None:
        if not (there := links(self.tree)):
            return
        known = registered(self.tree, "HEAD")  # No other one can be fetched.
        paths = [f"./{each}" for each in there if each in known]
        if not paths:
            return
        self._empty_submodules()
        if self.commands(*_WHOLE, *_UPDATE, *paths, cwd=self.tree).status == 0:
            return
        # Whoever fetches may need tokens; what a commit there has git run gets none.
        env = configured({}, without_programs(self.tree))
        self._run(*_UPDATE, *paths, has_tokens=True, env=env, hint=_UNFETCHED)
        self._empty_submodules()
        self._run(*_UPDATE, *paths, hint=_UNFETCHED)

    def _empty_submodules(self) -> None:
        """Removes what checks left in them, and hid there: no other check may read it."""
        for each in repositories(self.tree):
            own = repository_of(each) or ""
            if own.startswith(os.path.join(self.git_dir, "modules", "")):
                with suppress(FileNotFoundError):
                    safe_open.unlink(os.path.join(own, "index"))
                # If it cannot be put right, git says so at the next step.
                self.commands(*_WHOLE, "reset", "-q", "--hard", cwd=each)
                self.commands(*_WHOLE, "clean", "-ffdq", cwd=each)

    def _set_up(self) -> None:
        if is_prepared(self.layout, self.tree):
            return
        tree = self.commit("HEAD", "tree")
        if self._failed is not None and self._failed[0] == tree:
            raise self._failed[1]
        try:
            self._prepare(again=False)
        except SetupFailed as error:
            self._failed = (tree, error)
            raise

    def _prepare(self, *, again: bool) -> None:
        how: Any = {"tell": self.tell, "interrupts": self.commands.interrupts, "again": again}
        prepare(self.layout, self.tree, env=os.environ, **how)
        self._run("checkout", "--force", "HEAD", "--", ".")  # A check reads what lands.

    def _keep_others(self) -> None:
        """Keeps what somebody has changed here since a landing let go of it, or has not committed
        on a branch that they have checked out here.
        """
        closed_ns, self._closed_ns = self._closed_ns, 0
        is_on_a_branch = current_branch(self.git_dir) is not None
        with suppress(QueenError):  # Of a broken one.
            if not is_on_a_branch and not (closed_ns and self._has_changed(closed_ns)):
                return
            if kept := self._kept_as(os.path.basename(self.tree)):
                self.tell(
                    f"somebody has changed {named([self.tree])}, where landings are checked; what "
                    f"is there is kept: {suggested('git log -p', kept)}"
                )

    def _is_newer(self, path: str) -> bool:
        """Returns whether a file, or one below a folder, has changed since a landing let go of this
        checkout.
        """
        top = os.path.join(self.tree, path)
        below = () if os.path.islink(top) else os.walk(top)
        inside = (os.path.join(each, name) for each, _, names in below for name in names)
        return any(0 < self._closed_ns < _changed_ns(each) for each in (top, *inside))

    def _has_changed(self, closed_ns: int) -> bool:
        """Returns whether anybody has changed a file here since then; if so, what a check has
        changed before is as it was.
        """
        said = names_in(user_git(*_WHOLE, *_STATUS, "--untracked-files=all", cwd=self.tree)[1])
        changed = {each: _changed_ns(os.path.join(self.tree, each[3:])) for each in said}
        left = [each for each in said if changed[each] <= closed_ns]
        for each in left if len(left) < len(said) else ():
            if not each.startswith("??"):
                self._run("checkout", "-q", "--force", "HEAD", "--", f":(literal){each[3:]}")
        return len(left) < len(said)

    def _kept_as(self, name: str) -> str | None:
        """Returns the branch that keeps what is not committed here, or None if all is."""
        from queenbee.git.unfinished import keep_worktree  # noqa: PLC0415 - start-up

        here = Worktree(self.tree, self.git_dir, self.common_dir)
        return keep_worktree(here, with_files=True, name=name)

    def beside(self, number: int) -> Self:
        """Returns a further checkout, the first with 1."""
        return self.opened(self.worktree, self._number + number)

    def left_by_check(self, commit: str) -> LeftByCheck | None:
        """Returns the refusal for a check that left other files than it was given, or another
        commit. What it left is kept on a branch.
        """
        entries = self.open_files("normal") if self.is_ready else []
        files = but_records([each for each in entries if not each.startswith("??")])
        with suppress(QueenError):
            if len(files) < len(entries):
                self._run("clean", "-ffdq")
        is_on_a_branch = current_branch(self.git_dir) is not None
        if not (files or is_on_a_branch or self.is_merging) and self.head() == commit:
            return None
        return LeftByCheck(files, self._kept_as(_LEFT))

    def what_it_lacks(self, *, of_target: bool = False) -> str:
        """Returns what a check may have missed here, in words for whoever reads why it failed: what
        is at the top of the worktree that lands because git ignores it; where the target fails,
        also what the main worktree has.
        """
        there = dict[str, None]()
        trees = (self.worktree.tree, self.worktree.main_tree if of_target else None)
        for tree in filter(None, trees):
            with suppress(QueenError):
                there |= dict.fromkeys(ignored_in(tree))
        at_top = [each for each in there if "/" not in each.rstrip("/")]
        files = [
            each
            for each in at_top
            if each.rstrip("/") not in _OF_TOOLS
            and not os.path.lexists(os.path.join(self.tree, each.rstrip("/")))
        ][:_MOST_NAMED]
        if not files:
            return ""
        where = f"it ran in {self.tree}, which has what git has"
        copy = suggested("queen config set --add worktree.copy", *(f"/{each}" for each in files))
        more = f"if the check needs it: {copy} && queen worktree setup"
        return f"{where}, and not {named(files, len(files))}; {more}"

    def _forget_compiled(self, changed: Iterable[str]) -> None:
        """Removes what Python compiled from files that have changed: it compares times in seconds,
        and so would take it for theirs.
        """
        for path in changed:
            folder, name = os.path.split(os.path.join(self.tree, path))
            cache = os.path.join(folder, "__pycache__")
            if not name.endswith(".py") or os.path.islink(cache):
                continue
            for each in safe_open.names_in(cache):
                if each.startswith(f"{name[:-3]}."):
                    with suppress(OSError, Unreadable):
                        safe_open.unlink(os.path.join(cache, each))

    def _run(
        self,
        *arguments: str,
        has_tokens: bool = False,
        env: Mapping[str, str] | None = None,
        hint: str = "",
    ) -> None:
        done = self.commands(*_WHOLE, *arguments, cwd=self.tree, has_tokens=has_tokens, env=env)
        if done.status != 0:
            self.commands.stop_if_asked()
            raise NotLanded(
                f"{named([self.tree])}, where landings are checked: {' '.join(done.said.split())}",
                hint=hint
                or f"git worktree remove --force --force {shell_word(self.tree)}, then queen land "
                "again: it is made anew",
            )


def checkout_path(own: Place, number: int = 1) -> str:
    """Returns where a checkout is or is to be: beside the main worktree, with a letter more where
    something else is there; in the folder of those who land where nothing can be made there.
    """
    end = f"-{number}" if number > 1 else ""
    top = own.main_tree or own.common_dir.removesuffix(".git").rstrip(os.sep + ".")
    beside = f"{top}-landing-{os.path.basename(own.folder)}{end}"
    for path in (f"{beside}{letter}" for letter in ("", *"abcdefghijklmnopqrstuvwxyz")):
        is_free = not os.path.lexists(path) and os.access(os.path.dirname(path), os.W_OK)
        if is_free or _at(path) is not None:
            return path
    return os.path.join(own.folder, f"checkout{end}")


def _changed_ns(path: str) -> int:
    """Returns when a file was changed, which nobody can set back; 0 if there is none."""
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0


def _at(path: str) -> GitTree | None:
    """Returns a checkout that is whole."""
    here = None
    with suppress(QueenError):
        here = git_tree(path) if os.path.isfile(os.path.join(path, ".git")) else None
    return here if here is not None and here.tree == path and is_checkout(here.git_dir) else None


def _made(own: Place, step: Step, path: str) -> GitTree:
    shutil.rmtree(path, ignore_errors=True)
    how = ("--quiet", "--force", "--force", "--no-checkout", "--detach")
    made = own.commands.of(step)(
        *(*_WHOLE, "worktree", "add", *how, "--lock", f"--reason={CHECKOUT}"),
        *("--", path, no_dash(own.tip())),
        cwd=own.tree,
    )
    here = _at(path)
    if made.status != 0 or here is None:
        raise NotLanded(
            f"there is no place to check a landing: {' '.join(made.said.split())}",
            hint=f"ls -ld {shell_word(os.path.dirname(path))}",
        )
    return here
