"""A repository that is copied instead of made anew: git would take most of many tests' time."""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path

from hives import commit_file, git

_HEADER, _STAT = struct.Struct(">4sII"), struct.Struct(">10I")


class Template:
    """A repository with one commit, as git made it in a folder, without its sample hooks."""

    def __init__(self, folder: Path) -> None:
        git(folder, "init", "-q")
        commit_file(folder, "README.md", "a repository\n")
        (folder / ".beads").mkdir()
        inside = folder / ".git"
        for needless in (*inside.glob("hooks/*.sample"), inside / "description"):
            needless.unlink()
        self._folders: list[str] = []
        self._files: list[tuple[str, int, bytes]] = []
        for path, folders, files in os.walk(folder):
            where = os.path.relpath(path, folder)
            self._folders += [os.path.join(where, name) for name in folders]
            for name in files:
                file = Path(path, name)
                mode = file.stat().st_mode & 0o777
                self._files.append((os.path.join(where, name), mode, file.read_bytes()))

    def copy(self, tree: Path) -> None:
        """Makes the same repository there."""
        os.mkdir(tree)
        for name in self._folders:
            os.mkdir(os.path.join(tree, name))
        for name, mode, content in self._files:
            with os.fdopen(os.open(os.path.join(tree, name), _NEW, mode), "wb") as file:
                file.write(content)
        _know(tree)


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def _know(tree: Path) -> None:
    """Writes into the index which file of this tree it is about, as `git add` does."""
    path, status = tree / ".git" / "index", os.stat(tree / "README.md")
    index = bytearray(path.read_bytes()[:-20])
    assert _HEADER.unpack_from(index) == (b"DIRC", 2, 1)
    *_, mode, _, _, size = _STAT.unpack_from(index, _HEADER.size)
    seen = []
    for time_ns in (status.st_ctime_ns, status.st_mtime_ns):
        seen += [time_ns // 10**9, time_ns % 10**9]
    seen += [status.st_dev, status.st_ino, mode, status.st_uid, status.st_gid, size]
    _STAT.pack_into(index, _HEADER.size, *(each & 0xFFFFFFFF for each in seen))
    path.write_bytes(index + hashlib.sha1(index, usedforsecurity=False).digest())
