"""Opens every file of a hive without following a link: git can deliver links, also as folders.

A path, which is absolute, is walked one component at a time, each in the handle of the folder above
it: a link put there in between changes nothing. A link is refused with `Unreadable`; other errors
are `OSError`, as from `os.open`. ADR 0015; `docs/threats.md` lists the files.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from queenbee.errors import Unreadable

_FOLDER = (
    os.O_RDONLY
    | os.O_CLOEXEC
    | os.O_DIRECTORY
    | os.O_NOFOLLOW
    | getattr(os, "O_PATH", 0)  # Linux: a folder above that may be entered, but not read.
)
_FILE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # Opening a FIFO must not hang.

_walked: dict[str, tuple[int, int]] = {}
"""The device and inode of each folder that was reached without a link. The same folder need not be
walked to again: one call instead of one for each component."""


_anchors: dict[str, tuple[int, int]] = {}
"""The folders that are never made, and in which none is made if another one has their name."""


def anchor(path: str, identity: tuple[int, int]) -> None:
    """Remembers a folder that a hive depends on, by device and inode: the tree, or git's own.

    A repository may be moved at any moment. After a last look, nothing must be made anew where it
    was, nor in what took its place: both raise `Unreadable`.
    """
    _anchors[path] = identity


def moved(path: str) -> Unreadable:
    """Returns the error for a repository that is no longer where it was."""
    return Unreadable(
        f"{path} was moved, replaced or deleted while the hive was open",
        hint="open the hive again, where it is now",
        path=path,
    )


def open_folder(path: str) -> int:
    """Returns a handle of a folder, for `dir_fd`; the caller closes it."""
    known = _walked.get(path)
    if known is not None:
        handle = _handle(path)
        if handle >= 0 and _identity(handle) == known:
            return handle
        if handle >= 0:
            os.close(handle)
    above, name = os.path.split(path)
    if not name:
        return os.open(path, _FOLDER)
    try:
        upper = open_folder(above)
    except PermissionError:
        # Without O_PATH, a folder above that may be entered but not read has no handle. Git makes
        # no such folders.
        handle = os.open(path, _FOLDER)
    else:
        try:
            handle = _open_in(upper, name, path, _FOLDER)
        finally:
            os.close(upper)
    _walked[path] = _identity(handle)
    return handle


def open_file(path: str, flags: int, mode: int = 0o666) -> int:
    """Returns the descriptor of a regular file; its folder must exist. Never waits for a FIFO."""
    with At(path) as (name, folder):
        fd = _open_in(folder, name, path, flags | _FILE, mode)
        refuse_special(fd, path)
        if flags & os.O_CREAT:
            _share(fd, folder)
        return fd


def refuse_special(fd: int, path: str) -> None:
    """Closes what is no regular file, and raises `Unreadable`; for a folder, `OSError`."""
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        raise irregular(path)


def make_folder(path: str) -> bool:
    """Makes a folder, and those above it that are missing; returns whether it made any.

    Raises `Unreadable` if one of them is an `anchor`.
    """
    try:
        os.close(open_folder(path))
    except FileNotFoundError:
        above, name = os.path.split(path)
        if not name:
            raise
        if path in _anchors:
            raise moved(path) from None
        make_folder(above)
    else:
        return False
    with suppress(FileExistsError):  # Another made it, or it is a link: the next line tells.
        make_new_folder(path)
    os.close(open_folder(path))
    return True


def make_new_folder(path: str) -> None:
    """Makes one folder. Raises `FileExistsError` if there is anything with its name."""
    above = os.path.dirname(path)
    with At(path) as (name, folder):
        if above in _anchors and _identity(folder) != _anchors[above]:
            raise moved(above)
        os.mkdir(name, dir_fd=folder)
        bits = _shared_bits(folder)
        if bits:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            # A folder's group must also be able to enter it, and hands itself on.
            wanted = stat.S_IMODE(mode) | bits | (bits & 0o044) >> 2 | stat.S_ISGID
            os.chmod(name, wanted, dir_fd=folder)


def _shared_bits(folder: int) -> int:
    """Returns the permissions that files get in a folder that several users share, else 0.

    `git init --shared` marks the folders of a shared repository with the set-group-ID bit, and so
    do people who share one by hand. A umask of one of them must not lock the others out.
    """
    mode = os.fstat(folder).st_mode
    return mode & 0o066 if mode & stat.S_ISGID else 0


def _share(fd: int, folder: int) -> None:
    bits = _shared_bits(folder)
    if bits:
        status = os.fstat(fd)
        if status.st_mode & bits != bits and status.st_uid == os.geteuid():
            os.fchmod(fd, stat.S_IMODE(status.st_mode) | bits)


class At:
    """The name of a file and the handle of its folder, for the functions of `os` with `dir_fd`.

    Used as a context manager; an error of these functions names the whole path.
    """

    __slots__ = ("_folder", "_name", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        above, self._name = os.path.split(path)
        self._folder = open_folder(above)

    def __enter__(self) -> tuple[str, int]:
        return self._name, self._folder

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        os.close(self._folder)
        if isinstance(error, OSError) and error.filename == self._name:
            error.filename = self._path


def is_there(path: str) -> bool:
    """Returns whether a path leads to anything, a link included.

    For a path that is usually missing, this takes a third of the time of `os.path.lexists`.
    """
    return os.access(path, os.F_OK, follow_symlinks=False)


def unlink(path: str) -> None:
    """Removes a file; of a link, the link itself."""
    with At(path) as (name, folder):
        os.unlink(name, dir_fd=folder)


def touch(path: str, at_ms: int) -> None:
    """Gives a file the time of a change, in ms since 1970."""
    with At(path) as (name, folder):
        os.utime(name, ns=(at_ms * 1_000_000,) * 2, dir_fd=folder, follow_symlinks=False)


def replace(source: str, target: str) -> None:
    """Gives a file the name of another one in the same folder, which it replaces."""
    with At(target) as (name, folder):
        os.replace(os.path.basename(source), name, src_dir_fd=folder, dst_dir_fd=folder)


def read(path: str, most_bytes: int = -1) -> bytes:
    """Returns the content of a regular file, or so many bytes of its beginning."""
    with os.fdopen(open_file(path, os.O_RDONLY), "rb") as file:
        return file.read(most_bytes)


def write(path: str, data: bytes, flags: int = os.O_CREAT | os.O_TRUNC) -> None:
    """Writes to a regular file; by default, it replaces its content."""
    # O_TRUNC would empty a file before it is known to be ours.
    fd = open_file(path, os.O_WRONLY | flags & ~os.O_TRUNC)
    with os.fdopen(fd, "wb") as file:
        if flags & os.O_TRUNC:
            os.ftruncate(fd, 0)
        file.write(data)


def append(path: str, data: bytes) -> None:
    """Adds to the end of a file, or makes it."""
    write(path, data, os.O_APPEND | os.O_CREAT)


def sync_folder(path: str) -> None:
    """Makes the names in a folder survive a power cut, where the file system can do that."""
    # O_PATH gives a handle that cannot be synced: the folder is opened in it once more.
    with At(os.path.join(path, ".")) as (name, handle):
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=handle)
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        finally:
            os.close(fd)


def refuse_links(path: str) -> None:
    """Raises `Unreadable` if any component of the path is a link; those that are missing are not.

    Only a look, for files that other libraries open by their path: `open_file` is stronger.
    """
    above = path
    while (upper := os.path.dirname(above)) != above:
        if os.path.islink(above):
            raise linked(above)
        above = upper


def refuse_irregular(path: str) -> None:
    """Raises `Unreadable` if any component of the path is a link, or what has the name is no file.

    Only a look, as `refuse_links`.
    """
    refuse_links(path)
    with suppress(FileNotFoundError, NotADirectoryError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise irregular(path)


def real_path(path: str) -> str:
    """Returns a path without symbolic links, as `os.path.realpath` does.

    Raises `Unreadable` where that raises `OSError`: if something else takes the place of a link
    at the moment at which it is read.
    """
    try:
        return os.path.realpath(path)
    except OSError as error:
        raise Unreadable(
            f"{path} changed while it was read: {error.strerror}", hint="try again", path=path
        ) from error


_OF_PROGRAMS = frozenset({".git", ".beads"})
"""Folders that no link of the tree may lead into, also where a file system folds case."""


def resolved(path: str) -> str:
    """Returns where a path that a user named leads, with its links followed, as in a shell.

    Raises `Unreadable` if a link in a working tree leads out of it, into a git directory, or into a
    hive: the user may know the name, but not that a clone made it a link.
    """
    named = os.path.abspath(path)
    real = real_path(named)
    tree = named
    while real != named and (above := os.path.dirname(tree)) != tree:
        tree = above
        if os.path.lexists(os.path.join(tree, ".git")):
            inside = os.path.relpath(real, real_path(tree)).lower().split(os.sep)
            if inside[0] == os.pardir or not _OF_PROGRAMS.isdisjoint(inside):
                found = next((f"in {x}" for x in inside if x in _OF_PROGRAMS), None)
                raise Unreadable(
                    f"{path} leads through a symbolic link to {real}, "
                    f"{found or 'outside the working tree'}",
                    hint=f"remove the link, or name {real} instead",
                    path=path,
                )
            break
    return real


def irregular(path: str) -> Unreadable:
    """Returns the error for a folder, a FIFO or a device."""
    hint = "move it away, or name another file"
    return Unreadable(f"{path} is not a regular file", hint=hint, path=path)


def linked(path: str) -> Unreadable:
    """Returns the error for a link."""
    return Unreadable(
        f"{path} is a symbolic link, and QueenBee follows no links to a hive's files",
        hint="replace it with the file itself, or move the hive with .beads/redirect",
        path=path,
    )


def _open_in(folder: int, name: str, path: str, flags: int, mode: int = 0o666) -> int:
    try:
        return os.open(name, flags, mode, dir_fd=folder)
    except OSError as error:
        # Which of these a link causes depends on the system and the flags.
        if error.errno in _OF_LINKS and _is_link(folder, name):
            raise linked(path) from error
        error.filename = path
        raise


_OF_LINKS = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.EEXIST)


def _is_link(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _handle(path: str) -> int:
    """Returns a handle of the folder that the path leads to now, or -1: walking says why."""
    try:
        return os.open(path, _FOLDER)
    except OSError:
        return -1


def _identity(handle: int) -> tuple[int, int]:
    status = os.fstat(handle)
    return status.st_dev, status.st_ino


def names_in(folder: str) -> list[str]:
    """Returns the names in a folder, sorted; none if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
