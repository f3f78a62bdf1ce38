"""A branch of a remote, as far as landing needs it: it is fetched, and moved by pushing.

A push says from which commit it moves the branch, and the remote refuses it if the branch is
somewhere else: that alone decides what landed. ADR 0047.
"""

from __future__ import annotations

import os
import shlex
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from queenbee.checks.consent import Consent
from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned, named, shell_word, suggested
from queenbee.errors import InvalidInput, QueenError, Unreachable
from queenbee.git.contents.running_hooks import HOOK_BY_ALIAS, is_of_lfs
from queenbee.git.objects import Objects
from queenbee.git.run import line, network
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import (
    current_branch,
    default_branch,
    has_remotes,
    push_remote,
    real_ref,
    ref_target,
    remote_of,
    target_branch,
)
from queenbee.store.git_trees import git_tree
from queenbee.store.trust import (
    PUSH,
    SIGNOFF,
    Proposal,
    Trust,
    builds_on_target,
    of_setting,
    of_target,
)
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from queenbee.store.layout import Layout


class Ran(Protocol):
    """How a git ended."""

    @property
    def status(self) -> int | None:
        """Its exit status; None if it was ended."""

    @property
    def said(self) -> str:
        """What it printed."""


T = TypeVar("T", bound=Ran)
_FETCH = ("fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--progress")
_PUSH = ("push", "--porcelain", "--no-follow-tags", "--recurse-submodules=no")
"""Nothing but the branch: a person's settings may have git push tags and submodules, too."""
LFS_SETTINGS, _MOST_BYTES = ".lfsconfig", 2**16
_LINK = f"120000 {LFS_SETTINGS}\0".encode()
"""As a symbolic link of that name is listed in a tree."""
_SET_TARGET = "queen config set land.target"
_LOOKED = "upstream-looked"
_NOT_THERE = 2
"""The status of `git ls-remote` where the remote has no such branch."""
_BRIEF_S = 3.0
"""So long a command waits that only wants to know whether something is new."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A branch of a remote that this machine has configured."""

    layout: Layout
    tree: str
    """Where git is run."""
    remote: str
    branch: str

    @classmethod
    def of_target(cls, layout: Layout) -> Self | None:
        """Returns that on which work lands; None if work lands on a branch of this repository."""
        here, name = git_tree(layout.tree), target_branch(layout)
        remote = remote_of(here.common_dir, name) if here is not None and name else None
        if here is None or name is None or remote is None:
            return None
        return cls(layout, here.tree, remote, name.removeprefix(f"{remote}/"))

    @classmethod
    def of_branch(cls, layout: Layout, branch: str) -> Self | None:
        """Returns that which a branch of this repository follows, by its settings in git; None if
        it follows none, or another branch of this repository.
        """
        here = git_tree(layout.tree)
        asked = ("for-each-ref", "--format=%(upstream:remotename)%00%(upstream:remoteref)%00")
        if here is None or not has_remotes(here.common_dir):
            return None
        said = line(*asked, f"refs/heads/{branch}", cwd=here.tree, repository={}) or ""
        remote, _, more = said.partition("\0")
        there = more.rstrip("\0")
        if not remote or remote == "." or not there.startswith("refs/heads/"):
            return None
        return cls(layout, here.tree, remote, there.removeprefix("refs/heads/"))

    @property
    def name(self) -> str:
        """Its name, as git shows it: `origin/main`."""
        return f"{self.remote}/{self.branch}"

    @property
    def ref(self) -> str:
        """Where git keeps what it saw there last, such as `refs/remotes/origin/main`."""
        return f"refs/remotes/{self.name}"

    def way_to_push(self, tree: str) -> str:
        """Returns the commands that bring there what only the branch of that name has in `tree`."""
        at, to = suggested("git -C", tree), suggested("push", self.remote, self.branch)
        return f"{at} merge {shell_word(self.name)} && {at} {to}"

    def proposed_on(self, branch: str) -> Upstream:
        """Returns a branch that is to be merged with it: at the same remote, or at a fork."""
        here = git_tree(self.tree)
        remote = self.remote if here is None else push_remote(here.common_dir, self.remote)
        return replace(self, remote=remote, branch=branch)

    def fetch(self, *, most_s: float = float("inf")) -> None:
        """Brings its newest commit here. Raises `Unreachable`, and `InvalidInput` for a remote to
        which git pushes elsewhere: nobody would see there what has landed.
        """
        here = git_tree(self.tree)
        if here is not None and real_ref(here.common_dir, self.ref) != self.ref:
            raise InvalidInput(
                f"{self.ref} leads to another branch, which a fetch would move",
                hint=suggested("git symbolic-ref --delete", self.ref),
            )
        asked, name = ("remote", "get-url", "--all"), no_dash(self.remote)
        there = line(*asked, name, cwd=self.tree, repository={})
        pushed = line(*asked, "--push", name, cwd=self.tree, repository={})
        if there and pushed and there != pushed:
            raise InvalidInput(
                f"git pushes to {mentioned(pushed)} what it fetches from "
                f"{mentioned(there)}: nothing can land on {named([self.name])}",
                hint=suggested("git remote set-url --push", self.remote, there),
            )
        timeout_s = min(most_s, self.layout.settings.sync_timeout_s)
        wanted = f"+refs/heads/{self.branch}:{self.ref}"
        status, _, said = network(
            *(*_FETCH, "--", self.remote, wanted), cwd=self.tree, timeout_s=timeout_s, most_s=most_s
        )
        if status != 0:
            hint = f"git fetch {shell_word(self.remote)}; then the same command again"
            how = ("ls-remote", "--exit-code", "--", self.remote, f"refs/heads/{self.branch}")
            if network(*how, cwd=self.tree, timeout_s=timeout_s, most_s=most_s)[0] == _NOT_THERE:
                there = suggested("git ls-remote --heads", self.remote)
                to = suggested(_SET_TARGET, f"{self.remote}/BRANCH")
                hint = f"{there} lists its branches; then {to}"
            raise Unreachable(
                f"{named([self.name])} cannot be fetched: {' '.join(said.split()) or status}",
                hint=hint,
            )
        self._note_look()

    def push(
        self,
        run: Callable[..., T],
        tree: str,
        commit: str,
        before: str | None = None,
        *,
        is_try: bool = False,
    ) -> T:
        """Has git push, so that it moves to a commit, only from the one that it had `before`, if
        that is said; empty: only if it is not there. Returns what `run` does. With `is_try`, all
        happens but the move.

        No hook runs with the tokens that a push needs, but Git LFS' own: any other may run code of
        the branch. Raises `Untrusted` if nobody has seen where that would send contents.
        """
        Consent(Trust(self.layout)).require(_of_lfs(tree, commit))
        to = f"refs/heads/{self.branch}"
        own = line("rev-parse", no_dash(commit), cwd=tree, repository={}) or commit
        hook = (*HOOK_BY_ALIAS, "pre-push", "--", self.remote, self._url())
        pushed = f"{commit} {own} {to} {before or '0' * len(own)}"
        done = run(*hook, cwd=tree, stdin=pushed, has_tokens=is_of_lfs(tree))
        if done.status != 0:
            return done
        how = ["-c", f"core.hooksPath={os.devnull}", *_PUSH]
        if is_try:
            how.append("--dry-run")
        if before is not None:
            how.append(f"--force-with-lease={to}:{before}")
        return run(*how, "--", self.remote, f"{commit}:{to}", cwd=tree, has_tokens=True)

    def _url(self) -> str:
        asked = ("remote", "get-url", "--push", no_dash(self.remote))
        return line(*asked, cwd=self.tree, repository={}) or self.remote

    def look(self) -> None:
        """Fetches it if nobody has looked for `sync.max_age`, and not for long: where that fails,
        what was seen last counts.
        """
        ago_s = time.time() - self._looks.get(self.ref, 0.0)
        if 0 <= ago_s < self.layout.settings.sync_max_age_s:
            return
        with suppress(QueenError):
            self._note_look()  # Also a remote that is away is not asked by every command.
            self.fetch(most_s=_BRIEF_S)

    def ahead(self, branch: str) -> int:
        """Returns how many commits it has, as it was seen last, that a branch of this repository
        has not.
        """
        here = git_tree(self.layout.tree)
        if here is None:
            return 0
        ref = f"refs/heads/{branch}"
        seen = ref_target(here.common_dir, self.ref)
        if seen is not None and seen == ref_target(here.common_dir, ref):
            return 0
        asked = ("rev-list", "--count", no_dash(f"{ref}..{self.ref}"), "--")
        return int(line(*asked, cwd=here.tree, repository={}) or 0)

    @property
    def _looks(self) -> dict[str, float]:
        said = recall(os.path.join(self.layout.state_dir, _LOOKED))
        known = said if isinstance(said, dict) else {}
        return {name: at_s for name, at_s in known.items() if isinstance(at_s, float)}

    def _note_look(self) -> None:
        looks = {**self._looks, self.ref: time.time()}
        keep(os.path.join(self.layout.state_dir, _LOOKED), looks)


