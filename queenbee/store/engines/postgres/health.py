"""What is wrong with a hive's database, as far as one machine can tell: for `queen doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.errors import QueenError
from queenbee.store.engines.fault import Fault
from queenbee.store.engines.postgres.libpq import PgError, parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queenbee.store.engines.postgres.connection import Connection
    from queenbee.store.engines.postgres.copy import Copy

    Examined = tuple[list[str], dict[str, str]]


def place(conninfo: str) -> str:
    """Returns where a database is, without who asks and the password."""
    try:
        said = parsed(conninfo)
    except PgError:
        return "the database"
    if "service" in said and "host" not in said:
        return f"service {said['service']}"
    host = str(said.get("host") or said.get("hostaddr") or "this machine")
    port = f":{said['port']}" if said.get("port") else ""
    return f"{host}{port}/{said.get('dbname') or ''}"


def found(
    conninfo: str, asked: Callable[[Callable[[Connection], Examined]], Examined], copy: Copy
) -> Iterator[Fault]:
    """Yields what is wrong: first the server, then the copy of the lines on this machine."""
    where = place(conninfo)
    try:
        kinds, settings = asked(_examined)
    except QueenError as error:
        yield Fault(error.code, where, error.message, hint=error.hint)
        return
    if settings["transaction_read_only"] == "on":
        text = "the database accepts no writes: it, or this user, is set to read-only"
        yield Fault("read_only", where, text, hint="queen hive engine status")
    if settings["may_insert"] != "true":
        text = "this user may read the records, but not write any"
        yield Fault("read_only", where, text, hint="GRANT INSERT ON queen_lines", severity="note")
    for name in ("fsync", "full_page_writes"):
        if settings[name] == "off":
            text = f"the database runs with {name} = off: it may lose what it has confirmed"
            yield Fault("not_durable", where, text, hint=f"set {name} = on in postgresql.conf")
    for kind in kinds:
        if not copy.is_whole(kind):
            text = f"the copy of {kind} on this machine differs from the database"
            yield Fault("cache", copy.path, text, hint="queen doctor --fix")


def _examined(connection: Connection) -> Examined:
    """Returns the kinds of record that the database has, and what matters of its settings."""
    rows = connection.table(
        "SELECT name, setting FROM pg_settings WHERE name = ANY($1) UNION ALL "
        "SELECT 'may_insert', has_table_privilege('queen_lines', 'INSERT')::text",
        ["fsync", "full_page_writes", "transaction_read_only"],
    )
    connection.ask({})  # It says whether the hive is in use there, in tables that we know.
    return connection.kinds(), {row[0]: row[1] for row in rows}
