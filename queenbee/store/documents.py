"""Whole documents (JSON, Markdown, YAML), read and replaced as a whole.

A reader sees the old bytes or the new ones, never a mixture; a crash leaves one of the two.
"""

from __future__ import annotations

import os
import stat

from queenbee.errors import NotFound, Unreadable, Unwritable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_BYTES = 16 * 1024 * 1024
"""No document of an agent comes near this size; a larger file is an accident or an attack."""

_BOM = b"\xef\xbb\xbf"


def read_document(path: str, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the file's bytes without a leading byte order mark.

    Raises `NotFound`, or `Unreadable` if it is not a regular file, is larger than `max_bytes`, or
    cannot be opened.
    """
    try:
        # O_NONBLOCK: opening a FIFO must not hang.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
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

    Keeps the file's mode; creates missing folders. Raises `Unwritable`; the old file is then
    untouched.
    """
    _put(path, data, _replace)


def create_document(path: str, data: bytes) -> bool:
    """Makes a new file in one step, on disk when it returns; False if the name is taken.

    Creates missing folders. Raises `Unwritable`.
    """
    return _put(path, data, _claim)


def _put(path: str, data: bytes, change_hands: Callable[[str, str], bool]) -> bool:
    folder = os.path.dirname(os.path.abspath(path))
    temporary = os.path.join(folder, f".{os.path.basename(path)}.{os.urandom(4).hex()}.tmp")
    try:
        os.makedirs(folder, exist_ok=True)
        try:
            mode = stat.S_IMODE(os.stat(path).st_mode)
        except FileNotFoundError:
            mode = 0o666 & ~_umask()
        # 1. The new bytes, complete and synced under another name: a crash leaves the old file.
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            os.fchmod(fd, mode)
            file.write(data)
            file.flush()
            os.fsync(fd)
        # 2. The new file gets the name; before step 1's sync, a power cut could leave it empty.
        done = change_hands(temporary, path)
        # 3. The folder is synced; otherwise a power cut may bring the old file back.
        sync_folder(folder)
    except OSError as error:
        raise Unwritable(f"{path} cannot be written: {error.strerror}", path=path) from error
    finally:
        _remove(temporary)
    return done


def _remove(temporary: str) -> None:
    try:
        os.unlink(temporary)
    except OSError:
        return  # It got the name, or the disk fails, and that is reported.


def _replace(temporary: str, path: str) -> bool:
    os.replace(temporary, path)
    return True


def _claim(temporary: str, path: str) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:  # No hard links here: a file created at this very moment is replaced.
        if os.path.lexists(path):
            return False
        os.replace(temporary, path)
    return True


def sync_folder(folder: str) -> None:
    """Makes the names in `folder` survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
