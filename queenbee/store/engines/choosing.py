"""Chooses where the lines of a hive are kept, as its settings say.

Git replaces the settings, so an old branch may name another engine than the one in use. A note in
this machine's state says which one that is, and nothing is read or written by the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.errors import StoreError
from queenbee.store.engines.files_engine import FilesEngine

if TYPE_CHECKING:
    from queenbee.store.engines.engine import Engine
    from queenbee.store.layout import Layout


def open_engine(layout: Layout) -> Engine:
    """Returns the engine that the settings name. It connects to nothing yet.

    Raises `StoreError` if psycopg is needed and missing.
    """
    if layout.settings.engine_kind == FilesEngine.name:
        return FilesEngine(layout)
    try:
        from queenbee.store.engines.postgres.engine import PostgresEngine  # noqa: PLC0415 - start-up
    except ImportError as error:
        raise StoreError(
            f"the hive is in PostgreSQL, and cannot be reached without psycopg: {error}",
            hint="pip install 'queenbee-hive[postgres]'",
        ) from error
    return PostgresEngine(layout)
