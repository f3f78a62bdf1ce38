"""Brings a worktree back to its commit, where git was killed or failed while it moved it.

Git changes files first, then the index, then the branch. So the branch is where it was, and what
differs from it was written by git, if it is what git would have written there. Whatever else is in
a file is somebody's work, and stays. `remedy` decides; ADR 0025 has its table.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, suggested
from queenbee.errors import ExternalFailure, Unreadable
from queenbee.git.contents.hive_files import is_record
from queenbee.git.landing.commands import ACTION, git, is_commit
from queenbee.git.landing.refusals import SHOWN, NotLanded, locked
from queenbee.git.run import names_in
from queenbee.git.trees.in_memory import merged_in_memory
from queenbee.git.worktrees.left_locks import Where, remove_locks
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import Worktree

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from queenbee.core.fold import Fields
    from queenbee.git.landing.commands import Commands
    from queenbee.services.waiting.landing_steps import Step

    _Blob = tuple[str, str] | None
    """The mode and the name of a blob; None where there is no file."""

    Remedy = Literal["", "restore", "abort"]

_LINK = "120000"
_SUBMODULE = "160000"
_PROGRAM = "100755"
CONTINUED = "continued"
"""The field of a step that says that somebody resolved a conflict, and went on from there."""
STEPS = ("", "merge", "rebase", "advance", "conflict")
"""What may be under way in a worktree: nothing; git brings the target here, or moves the branch; a
conflict was left to the droid.
"""


class Found(NamedTuple):
    """What is found in a worktree after a step."""

    is_before: bool
    """Whether the worktree still has the commit that it had."""
    open: Literal["", "merge", "rebase"]
    """What is to be finished there."""
    is_ours: bool
    """Whether that is what the step began."""
    is_touched: bool
    """Whether somebody has worked on it since."""


def remedy(step: str, found: Found) -> Remedy:
    """Returns what brings a worktree back whose step nobody works on any more.

    Nothing where the branch was moved: the step was done. Nothing where another merge is open, or
    work of somebody in ours: that is theirs to finish.
    """
    if step in ("", "conflict") or not found.is_before:
        return ""
    if not found.open:
        return "restore"
    return "abort" if found.is_ours and found.open == step and not found.is_touched else ""


def heal(commands: Commands, step: Step, where: Where, tell: Callable[[str], None]) -> None:
    """Takes back what was left half done, and ends the step; a conflict is left to its droid.

    Raises `NotLanded` where another git is, or may be, at work there.
    """
    if not step.name:
        return
    before, after = _ends(step)
    found = _found(where, step) if before and after else None
    do = remedy(step.name, found) if found is not None else ""
    if do and found is not None:
        _remove_locks(step, where)
    if do and found is not None and step.fields.get("is_begun", True):
        move = _Move(commands, step, where.tree, before, after)
        if do == "abort":
            _take_back(move, found, where, tell)
        move.take_records_back()
        if step.name == "merge":
            move.after = merged_in_memory(where.tree, "HEAD", after)[0] or after
        move.undo(tell)
    if is_unfinished(step, where):
        step.write("conflict")
    else:
        step.end()


def _ends(step: Step) -> tuple[str, str]:
    """Returns the commits between which a step moves."""
    before, after = (str(step.fields.get(each) or "") for each in ("before", "after"))
    return before, after


def _take_back(move: _Move, found: Found, where: Where, tell: Callable[[str], None]) -> None:
    if found.open == "rebase":
        # What git wrote for the first of its moves; aborting knows only what git tracks.
        move.undo(tell)
    done = move.commands(no_dash(found.open), "--abort", cwd=where.tree, to_the_end=True)
    if done.status != 0:  # The step stays: the next one tries again.
        raise NotLanded(
            f"the {found.open} in {where.tree} cannot be taken back: {done.said}",
            hint="queen land again",
        )


def keep_touched(where: Where, tell: Callable[[str], None]) -> None:
    """Keeps what a worktree has on a branch, before git takes a merge back there."""
    from queenbee.git.unfinished import keep_worktree  # noqa: PLC0415 - start-up

    kept = keep_worktree(Worktree(where.tree, where.git_dir, where.common_dir), with_files=True)
    if kept is not None:
        tell(f"what was changed in {where.tree} is kept: {suggested('git show', kept)}")


def put_in_index(
    tree: str,
    before: str,
    after: str,
    paths: Collection[str],
    repository: dict[str, str] | None = None,
) -> None:
    """Gives the index of a worktree these files of a commit to which git is about to move it: git
    then leaves the files themselves alone.
    """
    entries = ""
    for each in _changes(tree, before, after) if paths else ():
        if each.path in paths:
            _, there = each.before or ("", before)
            mode, blob = each.after or ("0", "0" * len(there))  # A file that is gone.
            entries += f"{mode} {blob}\t{each.path}\0"
    if entries:
        stdin = entries.encode(errors="surrogateescape")
        how = ("update-index", "--add", "-z", "--index-info")
        git(*how, cwd=tree, stdin=stdin, repository=repository or {})


def differ_alike(tree: str, before: str, *after: str) -> bool:
    """Returns whether two commits share a change of a file since another one."""
    one, other = ({*_changes(tree, before, each)} for each in after)
    return not one.isdisjoint(other)


def _committed_by_others(where: Where) -> list[str]:
    """Returns the commits on no branch that somebody else has made here, the first one first."""
    try:
        path = os.path.join(where.git_dir, "logs", "HEAD")
        with open(path, encoding="utf-8", errors="replace") as file:
            entries = [each.partition("\t") for each in file]
    except OSError:  # Git keeps none here.
        return []
    ours = (ACTION, "checkout:", "reset:")
    made = {said.split(" ", 2)[1] for said, _, what in entries if not what.startswith(ours)}
    how = ("rev-list", "--first-parent", "--reverse", "HEAD", "--not", "--branches", "--")
    return [each[:10] for each in git(*how, cwd=where.tree).decode().split() if each in made]


def is_unfinished(step: Step, where: Where) -> bool:
    """Returns whether a merge or rebase that a landing began is left to the droid."""
    found = _found(where, step)
    return bool(found.open) and found.is_ours


def is_touched(step: Step, where: Where) -> bool:
    """Returns whether somebody has worked on what was left to the droid."""
    return _found(where, step).is_touched


def _found(where: Where, step: Step) -> Found:
    before, after = _ends(step)
    rebase = os.path.join(where.git_dir, "rebase-merge")
    if os.path.isdir(rebase):
        began, onto = (_first_line(os.path.join(rebase, each)) for each in ("orig-head", "onto"))
        stopped = os.path.exists(os.path.join(rebase, "stopped-sha"))
        is_touched = stopped and _is_resolved(where, step)
        return Found(began == before, "rebase", bool(after) and onto == after, is_touched)
    is_before = _commit(where.tree) == before
    theirs = _first_line(os.path.join(where.git_dir, "MERGE_HEAD"))
    if not theirs:
        return Found(is_before, "", False, False)
    is_ours = is_before and theirs == after
    return Found(is_before, "merge", is_ours, is_ours and _is_touched(where.tree, step))


def _joined_in(step: Step) -> Fields:
    """Returns the files whose conflicts a landing has joined, each with its blob."""
    joined = step.fields.get("joined")
    return joined if isinstance(joined, dict) else {}


def _is_resolved(where: Where, step: Step) -> bool:
    """Returns whether somebody has worked on a rebase that stopped: made a commit, went on with it,
    or changed files that are neither as git left them, which it keeps as a tree, nor as the landing
    joined them.
    """
    if step.fields.get(CONTINUED):
        return True
    left = "AUTO_MERGE" if os.path.exists(os.path.join(where.git_dir, "AUTO_MERGE")) else "HEAD"
    changed = names_in(git("diff", "--name-only", "-z", left, "--", cwd=where.tree))
    known = _joined_in(step)
    is_as_left = all(_is_joined(where.tree, each, known.get(each)) for each in changed)
    return not is_as_left or bool(_committed_by_others(where))


def _is_touched(tree: str, step: Step) -> bool:
    """Returns whether a merge is not as git left it, or with conflicts that the landing joined."""
    (before, theirs), joined = _ends(step), _joined_in(step)
    merged, _ = merged_in_memory(tree, "HEAD", theirs)
    if not merged:
        return True
    changes = _changes(tree, before, merged)
    unmerged = names_in(git("diff", "--name-only", "--diff-filter=U", "-z", cwd=tree))
    if _dirty(tree) - {*unmerged, *(each.path for each in changes)}:
        return True
    for each in changes:
        there = _content(where := os.path.join(tree, each.path))
        if there is None and os.path.lexists(where):
            return True
        is_joined = _is_joined(tree, each.path, joined.get(each.path))
        if not is_joined and there != _wanted(tree, each.after, each.path, merged):
            return True
    return False


def _is_joined(tree: str, path: str, blob: object) -> bool:
    if not is_commit(blob):
        return False
    filtered = git("cat-file", "--filters", f"--path={path}", no_dash(str(blob)), cwd=tree)
    return _content(os.path.join(tree, path)) == filtered


def _remove_locks(step: Step, where: Where) -> None:
    """Raises `NotLanded` if the lock of an index may be another's; git itself names the others."""
    kept = remove_locks(where, step.written_ns, sees_all=step.sees_all)
    if kept and kept[0].endswith("index.lock"):
        raise locked(where.tree, kept[0])


