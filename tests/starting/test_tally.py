"""What an agent has landed, told by its supervisor."""

from __future__ import annotations

from pathlib import Path

from hives import write_lines

from queenbee import Hive
from queenbee.starting.tally import Tally


def test_what_lands_in_another_order_than_it_was_taken_is_told_once_each(
    repo: Path, hive: Hive
) -> None:
    rows = [{"id": f"q-{n}", "title": f"Title {n}", "status": "open"} for n in (1, 2, 3)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    hive.assignments.claim("q-1")
    tally = Tally(hive, "ui-engineer")
    for issue_id in ("q-2", "q-3"):
        hive.assignments.claim(issue_id)
        hive.assignments.complete(issue_id)
        assert tally.landed() == [issue_id]
    hive.assignments.complete("q-1")
    assert (tally.landed(), tally.landed()) == (["q-1"], [])
