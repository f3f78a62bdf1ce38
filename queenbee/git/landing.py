"""Landing: bringing a worktree's branch to the branch of the main worktree, one after the other.

The turn is a place in a line of its own, which the kernel ends with its process. Whoever is first
merges the target into its branch, runs the check on exactly that, and moves the target there by
fast-forward. Nothing else moves, so a landing that is killed has landed or it has not.
"""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.text import shell_word
from queenbee.core.timestamps import format_duration, format_ms
from queenbee.errors import Busy, Conflict, InvalidInput, Unreadable
from queenbee.git.run import git
from queenbee.store import safe_open, waiting_line
from queenbee.store.layout import git_tree
from queenbee.store.watch import wait_for_change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from queenbee.services.store import Store

CHECK = "queenbee.check"
"""The setting of git that holds the check of a repository on this machine."""
_TRIES = 5
_LOOK_AGAIN_S = 1.0


@dataclass(frozen=True)
class Landing:
    """What a landing did: the commit that is now on the target, or why there is none.

    `output` is the end of what a failed check printed.
    """

    target: str
    commit: str | None
    checked: bool = True
    output: str = ""
    untracked: Sequence[str] = ()
    """Files of the worktree that git does not track, and so are not part of it."""

    @property
    def landed(self) -> bool:
        """Whether the target has the work of this worktree."""
        return self.commit is not None

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {
            "landed": self.landed,
            "target": self.target,
            "commit": self.commit,
            "checked": self.checked,
            "output": self.output,
            "untracked": list(self.untracked),
        }


class NotLanded(Conflict):
    """A landing that something in git prevents; `files` lists those that are in conflict."""

    code = "not_landed"


def land(
    store: Store,
    *,
    check: str | None,
    wait_s: float,
    held: Callable[[Sequence[str]], list[str]] = lambda _: [],
    tell: Callable[[str], None] = lambda _: None,
) -> Landing:
    """Lands the branch of this worktree on the branch of the main worktree, when its turn comes.

    `check` is a shell command that runs at the top of this worktree after the merge; by default
    the one in git's setting `queenbee.check`. `held` names those of the changed files that may not
    land, because others hold them. Raises `InvalidInput` outside a linked worktree,
    `NotLanded`, and `Busy` if the turn does not come within `wait_s`.
    """
    place = _Place.of(store)
    place.refuse_unfinished()
    check = check or place.said(CHECK)
    with _Turn(store, place.target, wait_s, tell):
        for _ in range(_TRIES):
            place.refuse_unfinished()
            head = place.merge()
            if files := held(place.changed()):
                raise NotLanded(
                    f"held by others: {', '.join(files[:_SHOWN])}",
                    hint="queen reserved; or ask the holder",
                    files=files,
                )
            if check and (failed := place.fails(check)) is not None:
                return Landing(place.target, None, output=failed)
            place.refuse_unfinished()
            commit = place.advance(head)
            if commit is not None:
                return Landing(
                    place.target, commit, checked=bool(check), untracked=place.untracked()
                )
            tell(f"{place.target} was moved meanwhile; merging it again")
    raise NotLanded(
        f"{place.target} was moved {_TRIES} times while this worktree was being landed",
        hint="try again; nothing was landed",
        files=[],
    )


