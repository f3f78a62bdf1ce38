"""The tables of the database, their versions, and the lock of a hive.

    queen_lines    hive, kind, sequence, line, digest, turn: append-only
    queen_hives    which hives there are, and whether they are in use
    queen_schema   which of the steps below were taken

Within a hive and a kind, `sequence` counts from 1 without a gap, and `digest` is the SHA-256 of the
digest before it and the line: one digest speaks for everything up to there. `turn` is what the
transaction that wrote the line is known by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee._hashing import sha256

if TYPE_CHECKING:
    from typing import Any, LiteralString

    import psycopg

_MOST_KIND_BYTES = 100
_UPGRADE_LOCK = 0x7175_6565_6E  # "queen"
STEPS: tuple[tuple[LiteralString, ...], ...] = (
    (
        """
    CREATE TABLE queen_hives (
        hive text PRIMARY KEY,
        in_use boolean NOT NULL DEFAULT false,
        carried bigint NOT NULL DEFAULT 0
    )""",
        """
    CREATE TABLE queen_lines (
        hive text NOT NULL REFERENCES queen_hives,
        kind text NOT NULL,
        sequence bigint NOT NULL CHECK (sequence > 0),
        line bytea NOT NULL,
        digest bytea NOT NULL,
        turn bytea NOT NULL,
        PRIMARY KEY (hive, kind, sequence)
    )""",
        """
    CREATE FUNCTION queen_append_only() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'queen_lines is append-only'; END $$
    """,
        """
    CREATE TRIGGER queen_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON queen_lines
        EXECUTE FUNCTION queen_append_only()
    """,
    ),
    # Carried to files, a row becomes a line. What is there already stays, so that no digest is
    # missing.
    (
        r"""
    ALTER TABLE queen_lines ADD CONSTRAINT queen_one_line
        CHECK (position('\x0a'::bytea in line) = 0) NOT VALID
    """,
    ),
    # A row that is not the next one would stop everybody. Whoever inserts it also chooses what a
    # name means: so the function trusts only names that it states in full.
    (
        """
    CREATE FUNCTION queen_next_line() RETURNS trigger LANGUAGE plpgsql
        SET search_path = pg_catalog, pg_temp AS $$
        DECLARE is_wrong boolean;
        BEGIN
            EXECUTE format(
                'SELECT EXISTS (SELECT FROM added LEFT JOIN %I.%I AS one ON one.hive = added.hive
                    AND one.kind = added.kind AND one.sequence = added.sequence - 1
                WHERE (one.sequence IS NULL AND added.sequence <> 1) OR added.digest <>
                    sha256(CASE WHEN added.sequence = 1 THEN added.line
                        ELSE one.digest || added.line END))',
                TG_TABLE_SCHEMA, TG_TABLE_NAME) INTO is_wrong;
            IF is_wrong THEN
                RAISE unique_violation USING MESSAGE = 'a line is not the next one of its kind';
            END IF;
            RETURN NULL;
        END $$
    """,
        """
    CREATE TRIGGER queen_next_line AFTER INSERT ON queen_lines REFERENCING NEW TABLE AS added
        FOR EACH STATEMENT EXECUTE FUNCTION queen_next_line()
    """,
    ),
)
"""What brings the tables from each version to the next. Add steps; never change one."""

VERSION = len(STEPS)


def bring_up_to_date(db: psycopg.Connection[Any]) -> None:
    """Takes the steps that the database lacks: all or none. Safe while others do the same."""
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_UPGRADE_LOCK,))
        db.execute(
            "CREATE TABLE IF NOT EXISTS queen_schema "
            "(step integer PRIMARY KEY, taken_at timestamptz NOT NULL DEFAULT now())"
        )
        [[last]] = db.execute("SELECT coalesce(max(step), 0) FROM queen_schema").fetchall()
        for number in range(last, VERSION):
            for statement in STEPS[number]:
                db.execute(statement)
            db.execute("INSERT INTO queen_schema (step) VALUES (%s)", (number + 1,))


def lock_key(hive: str) -> int:
    """Returns the number of a hive's advisory lock."""
    return int.from_bytes(sha256(b"queenbee hive\0" + hive.encode()).digest()[:8], signed=True)


def channel(hive: str) -> str:
    """Returns the name of the channel on which writes to a hive are announced."""
    return f"queen_{lock_key(hive) & (2**64 - 1):016x}"


def chained(previous: bytes, line: bytes) -> bytes:
    """Returns the digest of a line, given that of the line before it."""
    return sha256(previous + line).digest()


def is_kind(kind: str) -> bool:
    """Returns whether a kind of record in the database can be one of ours: it names files here, and
    whoever may insert lines can insert any.
    """
    return (
        bool(kind)
        and kind[0] != "."
        and "/" not in kind
        and kind.isprintable()
        and kind == kind.lower()
        and (len(kind.encode()) <= _MOST_KIND_BYTES)
    )