def pushing(layout: Layout, *, pushes: bool | None = None) -> list[Proposal]:
    """Returns what landings move, here and by pushing, as somebody here has to agree to it; with
    `pushes`, as if `land.push` were that.
    """
    asked, target = of_target(layout), target_branch(layout)
    asked += of_setting(SIGNOFF, layout.settings.land_signoff)
    is_pushed = layout.settings.land_push if pushes is None else pushes
    upstream = Upstream.of_target(layout)
    if upstream is None and target is not None and is_pushed:
        upstream = Upstream.of_branch(layout, target)
        if upstream is not None:
            command = ["git", "push", upstream.remote, f"{target}:{upstream.branch}"]
            asked.append(Proposal(PUSH, shlex.join(command), origin="land.push"))
    return asked if upstream is None else [*asked, *_of_lfs(layout.tree, "HEAD", upstream.ref)]


def _of_lfs(tree: str, *commits: str) -> list[Proposal]:
    """Returns where Git LFS sends contents, as commits say it and a file in the worktree in which
    it runs, and somebody has to agree to it. Raises `InvalidInput` for what cannot be shown.
    """
    said, here = set[str](), os.path.join(tree, LFS_SETTINGS)
    if os.path.islink(here):
        raise _unfit_lfs("is a link")
    with suppress(FileNotFoundError):
        said.add(_lfs_text(safe_open.read(here, _MOST_BYTES + 1)))
    with Objects(tree) as objects:
        for each in commits:
            listed = objects.read(f"{no_dash(each)}^{{tree}}")
            if listed is not None and _LINK in listed[2]:
                raise _unfit_lfs("is a link")
            found = objects.read(f"{no_dash(each)}:{LFS_SETTINGS}")
            said.add(_lfs_text(found[2] if found is not None else b""))
    return [Proposal(PUSH, each, origin=LFS_SETTINGS) for each in sorted(said) if each]


