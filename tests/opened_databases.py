"""The SQLite databases that are opened in this process."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import Any

import pytest

from queenbee.store.memory import database, sqlite


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


def close(opened: list[sqlite3.Connection]) -> None:
    """Closes what is open. A thread that a test has left may still ask a memory: closed amid that,
    SQLite would end the process.
    """
    memories = list(database._opened)
    for memory in memories:
        memory.close()  # It waits for whoever asks.
    in_use = {id(memory._db) for memory in memories}
    for each in opened:
        if id(each) not in in_use:
            with suppress(sqlite3.ProgrammingError):  # Another thread's.
                each.close()
