"""The life of one record: its lines in order, with who wrote each and when."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, write_lines

from queenbee import Hive
from queenbee.errors import NotFound

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]


def told(hive: Hive, identifier: str) -> list[tuple[int, str | None, str | None]]:
    """Returns revision, time of day and author of each line."""
    return [(each.rev, (each.at or "")[11:16], each.by) for each in hive.history(identifier)]


def test_a_message_was_sent_by_one_and_read_by_the_other(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    sent = hive.messages.send("reviewer", "x")[0]
    clock.advance(60)
    reviewer.messages.mark_read([sent.id])
    clock.advance(60)
    reviewer.messages.delete(sent.id)
    assert told(hive, sent.id) == [
        (1, "10:30", "ui-engineer"),
        (2, "10:31", "reviewer"),
        (3, "10:32", "reviewer"),
    ]


def test_an_assignment_was_given_by_one_and_ended_by_another(
    hive: Hive, open_as: Opener, clock: Clock
) -> None:
    given = hive.assignments.assign("qb-1", "reviewer")
    clock.advance(60)
    open_as("human").assignments.release("qb-1")
    assert told(hive, given.id) == [(1, "10:30", "ui-engineer"), (2, "10:31", "human")]


def test_an_assignment_was_completed_by_its_holder(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    given = hive.assignments.assign("qb-1", "reviewer")
    clock.advance(60)
    reviewer.assignments.complete("qb-1")
    assert told(hive, given.id)[-1] == (2, "10:31", "reviewer")


def test_a_lease_was_renewed_by_its_holder_and_taken_by_another(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    [lease] = hive.reservations.reserve(["a.py"])
    clock.advance(60)
    hive.reservations.renew(["a.py"])
    clock.advance(60)
    reviewer.reservations.reserve(["a.py"], force=True, reason="x")
    assert told(hive, lease.id) == [
        (1, "10:30", "ui-engineer"),
        (2, "10:31", "ui-engineer"),
        (3, "10:32", "reviewer"),
    ]


def test_a_revision_shows_what_changed(hive: Hive, reviewer: Hive, clock: Clock) -> None:
    sent = hive.messages.send("reviewer", "x")[0]
    reviewer.messages.mark_read([sent.id])
    first, second = hive.history(sent.id)
    assert second.changes == {"read": True, "read_at": "2024-12-14T10:30:00.000Z"}
    assert first.changes["body"] == "x"
    assert second.to_dict()["line"] == second.fields


def test_the_documents_example_was_read_by_its_recipient(hive: Hive, beads: Path) -> None:
    row = {"id": "qm-01HZ1A", "from": "queen", "to": "ui-engineer"}
    read = {"read": True, "read_at": "2024-12-14T10:36:00Z"}
    write_lines(
        beads / "queen_messages.jsonl",
        {**row, "created_at": "2024-12-14T10:30:00Z", "subject": "s", "body": "b"},
        {**row, "created_at": "2024-12-14T10:36:00Z", **read},
    )
    assert told(hive, "qm-01HZ1A") == [(1, "10:30", "queen"), (2, "10:36", "ui-engineer")]


def test_a_line_without_author_or_time_is_still_shown(hive: Hive, beads: Path) -> None:
    write_lines(beads / "queen_messages.jsonl", {"id": "qm-x"})
    assert told(hive, "qm-x") == [(1, "", None)]


@pytest.mark.parametrize("identifier", ["qm-nowhere", "nonsense", ""])
def test_the_history_of_nothing_is_not_found(hive: Hive, identifier: str) -> None:
    with pytest.raises(NotFound) as refusal:
        hive.history(identifier)
    assert "qm-, qa-, qr- or qv-" in str(refusal.value.hint)


def test_a_record_with_a_foreign_id_is_found_in_any_ledger(hive: Hive, beads: Path) -> None:
    write_lines(beads / "queen_reservations.jsonl", {"id": "lock#7", "droid": "x"})
    assert [each.by for each in hive.history("lock#7")] == ["x"]


def test_an_issue_has_the_history_of_its_assignments(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    hive.assignments.claim("qb-1")
    clock.advance(1)  # Assignments of one millisecond have no order.
    reviewer.assignments.assign("qb-1", "tester", reassign=True)
    found = [(each.fields["droid"], each.fields["status"]) for each in hive.history("qb-1")]
    assert found == [
        ("ui-engineer", "active"),
        ("ui-engineer", "reassigned"),
        ("tester", "active"),
    ]
