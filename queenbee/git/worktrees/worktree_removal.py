"""Removing the folder of a worktree, in an order that loses nothing, wherever it is interrupted:

1. A note says that it is being removed, and which commit has what is in it.
2. Its folder gets another name beside the old one: whoever writes under the old one fails. Git
   knows it there.
3. All that is there is compared with that commit. What differs was written meanwhile, and goes
   into a commit on a branch `unfinished/`.
4. Only files that nobody has changed since go. Where somebody still writes, by an open folder, it
   begins again at 3; and it gives up, and says where the rest is, if that goes on.
5. Once nothing is left, git forgets it.

Killed in between, the next call goes on: the worktree is still listed, by its new name.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from queenbee.core.text import mentioned, suggested
from queenbee.errors import Conflict, QueenError
from queenbee.git.ownership import forget_worktree
from queenbee.git.run import as_the_user
from queenbee.git.unfinished import keep_late
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import Worktree
from queenbee.store.git_trees import leads_to, whole
from queenbee.store.whole_files import recall, write_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.store.layout import Layout

    Stamps = dict[str, tuple[int, ...]]
    """Each file, with what changes whenever somebody changes it."""

_NOTE = "queenbee-removing"
_LOCKED = "queen worktree remove is at work"
"""Why git has locked it."""
_MOUNTS = "/proc/self/mountinfo"
_ENDING = ".removing"
_TRIES = 100
_ROUNDS = 5
_TICK_S = 0.02
"""A file that is changed so long after it was looked at has another time."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A worktree that is being removed."""

    git_dir: str
    path: str
    """Where it was."""
    aside: str
    """Where its folder is now."""
    base: str | None
    """The commit that has what is in it; None if it has none, and nothing in it."""
    kept: str | None
    """The branch that keeps what would be lost."""

    @property
    def _note(self) -> str:
        return os.path.join(self.git_dir, _NOTE)

    def save(self) -> None:
        """Notes it. Whoever reads that finds what `begun` returns."""
        said = {each: getattr(self, each) for each in ("path", "aside", "base", "kept")}
        write_document(self._note, json.dumps(said).encode())

    def is_over(self) -> bool:
        """Returns whether nothing was moved yet, or a person has moved it back, or elsewhere; then
        its note goes, too.
        """
        now = os.path.dirname(whole(self._gitdir))
        is_back = leads_to(self.path, self.git_dir) and not os.path.lexists(self.aside)
        if is_back:
            self._say_where(self.path)
        elif now in (self.path, self.aside) or not leads_to(now, self.git_dir):
            return False
        self._unlock()
        safe_open.unlink(self._note)
        return True

    def move(self) -> None:
        """Moves the folder aside, unless it is, and has git know it there. Raises `Conflict`."""
        self._lock()
        if leads_to(self.path, self.git_dir):
            try:
                os.rename(self.path, self.aside)
            except OSError as error:
                self.is_over()
                raise Conflict(
                    f"{mentioned(self.path)} cannot be moved aside: {error.strerror}; nothing was "
                    "removed",
                    hint=suggested("ls -ld", self.path, os.path.dirname(self.path)),
                ) from error
        safe_open.make_folder(self.aside)
        dot_git = os.path.join(self.aside, ".git")
        if not os.path.lexists(dot_git):  # It was removed last.
            safe_open.write(dot_git, os.fsencode(f"gitdir: {self.git_dir}\n"))
        self._say_where(self.aside)
        self._unlock()

    @property
    def _gitdir(self) -> str:
        """The file in which git notes where the worktree is."""
        return os.path.join(self.git_dir, "gitdir")

    def _say_where(self, tree: str) -> None:
        safe_open.write(self._gitdir, os.fsencode(f"{os.path.join(tree, '.git')}\n"))

    def _lock(self) -> None:
        """Has git not forget it, while it has no folder where git looks."""
        path = os.path.join(self.git_dir, "locked")
        if not os.path.lexists(path):
            safe_open.write(path, f"{_LOCKED}\n".encode())

    def _unlock(self) -> None:
        path = os.path.join(self.git_dir, "locked")
        with suppress(OSError, QueenError):
            if safe_open.read(path, 4096).decode().strip() == _LOCKED:
                safe_open.unlink(path)

    def run(self, name: str, top: str) -> Removal:
        """Removes all that is there; returns it with the branch that keeps what was written
        meanwhile. Raises `Conflict` if somebody goes on writing, and whatever fails with the place
        where the rest is.
        """
        found, common_dir = self, os.path.dirname(os.path.dirname(self.git_dir))
        self._lock()
        try:
            for _ in range(_ROUNDS):
                seen = _stamps(found.aside)
                time.sleep(_TICK_S)
                place = Worktree(found.aside, found.git_dir, common_dir)
                late = keep_late(place, name, found.base, found.kept)
                if late is not None:
                    found = replace(found, base=late[1], kept=late[0])
                    found.save()
                if found._emptied(seen):
                    as_the_user("worktree", "remove", "-f", "-f", "--", found.aside, cwd=top)
                    forget_worktree(found.git_dir)
                    return found
        except (OSError, QueenError) as error:
            said = error.message if isinstance(error, QueenError) else str(error)
            raise found._rest(said) from error
        raise found._rest("somebody writes there")

    def _emptied(self, seen: Stamps) -> bool:
        for path, stamp in seen.items():
            if _stamp(path) == stamp:
                with suppress(FileNotFoundError):
                    safe_open.unlink(path)
        for folder, folders, _ in os.walk(self.aside, topdown=False):
            for each in folders:
                with suppress(OSError):  # Something is in it, or it is a link.
                    os.rmdir(os.path.join(folder, each))
        dot_git = os.path.join(self.aside, ".git")
        if os.listdir(self.aside) != [".git"]:
            return False
        safe_open.unlink(dot_git)
        try:
            os.rmdir(self.aside)
        except OSError:  # Somebody made a file at this moment.
            safe_open.write(dot_git, os.fsencode(f"gitdir: {self.git_dir}\n"))
            return False
        return True

    def _rest(self, why: str) -> Conflict:
        self._unlock()
        kept = f"; what changed is kept on {self.kept}" if self.kept else ""
        return Conflict(
            f"{mentioned(self.path)} is not removed: {why}; the rest of it is in "
            f"{mentioned(self.aside)}{kept}",
            hint=f"end what works there, then {suggested('queen worktree remove', self.aside)}",
            path=self.aside,
            kept=self.kept,
        )


