"""Whole files, read and replaced as a whole: documents, and our own notes.

A reader sees the old bytes or the new ones, and so does a crash. Of several writers, the last
counts.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from queenbee.errors import NotFound, QueenError, Unreadable, Unwritable
from queenbee.store import safe_open

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

MAX_BYTES = 16 * 1024 * 1024
"""No document of an agent comes near this size; a larger file is an accident or an attack."""

_UNFINISHED = ".tmp"
_BOM = b"\xef\xbb\xbf"


def read_document(path: str, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the file's bytes without a leading byte order mark. Follows links.

    Raises `NotFound`, or `Unreadable` if it is not a regular file, is larger than `max_bytes`, or
    cannot be opened.
    """
    return _read(path, _open_named, max_bytes)


def read_own(path: str) -> bytes:
    """Reads one of the hive's own files as `read_document` does, but refuses links on the way."""
    return _read(path, safe_open.open_file, MAX_BYTES)


def _open_named(path: str, flags: int) -> int:
    # O_NONBLOCK: opening a FIFO must not hang.
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)
    safe_open.refuse_special(fd, path)
    return fd


def _read(path: str, open_: Callable[[str, int], int], max_bytes: int) -> bytes:
    try:
        with os.fdopen(open_(path, os.O_RDONLY), "rb") as file:
            data = file.read(max_bytes + 1)
    except FileNotFoundError as error:
        raise NotFound(f"{path} does not exist", path=path) from error
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
    _put(path, data, _replace, mode=_mode(path))


def write_while(path: str, data: bytes, turn: Callable[[], AbstractContextManager[bool]]) -> bool:
    """Writes a document as `write_document` does, but the new version gets its name in a `turn`,
    and only if that says so; returns whether it did.
    """

    def change_hands(temporary: str, name: str) -> bool:
        with turn() as may:
            return may and _replace(temporary, name)

    return _put(path, data, change_hands, mode=_mode(path))


def create_document(path: str, data: bytes) -> bool:
    """Makes a new file in one step, on disk when it returns; False if the name is taken.

    Creates missing folders. Raises `Unwritable`, and `Unreadable` if a folder is a link.
    """
    return _put(path, data, _claim)


def write_named(path: str, data: bytes) -> None:
    """Replaces a file that the user named; links in its folders are followed, as in a shell."""
    write_document(safe_open.resolved(path), data)


def take_name(path: str, data: bytes, *, durable: bool = True) -> None:
    """Replaces a file as `write_document` does; if it is a link, the link itself is replaced.

    What is not `durable` is not synced: after a power cut, the file may be empty, or the old one.
    """
    _put(path, data, _replace, durable=durable)


def keep(path: str, value: object) -> bool:
    """Keeps a value, as JSON, in a file that nothing depends on; returns whether that worked."""
    import json  # noqa: PLC0415 - start-up

    try:
        take_name(path, json.dumps(value).encode(), durable=False)
    except QueenError:
        return False
    return True


def recall(path: str, most_bytes: int = -1) -> Any:
    """Returns the value that `keep` kept, or None if there is none that can be read."""
    import json  # noqa: PLC0415 - start-up

    try:
        return json.loads(safe_open.read(path, most_bytes))
    except (OSError, QueenError, ValueError, RecursionError):
        return None


def forget_old(folder: str, *, most: int, kept_s: float) -> None:
    """Removes the files of a folder that were not written for so long, if it has too many. Raises
    `OSError` if it cannot be read.
    """
    names = os.listdir(folder)
    for name in names if len(names) > most else ():
        path = os.path.join(folder, name)
        with suppress(OSError):
            if time.time() - os.lstat(path).st_mtime > kept_s:
                safe_open.unlink(path)


def is_unfinished(name: str) -> bool:
    """Returns whether a file has a name of those that are written here and not complete yet."""
    return name.startswith(".") and name.endswith(_UNFINISHED)


def unfinished(path: str) -> str:
    """Returns the name under which a new version of a file is written; no other writer has it."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{os.urandom(4).hex()}{_UNFINISHED}")


def sweep(folder: str, begin: str = ".", *, older_than_s: float = 0.0) -> None:
    """Removes the unfinished files of writers that were killed. Never fails."""
    with suppress(OSError, Unreadable):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if is_unfinished(name) and name.startswith(begin):
                with suppress(OSError, Unreadable):
                    if time.time() - os.lstat(path).st_mtime >= older_than_s:
                        safe_open.unlink(path)


def _put(
    path: str,
    data: bytes,
    change_hands: Callable[[str, str], bool],
    *,
    mode: int | None = None,
    durable: bool = True,
) -> bool:
    path = os.path.abspath(path)
    try:
        try:
            return _put_once(path, data, change_hands, mode, durable)
        except FileNotFoundError:  # `git clean` or `git stash -u` has just removed the folder.
            return _put_once(path, data, change_hands, mode, durable)
    except OSError as error:
        raise Unwritable(f"{path} cannot be written: {error.strerror}", path=path) from error


def _put_once(
    path: str,
    data: bytes,
    change_hands: Callable[[str, str], bool],
    mode: int | None,
    durable: bool,
) -> bool:
    temporary = unfinished(path)
    try:
        safe_open.make_folder(os.path.dirname(path))
        # 1. The new bytes, complete and synced under another name: a crash leaves the old file.
        # Nobody may open it before it has the mode of the old one, which may be private.
        begin = 0o666 if mode is None else 0o600
        fd = safe_open.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, begin)
        with os.fdopen(fd, "wb") as file:
            if mode is not None:
                os.fchmod(fd, mode)
            file.write(data)
            file.flush()
            if durable:
                os.fsync(fd)
        # 2. The new file gets the name; before step 1's sync, a power cut could leave it empty.
        done = change_hands(temporary, path)
        # 3. The folder is synced; otherwise a power cut may bring the old file back.
        if durable:
            safe_open.sync_folder(os.path.dirname(path))
    finally:
        _remove(temporary)
    return done


def _remove(temporary: str) -> None:
    with suppress(OSError, Unreadable):  # It got the name, or the disk fails: that is reported.
        safe_open.unlink(temporary)


def _mode(path: str) -> int | None:
    """Returns the mode of a file, or None if there is none. Raises `Unreadable` for a link."""
    path = os.path.abspath(path)
    try:
        with safe_open.At(path) as (name, folder):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unwritable(f"{path} cannot be written: {error.strerror}", path=path) from error
    if stat.S_ISLNK(status.st_mode):
        raise safe_open.linked(path)
    return stat.S_IMODE(status.st_mode)


def _replace(temporary: str, path: str) -> bool:
    safe_open.replace(temporary, path)
    return True


def _claim(temporary: str, path: str) -> bool:
    with safe_open.At(path) as (name, folder):
        begin = os.path.basename(temporary)
        try:
            os.link(begin, name, src_dir_fd=folder, dst_dir_fd=folder)
        except FileExistsError:
            return False
        except OSError:  # No hard links here: a file created at this very moment is replaced.
            if os.path.lexists(path):
                return False
            os.replace(begin, name, src_dir_fd=folder, dst_dir_fd=folder)
    return True
