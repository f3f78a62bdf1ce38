"""Carrying a hive from files to a database and back, verified line by line.

Each way, one side gives all its lines, and the other takes those that it lacks. The old one stays
in use until the last step, and nobody writes to either meanwhile.
"""

from __future__ import annotations

import os
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import psycopg

from queenbee.errors import StoreError
from queenbee.store import creating, safe_open
from queenbee.store.carriers.carrier import Fault
from queenbee.store.carriers.postgres import faults
from queenbee.store.carriers.postgres.agreed import of_hive, refuse_unagreed
from queenbee.store.carriers.postgres.connection import Connection, End, followed, numbered
from queenbee.store.carriers.postgres.ddl import bring_up_to_date, chained
from queenbee.store.carriers.postgres.health import place
from queenbee.store.carriers.postgres.left_in_files import (
    LEFT,
    digest_of,
    lines_of,
    only_in_files,
    parts,
)
from queenbee.store.layout import note_engine, noted_hive
from queenbee.store.lock import KernelLock
from queenbee.store.memory.files_memory import FilesMemory
from queenbee.store.settings_file.changing_text import replace, with_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queenbee.store.carriers.carrier import Look
    from queenbee.store.layout import Layout

__all__ = (
    "LEFT",
    "of_hive",
    "only_here",
    "place",
    "refuse_unagreed",
    "to_files",
    "to_postgres",
    "verified",
)

_SOME = 1_000
_LONG_S = 600
"""How long others may have the database before carrying gives up waiting for them."""
_HAND_OVER = (
    "; or give the owner your lines, to pull and run it: "
    "git add -f '.beads/*queen_*.jsonl', git commit, git push"
)
"""Git may ignore the ledgers. The pattern also finds the archive."""


Kinds = dict[str, tuple[int, int]]
"""How many lines of each kind are there now, and how many of them were added."""


def to_postgres(layout: Layout, hive: str, look: Look) -> Kinds:
    """Gives the database the lines that it lacks, verifies all of them, and switches to it.

    Also those that other clones wrote to files before they knew of the switch. Raises `StoreError`
    if another clone has carried the hive back to files, and this one does not know: two clones
    would otherwise write to two places.
    """
    # 1. Nobody writes to the files, until the note says that they are no longer in use.
    with _database(layout, hive, _HAND_OVER) as connection, _files(layout) as files:
        # 2. The lines and the switch in the database.
        kinds = _joined(connection, files, look)
        if kinds is None:
            kinds = _switched(connection, layout, files, look)
        # 3. From here on, a writer with the old settings is refused.
        note_engine(layout, hive)
        # 4. Last: until then, repeating the command ends the switch.
        _write_settings(layout, "postgres", hive)
    return kinds


def _joined(connection: Connection, files: FilesMemory, look: Look) -> Kinds | None:
    """Returns how many lines the database has of each kind, if it is in use and lacks none that it
    may have; else None. To add some takes the owner of its tables, and this does not.
    """
    try:
        connection.ask({})
    except (StoreError, psycopg.Error):  # Others of ours, such as that it is a standby, count.
        return None
    found = {kind: _lacking(connection, kind, files, look) for kind in files.all_kinds()}
    if any(lacking for _, lacking in found.values()):
        return None
    return {kind: (end.sequence, 0) for kind, (end, _) in found.items()}


def _switched(connection: Connection, layout: Layout, files: FilesMemory, look: Look) -> Kinds:
    """Adds the lines that the database lacks, and puts it in use, in one transaction."""
    db, hive = connection.db, connection.hive
    bring_up_to_date(db)
    connection.wait_for_turn(_LONG_S)
    _refuse_if_carried_back(connection, layout)
    db.execute("INSERT INTO queen_hives (hive) VALUES (%s) ON CONFLICT DO NOTHING", (hive,))
    # Not by the turn of a write: it refuses files once the hive is elsewhere.
    kinds = {kind: _give(connection, kind, files, look) for kind in files.all_kinds()}
    came = any(added for _, added in kinds.values())
    db.execute(
        "UPDATE queen_hives SET in_use = true, carried = carried + %s WHERE hive = %s",
        (int(came), hive),
    )
    db.execute("COMMIT")  # After an error, the connection is closed without it.
    return kinds


def to_files(layout: Layout, hive: str) -> Kinds:
    """Takes the lines that the files lack, verifies all of them, and switches to files."""
    with _database(layout, hive) as connection, _files(layout) as files:
        connection.wait_for_turn(_LONG_S)
        kinds = {kind: _take(connection, kind, files) for kind in connection.kinds()}
        connection.db.execute("UPDATE queen_hives SET in_use = false WHERE hive = %s", (hive,))
        connection.db.execute("COMMIT")
        _write_settings(layout, "files", hive)
        with suppress(FileNotFoundError):
            safe_open.unlink(layout.engine_path)
    return kinds