def begun(layout: Layout) -> Iterator[Removal]:
    """Yields the worktrees whose removal was begun and not finished, each moved aside. Raises
    `Conflict`.
    """
    top = os.path.join(layout.common_dir or layout.tree, "worktrees")
    for name in safe_open.names_in(top) if layout.common_dir is not None else ():
        git_dir = os.path.join(top, name)
        said = recall(os.path.join(git_dir, _NOTE))
        if not isinstance(said, dict):
            continue
        values = [said.get(each) for each in ("path", "aside", "base", "kept")]
        if not all(isinstance(each, str | None) for each in values):
            continue
        removal = Removal(git_dir, str(values[0]), str(values[1]), values[2], values[3])
        if not removal.is_over():
            removal.move()
            yield removal


def refuse_mounts(tree: str) -> None:
    """Raises `Conflict` if something is mounted in a worktree: its files are somebody else's."""
    try:
        with open(_MOUNTS, "rb") as file:
            said = [each.split(b" ")[4] for each in file]
    except (OSError, IndexError):  # Not on every system.
        return
    points = [os.fsdecode(each.decode("unicode_escape").encode("latin-1")) for each in said]
    inside = sorted(each for each in points if f"{each}/".startswith(f"{tree}/"))
    if inside:
        raise Conflict(
            f"something is mounted in {mentioned(tree)}: {mentioned(inside[-1])}",
            hint=suggested("umount", inside[-1]),
        )


def begin(place: Worktree, kept: str | None, base: str | None) -> Removal:
    """Begins to remove a worktree whose `base` has what is in it: moves it aside. Raises
    `Conflict`, and nothing has changed.
    """
    names = (f"{place.path}{_ENDING}{f'-{each}' if each > 1 else ''}" for each in range(1, _TRIES))
    aside = next((each for each in names if not os.path.lexists(each)), place.path)
    removal = Removal(place.git_dir, place.path, aside, base, kept)
    removal.save()
    removal.move()
    return removal


def _stamps(tree: str) -> Stamps:
    found: Stamps = {}
    device = os.lstat(tree).st_dev
    for folder, folders, files in os.walk(tree):
        if os.lstat(folder).st_dev != device:  # It was mounted meanwhile.
            folders.clear()
            continue
        links = [each for each in folders if os.path.islink(os.path.join(folder, each))]
        for each in (*files, *links):
            path = os.path.join(folder, each)
            if path != os.path.join(tree, ".git"):
                found[path] = _stamp(path)
    return found


def _stamp(path: str) -> tuple[int, ...]:
    try:
        said = os.lstat(path)
    except OSError:
        return ()
    return (said.st_dev, said.st_ino, said.st_size, said.st_mtime_ns, said.st_ctime_ns)
