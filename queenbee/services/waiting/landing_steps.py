"""What a landing changes in a worktree, written down before, for whoever comes after a kill.

A step is a file for each worktree that stays locked as long as the landing or a git that it started
lives: git gets the descriptor. So nobody guesses from a process id whether it is still under way.
A promise is a line that says which commit holds the work of a worktree. It is written before the
target moves, and it is kept once the target has that commit: so no crash can come in between.
Both have a person's files changed, so they are where no agent in a sandbox writes. ADR 0025.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee._hashing import sha256
from queenbee.errors import Busy, Unreadable
from queenbee.store import safe_open, waiting_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from queenbee.core.fold import Fields

_STEP, _PROMISES = "step-", "promised-"
PACE, TARGET = "pace", "target"
"""The names of the files that say how many land at once, and whether the target itself fails."""
_FOREIGN, _GONE = "no file of a landing", "of a worktree that is gone"
_TORN = "torn: its process was killed"
_MOST_BYTES = 1024 * 1024
_PATIENCE_S = 5.0
_AGAIN_S = 0.02


class Step:
    """What is under way in one worktree; locked until `close`."""

    def __init__(self, path: str, fd: int, about: Mapping[str, object]) -> None:
        self._path = path
        self._about = about
        self.fd: int = fd
        self.fields: Fields = _fields(os.pread(fd, _MOST_BYTES, 0))

    @classmethod
    def of(cls, folder: str, tree: str, **about: object) -> Step:
        """Locks the step of a worktree. Raises `Busy` if a landing or its git still has it.

        `about` is written with each step.
        """
        path = os.path.join(folder, _STEP + _key(tree))
        until_s = time.monotonic() + _PATIENCE_S
        while True:
            fd = _open(path)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(fd).st_nlink:
                    return cls(path, fd, {**about, "tree": tree})
            except BlockingIOError:
                if time.monotonic() >= until_s:
                    os.close(fd)
                    raise Busy(
                        f"another queen land is at work in {tree}",
                        hint="wait for it to end, then queen land again",
                    ) from None
                time.sleep(_AGAIN_S)
            os.close(fd)

    @property
    def name(self) -> str:
        """What is under way; empty for nothing."""
        return str(self.fields.get("step") or "")

    @property
    def sees_all(self) -> bool:
        """Whether this process would see the processes of the one that wrote it."""
        return self.fields.get("processes") == _processes()

    @property
    def written_ns(self) -> int:
        """When it was last written, by the clock of the file system, as for git's files."""
        return os.fstat(self.fd).st_mtime_ns

    def write(self, step: str, **fields: object) -> None:
        """Replaces what it says; what is not named stays."""
        written = {"step": step, "processes": _processes()}
        self.fields = {**self.fields, **self._about, **fields, **written}
        line = json.dumps(self.fields).encode(errors="surrogatepass") + b"\n"
        os.pwrite(self.fd, line, 0)
        os.ftruncate(self.fd, len(line))

    def end(self) -> None:
        """Nothing is under way any more."""
        self.fields = {}
        os.ftruncate(self.fd, 0)

    def close(self) -> None:
        """Lets go of it; what is under way is left to whoever comes next."""
        fd, self.fd = self.fd, -1
        if fd < 0:
            return
        if not self.fields:
            with suppress(OSError, Unreadable):
                safe_open.unlink(self._path)
        os.close(fd)

    def __enter__(self) -> Step:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Promises:
    """The commits that may hold the work of one worktree."""

    def __init__(self, folder: str, tree: str) -> None:
        self._path = os.path.join(folder, _PROMISES + _key(tree))
        self._tree = tree

    def add(self, **fields: object) -> None:
        """Promises that a commit holds the work, as soon as the target has it."""
        line = json.dumps({**fields, "tree": self._tree}).encode(errors="surrogatepass")
        fd = _open(self._path, os.O_APPEND)
        try:
            os.write(fd, b"\n" + line + b"\n")  # Also after a line that was torn.
        finally:
            os.close(fd)

    def all(self) -> list[Fields]:
        """Returns the promises, the last one first."""
        try:
            lines = safe_open.read(self._path, _MOST_BYTES).split(b"\n")
        except (OSError, Unreadable):
            return []
        return [fields for each in reversed(lines) if (fields := _fields(each))]

    def end(self) -> None:
        """Removes them: what follows from the one that was kept has been done."""
        with suppress(OSError, Unreadable):
            safe_open.unlink(self._path)


