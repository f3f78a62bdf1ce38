"""`queen note`: what a droid does beside its issue, as the others see it."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hives import Clock, QuickQueen, records, write_lines

from queenbee import Hive
from queenbee.services.telling import news

NOTE = "“I switch run_length_* to the helper”"


@pytest.fixture(autouse=True)
def issues(beads: Path, quick: QuickQueen) -> None:
    rows = [{"id": f"q-{each}", "title": f"Issue {each}", "status": "open"} for each in (1, 2)]
    write_lines(beads / "issues.jsonl", *rows)
    quick("claim", "q-1", as_="api")


def note(quick: QuickQueen, text: str = NOTE[1:-1], as_: str = "api") -> Any:
    return quick("note", text, as_=as_)


def test_others_see_it_in_next_and_in_status(quick: QuickQueen) -> None:
    noted = note(quick)
    assert (noted.code, noted.out) == (0, "noted: others see it until you land, or for a day\n")
    beside = f"api: q-1 Issue 1, and {NOTE}"
    assert beside in quick("next", as_="ui").out
    assert beside in quick("status", as_="ui").out
    assert NOTE in quick("status", as_="api").out
    [member] = quick("status", "--json", as_="ui").json["others"]
    assert member["issues"][0]["note"] == NOTE[1:-1]


def test_the_hook_tells_it_once(quick: QuickQueen, repo: Path) -> None:
    hive = Hive.open(repo, droid="ui", env={})
    note(quick)
    assert f"- api does beside q-1: {NOTE}\n" in news.take(hive) + "\n"
    assert NOTE not in news.take(hive)
    note(quick, "and sort the imports")
    assert "; and sort the imports”" in news.take(hive)
    assert NOTE[1:-1] not in news.take(Hive.open(repo, droid="api", env={}))


def test_it_ends_with_the_issue(quick: QuickQueen) -> None:
    note(quick)
    assert quick("complete", "q-1", as_="api").code == 0
    quick("claim", "q-2", as_="api")
    assert "run_length" not in quick("status", as_="ui").out


def test_it_ends_after_a_day(quick: QuickQueen, repo: Path, frozen: Clock) -> None:
    note(quick)
    frozen.advance(24 * 3600 - 10)
    assert NOTE in quick("status", as_="ui").out
    frozen.advance(20)
    assert NOTE not in quick("status", as_="ui").out
    assert NOTE not in news.take(Hive.open(repo, droid="ui", env={}))


def test_it_changes_nothing_else(quick: QuickQueen, beads: Path) -> None:
    [before] = records(beads / "queen_assignments.jsonl")
    note(quick)
    *_, after = records(beads / "queen_assignments.jsonl")
    noted = datetime.fromisoformat(after.pop("noted_at"))
    assert datetime.now(noted.tzinfo) - noted < timedelta(minutes=1)
    assert after == {**before, "note": NOTE[1:-1], "rev": 2}


@pytest.mark.parametrize(
    ("text", "droid", "code", "why"),
    [
        ("x", "ui", 4, "try: queen next; or: queen msg send @all x"),
        ("", "api", 2, "one line of 1 to 200 characters"),
        ("x" * 201, "api", 2, "try: what is longer: queen msg send @all 'TEXT'"),
        ("AKIAIOSFODNN7EXAMPLQ", "api", 2, "seems to hold a secret"),
    ],
)
def test_what_is_refused(quick: QuickQueen, text: str, droid: str, code: int, why: str) -> None:
    refused = note(quick, text, as_=droid)
    assert (refused.code, why in refused.err) == (code, True), refused.err
