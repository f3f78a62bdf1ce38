"""Writes a report to a file that a user named: all of it or nothing, and over nothing else."""

from __future__ import annotations

import os
import stat

from queenbee.errors import Conflict, NotFound, Unreadable
from queenbee.report.words import GENERATOR
from queenbee.store import safe_open
from queenbee.store.whole_files import create_document, read_document, write_document

_HEAD_BYTES = 4096
"""A report names its generator within so many bytes."""


def save(path: str, text: str) -> None:
    """Writes a report to a new file, or over an earlier report or an empty file.

    A reader sees the old file or the new one. Raises `Conflict` for any other file, `NotFound` if
    its folder does not exist, `Unreadable` for what is no regular file, and `Unwritable`.
    """
    real = safe_open.resolved(path)
    if not os.path.isdir(os.path.dirname(real)):
        raise NotFound(f"there is no folder {os.path.dirname(real)}", path=path)
    # JSON may have half of a surrogate pair, which UTF-8 has no bytes for.
    data = text.encode(errors="backslashreplace")
    if _is_free(real, path):
        write_document(real, data)
    elif not create_document(real, data):
        raise _taken(path)


def _is_free(real: str, path: str) -> bool:
    """Returns whether there is a file that may be replaced. Raises `Conflict`."""
    try:
        status = os.stat(real)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(f"{path} is not a regular file", path=path)
    if status.st_size and GENERATOR.encode() not in read_document(real)[:_HEAD_BYTES]:
        raise _taken(path)
    return True


def _taken(path: str) -> Conflict:
    return Conflict(
        f"{path} exists and is not a report; it was left as it is",
        hint="name another file, or remove this one first",
        path=path,
    )
