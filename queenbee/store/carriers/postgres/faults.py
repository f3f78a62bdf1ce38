"""What goes wrong with a database, as refusals: what happened, whether anything was written, and
what to do.
"""

from __future__ import annotations

import re

import psycopg

from queenbee.errors import Busy, OutcomeUnknown, QueenError, StoreError, Unreachable, Unwritable

TAKE_IN = "queen hive engine use postgres"
"""What adds the lines of files to the database."""
_NOTHING = "; nothing was written"
_ENDED = ("57P01", "57P02", "25P03")
"""The server ended the connection, and said so: it was stopped, crashed, or waited too long."""
_LATER = ("25006", "08", "53", "55", "57", "58")
"""The beginnings of what a server says that is stopping, starting, full, or a standby: another
attempt may find it ready.
"""
_NO_ENTRY = ("28000", "28P01", "3D000")
_NO_TABLES = ("42P01", "42703", "42883")
_LOCKED, _CANCELLED, _FULL, FORBIDDEN, _TAKEN = "55P03", "57014", "53100", "42501", "23505"
_NO_ADDRESS = ("invalid integer value", "invalid port number", "could not match")
"""What libpq says about an address that it could read, before it connects."""
_AUTHENTICATION = ("authentication failed", "no password supplied", "does not exist", "pg_hba.conf")
"""What the server says as it turns us away: until then, an error has no SQLSTATE."""


def is_lost(error: psycopg.Error) -> bool:
    """Returns whether the connection is gone, so that nobody knows what the server did last."""
    return error.sqlstate is None or error.sqlstate in _ENDED


def nothing_written(refused: QueenError) -> QueenError:
    """Returns a refusal, which says now that nothing was written."""
    if _NOTHING not in refused.message and not isinstance(refused, OutcomeUnknown):
        refused.message += _NOTHING
    return refused


def refusal(error: psycopg.Error) -> QueenError:
    """Returns the refusal for an error; it does not say whether something was written."""
    text = first_line(error)
    if error.sqlstate is None:
        return _unconnected(error)
    if error.sqlstate in _NO_TABLES:
        return no_tables()
    if error.sqlstate in _NO_ENTRY:
        return _turned_away(text)
    known = {
        _LOCKED: Busy(
            "timed out: the hive in the database is locked by another process",
            hint="try again",
        ),
        _CANCELLED: Busy(
            f"the database cancelled the request ({text})",
            hint="try again; if this happens often, raise statement_timeout for this user",
        ),
        _FULL: Unwritable(f"the database's disk is full ({text})"),
        FORBIDDEN: Unwritable(
            f"the database refuses this user ({text})",
            hint="grant the user SELECT and INSERT on queen_lines, "
            "SELECT on queen_hives and queen_schema",
        ),
        _TAKEN: overtaken(),
    }
    if error.sqlstate in known:
        return known[error.sqlstate]
    if error.sqlstate.startswith(_LATER) or error.sqlstate in _ENDED:
        return unreachable(text)
    return StoreError(f"the database refuses the request: {text}")


def _unconnected(error: psycopg.Error) -> QueenError:
    """Returns the refusal for what did not come from a session."""
    text = first_line(error)
    # An address that is read amiss has a piece of the password as a port, or before the host's "@".
    if isinstance(error, psycopg.ProgrammingError) or any(each in text for each in _NO_ADDRESS):
        text = re.sub('".*"', "...", text)
        return Unwritable(
            f"the address of the database cannot be read: {text}",
            hint="correct QUEEN_DATABASE_URL: postgresql://USER@HOST/NAME",
        )
    text = re.sub("""["'].*@.*["']""", "...", text)
    if any(each in text for each in _AUTHENTICATION):
        return _turned_away(text)
    return unreachable(text)


def _turned_away(text: str) -> StoreError:
    return StoreError(
        f"the database refuses the connection: {text}",
        hint="correct the user, the password or the name in QUEEN_DATABASE_URL",
    )


def overtaken() -> Busy:
    """Returns the refusal for a turn in which somebody else wrote, despite the lock."""
    return Busy("another process wrote at the same time", hint="try again")


def unreachable(text: str) -> Unreachable:
    """Returns the refusal for a database that does not answer."""
    return Unreachable(
        f"the database cannot be reached ({text})",
        hint="start it, or correct QUEEN_DATABASE_URL; then try again",
    )


def no_address(text: str) -> Unwritable:
    """Returns the refusal where nothing says where the database is."""
    return Unwritable(text, hint="set QUEEN_DATABASE_URL, or PGSERVICE for a service file")


def no_tables() -> StoreError:
    """Returns the refusal for a database without our tables."""
    return StoreError(
        "the database has no tables for QueenBee, or older ones",
        hint="queen hive engine use postgres",
    )


def too_new(version: int) -> StoreError:
    """Returns the refusal for tables that a later QueenBee made."""
    return StoreError(
        f"the database's tables have version {version}, which this QueenBee does not know",
        hint="upgrade QueenBee on this machine",
    )


def absent(hive: str) -> StoreError:
    """Returns the refusal for a hive that the database does not have."""
    return StoreError(
        f"the database has no hive {hive!r}",
        hint="correct QUEEN_DATABASE_URL, or carry the hive over: queen hive engine use postgres",
    )


def carried_back(hive: str) -> StoreError:
    """Returns the refusal for a hive that is in files again."""
    return StoreError(
        f"hive {hive!r} was carried back from the database to files",
        hint="in this clone too: queen hive engine use files; then commit .beads and git pull",
    )


def left_in_files(counts: str) -> StoreError:
    """Returns the refusal for a clone whose files have what the database lacks."""
    return StoreError(
        f"this clone's files have lines that the hive in the database lacks ({counts})",
        hint=TAKE_IN,
    )


def damaged(kind: str, sequence: int) -> StoreError:
    """Returns the refusal for a line that is not the one that was written."""
    return StoreError(
        f"line {sequence} of {kind} in the database does not match its digest: "
        "somebody changed it, or one before it",
        hint="restore the table from a backup, or go on without it: queen hive engine use files",
    )


def unknown_outcome(text: str, waited_s: float) -> OutcomeUnknown:
    """Returns the error for a write of which nobody can say whether it is recorded."""
    return OutcomeUnknown(
        f"the connection was lost during the write, and the database could not be asked for "
        f"{waited_s:g} s whether it is recorded ({text})",
        hint="when the database answers again, look before you repeat the command",
    )


def first_line(error: psycopg.Error) -> str:
    """Returns what the server or its library said, in one line."""
    lines = (error.diag.message_primary or str(error)).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