class _Place:
    """A linked worktree with its branch, and the main worktree with the target."""

    def __init__(self, tree: str, branch: str, main_tree: str, target: str) -> None:
        self.tree = tree
        self.branch = branch
        self.main_tree = main_tree
        self.target = target

    @classmethod
    def of(cls, store: Store) -> _Place:
        here = git_tree(store.layout.tree)
        if here is None or not here.linked or here.main_tree is None:
            raise InvalidInput(
                "this is not a linked worktree: there is nothing to land",
                hint="git worktree add ../NAME, and work there",
            )
        branch, target = _branch(here.git_dir), _branch(here.common_dir)
        if branch is None or target is None or branch == target:
            where = here.tree if branch is None else here.main_tree
            raise InvalidInput(
                f"{where} is on no branch of its own", hint=f"git -C {shell_word(where)} switch …"
            )
        return cls(here.tree, branch, here.main_tree, target)

    def refuse_unfinished(self) -> None:
        """Raises `NotLanded` if there is something to commit or a merge to finish first."""
        wanted = ("--porcelain=v1", "-z", "--untracked-files=no", "--no-renames")
        lines = git("status", *wanted, cwd=self.tree)
        entries = [each.decode(errors="surrogateescape") for each in lines.split(b"\0") if each]
        open_ = [each[3:] for each in entries if each[:2] in _UNMERGED]
        if open_:
            raise self._conflict(open_)
        # The records that git carries change while anybody works.
        dirty = [each[3:] for each in entries if not each[3:].startswith(".beads/")]
        if dirty:
            raise NotLanded(
                f"not committed: {', '.join(dirty[:_SHOWN])}",
                hint="git commit, then queen land again",
                files=dirty,
            )

    def changed(self) -> list[str]:
        """Returns the files that differ from the target. Raises `NotLanded` if there are no
        commits to land.
        """
        target = f"refs/heads/{self.target}"
        if not int(git("rev-list", "--count", f"{target}..HEAD", "--", cwd=self.tree)):
            raise NotLanded(
                f"nothing to land: {self.target} has all commits of this worktree",
                hint="git commit your work; if there is none, queen complete",
                files=[],
            )
        return _names(git("diff", "--name-only", "-z", f"{target}..HEAD", "--", cwd=self.tree))

    def untracked(self) -> list[str]:
        """Returns the files that git neither tracks nor ignores, but for the hive's own."""
        found = git("ls-files", "--others", "--exclude-standard", "-z", cwd=self.tree)
        return [name for name in _names(found) if not name.startswith(".beads/")][:_SHOWN]

    def merge(self) -> str:
        """Merges the target into the branch, and returns its commit. Raises `NotLanded` for a
        conflict.
        """
        target = f"refs/heads/{self.target}"
        count = int(git("rev-list", "--count", f"HEAD..{target}", "--", cwd=self.tree))
        if count:
            message = f"Merge branch '{self.target}' into {self.branch}"
            done = _as_the_user("merge", "--no-edit", "-m", message, target, cwd=self.tree)
            if done.returncode != 0:
                found = git("diff", "--name-only", "-z", "--diff-filter=U", cwd=self.tree)
                raise self._conflict(_names(found), _said(done))
        return self._head()

    def fails(self, check: str) -> str | None:
        """Runs a check; returns the end of what it printed if it failed, else None."""
        done = subprocess.run(
            ["/bin/sh", "-c", check],
            cwd=self.tree,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return None if done.returncode == 0 else _said(done) or f"status {done.returncode}"

    def advance(self, head: str) -> str | None:
        """Moves the target by fast-forward to the commit that was checked, and returns it; None if
        the target was moved. Raises `NotLanded`.
        """
        here, main = git_tree(self.tree), git_tree(self.main_tree)
        if here is None or main is None or self._head() != head:
            raise self._changed("this worktree has another commit than the one that was checked")
        if (_branch(here.git_dir), _branch(main.git_dir)) != (self.branch, self.target):
            raise self._changed("a worktree is on another branch than before")
        target = f"refs/heads/{self.target}"
        if int(git("rev-list", "--count", f"HEAD..{target}", "--", cwd=self.tree)):
            return None
        done = _as_the_user("merge", "--ff-only", "--quiet", head, cwd=self.main_tree)
        if done.returncode == 0:
            if git("rev-parse", target, cwd=self.tree).decode().strip() != head:
                raise self._changed(f"{self.target} is not at {head[:10]} after the merge")
            return head
        if int(git("rev-list", "--count", f"HEAD..{target}", "--", cwd=self.tree)):
            return None
        raise NotLanded(
            f"{self.main_tree} cannot be moved to {head[:10]}: {' '.join(_said(done).split())}",
            hint=f"git -C {shell_word(self.main_tree)} status",
            files=[],
        )

    def _head(self) -> str:
        return git("rev-parse", "--verify", "HEAD", cwd=self.tree).decode().strip()

    def _changed(self, what: str) -> NotLanded:
        return NotLanded(f"{what}; nothing was landed", hint="queen land again", files=[])

    def said(self, name: str) -> str | None:
        """Returns a setting of git on this machine, or None."""
        done = _as_the_user("config", "--get", name, cwd=self.tree)
        return done.stdout.decode(errors="replace").strip() or None

    def _conflict(self, files: list[str], said: str = "") -> NotLanded:
        named = ", ".join(files[:_SHOWN]) or said
        return NotLanded(
            f"{self.target} and {self.branch} conflict: {named}",
            hint="resolve them, git commit, then queen land again; or git merge --abort",
            files=files,
        )


class _Turn:
    """The turn at landing on a target, which comes in the order of asking."""

    def __init__(
        self, store: Store, target: str, wait_s: float, tell: Callable[[str], None]
    ) -> None:
        self._store = store
        self._target = target
        self._wait_s = wait_s
        self._tell = tell
        name = "".join(char if char.isalnum() else "_" for char in target)
        self._folder = os.path.join(store.layout.state_dir, "landing", name)
        self._entry: waiting_line.Entry | None = None

    def __enter__(self) -> None:
        now_ms = self._store.now_ms()
        fields = {"droid": self._store.actor, "since": format_ms(now_ms), "pid": os.getpid()}
        with self._store.transaction():  # The order is that of the lock.
            self._entry = entry = waiting_line.enter(self._folder, fields, now_ms)
        deadline_s = time.monotonic() + self._wait_s
        told = None
        while True:
            seen = waiting_line.names(self._folder)
            first = next(self._first(), None)
            if first is None or first[0] == entry.name:
                return
            if first[1] != told:
                told = first[1]
                self._tell(f"waiting for {told}, who lands on {self._target}")
            until_s = min(deadline_s, time.monotonic() + _LOOK_AGAIN_S)
            path = os.path.join(self._folder, first[0])
            wait_for_change(lambda: waiting_line.names(self._folder), seen, [path], until_s)
            if time.monotonic() >= deadline_s:
                entry.leave()
                raise Busy(
                    f"timed out after {format_duration(self._wait_s)}: {told} lands on "
                    f"{self._target}",
                    hint="queen land --wait 10m",
                )

    def __exit__(self, *error: object) -> None:
        if self._entry is not None:
            self._entry.leave()

    def _first(self) -> Iterator[tuple[str, str]]:
        for name, fields in waiting_line.live(self._folder):
            yield name, str(fields.get("droid"))


_UNMERGED = frozenset({"DD", "AU", "UD", "UA", "DU", "AA", "UU"})
_OF_A_CALLER = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"})
_SHOWN = 5
_LAST_CHARS = 3_000


def _names(listed: bytes) -> list[str]:
    return [os.fsdecode(each) for each in listed.split(b"\0") if each]


def _branch(git_dir: str) -> str | None:
    try:
        head = safe_open.read(os.path.join(git_dir, "HEAD"), 1024).decode().strip()
    except (OSError, Unreadable, UnicodeDecodeError):
        return None
    branch = head.removeprefix("ref: refs/heads/")
    return branch if branch != head else None


def _as_the_user(*arguments: str, cwd: str) -> subprocess.CompletedProcess[bytes]:
    """Runs git as the user would, with their hooks and settings."""
    command = ["git", "-c", "merge.autoStash=false", *arguments]
    # A hook or an alias names its own repository; each call here is about that of its folder.
    env = {name: value for name, value in os.environ.items() if name not in _OF_A_CALLER}
    return subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    text: str = done.stdout.decode(errors="replace")
    return text.strip()[-_LAST_CHARS:]