class _Move:
    """A move of a worktree from one commit or tree to another, of which git has done some."""

    def __init__(self, commands: Commands, step: Step, tree: str, before: str, after: str) -> None:
        self.commands = commands
        self._step = step
        self._tree = tree
        self._before = before
        self.after: str = after
        said = step.fields.get("carried")
        listed = said if isinstance(said, list) else []
        self._carried = [each for each in listed if isinstance(each, str) and is_record(each)]
        """The records that git leaves alone: they are in the main worktree already."""

    def take_records_back(self) -> None:
        """Gives the index the records that it had, also on a full disk: the files that git wrote
        go first.
        """
        move = (self._tree, self.after, self._before, self._carried)
        try:
            put_in_index(*move)
        except ExternalFailure:
            changed = self._changed()
            index = _index(self._tree)
            if any(index.get(each.path) != each.before for each in changed):
                raise
            self._restore_files(changed)
            put_in_index(*move)

    def undo(self, tell: Callable[[str], None]) -> None:
        """Takes it back where the worktree still has its commit."""
        if _commit(self._tree) == self._before and (left := self._undo()):
            tell(
                f"these files of {self._tree} were changed meanwhile, and left alone by the "
                f"landing: {named(left, SHOWN)}"
            )

    def _undo(self) -> list[str]:
        """Returns the files that it left alone: they have another content than git would have
        written, or, in the main worktree, had it before.
        """
        changed, index = self._changed(), _index(self._tree)
        if all(index.get(each.path) == each.after for each in changed):
            # Files and index were moved, the branch was not: git takes both back, and knows which
            # files have other changes.
            how = ("read-tree", "-m", "-u", no_dash(self.after), no_dash(self._before))
            if self.commands(*how, cwd=self._tree, to_the_end=True).status == 0:
                return []
            # A record that only the new commit has, say: git takes back all of them, or none.
            paths = {each.path for each in changed}
            put_in_index(self._tree, self.after, self._before, paths)
        elif left := [each.path for each in changed if index.get(each.path) != each.before]:
            return left
        return self._restore_files(changed)

    def _changed(self) -> list[_Change]:
        changes = _changes(self._tree, self._before, self.after)
        return [each for each in changes if each.path not in self._carried]

    def _restore_files(self, changed: Sequence[_Change]) -> list[str]:
        """Restores files that the index has as they were, new ones first: these make room."""
        left, dirty = [], _dirty(self._tree)
        # What git added goes first: there may be a file where it made a folder.
        for each in sorted(changed, key=lambda change: change.before is not None):
            there = os.path.lexists(os.path.join(self._tree, each.path))
            touched = each.path in dirty if each.before is not None else there
            where = (self._step, self._tree, each.path)
            is_git = self._step.name != "advance" or _changed_since(*where)
            if touched and not (is_git and self._restore_file(each)):
                left.append(each.path)
        return left

    def _restore_file(self, change: _Change) -> bool:
        """Gives a file its old content, unless something else is there than git had, has written or
        had begun to write; returns whether it has the old one.
        """
        path = os.path.join(self._tree, change.path)
        if not self._is_of_git(change):
            return False
        if change.before is not None:
            how = ("checkout-index", "-f", "--", change.path)
            return self.commands(*how, cwd=self._tree, to_the_end=True).status == 0
        with suppress(OSError, Unreadable):
            safe_open.unlink(path)
            _remove_empty_folders(self._tree, os.path.dirname(path))
        return not os.path.lexists(path)

    def _is_of_git(self, change: _Change) -> bool:
        """Returns whether a path has what git had there, has written or had begun to write, of that
        type, too; or nothing. A folder, a link, a FIFO in its place or above it is somebody's.
        """
        tree, path = self._tree, os.path.join(self._tree, change.path)
        if not _is_below_folders(tree, change.path):
            return False
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            return True
        except OSError:
            return False
        if stat.S_ISDIR(mode):
            return _is_submodule(change.before) or not safe_open.names_in(path)
        there = _content(path)
        if there is None:
            return False
        old = _wanted(tree, change.before, change.path, self._before)
        if _has_mode(tree, mode, change.before) and there == old:
            return True
        new = _wanted(tree, change.after, change.path, self.after)
        if new is None or not _has_mode(tree, mode, change.after):
            return False
        # Nothing is how every content begins, and what a person leaves who empties a file.
        return new == there or (there != b"" and new.startswith(there))


