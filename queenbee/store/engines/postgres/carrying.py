"""Carrying a hive from files to a database and back, verified line by line.

The old engine stays in use until the last step. Each direction holds the locks of both engines, and
can be repeated: only lines that are missing are added.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from queenbee.errors import StoreError
from queenbee.store import creating, safe_open
from queenbee.store.engines.fault import Fault
from queenbee.store.engines.files_engine import FilesEngine
from queenbee.store.engines.postgres import faults
from queenbee.store.engines.postgres.connection import Connection, Row
from queenbee.store.engines.postgres.ddl import bring_up_to_date, chained
from queenbee.store.engines.postgres.libpq import PgError, Statement
from queenbee.store.files import split_lines
from queenbee.store.layout import note_engine, noted_hive
from queenbee.store.ledger.ledger import Ledger
from queenbee.store.lock import KernelLock
from queenbee.store.settings_file.editing import replace, with_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queenbee.store.layout import Layout

_SOME = 1_000
_LONG_S = 600
"""How long others may have the database before carrying gives up waiting for them."""


@dataclass
class Carried:
    """What was carried over: the lines of each kind there, and how many of them were added."""

    hive: str
    kinds: dict[str, tuple[int, int]] = field(default_factory=dict)


def to_postgres(layout: Layout, hive: str) -> Carried:
    """Copies the lines that the database lacks, verifies all of them, and switches to it.

    Also takes in what other clones wrote to files before they knew of the switch. Raises
    `StoreError` if another clone has carried the hive back to files, and this one does not know:
    two clones would otherwise write to two places.
    """
    carried = Carried(hive)
    with _database(layout, hive) as db:
        bring_up_to_date(db.link)
        creating.make_beads_dir(layout)
        creating.make_state_dir(layout)
        # 1. Nobody writes to the files, until the note says that they are no longer in use.
        with _local_lock(layout):
            # 2. All lines and the switch in the database are one transaction.
            with _turn(db):
                _refuse_if_carried_back(db, layout)
                db.table("INSERT INTO queen_hives (hive) VALUES ($1) ON CONFLICT DO NOTHING", hive)
                # Not by the engine: it refuses files once the hive is elsewhere.
                for kind in FilesEngine(layout).kinds():
                    lines = _lines_of(_files(layout, kind))
                    added = _add(db, kind, lines)
                    carried.kinds[kind] = (_verify(db, kind, lines), added)
                came = any(added for _, added in carried.kinds.values())
                db.table(
                    "UPDATE queen_hives SET in_use = true, carried = carried + $1 WHERE hive = $2",
                    int(came),
                    hive,
                )
            # 3. From here on, a writer with the old settings is refused.
            note_engine(layout, hive)
            # 4. Last: until then, repeating the command ends the switch.
            _write_settings(layout, "postgres", hive)
    return carried


def to_files(layout: Layout, hive: str) -> Carried:
    """Copies the lines that the files lack, verifies all of them, and switches to files."""
    carried = Carried(hive)
    with _database(layout, hive) as db:
        creating.make_beads_dir(layout)
        creating.make_state_dir(layout)
        with _local_lock(layout):
            with _turn(db):
                for kind in db.kinds():
                    carried.kinds[kind] = _carry_to(_files(layout, kind), db, kind)
                db.table("UPDATE queen_hives SET in_use = false WHERE hive = $1", hive)
            _write_settings(layout, "files", hive)
            with suppress(FileNotFoundError):
                safe_open.unlink(layout.engine_path)
    return carried


def _carry_to(ledger: Ledger, db: Connection, kind: str) -> tuple[int, int]:
    """Adds the lines that a ledger lacks; returns how many there are, and how many were added."""
    there = {_digest(line) for line in _lines_of(ledger)}
    lines, last = list[bytes](), b""
    for row in db.lines(kind):
        # A row of somebody else's may be in no chain, or hold several lines of a file, or none.
        if row.digest == chained(last, row.line):
            lines += split_lines(row.line)
            last = row.digest
    lacking = [line for line in lines if _digest(line) not in there]
    if lacking:
        receipt = ledger.append(lacking)
        try:
            receipt.sync()
        finally:
            receipt.close()
    kept = {_digest(line) for line in _lines_of(ledger)}
    if any(_digest(line) not in kept for line in lines):
        raise StoreError(f"lines of {kind} are missing in {ledger.path}")
    return len(lines), len(lacking)


def verified(layout: Layout, hive: str) -> tuple[dict[str, int], list[Fault]]:
    """Returns how many lines of each kind the database has, each compared with its digest; and the
    first line of each other kind that does not match it.
    """
    counts, faults = {}, []
    with _database(layout, hive) as db:
        for kind in db.kinds():
            try:
                counts[kind] = _verify(db, kind, [])
            except StoreError as error:
                faults.append(Fault(error.code, kind, error.message, hint=error.hint))
    return counts, faults


def only_in_files(layout: Layout, hive: str) -> dict[str, int]:
    """Returns how many lines of each kind are in this machine's files and not in the database."""
    found = {}
    with _database(layout, hive) as db:
        for kind in FilesEngine(layout).kinds():
            lines = _lines_of(_files(layout, kind))
            rows = db.lines(kind) if lines else ()
            there = {_digest(line) for row in rows for line in split_lines(row.line)}
            missing = sum(_digest(line) not in there for line in lines)
            if missing:
                found[kind] = missing
    return found


