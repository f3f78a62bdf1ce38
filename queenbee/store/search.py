"""Full-text search of messages: SQLite's FTS5 where it is built in, else a look at each.

The words of an indexed ledger are kept beside its index and brought up to date by whoever
searches next; a small ledger's are gathered for the one question. Disposable like all of it.
"""

from __future__ import annotations

import sqlite3

from queenbee.errors import InvalidInput
from queenbee.store.index import Indexed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from queenbee.core.fold import Fields
    from queenbee.store.state import Records

_SNIPPET_WORDS = 12
_MARKS = ("»", "«")


def find_text(
    state: Records,
    query: str,
    equals: Mapping[str, object],
    *,
    since_ms: int | None = None,
    limit: int | None = None,
) -> list[tuple[str, str]]:
    """Returns (id, snippet) of the records whose text has all words of the query, best first.

    Only records that `equals` and `since_ms` select, as in `Records.select`. Raises
    `InvalidInput` for a query without a word.
    """
    words = _words(query) if query.isprintable() or query.isascii() else []
    if not words:
        raise InvalidInput(f"{query!r} has no word to look for", hint="queen msg search 'login'")
    if isinstance(state, Indexed):
        ranked = state.ranked_text(_match(words), _SNIPPET_WORDS, _MARKS)
        chosen = _chosen(state, equals, since_ms) if equals or since_ms is not None else None
    else:
        rows = state.select(equals, since_ms=since_ms)
        ranked, chosen = _ranked_once(rows, words), None
    found = [(key, text) for key, text in ranked if chosen is None or key in chosen]
    return found[:limit]


def _chosen(state: Indexed, equals: Mapping[str, object], since_ms: int | None) -> set[str]:
    return {str(fields["id"]) for fields in state.select(equals, since_ms=since_ms)}


def _ranked_once(rows: list[Fields], words: list[str]) -> Iterator[tuple[str, str]]:
    database = sqlite3.connect(":memory:")
    try:
        database.execute("CREATE VIRTUAL TABLE text USING fts5 (id UNINDEXED, subject, body)")
    except sqlite3.OperationalError:  # This SQLite has no FTS5.
        yield from _by_looking(rows, words)
        return
    texts = [(row["id"], _text(row, "subject"), _text(row, "body")) for row in rows]
    database.executemany("INSERT INTO text VALUES (?, ?, ?)", texts)
    yield from database.execute(
        "SELECT id, snippet(text, -1, ?, ?, '…', ?) FROM text WHERE text MATCH ? ORDER BY rank",
        (*_MARKS, _SNIPPET_WORDS, _match(words)),
    ).fetchall()


def _by_looking(rows: list[Fields], words: list[str]) -> Iterator[tuple[str, str]]:
    for row in reversed(rows):
        text = f"{_text(row, 'subject')}\n{_text(row, 'body')}"
        lowered = text.lower()
        if all(word.rstrip("*").lower() in lowered for word in words):
            at = max(0, lowered.find(words[0].rstrip("*").lower()) - 30)
            yield str(row["id"]), text[at : at + 80].replace("\n", " ")


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
    """Returns the query in FTS5's language, in which nothing the user typed has a meaning."""
    return " AND ".join(f'"{word.rstrip("*")}"' + ("*" * word.endswith("*")) for word in words)