class _Change(NamedTuple):
    """A file that differs between two trees: its mode and blob in each, or None."""

    path: str
    before: _Blob
    after: _Blob


def _changes(tree: str, before: str, after: str) -> list[_Change]:
    fields = git(
        "diff-tree", "-r", "-z", "--no-renames", no_dash(before), no_dash(after), "--", cwd=tree
    ).split(b"\0")
    found = []
    for said, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old, new, _ = said.decode().lstrip(":").split()
        found.append(_Change(os.fsdecode(path), _blob(old_mode, old), _blob(new_mode, new)))
    return found


def _blob(mode: str, name: str) -> _Blob:
    return None if not mode.strip("0") else (mode, name)


def _index(tree: str) -> dict[str, _Blob]:
    found: dict[str, _Blob] = {}
    for entry in git("ls-files", "--stage", "--full-name", "-z", cwd=tree).split(b"\0"):
        if entry:
            said, _, path = entry.partition(b"\t")
            mode, name, _ = said.decode().split()
            found[os.fsdecode(path)] = (mode, name)
    return found


def _dirty(tree: str) -> set[str]:
    listed = git("diff-files", "--name-only", "-z", "--no-relative", cwd=tree)
    return set(names_in(listed))


def _changed_since(step: Step, tree: str, path: str) -> bool:
    """Returns whether a file of a worktree, or the folder that it is missing from, has changed
    since a step was written. Nobody can set that time back: what a person cut, removed or wrote
    before is theirs, even if git would have written just that.

    On another device than the step, whose clock may differ, all may have.
    """
    where = os.path.join(tree, path)
    while not os.path.lexists(where) and where.startswith(tree + os.sep):
        where = os.path.dirname(where)
    found, begun = os.lstat(where), os.fstat(step.fd)
    return found.st_dev != begun.st_dev or found.st_ctime_ns >= begun.st_mtime_ns