@contextmanager
def _database(layout: Layout, hive: str) -> Iterator[Connection]:
    conninfo = layout.settings.database
    if not conninfo:
        raise faults.no_address("nothing says where the database is")
    try:
        db = Connection(conninfo, hive, name="", patience_s=10, durable=True, idle_s=_LONG_S)
        try:
            yield db
        finally:
            db.close()
    except PgError as error:
        refused = faults.refusal(error)
        if error.sqlstate == faults.FORBIDDEN:
            refused.hint = "run it as the owner of the tables: it changes queen_hives"
        raise refused from error


@contextmanager
def _turn(db: Connection) -> Iterator[None]:
    """Runs a block in one transaction, in which nobody else writes to the hive."""
    db.wait_for_turn(_LONG_S)
    yield
    db.link.run(Statement("COMMIT"))  # After an error, the connection is closed without it.


def _refuse_if_carried_back(db: Connection, layout: Layout) -> None:
    if layout.settings.engine_kind == "files" and not noted_hive(layout):
        return
    rows = db.table("SELECT in_use::text FROM queen_hives WHERE hive = $1", db.hive)
    if rows == [["false"]]:
        raise faults.carried_back(db.hive)


def _local_lock(layout: Layout) -> KernelLock:
    timeout_s = layout.settings.lock_timeout_s
    return KernelLock(layout.lock_path, holder="queen hive engine use", timeout_s=timeout_s)


def _files(layout: Layout, kind: str) -> Ledger:
    return Ledger(layout.ledger_path(kind), layout.journal_path(kind))


def _lines_of(ledger: Ledger) -> list[bytes]:
    """Returns the lines of all files of a ledger once, in the order in which they are folded."""
    batch = ledger.read()
    return list(dict.fromkeys([*batch.archived, *batch.tracked, *batch.journal_only]))


def _add(db: Connection, kind: str, lines: Sequence[bytes]) -> int:
    """Adds the lines that the database lacks; returns how many."""
    sequence, last, there = 0, b"", set()
    for row in db.lines(kind):
        sequence, last = row.sequence, row.digest
        there.add(_digest(row.line))
    lacking = [line for line in lines if _digest(line) not in there]
    turn = os.urandom(16)
    for begin in range(0, len(lacking), _SOME):
        rows = []
        for line in lacking[begin : begin + _SOME]:
            sequence, last = sequence + 1, chained(last, line)
            rows.append(Row(kind, sequence, line, last))
        db.insert(rows, turn)
    return len(lacking)


def _verify(db: Connection, kind: str, lines: Sequence[bytes]) -> int:
    """Returns the number of lines of a kind. Raises `StoreError` if one is missing or altered."""
    missing = {_digest(line) for line in lines}
    sequence, last = 0, b""
    for row in db.lines(kind):
        sequence, last = sequence + 1, chained(last, row.line)
        if (row.sequence, row.digest) != (sequence, last):
            raise faults.damaged(kind, row.sequence)
        missing.discard(_digest(row.line))
    if missing:
        raise StoreError(f"{len(missing)} lines of {kind} did not arrive in the database")
    return sequence


def _digest(line: bytes) -> bytes:
    return blake2b(line, digest_size=16).digest()


def _write_settings(layout: Layout, kind: str, hive: str) -> None:
    said = {"engine.kind": kind, "engine.hive": hive}
    replace(layout, lambda text: with_values(text, said))
