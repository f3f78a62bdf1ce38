"""Everything about one issue at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from acting import answer
from hives import Clock, write_lines

from queenbee import Hive
from queenbee.errors import NotFound

pytestmark = pytest.mark.both_engines(thorough=True)


@pytest.fixture(autouse=True)
def _tracked(beads: Path) -> None:
    row = {"title": "Button", "status": "open"}
    waits = [{"depends_on_id": "qb-40", "type": "blocks"}]
    write_lines(
        beads / "issues.jsonl",
        {"id": "qb-42", **row, "dependencies": waits},
        {"id": "qb-40", **row},
    )


def test_an_overview_has_all_that_is_known(hive: Hive, reviewer: Hive, clock: Clock) -> None:
    reviewer.assignments.claim("qb-42", anyway=True)
    clock.advance(1)
    hive.assignments.assign("qb-42", "ui-engineer", reassign=True)
    hive.reservations.reserve(["src/**"], issue_id="qb-42")
    hive.reservations.reserve(["old/**"], issue_id="qb-42", ttl_s=1)
    hive.reservations.reserve(["docs/**"], issue_id="qb-40")
    clock.advance(2)
    hive.messages.send("reviewer", "done soon", issue_id="qb-42")
    view = answer(hive, "show", "qb-42")
    assert view["issue"]["title"] == "Button"
    assert view["blocked_by"] == ["qb-40"]
    assert [(a["droid"], a["status"]) for a in view["assignments"]] == [
        ("reviewer", "reassigned"),
        ("ui-engineer", "active"),
    ]
    assert [r["pattern"] for r in view["reservations"]] == ["src/**"]
    assert [m["body"] for m in view["messages"]][-1] == "done soon"


def test_an_issue_of_which_nothing_is_known_but_the_issue_is_shown(hive: Hive) -> None:
    view = answer(hive, "show", "qb-40")
    assert (view["assignments"], view["reservations"], view["messages"]) == ([], [], [])


def test_records_speak_of_an_issue_that_the_tracker_does_not_have(hive: Hive) -> None:
    tracker = Path(hive.layout.issues_path)
    rows = tracker.read_bytes()
    write_lines(tracker, {"id": "gone-1", "title": "soon gone", "status": "open"})
    hive.reservations.reserve(["a.py"], issue_id="gone-1")
    tracker.write_bytes(rows)
    view = answer(hive, "show", "gone-1")
    assert view["issue"] is None
    assert [r["pattern"] for r in view["reservations"]] == ["a.py"]


def test_an_issue_of_which_nothing_is_known_at_all_is_not_found(hive: Hive) -> None:
    with pytest.raises(NotFound, match="'qb-24'") as refusal:
        answer(hive, "show", "qb-24")
    assert "did you mean" in str(refusal.value.hint)


def test_its_plain_values_are_the_records_themselves(hive: Hive) -> None:
    hive.assignments.claim("qb-40")
    plain = answer(hive, "show", "qb-40")
    assert set(plain) == {
        "issue_id",
        "issue",
        "blocked_by",
        "assignments",
        "reservations",
        "messages",
    }
    assert plain["issue"] == hive.issues.get("qb-40").to_dict()
    assert plain["assignments"] == [each.to_dict() for each in hive.assignments.find()]


def test_a_message_that_only_names_the_issue_is_shown_too(hive: Hive, reviewer: Hive) -> None:
    reviewer.messages.send("ui-engineer", "who has qb-40 now?", new=True)
    reviewer.messages.send("ui-engineer", "and qb-401, and qb?")
    told = answer(hive, "show", "qb-40")["messages"]
    assert [each["body"] for each in told] == ["who has qb-40 now?"]
