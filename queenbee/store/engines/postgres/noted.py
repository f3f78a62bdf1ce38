"""The note on this machine that a hive's lines are in a database: see `store.engines.choosing`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.errors import Unreadable
from queenbee.store import safe_open

if TYPE_CHECKING:
    from queenbee.store.layout import Layout


def note_engine(layout: Layout, hive: str) -> None:
    """Notes that the hive's lines are in a database, under this name."""
    safe_open.write(layout.engine_path, f"postgres {hive}\n".encode())


def noted_hive(layout: Layout) -> str:
    """Returns the name of the hive in the database, or "" if none was noted."""
    try:
        kind, _, hive = safe_open.read(layout.engine_path, 4096).decode().strip().partition(" ")
    except (OSError, Unreadable, ValueError):
        return ""
    return hive if kind == "postgres" else ""
