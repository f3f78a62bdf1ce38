"""What goes wrong with a database, as refusals: what happened, whether anything was written, and
what to do.
"""

from __future__ import annotations

from queenbee.errors import Busy, OutcomeUnknown, QueenError, StoreError, Unreachable, Unwritable
from queenbee.store.engines.postgres.late import psycopg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.store.engines.postgres.statements import Db

_NOTHING = "; nothing was written"
_GONE = (
    "AdminShutdown",
    "CrashShutdown",
    "CannotConnectNow",
    "IdleInTransactionSessionTimeout",
    "TooManyConnections",
    "ReadOnlySqlTransaction",
)
"""A server that is stopping, starting, full or a standby: another attempt may find it ready."""
_ENDED = ("AdminShutdown", "CrashShutdown", "IdleInTransactionSessionTimeout")
"""The server ended the connection, and said so."""
_NO_ENTRY = ("InvalidAuthorizationSpecification", "InvalidPassword", "InvalidCatalogName")
_NO_TABLES = ("UndefinedTable", "UndefinedColumn", "UndefinedFunction")
_NO_ADDRESS = (
    "in connection info string",
    " in URI",
    "invalid URI",
    "invalid connection option",
    "invalid integer value",
    "invalid port number",
)
"""What libpq says about an address before it connects."""
_AUTHENTICATION = ("authentication failed", "no password supplied", "does not exist", "pg_hba.conf")
"""What libpq says if the server turned us away: such an error has no SQLSTATE."""


def is_lost(error: psycopg.Error, connection: Db) -> bool:
    """Returns whether the connection is gone, so that nobody knows what the server did last."""
    said_nothing = isinstance(error, psycopg.OperationalError) and error.sqlstate is None
    return connection.closed or said_nothing or _is(error, *_ENDED)


def refused_write(error: psycopg.Error | QueenError) -> QueenError:
    """Returns the refusal for an error in a turn, after which nothing was written."""
    refused = error if isinstance(error, QueenError) else refusal(error)
    if _NOTHING not in refused.message and not isinstance(refused, OutcomeUnknown):
        refused.message += _NOTHING
    return refused


def refusal(error: psycopg.Error) -> QueenError:
    """Returns the refusal for an error; it does not say whether something was written."""
    text = first_line(error)
    if _is(error, "LockNotAvailable"):
        return Busy(
            "timed out: the hive in the database is locked by another process",
            hint="try again",
        )
    if _is(error, "QueryCanceled"):
        return Busy(
            f"the database cancelled the request ({text})",
            hint="try again; if this happens often, raise statement_timeout for this user",
        )
    if _is(error, "DiskFull"):
        return Unwritable(f"the database's disk is full ({text})")
    if _is(error, "InsufficientPrivilege"):
        return Unwritable(
            f"the database refuses this user ({text})",
            hint="grant the user SELECT and INSERT on queen_lines, "
            "SELECT on queen_hives and queen_schema",
        )
    if _is(error, *_NO_TABLES):
        return no_tables()
    if error.sqlstate is None and any(each in text for each in _NO_ADDRESS):
        return Unwritable(
            f"the address of the database cannot be read: {text}",
            hint="correct QUEEN_DATABASE_URL: postgresql://USER@HOST/NAME",
        )
    if _is(error, *_NO_ENTRY) or (error.sqlstate is None and _turned_away(text)):
        return StoreError(
            f"the database refuses the connection: {text}",
            hint="correct the user, the password or the name in QUEEN_DATABASE_URL",
        )
    if _is(error, *_GONE) or error.sqlstate is None or isinstance(error, psycopg.OperationalError):
        return unreachable(text)
    if _is(error, "UniqueViolation"):
        return overtaken()
    return StoreError(f"the database refuses the request: {text}")


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
        "the database has no tables for QueenBee, or older ones", hint="queen engine use postgres"
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
        hint="correct QUEEN_DATABASE_URL, or carry the hive over: queen engine use postgres",
    )


def carried_back(hive: str) -> StoreError:
    """Returns the refusal for a hive that is in files again."""
    return StoreError(
        f"hive {hive!r} was carried back from the database to files",
        hint="in this clone too: queen engine use files; then commit .beads and git pull",
    )


def damaged(kind: str, sequence: int) -> StoreError:
    """Returns the refusal for a line that is not the one that was written."""
    return StoreError(
        f"line {sequence} of {kind} in the database does not match its digest: "
        "somebody changed it, or one before it",
        hint="restore the table from a backup; see: queen engine status --verify",
    )


def unknown_outcome(text: str, waited_s: float) -> OutcomeUnknown:
    """Returns the error for a write of which nobody can say whether it is recorded."""
    return OutcomeUnknown(
        f"the connection was lost during the write, and the database could not be asked for "
        f"{waited_s:g} s whether it is recorded ({text})",
        hint="when the database answers again, look before you repeat the command",
    )


def _is(error: psycopg.Error, *names: str) -> bool:
    """Returns whether an error is of one of these classes of psycopg's."""
    return isinstance(error, tuple(getattr(psycopg.errors, name) for name in names))


def _turned_away(text: str) -> bool:
    return any(each in text for each in _AUTHENTICATION)


def first_line(error: psycopg.Error) -> str:
    """Returns what the server or libpq said, in one line."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
