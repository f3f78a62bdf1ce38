"""Messages of the hive that hold until something changes: the parts inside."""

from __future__ import annotations

from typing import Any

import pytest
from hives import Clock

from queenbee import Hive
from queenbee.services.messages import BY_HIVE, TARGET_FAILS, stage, thread_of, withdraw


def test_what_holds_no_longer_is_found_among_many_that_everybody_was_told(
    hive: Hive, reviewer: Hive, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        hive.messages.send("@all", f"stand-up {number}")
    for branch in ("main", "next"):
        said: dict[str, object] = {"subject": f"{branch} fails", "body": "x", BY_HIVE: True}
        with hive.transaction() as tx:
            thread = thread_of(TARGET_FAILS, branch)
            stage(tx, "queen", ["@all"], {**said, TARGET_FAILS: branch}, thread)

    state = type(hive.state("messages"))
    select, read = state.select, []

    def counted(self: Any, *equals: Any, **more: Any) -> Any:
        found = select(self, *equals, **more)
        read.extend(found)
        return found

    monkeypatch.setattr(state, "select", counted)
    withdraw(hive, TARGET_FAILS, "main")
    assert len(read) == 1
    monkeypatch.undo()
    told = [each.subject for each in reviewer.messages.inbox()]
    assert "main fails" not in told
    assert "next fails" in told


def test_who_lost_an_issue_is_not_told_so_once_it_is_done(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    def unread(of: Hive) -> list[str]:
        of.messages.drop_merged()
        return [each.subject for each in of.messages.inbox(unread=True)]

    hive.assignments.claim("qb-42")
    clock.advance(1)
    reviewer.assignments.assign("qb-42", "reviewer", reassign=True)
    assert unread(hive) == ["[qb-42] Reassigned to reviewer"]
    clock.advance(1)
    reviewer.messages.send("ui-engineer", "What did you mean?", issue_id="qb-42")
    reviewer.assignments.complete("qb-42")
    assert unread(hive) == ["What did you mean?"]


def test_who_gave_an_issue_is_told_that_it_is_done(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    hive.assignments.assign("qb-42", "reviewer")
    clock.advance(1)
    reviewer.assignments.complete("qb-42")
    hive.messages.drop_merged()
    assert [each.subject for each in hive.messages.inbox(unread=True)] == ["[qb-42] Completed"]
