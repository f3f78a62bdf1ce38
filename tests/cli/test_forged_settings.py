"""A note in the state folder that says something else than the settings that it is a copy of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hives import QuickQueen

from queenbee.store.layout import discover
from queenbee.store.settings import Settings

TEXT = '[land]\nsignoff = false\ncheck = "true"\n'


@pytest.fixture
def note(repo: Path, quick: QuickQueen, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The note, forged."""
    monkeypatch.setattr(Settings, "by_note", True)
    (repo / ".beads" / "queen.toml").write_text(TEXT)
    for _ in range(2):  # The first one makes the folder.
        assert quick("msg", "send", "ann", "hello", as_="ui").code == 0
    note = repo / ".git" / "queenbee" / "settings.json"
    said = json.loads(note.read_text())
    said[1]["land"]["signoff"] = True
    note.write_text(json.dumps(said))
    assert discover(str(repo), {}).settings.land_signoff
    return note


@pytest.mark.parametrize(
    "words", ["start", "land", "worktree prune", "sync", "doctor", "config", "undo", "report"]
)
def test_counts_for_nothing_where_something_is_done_for_a_person(
    repo: Path, quick: QuickQueen, note: Path, words: str
) -> None:
    quick(*words.split(), as_="human")
    assert json.loads(note.read_text())[1]["land"]["signoff"] is False
    assert not discover(str(repo), {}).settings.land_signoff
