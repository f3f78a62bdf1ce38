"""Full-text search of messages, by SQLite's FTS5.

Each search collects the words again: 0.3 s for 12,000 messages. Keeping them would be a second
index, which has to follow every change.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from queenbee.errors import InvalidInput, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.core.fold import Fields
    from queenbee.store.memory.recorded import Recorded

_SNIPPET_WORDS = 12
_MARKS = ("»", "«")


def find_text(
    state: Recorded,
    query: str,
    equals: Mapping[str, object],
    *,
    since_ms: int | None = None,
    limit: int | None = None,
) -> list[tuple[str, str]]:
    """Returns (id, snippet) of the records whose text has all words of the query, best first.

    `equals` and `since_ms` filter the records, as in `Recorded.select`. Raises `InvalidInput` for
    a query without a word.
    """
    words = _words(query) if query.isprintable() or query.isascii() else []
    if not words:
        raise InvalidInput(f"{query!r} has no word to search for", hint="queen msg search 'login'")
    ranked = _ranked(state, words)
    if equals or since_ms is not None:
        # A rank depends on how rare a word is in all messages, not just the selected ones.
        chosen = {fields["id"] for fields in state.select(equals, since_ms=since_ms)}
        ranked = [hit for hit in ranked if hit[0] in chosen]
    return ranked[:limit]


def _ranked(state: Recorded, words: list[str]) -> list[tuple[str, str]]:
    """Returns (id, snippet) of all matches: the best first, and the newest among equals."""
    rows = state.select({}, newest_first=True)
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute("CREATE VIRTUAL TABLE text USING fts5 (subject, body)")
        except sqlite3.Error as error:
            raise StoreError(f"this Python's SQLite cannot search texts: {error}") from error
        texts = ((n, _text(row, "subject"), _text(row, "body")) for n, row in enumerate(rows))
        database.executemany("INSERT INTO text (rowid, subject, body) VALUES (?, ?, ?)", texts)
        found = database.execute(
            "SELECT rowid, snippet(text, -1, ?, ?, '…', ?) FROM text "
            "WHERE text MATCH ? ORDER BY rank, rowid",
            (*_MARKS, _SNIPPET_WORDS, _match(words)),
        ).fetchall()
    return [(str(rows[number]["id"]), str(snippet)) for number, snippet in found]


def _text(row: Fields, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _words(query: str) -> list[str]:
    """Returns the words of a query; those in double quotes are one."""
    words: list[str] = []
    for number, part in enumerate(query.split('"')):
        words.extend([part.strip()] if number % 2 else part.split())
    return [word for word in words if any(char.isalnum() for char in word)]


def _match(words: list[str]) -> str:
    """Returns the query for FTS5, with everything that the user typed as plain words."""
    return " AND ".join(f'"{word.rstrip("*")}"' + ("*" * word.endswith("*")) for word in words)
