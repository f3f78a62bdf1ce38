"""Git commands of a landing: run as the user would, with their hooks and settings.

Each runs in a session of its own with a limit, so that nothing that a terminal or `kill` sends to
our process group stops git between two files; what git started ends with it. The step
stays locked as long as git or one of its hooks lives, also without us.
"""

from __future__ import annotations

import os
import time
from contextlib import nullcontext, suppress
from copy import copy
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from queenbee.checks.processes import Program, run_process
from queenbee.core.command_lines import git_line, no_dash, shell_line
from queenbee.core.text import without_escapes
from queenbee.errors import ExternalFailure
from queenbee.git import run
from queenbee.git.contents.hive_files import is_record
from queenbee.git.contents.signing import SigningWait
from queenbee.git.index_lock import remove_left_lock
from queenbee.git.run import environment_of_hooks, environment_of_user
from queenbee.store import giving_up

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.checks.processes import Interrupts
    from queenbee.services.waiting.landing_steps import Step

    Changed = Mapping[str, Sequence[str]]
    """Files that differ, each with its blob before and after: zeros for one that is not there."""

LAST_CHARS = 3_000
ACTION = "queen land"
"""What the reflogs call all that a landing does."""
_SETTINGS = (
    *("-c", "merge.autoStash=false"),
    *("-c", "rebase.autoStash=false"),
    *("-c", "rerere.autoUpdate=false"),  # Git would stage what it resolves, and fail all the same.
    *("-c", "rebase.updateRefs=false"),  # It moves other branches on the same commits.
    *("-c", "maintenance.auto=false"),  # Others wait: whoever commits does that.
    *("-c", "gc.auto=0"),
    *("-c", "rebase.backend=merge"),  # The other one keeps its state elsewhere.
    *("-c", "core.commentChar=\x1f"),  # An issue may be named `#12`.
    # A person's edit may have the size and the time that git knows, or be unknown to a monitor.
    *("-c", "core.checkStat=default"),
    *("-c", "core.trustctime=true"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "submodule.recurse=false"),  # Else git fails where one is not checked out.
)
AMONG_OTHERS = "try"
"""The step in which others' branches are merged, too."""
_WITHOUT_HOOKS = ("commit-tree",)
_READING = 'said=$1; shift; exec "$@" <<END\n$said\nEND\n'
"""How git is run with a text to read."""
_COMMITS = ("commit", "commit-tree", "merge", "rebase")
_LONGEST_S = 1800.0
"""Hooks of a merge may run tests. One that hangs must not keep the turn for ever."""
PATIENCE_S = 10.0
"""An editor's or a prompt's `git status` holds the lock of the index for a moment."""
_AGAIN_S = 0.1


git: partial[bytes] = partial(run.git, repository={})
"""Asks about the repository of a folder, whatever one a calling hook or alias names."""
line: partial[str | None] = partial(run.line, repository={})
"""The same for one line, or None."""


_MADE = "%H%n%T%n%P%n%an <%ae> %at%n%B"
"""The commit, its files, its parents, who made it when, and the message."""
RAW = ("--raw", "--no-abbrev", "--no-renames", "-r", "-z")


@lru_cache(maxsize=16)
def differing(tree: str, before: str, after: str) -> Changed:
    """Returns what differs between two commits, by their ids."""
    # A `.gitmodules` may ask git not to show that a submodule has moved.
    how = ("diff-tree", *RAW, "--ignore-submodules=none")
    return contents(git(*how, no_dash(before), no_dash(after), "--", cwd=tree))


def are_alike(tree: str, before: str, after: str) -> bool:
    """Returns whether two commits have the same files, but for records; not if git has removed one
    of them.
    """
    with suppress(ExternalFailure):
        return before == after or all(map(is_record, differing(tree, before, after)))
    return False


def contents(raw: bytes) -> Changed:
    """Returns what differs in a `RAW` comparison."""
    fields = iter(os.fsdecode(each) for each in raw.split(b"\0") if each)
    return {next(fields): said.split()[2:4] for said in fields}


def added(changed: Changed) -> list[str]:
    """Returns those of the files of a comparison that were not there before."""
    return [path for path, (before, *_) in changed.items() if set(before) == {"0"}]


def amended_as(tree: str, commit: str, within: str) -> str | None:
    """Returns the commit of a first-parent line that another one may have been amended to: on the
    same parents, which name the branch if it is a merge; else with the same files, or with the
    author, time and message. Raises `ExternalFailure` where git does not have them.
    """

    def made(asked: str) -> list[list[str]]:
        how = ("log", "-z", "--first-parent", "--no-show-signature", f"--format={_MADE}")
        said = git(*how, no_dash(asked), "--", cwd=tree).decode(errors="replace")
        return [each.split("\n", 4) for each in said.split("\0") if each]

    ((_, own_files, own_parents, *own),) = made(f"{commit}^!")
    for found, files, parents, *said in made(within):
        is_alike = files == own_files or said == own
        if parents == own_parents and (" " in parents or is_alike):
            return found
    return None


