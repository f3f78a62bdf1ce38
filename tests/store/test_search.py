"""A search finds what has all its words, the best first, in messages as they are now."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from raw_files import record

from queenbee import Hive
from queenbee.errors import StoreError
from queenbee.store.memory.search import find_text


def message(number: int, body: str, rev: int = 1, **more: Any) -> bytes:
    fields = {
        "id": f"qm-{number:02}",
        "created_at": f"2026-01-01T00:{number:02}:00.000Z",
        "from": "alice" if number % 3 else "bob",
        "subject": "news",
        "body": body,
        "rev": rev,
    }
    return json.dumps(fields | more).encode()


@pytest.fixture
def thirty(repo: Path, hive: Hive) -> Hive:
    """Thirty messages, of which some say the same."""
    lines = [message(n, f"{'tax ' * (n % 4)}form {'b' * (n % 2)}") for n in range(30)]
    record(repo, "messages", *lines)
    return hive


def found(hive: Hive, query: str, **how: Any) -> list[tuple[str, str]]:
    return find_text(hive.state("messages"), query, how.pop("equals", {}), **how)


def test_those_that_match_alike_come_newest_first(thirty: Hive) -> None:
    threes = [f"qm-{n:02}" for n in range(29, 0, -1) if n % 4 == 3]
    assert [identifier for identifier, _ in found(thirty, "tax")][: len(threes)] == threes


@pytest.mark.parametrize(
    "how",
    [
        {"equals": {"from": "bob"}},
        {"since_ms": 1_767_225_600_000 + 10 * 60_000},
        {"equals": {"from": "alice"}, "since_ms": 1_767_225_600_000 + 20 * 60_000, "limit": 3},
    ],
)
def test_filters_do_not_change_ranks(thirty: Hive, how: dict[str, Any]) -> None:
    some = found(thirty, "tax form", **how)
    everything = found(thirty, "tax form")
    assert 0 < len(some) < len(everything)
    assert some == [hit for hit in everything if hit in some]


def test_deleted_messages_are_not_found_and_do_not_affect_ranks(thirty: Hive, repo: Path) -> None:
    assert len(found(thirty, "tax")) == 22
    record(repo, "messages", *(message(n, "tax", rev=2, deleted=True) for n in range(1, 20)))
    assert {identifier for identifier, _ in found(thirty, "tax b*")} == {
        f"qm-{n}" for n in range(21, 30) if n % 2
    }


def test_words_that_another_program_changed_are_found_as_they_are(thirty: Hive, repo: Path) -> None:
    assert found(thirty, "tax")
    record(repo, "messages", message(3, "levy", rev=2))
    assert [identifier for identifier, _ in found(thirty, "levy")] == ["qm-03"]
    assert "qm-03" not in dict(found(thirty, "tax"))


def test_without_fts5_a_search_is_refused_in_one_sentence(
    thirty: Hive, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    class Without(sqlite3.Connection):
        def execute(self, query: str, *values: Any) -> sqlite3.Cursor:
            if "fts5" in query:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(query, *values)

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Without, **k))
    with pytest.raises(StoreError, match="cannot search texts: no such module: fts5"):
        found(thirty, "TAX")
