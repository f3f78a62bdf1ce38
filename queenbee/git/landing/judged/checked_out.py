"""Whether the files that a check reads are those of the commit that lands, byte for byte.

Git does not read a file whose times have not changed, and there are ways to have it take another
content for that of the commit: `git replace`, then a checkout. So the files are read here.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING

from queenbee.core.text import named, suggested
from queenbee.git.landing.commands import git
from queenbee.git.landing.refusals import SHOWN, NotLanded
from queenbee.git.run import line, names_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HIVE = ".beads/"
"""Records change while anybody works, and are not what a check is about."""
REGULAR, _PROGRAM, _LINK = "100644", "100755", "120000"
_CHUNK_BYTES = 2**20


class CheckedOut:
    """The files of a worktree, as they are before its check."""

    def __init__(self, tree: str) -> None:
        """Raises `NotLanded` if one has other bytes than in the commit of the worktree, after what
        git does to line ends and the like; files with a filter are not read.
        """
        self._tree = tree
        self._changed_ns: dict[str, int] = {}
        self.paths = set[str]()
        """All files of the commit."""
        differing = self._differing()
        if differing:
            differing = self._converted(differing)
        if differing:
            first = suggested("git -C", tree, "checkout HEAD --", differing[0])
            raise NotLanded(
                "these files are not what the commit has, though git was made to think so: "
                f"{named(differing, SHOWN)}",
                hint=f"{suggested('touch', os.path.join(tree, differing[0]))}, then git status "
                f"shows it: commit it, or {first}",
                files=differing,
            )

    def written(self) -> list[str]:
        """Returns the files that were written since, whatever is in them now."""
        return [
            path
            for path, before_ns in self._changed_ns.items()
            if _changed_ns(os.path.join(self._tree, path)) != before_ns
        ]

    def _differing(self) -> list[str]:
        """Returns the files of which a blob would not be that of the commit."""
        found, missing = [], []
        for mode, blob, path in _listed(self._tree):
            self.paths.add(path)
            if path.startswith(_HIVE):
                continue
            where = os.path.join(self._tree, path)
            changed_ns = _changed_ns(where)
            if changed_ns is None:
                missing.append(path)
                continue
            self._changed_ns[path] = changed_ns
            if blob_of(where, mode, len(blob)) != blob:
                found.append(path)
        return found + ([] if not missing or self._is_sparse() else missing)

    def _is_sparse(self) -> bool:
        asked = ("config", "--type=bool", "core.sparseCheckout")
        return line(*asked, cwd=self._tree, repository={}) == "true"

    def _converted(self, paths: Sequence[str]) -> list[str]:
        """Returns those that differ also after what git does to line ends, and have no filter."""
        asked = os.fsencode("\0".join(paths))
        said = names_in(git("check-attr", "-z", "--stdin", "filter", cwd=self._tree, stdin=asked))
        filters = dict(zip(said[::3], said[2::3], strict=True))
        plain = [each for each in paths if filters.get(each) in ("unspecified", "unset")]
        listed = {path: blob for _, blob, path in _listed(self._tree)}
        return [each for each in plain if self._stored(each) != listed[each]]

    def _stored(self, path: str) -> str | None:
        """Returns the blob that git would store for a file; None without a regular one."""
        where = os.path.join(self._tree, path)
        if not os.path.isfile(where) or os.path.islink(where):
            return None
        return line("hash-object", "--", path, cwd=self._tree, repository={})


def _listed(tree: str) -> Iterator[tuple[str, str, str]]:
    """Yields mode, blob and path of each file of the commit."""
    for each in git("ls-tree", "-r", "-z", "--full-tree", "HEAD", cwd=tree).split(b"\0"):
        said, _, path = os.fsdecode(each).partition("\t")
        mode, _, rest = said.partition(" ")
        if mode in (REGULAR, _PROGRAM, _LINK):
            yield mode, rest.partition(" ")[2], path


def _changed_ns(path: str) -> int | None:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return None


def blob_of(path: str, mode: str, length: int) -> str | None:
    """Returns the name of a blob with what is there; None if it is of another kind."""
    algorithm = "sha1" if length == 40 else "sha256"
    made = hashlib.new(algorithm, usedforsecurity=False)
    try:
        if mode == _LINK:
            target = os.fsencode(os.readlink(path))
            made.update(b"blob %d\0" % len(target) + target)
            return made.hexdigest()
        # Nobody waits for a FIFO, and no link is followed.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                return None
            made.update(b"blob %d\0" % found.st_size)
            while data := file.read(_CHUNK_BYTES):
                made.update(data)
    except OSError:
        return None
    return made.hexdigest()