def peek(folder: str, tree: str) -> Fields:
    """Returns what the step of a worktree says, without locking it."""
    try:
        return _fields(safe_open.read(os.path.join(folder, _STEP + _key(tree)), _MOST_BYTES))
    except (OSError, Unreadable):
        return {}


def conflicts(folder: str) -> Iterator[Fields]:
    """Yields the steps that were left to their droids as conflicts to resolve."""
    for fields, _ in _left(folder):
        own = str(fields.get("git_dir"))
        if any(os.path.exists(os.path.join(own, each)) for each in ("MERGE_HEAD", "rebase-merge")):
            yield fields


def left_lately(folder: str, within_s: float) -> Iterator[Fields]:
    """Yields the conflicts that were left so lately, also those that are resolved until their droid
    is in the line.
    """
    for fields, written_s in _left(folder):
        if time.time() - written_s <= within_s:
            yield fields


def _left(folder: str) -> Iterator[tuple[Fields, float]]:
    """Yields the steps that say so, each with when it was written."""
    for name in safe_open.names_in(folder):
        path = os.path.join(folder, name)
        if name.startswith(_STEP):
            with suppress(OSError, Unreadable):
                fields = _fields(safe_open.read(path, _MOST_BYTES))
                if fields.get("step") == "conflict":
                    yield fields, os.stat(path, follow_symlinks=False).st_mtime


def sweep(folder: str) -> None:
    """Removes what no landing can have: files that are none of ours or were torn, and what
    worktrees that are gone left. Never fails.
    """
    for path, what in odd(folder):
        with suppress(OSError, Unreadable):
            if os.path.isdir(path) and not os.path.islink(path):
                os.rmdir(path)
            elif os.path.islink(path):
                safe_open.unlink(path)
            elif what in (_FOREIGN, _GONE, _TORN):
                _remove(path)


def _remove(path: str) -> None:
    fd = safe_open.open_file(path, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # Somebody may be writing it.
        safe_open.unlink(path)
    finally:
        os.close(fd)


def odd(folder: str) -> Iterator[tuple[str, str]]:
    """Yields the files there that no landing has now, each with what it is."""
    for name in safe_open.names_in(folder):
        path = os.path.join(folder, name)
        if name.startswith(".") or name in (PACE, TARGET):
            continue
        if waiting_line.is_name(name):
            if not waiting_line.is_live(folder, name):
                yield path, "a place in the line that nobody has"
        elif not name.startswith((_STEP, _PROMISES)):
            yield path, _FOREIGN
        elif said := _odd(path):
            yield path, said


def _odd(path: str) -> str:
    try:
        lines = [each for each in safe_open.read(path, _MOST_BYTES).split(b"\n") if each]
    except FileNotFoundError:
        return ""
    except (OSError, Unreadable):
        return "nothing that a landing can read"
    read = [each for each in map(_fields, lines) if each]
    if read and not any(os.path.isdir(str(each.get("tree"))) for each in read):
        return _GONE
    return _TORN if lines and not read else ""


def _open(path: str, flags: int = 0) -> int:
    """Opens a file of ours; what has its name and is none is put aside."""
    safe_open.make_folder(os.path.dirname(path))
    try:
        return safe_open.open_file(path, os.O_RDWR | os.O_CREAT | flags)
    except (OSError, Unreadable):
        if not safe_open.is_there(path):  # Such as on a full disk.
            raise
        os.rename(path, f"{path}.{os.urandom(4).hex()}")
        return safe_open.open_file(path, os.O_RDWR | os.O_CREAT | flags)


def _fields(line: bytes) -> Fields:
    """Returns what a line says; nothing where it was torn."""
    try:
        fields = json.loads(line.partition(b"\n")[0] or b"{}")
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _key(tree: str) -> str:
    return sha256(os.fsencode(tree)).hexdigest()[:20]


def _processes() -> str:
    """Returns the name of the set of processes that this one sees."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
