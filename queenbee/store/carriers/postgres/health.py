"""What is wrong with a hive's database, as far as one machine can tell: for `queen doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from queenbee.errors import QueenError
from queenbee.store.carriers.carrier import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queenbee.store.carriers.postgres.connection import Connection

    Settings = dict[str, str]

ADDRESS = ("service", "host", "hostaddr", "port", "dbname")


def address(conninfo: str) -> list[str]:
    """Returns what tells a database from others, whoever asks; also what the environment says."""
    said = {each.keyword.decode(): (each.val or b"").decode() for each in Conninfo.get_defaults()}
    try:
        said |= {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}
    except psycopg.Error:
        return [place(conninfo)]  # Nobody connects to it, and it may hold a password.
    return [said.get(name, "") for name in ADDRESS]


def place(conninfo: str) -> str:
    """Returns where a database is, without who asks and the password, of which an address that is
    read amiss has a piece before an `@`.
    """
    try:
        said = conninfo_to_dict(conninfo)
    except psycopg.Error:
        return "the database"
    if "service" in said and "host" not in said:
        return f"service {said['service']}"
    host = str(said.get("host") or said.get("hostaddr") or "this machine")
    port = f":{said['port']}" if said.get("port") else ""
    where = f"{host}{port}/{said.get('dbname') or ''}"
    return "the database" if "@" in where else where


def found(
    conninfo: str, asked: Callable[[Callable[[Connection], Settings]], Settings]
) -> Iterator[Fault]:
    """Yields what is wrong with the server."""
    where = place(conninfo)
    try:
        settings = asked(_settings)
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


def _settings(connection: Connection) -> Settings:
    """Returns what matters of the server's settings."""
    connection.ask({})  # It says whether the hive is in use there, in tables that we know.
    query = (
        "SELECT name, setting FROM pg_settings "
        "WHERE name IN ('fsync', 'full_page_writes', 'transaction_read_only') UNION ALL "
        "SELECT 'may_insert', has_table_privilege('queen_lines', 'INSERT')::text"
    )
    return dict(connection.db.execute(query).fetchall())
