"""Carrying a hive from files to a database and back, verified line by line.

The old engine stays in use until the last step. Each direction holds the locks of both engines, so
that nobody writes meanwhile, and can be repeated: only lines that are missing are added.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from hashlib import blake2b

import psycopg

from queenbee.errors import NotFound, StoreError, Unwritable
from queenbee.store import safe_open, setup
from queenbee.store.documents import read_own, write_document
from queenbee.store.engines.files_engine import FilesEngine
from queenbee.store.engines.postgres import faults
from queenbee.store.engines.postgres.health import place
from queenbee.store.engines.postgres.noted import note_engine, noted_hive
from queenbee.store.engines.postgres.schema import bring_up_to_date, chained, is_kind, lock_key
from queenbee.store.files import split_lines
from queenbee.store.ledger.ledger import Ledger
from queenbee.store.lock import KernelLock
from queenbee.store.settings import FILE_NAME
from queenbee.store.settings_text import with_values

TYPE_CHECKING = False
__all__ = ["Carried", "only_in_files", "place", "to_files", "to_postgres", "verified"]

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.store.layout import Layout

_SOME = 1_000
_LONG_S = 600
"""How long others may have the database before carrying gives up waiting for them."""


class Carried:
    """What was carried over: the lines of each kind there, and how many of them were added."""

    def __init__(self, hive: str) -> None:
        self.hive = hive
        self.kinds: dict[str, tuple[int, int]] = {}


def to_postgres(layout: Layout, hive: str) -> Carried:
    """Copies the lines that the database lacks, verifies all of them, and switches to it.

    Also takes in what other clones wrote to files before they knew of the switch. Raises
    `StoreError` if another clone has carried the hive back to files, and this one does not know:
    two clones would otherwise write to two places.
    """
    carried = Carried(hive)
    with _database(layout) as db:
        bring_up_to_date(db)
        setup.make_beads_dir(layout)
        setup.make_state_dir(layout)
        # 1. Nobody writes to the files, until the note says that they are no longer in use.
        with _local_lock(layout):
            # 2. All lines and the switch in the database are one transaction.
            with db.transaction():
                _lock(db, hive)
                _refuse_if_carried_back(db, layout, hive)
                db.execute(
                    "INSERT INTO queen_hives (hive) VALUES (%s) ON CONFLICT DO NOTHING", (hive,)
                )
                # Not by the engine: it refuses files once the hive is elsewhere.
                for kind in FilesEngine(layout).kinds():
                    lines = _lines_of(_files(layout, kind))
                    added = _add(db, hive, kind, lines)
                    carried.kinds[kind] = (_verify(db, hive, kind, lines), added)
                came = any(added for _, added in carried.kinds.values())
                db.execute(
                    "UPDATE queen_hives SET in_use = true, carried = carried + %s WHERE hive = %s",
                    (int(came), hive),
                )
                _reached("verified")
            _reached("committed")
            # 3. From here on, a writer with the old settings is refused.
            note_engine(layout, hive)
            _reached("noted")
            # 4. Last: until then, repeating the command ends the switch.
            _write_settings(layout, "postgres", hive)
    return carried


def to_files(layout: Layout, hive: str) -> Carried:
    """Copies the lines that the files lack, verifies all of them, and switches to files."""
    carried = Carried(hive)
    with _database(layout) as db:
        setup.make_beads_dir(layout)
        setup.make_state_dir(layout)
        with _local_lock(layout):
            with db.transaction():
                _lock(db, hive)
                for kind in _kinds(db, hive):
                    ledger = _files(layout, kind)
                    there = {_digest(line) for line in _lines_of(ledger)}
                    # A row of somebody else's may hold several lines of a file, or none.
                    rows = _rows(db, hive, kind)
                    lines = [line for _, data, _ in rows for line in split_lines(data)]
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
                    carried.kinds[kind] = (len(lines), len(lacking))
                db.execute("UPDATE queen_hives SET in_use = false WHERE hive = %s", (hive,))
                _reached("verified")
            _reached("committed")
            _write_settings(layout, "files", hive)
            _reached("noted")
            with suppress(FileNotFoundError):
                safe_open.unlink(layout.engine_path)
    return carried


def verified(layout: Layout, hive: str) -> dict[str, int]:
    """Returns how many lines of each kind the database has, each compared with its digest."""
    with _database(layout) as db, db.transaction():
        return {kind: _verify(db, hive, kind, []) for kind in _kinds(db, hive)}


def only_in_files(layout: Layout, hive: str) -> dict[str, int]:
    """Returns how many lines of each kind are in this machine's files and not in the database."""
    found = {}
    with _database(layout) as db, db.transaction():
        for kind in FilesEngine(layout).kinds():
            lines = _lines_of(_files(layout, kind))
            rows = _rows(db, hive, kind) if lines else ()
            there = {_digest(line) for _, data, _ in rows for line in split_lines(data)}
            missing = sum(_digest(line) not in there for line in lines)
            if missing:
                found[kind] = missing
    return found


