"""`queen show`: an issue with all that belongs to it, on one screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hives import QuickQueen, write_lines

ROW = {"id": "qb-1", "title": "Button component", "status": "open", "priority": 1}


@pytest.fixture(autouse=True)
def _tracked(beads: Path) -> None:
    waits = [{"depends_on_id": "qb-2", "type": "blocks"}]
    write_lines(
        beads / "issues.jsonl",
        {**ROW, "issue_type": "feature", "description": "A button.", "dependencies": waits},
        {"id": "qb-2", "title": "Colors", "status": "open", "priority": 1},
    )


def test_issue_assignment_reservations_and_thread_are_on_one_screen(quick: QuickQueen) -> None:
    quick("claim", "qb-1", "--anyway", as_="ui-engineer")
    quick("reserve", "src/ui/**", "--issue", "qb-1", as_="ui-engineer")
    quick("msg", "send", "reviewer", "Nearly there", "--issue", "qb-1", as_="ui-engineer")
    shown = quick("show", "qb-1").out
    for part in (
        "qb-1  Button component",
        "P1 feature, open, ui-engineer has it, waits for qb-2",
        "    A button.",
        "ui-engineer  active",
        "src/ui/**",
        "ui-engineer → reviewer [qb-1]",
        "    Nearly there",
    ):
        assert part in shown
    assert len(shown.splitlines()) <= 24


def test_a_description_is_whole_and_messages_that_do_not_fit_are_cut_and_counted(
    quick: QuickQueen, beads: Path
) -> None:
    write_lines(beads / "issues.jsonl", {**ROW, "description": "line\n" * 100})
    for number in range(20):
        body = f"number {number}\n" + "x" * 5_000 + "\n" * 50
        quick("msg", "send", "reviewer", body, "--issue", "qb-1", as_="ui-engineer")
    shown = quick("show", "qb-1").out
    assert shown.count("    line\n") == 100
    assert "… 15 earlier messages: queen msg thread qb-1" in shown
    assert "number 19" in shown
    assert "number 14" not in shown
    assert len(shown) < 9_000


def test_json_has_the_whole_thread(quick: QuickQueen) -> None:
    for number in range(8):
        quick("msg", "send", "reviewer", f"{number}\n" * 50, "--issue", "qb-1", as_="ui-engineer")
    assert len(quick("show", "qb-1", "--json").json["messages"]) == 8


def test_several_are_shown_one_after_the_other_or_none(quick: QuickQueen) -> None:
    shown = quick("show", "qb-1", "qb-2").out
    assert shown.index("qb-1  Button component") < shown.index("\nqb-2  Colors")
    told = [json.loads(line) for line in quick("show", "1", "2", "--json").out.splitlines()]
    assert [each["issue_id"] for each in told] == ["qb-1", "qb-2"]
    refused = quick("show", "qb-1", "no-9")
    assert (refused.code, refused.out) == (4, "")


def test_what_next_has_told_is_not_told_again_with_what_is_taken_with_it(
    quick: QuickQueen, beads: Path
) -> None:
    one, other = ({**ROW, "id": f"qb-{n}", "description": f"In src/a.py, {n}."} for n in (1, 2))
    write_lines(beads / "issues.jsonl", one, other)
    assert "    In src/a.py, 1." in quick("next", as_="ui-engineer").out
    taken = quick("next", "--take", as_="ui-engineer").out
    assert "    In src/a.py, 2." in taken
    assert "In src/a.py, 1." not in taken
    assert "its text: queen show qb-1" in taken
    assert "In src/a.py, 1." in quick("next", as_="ui-engineer").out


def test_an_issue_that_the_tracker_does_not_have_is_shown_as_such(
    quick: QuickQueen, beads: Path
) -> None:
    tracker = beads / "issues.jsonl"
    rows = tracker.read_bytes()
    write_lines(tracker, {"id": "gone-1", "title": "soon gone", "status": "open"})
    quick("reserve", "a.py", "--issue", "gone-1", as_="ui-engineer")
    tracker.write_bytes(rows)
    assert quick("show", "gone-1").out.startswith("gone-1 is not in the tracker\n")


def test_an_issue_that_the_tracker_has_deleted_says_so(quick: QuickQueen, beads: Path) -> None:
    deleted = {"deleted_by": "ui", "deleted_at": "2026-01-05T10:00:00Z", "delete_reason": "a copy"}
    write_lines(beads / "issues.jsonl", {**ROW, "status": "tombstone", **deleted})
    shown = quick("show", "qb-1")
    assert shown.code == 0
    assert shown.out.splitlines()[:2] == [
        "qb-1  Button component",
        "deleted from the tracker by ui at 2026-01-05T10:00:00Z: a copy",
    ]
    told = quick("show", "qb-1", "--json").json
    assert (told["issue"], told["deleted"]["status"]) == (None, "tombstone")
    refused = quick("claim", "qb-1", as_="ui-engineer")
    assert (refused.code, "the tracker has deleted qb-1" in refused.err) == (4, True)
    assert "try: queen show qb-1" in refused.err
