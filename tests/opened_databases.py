"""The SQLite databases that are opened in this process."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, suppress
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
    SQLite would end the process. So all are waited for, those too that are just being opened.
    """
    known = [*opened]
    with ExitStack() as stack:
        for memory in list(database._opened):
            stack.enter_context(memory.mutex)
            memory.close()
        for each in known:
            with suppress(sqlite3.ProgrammingError):  # Another thread's.
                each.close()