def _lfs_text(data: bytes) -> str:
    if len(data) > _MOST_BYTES:
        raise _unfit_lfs("is too large")
    return data.decode(errors="backslashreplace").strip()


def _unfit_lfs(why: str) -> InvalidInput:
    return InvalidInput(
        f"{LFS_SETTINGS} {why}: it says where Git LFS sends files, which somebody has to agree to",
        hint=f"make it a file of at most {_MOST_BYTES} bytes, and commit that",
    )


def look_for_news(layout: Layout, *, fetches: bool = True) -> str:
    """Sees to it that the newest target is here, if it is a remote's; returns a sentence about a
    branch of this repository that lacks what a remote has, with what brings that, or an empty text.
    Never fails, and asks a remote at most every `sync.max_age`; none for a target to which nobody
    here has agreed.
    """
    if not builds_on_target(layout):
        return ""
    upstream, name = Upstream.of_target(layout), target_branch(layout)
    if upstream is not None:
        if fetches:
            upstream.look()
        return ""
    with suppress(QueenError):
        upstream = Upstream.of_branch(layout, name) if name else None
        if upstream is None or name is None:
            return ""
        if fetches:
            upstream.look()
        count = upstream.ahead(name)
        if count:
            what = "1 commit" if count == 1 else f"{count} commits"
            way = _way_to_bring(layout, upstream, name)
            return f"{named([name])} is {what} behind {named([upstream.name])}; try: {way}"
    return ""


def _way_to_bring(layout: Layout, upstream: Upstream, name: str) -> str:
    """Returns the command that brings a branch of this repository what its remote has."""
    here = git_tree(layout.tree)
    top = here.main_tree if here is not None else None
    if here is not None and top is not None and current_branch(here.common_dir) == name:
        return f"{suggested('git -C', top)} pull"
    return suggested("git fetch", upstream.remote, f"{upstream.branch}:{name}")


def no_target(common_dir: str, target: str) -> tuple[str, str]:
    """Returns what is to be said of a target that is not there, and the command that makes it be,
    or names another one.
    """
    what = f"there is no branch {named([target])}, on which work is to land"
    if remote := remote_of(common_dir, target):
        way = f"git fetch {shell_word(remote)}"
        return f"{named([target])} was never fetched, on which work is to land", way
    lead, _, name = target.rpartition("/")
    if lead:  # Perhaps a remote has another name here.
        way = f"git remote -v; then queen config set land.target REMOTE/{shell_word(name)}"
        return f"{what}, and no remote {named([lead])}", way
    make, now = f"git branch {shell_word(target)}", default_branch(common_dir)
    if now is None:
        return what, f"{make}; or queen config set land.target BRANCH"
    return what, f"if it is called {named([now])} now: {suggested(_SET_TARGET, now)}; or {make}"
