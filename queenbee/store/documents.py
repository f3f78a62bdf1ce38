"""Whole documents (JSON, Markdown, YAML), read and replaced as a whole.

A reader sees the old bytes or the new ones, never a mixture; a crash leaves one of the two.
"""

from __future__ import annotations

import os
import stat

from queenbee.errors import NotFound, Unreadable, Unwritable
from queenbee.store import safe_open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_BYTES = 16 * 1024 * 1024
"""No document of an agent comes near this size; a larger file is an accident or an attack."""

_BOM = b"\xef\xbb\xbf"


def read_document(path: str, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the file's bytes without a leading byte order mark. Follows links.

    Raises `NotFound`, or `Unreadable` if it is not a regular file, is larger than `max_bytes`, or
    cannot be opened.
    """
    return _read(path, _open_named, max_bytes)


def read_own(path: str, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the bytes of one of the hive's own files as `read_document` does, but refuses links
    on the way to it.
    """
    return _read(path, safe_open.open_file, max_bytes)


def _open_named(path: str, flags: int) -> int:
    # O_NONBLOCK: opening a FIFO must not hang.
    return os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)


def _read(path: str, open_: Callable[[str, int], int], max_bytes: int) -> bytes:
    try:
        fd = open_(path, os.O_RDONLY)
    except FileNotFoundError as error:
        raise NotFound(f"{path} does not exist", path=path) from error
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}", path=path) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Unreadable(f"{path} is not a regular file", path=path)
    try:
        with os.fdopen(fd, "rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}", path=path) from error
    if len(data) > max_bytes:
        raise Unreadable(f"{path} is larger than {max_bytes:,} bytes", path=path)
    return data.removeprefix(_BOM)


def write_document(path: str, data: bytes) -> None:
    """Replaces the file's content in one step; the new bytes are on disk when it returns.

    Keeps the file's mode; creates missing folders. Raises `Unwritable`, and `Unreadable` if the
    file or a folder above it is a link; the old file is then untouched.
    """
    _put(path, data, _replace)


def create_document(path: str, data: bytes) -> bool:
    """Makes a new file in one step, on disk when it returns; False if the name is taken.

    Creates missing folders. Raises `Unwritable`, and `Unreadable` if a folder is a link.
    """
    return _put(path, data, _claim)


def write_named(path: str, data: bytes) -> None:
    """Replaces a file that the user named, as `write_document` does; the links in its folders are
    followed, as in a shell.
    """
    write_document(safe_open.resolved(path), data)


def take_name(path: str, data: bytes) -> None:
    """Replaces a file as `write_document` does; if it is a link, the link itself is replaced."""
    _put(path, data, _replace, new_mode=True)


def _put(
    path: str, data: bytes, change_hands: Callable[[str, str], bool], *, new_mode: bool = False
) -> bool:
    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, f".{os.path.basename(path)}.{os.urandom(4).hex()}.tmp")
    try:
        safe_open.make_folder(folder)
        mode = _mode(path, new=new_mode)
        # 1. The new bytes, complete and synced under another name: a crash leaves the old file.
        fd = safe_open.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "wb") as file:
            os.fchmod(fd, mode)
            file.write(data)
            file.flush()
            os.fsync(fd)
        # 2. The new file gets the name; before step 1's sync, a power cut could leave it empty.
        done = change_hands(temporary, path)
        # 3. The folder is synced; otherwise a power cut may bring the old file back.
        safe_open.sync_folder(folder)
    except OSError as error:
        raise Unwritable(f"{path} cannot be written: {error.strerror}", path=path) from error
    finally:
        _remove(temporary)
    return done


def _remove(temporary: str) -> None:
    try:
        safe_open.unlink(temporary)
    except (OSError, Unreadable):
        return  # It got the name, or the disk fails, and that is reported.


def _mode(path: str, *, new: bool) -> int:
    """Returns the mode of the file to replace, or that of a new one."""
    with safe_open.At(path) as (name, folder):
        fresh = 0o666 & ~_umask() | safe_open.shared_bits(folder)
        if new:
            return fresh
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return fresh
    if stat.S_ISLNK(status.st_mode):
        raise safe_open.linked(path)
    return stat.S_IMODE(status.st_mode)


def _replace(temporary: str, path: str) -> bool:
    safe_open.replace(temporary, path)
    return True


def _claim(temporary: str, path: str) -> bool:
    with safe_open.At(path) as (name, folder):
        begin = os.path.basename(temporary) if folder is not None else temporary
        try:
            os.link(begin, name, src_dir_fd=folder, dst_dir_fd=folder)
        except FileExistsError:
            return False
        except OSError:  # No hard links here: a file created at this very moment is replaced.
            if os.path.lexists(path):
                return False
            os.replace(begin, name, src_dir_fd=folder, dst_dir_fd=folder)
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
