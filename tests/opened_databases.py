"""The SQLite databases that are opened in this process."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from queenbee.store.memory import sqlite


def note(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """Returns a list to which each database is added that is opened from now on."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noting(*arguments: Any, **more: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **more))
        return opened[-1]

    for module in (sqlite3, sqlite):
        monkeypatch.setattr(module, "connect", noting)
    return opened
