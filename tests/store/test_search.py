"""A search finds the same, in the same order, whether an index is asked or the ledger is read."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from queenbee.store.index.indexed import Indexed
from queenbee.store.index.search import find_text
from queenbee.store.ledger.ledger import Ledger
from queenbee.store.state import Folded

from queenbee.errors import StoreError


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
def ledger(tmp_path: Path) -> Ledger:
    """Thirty messages, of which some say the same."""
    made = Ledger(str(tmp_path / "queen_messages.jsonl"), str(tmp_path / "journal.jsonl"))
    made.append([message(n, f"{'tax ' * (n % 4)}form {'b' * (n % 2)}") for n in range(30)]).close()
    return made


@pytest.fixture
def indexed(ledger: Ledger, tmp_path: Path) -> Indexed:
    found = Indexed("messages", ledger, str(tmp_path / "index.sqlite3"))
    found.refresh()
    return found


def both(indexed: Indexed, query: str, **how: Any) -> list[tuple[str, str]]:
    """Returns what is found, having seen that both ways find it."""
    ledger = Ledger(indexed.ledger.path, indexed.ledger.journal_path)
    folded = Folded("messages", ledger)
    for each in (indexed, folded):
        each.refresh()
    equals = how.pop("equals", {})
    found = find_text(indexed, query, equals, **how)
    assert found == find_text(folded, query, equals, **how)
    return found


def test_those_that_match_alike_come_newest_first(indexed: Indexed) -> None:
    found = [identifier for identifier, _ in both(indexed, "tax")]
    threes = [f"qm-{n:02}" for n in range(29, 0, -1) if n % 4 == 3]
    assert found[: len(threes)] == threes


@pytest.mark.parametrize(
    "how",
    [
        {"equals": {"from": "bob"}},
        {"since_ms": 1_767_225_600_000 + 10 * 60_000},
        {"equals": {"from": "alice"}, "since_ms": 1_767_225_600_000 + 20 * 60_000, "limit": 3},
    ],
)
def test_filters_do_not_change_ranks(indexed: Indexed, how: dict[str, Any]) -> None:
    some = both(indexed, "tax form", **how)
    everything = both(indexed, "tax form")
    assert 0 < len(some) < len(everything)
    assert some == [hit for hit in everything if hit in some]


def test_deleted_messages_are_not_found_and_do_not_affect_ranks(indexed: Indexed) -> None:
    assert len(both(indexed, "tax")) == 22
    gone = [message(n, "tax", rev=2, deleted=True) for n in range(1, 20)]
    indexed.ledger.append(gone).close()
    assert {identifier for identifier, _ in both(indexed, "tax b*")} == {
        f"qm-{n}" for n in range(21, 30) if n % 2
    }


def test_words_that_another_program_changed_are_found_as_they_are(indexed: Indexed) -> None:
    assert both(indexed, "tax")
    indexed.ledger.append([message(3, "levy", rev=2)]).close()
    assert [identifier for identifier, _ in both(indexed, "levy")] == ["qm-03"]
    assert "qm-03" not in dict(both(indexed, "tax"))


def test_without_fts5_a_search_is_refused_in_one_sentence(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    class Without(sqlite3.Connection):
        def execute(self, query: str, *values: Any) -> sqlite3.Cursor:
            if "fts5" in query:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(query, *values)

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Without, **k))
    with pytest.raises(StoreError, match="cannot search texts: no such module: fts5"):
        both(indexed, "TAX")
