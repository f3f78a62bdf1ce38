"""What is wrong with a hive's database, as far as one machine can tell: for `queen doctor`."""

from __future__ import annotations

from queenbee.errors import QueenError
from queenbee.store.engines.fault import Fault
from queenbee.store.engines.postgres.late import psycopg
from queenbee.store.engines.postgres.statements import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol, TypeVar

    from queenbee.store.engines.postgres.cache import Cache
    from queenbee.store.engines.postgres.connection import Connection
    from queenbee.store.layout import Layout

    Found = TypeVar("Found")

    class Examined(Protocol):
        """What is looked at: an engine."""

        layout: Layout
        hive: str

        def kinds(self) -> list[str]: ...
        def cache(self, kind: str) -> Cache: ...
        def asked(self, ask: Callable[[Connection], Found]) -> Found: ...


def place(conninfo: str) -> str:
    """Returns where a database is, without who asks and the password."""
    try:
        said = psycopg.conninfo.conninfo_to_dict(conninfo)
    except psycopg.Error:
        return "the database"
    if "service" in said and "host" not in said:
        return f"service {said['service']}"
    host = str(said.get("host") or said.get("hostaddr") or "this machine")
    port = f":{said['port']}" if said.get("port") else ""
    return f"{host}{port}/{said.get('dbname') or ''}"


def found(engine: Examined) -> Iterator[Fault]:
    """Yields what is wrong: first the server, then the copy of the lines on this machine."""
    where = place(engine.layout.settings.database)
    try:
        kinds = engine.kinds()
        settings = engine.asked(_settings)
        engine.asked(lambda connection: connection.ask({}))
    except QueenError as error:
        yield Fault(error.code, where, error.message, hint=error.hint)
        return
    if settings["transaction_read_only"] == "on":
        text = "the database accepts no writes: it, or this user, is set to read-only"
        yield Fault("read_only", where, text, hint="queen engine status")
    if settings["may_insert"] != "true":
        text = "this user may read the records, but not write any"
        yield Fault("read_only", where, text, hint="GRANT INSERT ON queen_lines", severity="note")
    for name in ("fsync", "full_page_writes"):
        if settings[name] == "off":
            text = f"the database runs with {name} = off: it may lose what it has confirmed"
            yield Fault("not_durable", where, text, hint=f"set {name} = on in postgresql.conf")
    for kind in kinds:
        cache = engine.cache(kind)
        if not cache.is_whole():
            text = f"the copy of {kind} on this machine differs from the database"
            yield Fault("cache", cache.path, text, hint="queen doctor --fix")


def _settings(connection: Connection) -> dict[str, str]:
    rows = connection.table(
        "SELECT name, setting FROM pg_settings WHERE name = ANY($1) UNION ALL "
        "SELECT 'may_insert', has_table_privilege('queen_lines', 'INSERT')::text",
        Values(["fsync", "full_page_writes", "transaction_read_only"]),
    )
    return dict(rows)
