"""Connections to the file of a memory.

Nothing else may open that file: whoever closes any handle of it takes all of SQLite's locks on it
from this process.
"""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee.store import safe_open
from queenbee.store.memory import sqlite

WAIT_S = 30.0
"""How long one waits while another takes in lines: it would only read the same ones."""


def connect(path: str, *, uri: bool = False) -> sqlite.Connection:
    """Returns a connection. Its transactions are begun explicitly."""
    return sqlite.connect(
        path, timeout=WAIT_S, isolation_level=None, check_same_thread=False, uri=uri
    )


def close_as_it_is(db: sqlite.Connection, path: str) -> None:
    """Closes a connection to a file that is not to be changed. Whoever closes a file last brings
    its log into it, except for one who only reads.
    """
    with suppress(sqlite.Error):
        last = connected_to_read(path)
        try:
            last.execute("SELECT 1 FROM sqlite_master").fetchone()
            db.close()
        finally:
            last.close()
    db.close()


def can_share_pages(path: str) -> bool:
    """Returns whether processes can share the pages of a file beside this one, as those of a log
    do. Some shared folders know no such thing, and SQLite only notices once the file has the log.
    """
    from mmap import mmap  # noqa: PLC0415 - start-up

    trial = f"{path}-trial"
    try:
        fd = safe_open.open_file(trial, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(fd, 1)
            mmap(fd, 1).close()
        finally:
            os.close(fd)
            safe_open.unlink(trial)
    except OSError:
        return False
    return True


def pragma(db: sqlite.Connection, name: str) -> int:
    """Returns the number that SQLite has under this name."""
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def connected_to_read(path: str, mode: str = "mode=ro") -> sqlite.Connection:
    """Returns a connection to a file that exists, which changes nothing in it."""
    return connect(uri_of(path, mode), uri=True)


def uri_of(path: str, mode: str = "mode=ro") -> str:
    """Returns how SQLite is asked to open a file in a way."""
    quoted = "".join(f"%{ord(each):02x}" if each in "%?#" else each for each in path)
    return f"file:{quoted}?{mode}"
