"""Messages of the hive that hold until something changes: the parts inside."""

from __future__ import annotations

from typing import Any

import pytest

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
