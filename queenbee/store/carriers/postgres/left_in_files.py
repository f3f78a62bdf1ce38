"""What a clone has in its files and the database lacks: nobody who uses the database sees it.

A clone may have written to its files before it pulled that the hive is in a database.
"""

from __future__ import annotations

from contextlib import closing, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING

from queenbee.core.text import lines_counted
from queenbee.errors import Unwritable
from queenbee.store import creating
from queenbee.store.carriers.carrier import Fault
from queenbee.store.carriers.postgres import faults
from queenbee.store.codec import Unusable, decode
from queenbee.store.files import split_lines
from queenbee.store.layout import note_engine, noted_hive
from queenbee.store.lock import KernelLock
from queenbee.store.memory.files_memory import FilesMemory

if TYPE_CHECKING:
    from queenbee.store.carriers.postgres.connection import Connection, Row
    from queenbee.store.layout import Layout

LEFT = "only_in_files"
"""The code of lines that only the files have."""


def refuse_left_in_files(layout: Layout, connection: Connection) -> None:
    """Raises `StoreError` if this clone has not used the hive in the database yet, and has lines
    that it lacks. Notes that it uses it, if not.
    """
    if noted_hive(layout) == connection.hive:
        return
    timeout_s = layout.settings.lock_timeout_s
    with suppress(Unwritable):  # Reading needs no note.
        creating.make_state_dir(layout)
        # Whoever has read the old settings writes before this, or is refused.
        with KernelLock(layout.lock_path, holder="queen", timeout_s=timeout_s):
            _refuse_lines(layout, connection)
            note_engine(layout, connection.hive)
            return
    _refuse_lines(layout, connection)


def _refuse_lines(layout: Layout, connection: Connection) -> None:
    if counts := only_in_files(layout, connection):
        connection.ask({})  # Says so if the hive is not there, or no longer.
        raise faults.left_in_files(counted(counts))


def only_in_files(layout: Layout, connection: Connection) -> dict[str, int]:
    """Returns how many lines of each kind are in this machine's files and not in the database."""
    found = {}
    with closing(FilesMemory(layout)) as files:
        for kind in files.all_kinds():
            lines = lines_of(files, kind)
            rows = connection.lines(kind) if lines else ()
            there = {digest_of(each) for row in rows for each in parts(row)}
            if missing := sum(digest_of(line) not in there for line in lines):
                found[kind] = missing
    return found


def left(layout: Layout, connection: Connection) -> list[Fault]:
    """Returns what is wrong if this machine's files have lines that the database lacks."""
    if not (counts := only_in_files(layout, connection)):
        return []
    refused = faults.left_in_files(counted(counts))
    return [Fault(LEFT, layout.beads_dir, refused.message, hint=refused.hint)]


def counted(counts: dict[str, int]) -> str:
    """Returns how many lines of each kind there are, in words."""
    return ", ".join(f"{kind}: {lines_counted(count)}" for kind, count in counts.items())


def lines_of(files: FilesMemory, kind: str) -> list[bytes]:
    """Returns the lines that the files have once, in order of arrival."""
    files.refresh(kind)
    query = "SELECT raw FROM lines WHERE kind = ? ORDER BY seq"
    rows = files.asked(lambda: files.database.ask(query, kind))
    return list(dict.fromkeys(raw for (raw,) in rows if isinstance(raw, bytes)))


def parts(row: Row) -> list[bytes]:
    """Returns the lines of a row that hold records."""
    found = []
    for line in split_lines(row.line):
        with suppress(Unusable):
            decode(line)
            found.append(line)
    return found


def digest_of(line: bytes) -> bytes:
    """Returns what tells a line from others."""
    return blake2b(line, digest_size=16).digest()
