"""Finds what should never be in git among the files that a commit changes: secrets and large files.

The blobs count, as git stores them: not the files of the tree, which filters change, nor a `git
diff`, in which `.gitattributes` hide lines; and what Git LFS stores for them, which a push sends.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from queenbee.core.command_lines import no_dash
from queenbee.errors import QueenError
from queenbee.git.objects import Objects, TooLarge
from queenbee.git.run import git
from queenbee.services.writing.secrets import credentials_in, has_secret_name
from queenbee.store import safe_open
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_BYTES = 5 * 2**20
"""A larger file in git's history makes every clone slower for good."""
GITLINK = "160000"
"""The mode of a commit of another repository."""
_MOST_LARGE = 20
"""So many are named: to begin again after one takes a process."""
_RAW = ("--raw", "--no-abbrev", "--no-renames", "-r", "-z", "--ignore-submodules=none")
_PRINTED = re.compile(rb"[ -~]{8,}")
"""What can be read in a file that is no text."""
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-\d-\w+ sha256:[0-9a-f]{64}\n)*"
    rb"oid sha256:([0-9a-f]{64})\nsize \d+\n"
)
"""What is in git for a file of Git LFS."""


class Change(NamedTuple):
    """A file that differs: its mode and its blob, zeros if it was removed, and its blobs in the
    parents that have it.
    """

    path: str
    mode: str
    blob: str
    before: Sequence[str]

    @property
    def is_there(self) -> bool:
        """Whether it was not removed."""
        return set(self.blob) != {"0"}


class Unfit(NamedTuple):
    """The files that are too large, and those that look like secrets."""

    large: Sequence[str]
    secret: Sequence[str]


def changes(tree: str, parents: Sequence[str], after: str) -> list[Change]:
    """Returns what a commit or a tree has otherwise than each of its parents: of a merge, that is
    what somebody resolved.
    """
    sides = []
    for parent in parents:
        raw = git(
            "diff-tree", *_RAW, no_dash(parent), no_dash(after), "--", cwd=tree, repository={}
        )
        fields = iter(os.fsdecode(each) for each in raw.split(b"\0") if each)
        sides.append({next(fields): said.split() for said in fields})
    found = []
    for path in sorted(set.intersection(*map(set, sides))):
        _, mode, _, blob, _ = sides[0][path]
        before = [each[path][2] for each in sides if set(each[path][2]) != {"0"}]
        found.append(Change(path, mode, blob, before))
    return found


def unfit(tree: str, changed: Sequence[Change], *, allow_secrets: bool = False) -> Unfit:
    """Returns which files of a commit should not be in git. One git reads them, one at a time.

    Only new lines count, and none of a file that was moved.
    """
    known = {blob for each in changed for blob in each.before}
    large: list[str] = []
    secret: list[str] = []
    here = git_tree(tree)
    stored = os.path.join(here.common_dir, "lfs", "objects") if here is not None else ""
    with Objects(tree) as objects:
        for each in changed:
            if not each.is_there or each.mode == GITLINK:
                continue
            data = _read(objects, each.blob, stored)
            if data is None:
                large.append(each.path)
            elif not allow_secrets:
                is_known = each.blob in known
                before = () if is_known else each.before
                older = [_read(objects, blob, stored) or b"" for blob in before]
                if holds_secret(each.path, b"" if is_known else data, *older):
                    secret.append(each.path)
            if len(large) == _MOST_LARGE:
                break
    return Unfit(large, secret)


def holds_secret(path: str, data: bytes, *older: bytes) -> bool:
    """Returns whether a file looks like a secret by its name, or by a line that no older version of
    it has.
    """
    if has_secret_name(path):
        return True
    known = {line for each in older for line in _lines(each)}
    text = [os.fsencode(path), *(line for line in _lines(data) if line not in known)]
    return bool(credentials_in(b"\n".join(text).decode(errors="replace")))


def _read(objects: Objects, blob: str, stored: str) -> bytes | None:
    """Returns a blob, or None if it is too large; for a pointer of Git LFS, the beginning of what
    it has `stored` for that, in this folder.
    """
    try:
        found = objects.read(blob, MOST_BYTES)
    except TooLarge:
        return None
    data = found[2] if found is not None else b""  # Of a partial clone.
    if pointer := _POINTER.fullmatch(data):
        name = pointer[1].decode()
        with suppress(QueenError, OSError):
            return safe_open.read(os.path.join(stored, name[:2], name[2:4], name), MOST_BYTES)
    return data


def _lines(data: bytes) -> list[bytes]:
    """Returns the lines of a text, also in UTF-16 or UTF-32: in these, credentials have NULs
    between their letters. Of other files with NULs, what can be read in them.
    """
    if b"\0" in data:
        return _PRINTED.findall(data.replace(b"\0", b""))
    return data.splitlines()