def _reached(_step: str) -> None:
    """Does nothing; tests stop here."""


@contextmanager
def _database(layout: Layout) -> Iterator[psycopg.Connection]:
    conninfo = layout.settings.database
    if not conninfo:
        raise faults.no_address("nothing says where the database is")
    try:
        with psycopg.connect(conninfo, autocommit=True, connect_timeout=10) as db:
            yield db
    except psycopg.Error as error:
        raise faults.refusal(error) from error


def _lock(db: psycopg.Connection, hive: str) -> None:
    db.execute("SELECT set_config('lock_timeout', %s, true)", (f"{_LONG_S}s",))
    db.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(hive),))


def _refuse_if_carried_back(db: psycopg.Connection, layout: Layout, hive: str) -> None:
    if layout.settings.engine_kind == "files" and not noted_hive(layout):
        return
    row = db.execute("SELECT in_use FROM queen_hives WHERE hive = %s", (hive,)).fetchone()
    if row == (False,):
        raise faults.carried_back(hive)


def _local_lock(layout: Layout) -> KernelLock:
    timeout_s = layout.settings.lock_timeout_s
    return KernelLock(layout.lock_path, holder="queen engine use", timeout_s=timeout_s)


def _files(layout: Layout, kind: str) -> Ledger:
    return Ledger(layout.ledger_path(kind), layout.journal_path(kind))


def _lines_of(ledger: Ledger) -> list[bytes]:
    """Returns the lines of all files of a ledger once, in the order in which they are folded."""
    batch = ledger.read()
    return list(dict.fromkeys([*batch.archived, *batch.tracked, *batch.journal_only]))


def _kinds(db: psycopg.Connection, hive: str) -> list[str]:
    rows = db.execute("SELECT DISTINCT kind FROM queen_lines WHERE hive = %s ORDER BY 1", (hive,))
    return [kind for (kind,) in rows if is_kind(kind)]


def _rows(db: psycopg.Connection, hive: str, kind: str) -> Iterator[tuple[int, bytes, bytes]]:
    """Yields the lines of a kind in order, a piece at a time."""
    with db.cursor(f"queen {kind}", binary=True) as cursor:
        cursor.itersize = _SOME
        cursor.execute(
            "SELECT sequence, line, digest FROM queen_lines WHERE hive = %s AND kind = %s "
            "ORDER BY sequence",
            (hive, kind),
        )
        yield from cursor


def _add(db: psycopg.Connection, hive: str, kind: str, lines: list[bytes]) -> int:
    """Adds the lines that the database lacks; returns how many."""
    sequence, last, there = 0, b"", set()
    for number, line, digest in _rows(db, hive, kind):
        sequence, last = number, digest
        there.add(_digest(line))
    lacking = [line for line in lines if _digest(line) not in there]
    turn = os.urandom(16)
    with (
        db.cursor() as cursor,
        cursor.copy(
            "COPY queen_lines (hive, kind, sequence, line, digest, turn) FROM STDIN"
        ) as copy,
    ):
        for line in lacking:
            sequence, last = sequence + 1, chained(last, line)
            copy.write_row((hive, kind, sequence, line, last, turn))
    return len(lacking)


def _verify(db: psycopg.Connection, hive: str, kind: str, lines: list[bytes]) -> int:
    """Returns how many lines of a kind there are. Raises `StoreError` if a line is missing, or one
    does not match its digest.
    """
    missing = {_digest(line) for line in lines}
    sequence, last = 0, b""
    for number, line, digest in _rows(db, hive, kind):
        sequence, last = sequence + 1, chained(last, line)
        if (number, digest) != (sequence, last):
            raise faults.damaged(kind, number)
        missing.discard(_digest(line))
    if missing:
        raise StoreError(f"{len(missing)} lines of {kind} did not arrive in the database")
    return sequence


def _digest(line: bytes) -> bytes:
    return blake2b(line, digest_size=16).digest()


def _write_settings(layout: Layout, kind: str, hive: str) -> None:
    path = os.path.join(layout.beads_dir, FILE_NAME)
    try:
        text = read_own(path).decode()
    except NotFound:
        text = ""
    said = {"kind": json.dumps(kind), "hive": json.dumps(hive, ensure_ascii=False)}
    changed = with_values(text, "engine", said)
    if changed is None:
        raise Unwritable(
            f"{path} has an [engine] that cannot be changed automatically",
            hint=f'write kind = "{kind}" and hive = "{hive}" into its table [engine] by hand',
            path=path,
        )
    if changed != text:
        write_document(path, changed.encode())