def is_commit(said: object) -> bool:
    """Returns whether it has the form of a commit's id."""
    return isinstance(said, str) and len(said) >= 40 and set(said) <= set("0123456789abcdef")


class Done(NamedTuple):
    """How a git command ended: its status, None if it was ended, and what it printed."""

    status: int | None
    said: str

    @property
    def is_locked(self) -> bool:
        """Whether another process of git was in the way."""
        return ".lock': File exists" in self.said


class Commands:
    """Runs git for one landing."""

    def __init__(
        self,
        interrupts: Interrupts,
        step: Step,
        droid: str,
        tell_waiting: Callable[[str], None] | None,
        token: str = "",
    ) -> None:
        self.interrupts = interrupts
        self.step = step
        """What is under way in the worktree of the actor."""
        self.droid = droid
        """Who lands: the hooks that run in the hive's own checkout cannot tell."""
        self._tell_waiting = tell_waiting
        """Told what git may wait for, where commits are signed."""
        self.token = token
        """What tells the guard, in git's hooks, that this is a landing whose turn it is."""

    def of(self, step: Step) -> Commands:
        """Returns the same for what is under way elsewhere."""
        other = copy(self)
        other.step = step
        return other

    def stop_if_asked(self) -> None:
        """Raises `KeyboardInterrupt` after Ctrl-C, SIGTERM or SIGHUP."""
        if self.interrupts.count:
            raise KeyboardInterrupt("interrupted while landing")

    def wait_for_index(self, git_dir: str) -> None:
        """Returns when no process of git changes an index, or after some seconds: git would fail
        in the middle of a merge.
        """
        lock = os.path.join(git_dir, "index.lock")
        remove_left_lock(git_dir)
        until_s = time.monotonic() + PATIENCE_S
        while os.path.lexists(lock) and time.monotonic() < until_s:
            self.stop_if_asked()
            time.sleep(_AGAIN_S)

    def __call__(  # noqa: PLR0913 - by name
        self,
        *arguments: str,
        cwd: str,
        step: Step | None = None,
        to_the_end: bool = False,
        env: Mapping[str, str] | None = None,
        has_tokens: bool = False,
        stdin: str = "",
        still: Callable[[], bool] = lambda: True,
    ) -> Done:
        """Runs git; where another process of git has a lock, again, for some seconds. Unless it
        `has_tokens`, as a push does, it gets an ssh-agent at most, to sign with; what hooks run
        among the branches of others gets none. With `stdin`, it reads that.

        A request to end stops it, unless it has to come `to_the_end`. Before each run, it asks
        whether that `still` is to be.
        """
        step = step or self.step
        is_among_others = step.name == AMONG_OTHERS and arguments[0] not in _WITHOUT_HOOKS
        signed = () if is_among_others else arguments
        own = environment_of_user() if has_tokens else environment_of_hooks(signed, cwd)
        run = git_line(cwd, (*_SETTINGS, *arguments))
        program = Program(
            shell_line(_READING, "git", stdin, *run) if stdin else run,
            cwd,
            {**own, **self._said(), **(env or {})},
            _LONGEST_S,
            pass_fds=(step.fd,),
            joins_errors=True,
        )
        on_tick = None
        if self._tell_waiting is not None and arguments[0] in _COMMITS:
            on_tick = SigningWait(cwd, self._tell_waiting).look
        until_s = time.monotonic() + PATIENCE_S
        while still():
            with giving_up.not_now() if to_the_end else nullcontext():
                interrupts = None if to_the_end else self.interrupts
                ran = run_process(program, on_tick=on_tick, interrupts=interrupts)
            said = (ran.stdout.head + ran.stdout.tail).decode(errors="replace")
            said = without_escapes(said).strip()  # Hooks color what they say.
            done = Done(ran.exit_code, (ran.problem or said)[-LAST_CHARS:])
            late = time.monotonic() >= until_s or self.interrupts.count
            if done.status == 0 or not done.is_locked or late:
                return done
            time.sleep(_AGAIN_S)
        return Done(None, "somebody has just checked out another branch there")

    def _said(self) -> dict[str, str]:
        return {
            # English, whatever the user reads: `is_locked` reads it. It changes no encoding.
            "LANGUAGE": "en",
            "GIT_EDITOR": "true",
            "GIT_REFLOG_ACTION": ACTION,
            "QUEEN_LANDING": self.token,
            **({"QUEEN_DROID": self.droid} if self.droid else {}),
        }
