"""Why something does not land."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from queenbee.core.text import named, shell_word, suggested
from queenbee.errors import Conflict, NothingLands
from queenbee.git.trees.open_operations import OPEN, open_operations

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN = 5
_REJECTED = re.compile(r"^!\t\S+\t\[remote rejected\] \(([^)\n]*)\)", re.MULTILINE)
"""What `git push --porcelain` says of a branch that the remote refuses, with the reason."""


def ignoring(tree: str, path: str) -> str:
    """Returns the command that has git ignore a file of a worktree, run in any folder."""
    return f"echo {shell_word(path)} >> {shell_word(os.path.join(tree, '.gitignore'))}"


class NotLanded(Conflict):
    """A landing that something in git prevents; `files` lists those that are in conflict."""

    code = "not_landed"
    files: Sequence[str]
    output_lines: Sequence[str] = ()
    """What git or a hook said, if that is several lines."""

    def __init__(
        self, message: str, lines: Sequence[str] = (), *, files: Sequence[str] = (), **more: Any
    ) -> None:
        if lines:
            more["output_lines"] = list(lines)
        super().__init__(message, files=list(files), **more)


def why_refused(what: str, said: str, status: int | None) -> tuple[str, list[str]]:
    """Returns the message of a refusal by git or a hook, and the lines of what that said if there
    are several.
    """
    lines = [each.rstrip() for each in said.splitlines() if each.strip()]
    if len(lines) > 1:
        return f"{what}; this is what it said", lines
    return f"{what}: {' '.join(' '.join(lines).split()) or f'status {status}'}", []


def in_conflict(git_dir: str, files: Sequence[str]) -> NotLanded:
    """Returns the refusal for conflicts in a worktree, also those that no landing left there."""
    stopped = [OPEN[each][0] for each in open_operations(git_dir)]
    if not stopped or stopped[0] in ("merge", "rebase"):
        again = "queen land --continue" if stopped else "queen land again"
        hint = f"resolve them, git add, then {again}"
        return NotLanded(f"in conflict: {named(files, SHOWN)}", hint=hint, files=files)
    way = f"git {stopped[0]}"
    return NotLanded(
        f"a {way} is not finished here, in conflict: {named(files, SHOWN)}; nothing was landed",
        hint=f"{way} --abort; or resolve them, git add, {way} --continue, and queen land again",
        files=files,
    )


def locked(tree: str, lock: str) -> NotLanded:
    """Returns the refusal where git's lock of the index is in a worktree: another git works there,
    or was killed.
    """
    what = f"git is at work in {tree}, or was killed there: {lock}"
    return NotLanded(what, hint="if no git command runs there, remove that file")


class CommitRefused(NotLanded):
    """A commit that git or one of its hooks refuses; `files` lists what it would have changed."""

    def after(self, changed: Sequence[str]) -> CommitRefused:
        """Returns it for a commit that was made again with files that a hook had changed."""
        what = f"a hook changed {named(changed, SHOWN)}, and with that too {self.message}"
        return CommitRefused(what, self.output_lines, hint=self.hint, files=self.files)


class Unresolved(NotLanded):
    """A conflict that was left to the actor; `union` lists the files in which both sides only
    added lines.
    """

    union: Sequence[str] = ()


class NothingToLand(NotLanded):
    """A landing of a worktree that has nothing which the target lacks."""

    code = "nothing_to_land"


class MainBlocked(NotLanded):
    """A landing that git does not check out in the main worktree; `files` lists those that have
    changed there, or are there without git.
    """

    code = "main_blocked"


def aside(tree: str, files: Sequence[str]) -> str:
    """Returns what takes files of a worktree out of the way, typed in any folder. `git stash` alone
    leaves those that git does not track.
    """
    stash = suggested("git --literal-pathspecs -C", tree)
    return f"{stash} stash push -u -- {' '.join(map(shell_word, files))}"


def way_past(tree: str, files: Sequence[str]) -> str:
    """Returns the same, and the other way."""
    return f"{aside(tree, files)}; or commit them there"


class PushRefused(NotLanded):
    """A landing that the remote does not take, although nobody has moved the branch there."""

    code = "push_refused"

    def __init__(self, target: str, said: str) -> None:
        reason = _REJECTED.search(said)
        is_protected = reason is not None and reason[1] == "protected branch hook declined"
        super().__init__(
            f"{named([target])} cannot be moved: {' '.join(said.split())}; nothing was landed",
            hint="land on a branch of this repository: queen config set land.target BRANCH"
            if is_protected
            else "do what it asks for, then queen land",
        )
        self.is_of_content: bool = reason is not None and not is_protected
        """Whether the remote may take another commit."""


class LeftByCheck(NotLanded):
    """A landing whose check left other files than it was given."""

    code = "left_by_check"

    def __init__(self, files: Sequence[str], kept: str | None) -> None:
        what = named(files, SHOWN) or "the commit"
        super().__init__(
            f"changed while the check ran: {what}; nothing was landed",
            hint=f"{suggested('git show', kept)} has it; what a check writes belongs in .gitignore"
            if kept
            else "what a check writes belongs in .gitignore",
            files=files,
        )
        self.kept = kept


class TargetFails(NothingLands):
    """The target itself fails, without anybody's work: its set-up, its hooks, or its check."""

    code = "target_fails"
    target: str = ""
    commit: str = ""
    step: str = ""
    output: str = ""
    output_lines: Sequence[str] = ()
