"""The records are committed by two commands at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen

from queenbee import Hive
from queenbee.git import landed


def test_a_command_that_ends_while_another_commits_the_records_asks_nobody(
    quick: QuickQueen, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick.env["QUEEN_DROID"] = "ui"
    issue = quick("issue", "new", "Only").out.strip()
    quick("next")
    real = landed.commit_records

    def second(hive: Hive, *, is_end: bool) -> bool:
        real(hive, is_end=is_end)
        return real(hive, is_end=is_end)

    monkeypatch.setattr(landed, "commit_records", second)
    assert "not committed" not in quick("complete", issue, "--next").out