def _is_below_folders(tree: str, path: str) -> bool:
    """Returns whether no link and no file is above a path."""
    end = path.find("/")
    while end >= 0:
        folder = os.path.join(tree, path[:end])
        if os.path.lexists(folder) and (os.path.islink(folder) or not os.path.isdir(folder)):
            return False
        end = path.find("/", end + 1)
    return True


def _is_submodule(blob: _Blob) -> bool:
    return blob is not None and blob[0] == _SUBMODULE


def _has_mode(tree: str, mode: int, blob: _Blob) -> bool:
    """Returns whether a file is of the type that git gives it, and can be executed as that says."""
    if blob is None:
        return False
    if stat.S_ISLNK(mode) or blob[0] == _LINK:
        return stat.S_ISLNK(mode) and blob[0] == _LINK
    asked = ("config", "--type=bool", "--default=true", "core.fileMode")
    is_same = bool(mode & stat.S_IXUSR) == (blob[0] == _PROGRAM)
    return is_same or git(*asked, cwd=tree).strip() == b"false"


def _content(path: str) -> bytes | None:
    """Returns what is in a file, or where a link leads; None for anything else: to open a FIFO
    would take for ever.
    """
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return os.fsencode(os.readlink(path))
        if not stat.S_ISREG(mode):
            return None
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _wanted(tree: str, blob: _Blob, path: str, revision: str) -> bytes | None:
    """Returns what git writes into the worktree for a file of a commit, or None."""
    if blob is None or blob[0] == _SUBMODULE:
        return None
    how = "blob" if blob[0] == _LINK else "--filters"
    try:
        name = blob[1] if blob[0] == _LINK else f"{revision}:{path}"
        return git("cat-file", how, no_dash(name), cwd=tree)
    except ExternalFailure:
        return None


def _remove_empty_folders(tree: str, folder: str) -> None:
    while folder.startswith(tree + os.sep):
        os.rmdir(folder)
        folder = os.path.dirname(folder)


def _commit(tree: str, name: str = "HEAD") -> str:
    """Returns the id of a commit. Raises `ExternalFailure`: git that fails says nothing of it."""
    return git("rev-parse", "--verify", no_dash(name), cwd=tree).decode().strip()


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""