def verified(layout: Layout, hive: str) -> tuple[dict[str, int], list[Fault]]:
    """Returns how many lines of each kind the database has, each compared with its digest; and the
    first line of each other kind that does not match it.
    """
    counts, wrong = {}, []
    with _database(layout, hive) as connection:
        for kind in connection.kinds():
            try:
                counts[kind] = _verified(connection, kind)[0].sequence
            except StoreError as error:
                wrong.append(Fault(error.code, kind, error.message, hint=error.hint))
    return counts, wrong


def only_here(layout: Layout, hive: str) -> dict[str, int]:
    """Returns how many lines of each kind are in this machine's files and not in the database."""
    with _database(layout, hive) as connection:
        return only_in_files(layout, connection)


def _give(connection: Connection, kind: str, files: FilesMemory, look: Look) -> tuple[int, int]:
    """Adds the lines that the database lacks, and may have."""
    end, lacking = _lacking(connection, kind, files, look)
    rows, turn = numbered(end, lacking), os.urandom(16)
    for begin in range(1, len(rows), _SOME):
        connection.insert({kind: rows[begin : begin + _SOME]}, turn)
    end, there = _verified(connection, kind)
    if any(digest_of(line) not in there for line in lacking):
        raise StoreError(f"lines of {kind} did not arrive in the database")
    return end.sequence, len(lacking)


def _lacking(
    connection: Connection, kind: str, files: FilesMemory, look: Look
) -> tuple[End, Sequence[bytes]]:
    """Returns where a kind ends in the database, and the lines that it lacks, and may have."""
    lines = lines_of(files, kind)
    end, there = _verified(connection, kind)
    return end, look(kind, [line for line in lines if digest_of(line) not in there])


def _take(connection: Connection, kind: str, files: FilesMemory) -> tuple[int, int]:
    """Adds the lines that the files lack."""
    lines, end = list[bytes](), End()
    for row in connection.lines(kind):
        # A row of somebody else's may be in no chain, or hold several lines of a file, or none.
        if row.digest == chained(end.digest, row.line):
            lines += parts(row)
            end = row.end
    there = {*lines_of(files, kind)}
    lacking = [line for line in lines if line not in there]
    if lines:
        files.write({kind: lacking})
        files.sync()
    if not {*lines}.issubset(lines_of(files, kind)) or files.lacking(kind):
        raise StoreError(f"lines of {kind} are missing in {files.tracked(kind).path}")
    return len(lines), len(lacking)


@contextmanager
def _database(layout: Layout, hive: str, way: str = "") -> Iterator[Connection]:
    conninfo = layout.settings.database
    if not conninfo:
        raise faults.no_address("nothing says where the database is")
    try:
        with closing(Connection(conninfo, hive, idle_s=_LONG_S)) as connection:
            yield connection
    except psycopg.Error as error:
        refused = faults.refusal(error)
        if error.sqlstate == faults.FORBIDDEN:
            refused.hint = f"run it as the owner of the tables: it changes queen_hives{way}"
        raise refused from error


@contextmanager
def _files(layout: Layout) -> Iterator[FilesMemory]:
    """Runs a block in which nobody else writes to the files."""
    creating.make_beads_dir(layout)
    creating.make_state_dir(layout)
    timeout_s = layout.settings.lock_timeout_s
    with (
        KernelLock(layout.lock_path, holder="queen hive engine use", timeout_s=timeout_s),
        closing(FilesMemory(layout)) as files,
    ):
        yield files


def _refuse_if_carried_back(connection: Connection, layout: Layout) -> None:
    if layout.settings.engine_kind == "files" and not noted_hive(layout):
        return
    query = "SELECT in_use FROM queen_hives WHERE hive = %s"
    if connection.db.execute(query, (connection.hive,)).fetchall() == [(False,)]:
        raise faults.carried_back(connection.hive)


def _verified(connection: Connection, kind: str) -> tuple[End, set[bytes]]:
    """Returns where the lines of a kind end, and the digest of each by itself. Raises `StoreError`
    if one is altered.
    """
    end, there = End(), set()
    for row in connection.lines(kind):
        end = followed(kind, [row], end)
        there.add(digest_of(row.line))
    return end, there


def _write_settings(layout: Layout, kind: str, hive: str) -> None:
    said = {"engine.kind": kind, "engine.hive": hive}
    replace(layout, lambda text: with_values(text, said))
