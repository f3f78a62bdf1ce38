"""What only this machine may choose, and no clone: where the state of a repository is.

A committed `queen.toml` is written by whoever the repository was cloned from. If it could choose
where locks and journals are, it could choose a folder of the tree, which git fills. So that choice
is in the repository's own git config, which git never delivers:

    git config queenbee.state beads

ADR 0015.
"""

from __future__ import annotations

import os

from queenbee.errors import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

STATES = ("git", "beads")
CHOOSE = "git config queenbee.state"


def chosen_state(common_dir: str) -> str | None:
    """Returns where this machine keeps the state of a repository; None if it did not choose.

    Only the file `config` of the git directory counts: a setting of one worktree or of one user
    would give two processes two locks. Raises `Unreadable` for another value.
    """
    path = os.path.join(common_dir, "config")
    try:
        text = _read(path).decode(errors="replace")
    except OSError:
        return None
    # Most have no such section, and a hook has no time to spare.
    if "queenbee" not in text.lower():
        return None
    value, section = None, ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            section, _, line = line[1:].partition("]")
        key, equals, rest = line.partition("=")
        if section.strip().lower() == "queenbee" and key.strip().lower() == "state" and equals:
            value = rest.partition("#")[0].partition(";")[0].strip().strip('"')
    if value is not None and value not in STATES:
        raise Unreadable(
            f"{path}: queenbee.state cannot be {value!r}",
            hint=f"{CHOOSE} git, or: {CHOOSE} beads",
            path=path,
        )
    return value


def tracked(git_dir: str, folder: str) -> str | None:
    """Returns a file that git tracks below a folder of the tree, or None.

    `folder` is relative to the tree. Reads git's index, which takes 1 ms for 30,000 files.
    """
    begin = os.fsencode(folder) + b"/"
    try:
        names = [each for each in os.listdir(git_dir) if _is_index(each)]
    except OSError:
        return None
    for name in names:
        try:
            data = _read(os.path.join(git_dir, name))
        except OSError:
            continue
        if data[4:8] == b"\0\0\0\4":
            found = next(
                (each for each in _compressed(data, git_dir) if each.startswith(begin)), b""
            )
        else:
            at = data.find(begin)
            found = data[at : data.find(b"\0", at)] if at >= 0 else b""
        if found:
            return os.fsdecode(found)
    return None


def is_tracked(git_dir: str, path: str) -> bool:
    """Returns whether git's index names a file, given by its path from the top of the tree.

    In an index that cannot be read, no file is found.
    """
    name = os.fsencode(path)
    try:
        names = [each for each in os.listdir(git_dir) if _is_index(each)]
    except OSError:
        return False
    for each in names:
        try:
            data = _read(os.path.join(git_dir, each))
        except OSError:
            continue
        if data[4:8] == b"\0\0\0\4":
            if name in _compressed(data, git_dir):
                return True
        elif any(_begins(data, at, len(name)) for at in _places(data, name + b"\0")):
            return True
    return False


def _places(data: bytes, wanted: bytes) -> Iterator[int]:
    at = data.find(wanted)
    while at >= 0:
        yield at
        at = data.find(wanted, at + 1)


def _begins(data: bytes, at: int, size: int) -> bool:
    """Returns whether the name of an entry begins here: its length stands in the flags before it,
    two bytes, or four if they say so. Source: "gitformat-index" in git's documentation.
    """
    near, far = (int.from_bytes(data[at - back : at - back + 2], "big") for back in (2, 4))
    length = min(size, 0xFFF)
    is_extended = far & 0x4000 and far & 0xFFF == length
    return bool(is_extended) or (not near & 0x4000 and near & 0xFFF == length)


def _read(path: str) -> bytes:
    # Git delivers nothing into its own directory; some tools keep links there.
    with open(path, "rb") as file:
        return file.read()


def _is_index(name: str) -> bool:
    # With a split index, most of the names are in another file.
    return name == "index" or name.startswith("sharedindex.")


def _compressed(data: bytes, git_dir: str) -> list[bytes]:
    """Returns the names in an index of version 4, where each says how much it shares with the one
    before. Source: "gitformat-index" in git's documentation.
    """
    try:
        sha256 = b"sha256" in _read(os.path.join(git_dir, "config"))
    except OSError:
        sha256 = False
    fixed = 40 + (32 if sha256 else 20) + 2
    names, name, at = list[bytes](), b"", 12
    try:
        for _ in range(int.from_bytes(data[8:12], "big")):
            extended = data[at + fixed - 2] & 0x40
            at += fixed + (2 if extended else 0)
            byte = data[at]
            cut = byte & 0x7F
            while byte & 0x80:
                at += 1
                byte = data[at]
                cut = (cut + 1) << 7 | byte & 0x7F
            end = data.index(b"\0", at + 1)
            name = name[: len(name) - cut] + data[at + 1 : end]
            names.append(name)
            at = end + 1
    except (IndexError, ValueError):
        pass  # Damaged: git refuses it too.
    return names
