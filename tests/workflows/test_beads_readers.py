"""What `queen` leaves in the tracker's file, read by the rules of Beads' own programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from bead_files import ATTEMPT, JUDGEMENT, PLAN, ids_by_sprint
from hives import QuickQueen, commit_file, exported

from queenbee.core.beads import changed_ms, read_rows

Row = dict[str, Any]
Rows = dict[str, Row]
URL = "https://github.com/o/r/pull/42"


class RefusedError(Exception):
    """A program does not read the file."""


def check_unique(rows: Iterable[Row], field: str) -> None:
    """Refuses rows as a database does whose column is `UNIQUE`."""
    values = [row[field] for row in rows if row.get(field)]
    if len(set(values)) < len(values):
        raise RefusedError(f"UNIQUE constraint failed: issues.{field}")


def bd_before_0_34(rows: list[Row]) -> Rows:
    """Refuses two rows of an id."""
    check_unique(rows, "id")
    return bd_0_34_to_0_50(rows)


def bd_0_34_to_0_50(rows: list[Row]) -> Rows:
    """Takes the first row of an id."""
    check_unique(rows, "external_ref")
    found: Rows = {}
    for row in rows:
        found.setdefault(row["id"], row)
    return found


def bd_1_0(rows: list[Row]) -> Rows:
    """Takes the last row of an id."""
    return {row["id"]: row for row in rows}


def br(rows: list[Row]) -> Rows:
    """Takes the newer row of an id, and of two that are as new, the last."""
    check_unique(rows, "external_ref")
    found: Rows = {}
    for row in rows:
        known = found.get(row["id"])
        if known is None or changed_ms(row) >= changed_ms(known):
            found[row["id"]] = row
    return found


def br_newest_version(rows: list[Row]) -> Rows:
    """Reports two rows of an id as an error."""
    check_unique(rows, "id")
    return br(rows)


READERS: list[Callable[[list[Row]], Rows]] = [
    bd_before_0_34,
    bd_0_34_to_0_50,
    bd_1_0,
    br,
    br_newest_version,
]


@pytest.mark.parametrize("read", READERS)
def test_beads_reads_one_row_of_each_bead_and_the_newest(
    quick: QuickQueen, repo: Path, beads: Path, read: Callable[[list[Row]], Rows]
) -> None:
    path = beads / "issues.jsonl"

    def run(*words: str) -> Rows:
        """Runs a command, and returns what the program reads after it."""
        done = quick(*words, as_="ui-engineer")
        assert done.code == 0, done
        rows = exported(path)
        found = read(rows)
        assert len(found) == len(rows)
        assert found == {key: dict(one.fields) for key, one in read_rows(rows).items()}
        return found

    commit_file(repo, "plans/accounts.md", PLAN)
    imported = run("plan", "import", "plans/accounts.md")
    ids = ids_by_sprint(path)
    first, second = ids["1.1"], ids["2.1a"]
    assert {first, second} < {*imported}
    run("claim", first)
    metadata = run("bead", "record", "dev", first, json.dumps(ATTEMPT))[first]["metadata"]
    assert [one["session_id"] for one in metadata["dev_agent_executions"]] == ["s-1"]
    metadata = run("bead", "record", "qa", first, json.dumps(JUDGEMENT))[first]["metadata"]
    assert [one["session_id"] for one in metadata["qa_agent_executions"]] == ["q-1"]
    assert run("bead", "record", "pr", first, URL)[first]["external_ref"] == URL
    found = run("bead", "record", "pr", second, URL)  # One request for both.
    assert [found[each].get("external_ref") for each in (first, second)] == [URL, None]
    assert [found[each]["metadata"]["pr_url"] for each in (first, second)] == [URL, URL]
    row = run("complete", first)[first]
    assert (row["status"], row["external_ref"], row["metadata"]["pr_number"]) == ("closed", URL, 42)
    again = run("plan", "import", "plans/accounts.md")
    assert again[first] == row
    assert len(again) == len(imported)


@pytest.mark.parametrize("read", [bd_before_0_34, bd_0_34_to_0_50, br_newest_version])
def test_the_rules_tell_two_rows_of_an_id(read: Callable[[list[Row]], Rows]) -> None:
    old = {"id": "qb-1", "status": "open", "updated_at": "2024-12-14T10:30:00Z"}
    new = {"id": "qb-1", "status": "closed", "updated_at": "2024-12-14T10:31:00Z"}
    try:
        assert read([old, new])["qb-1"]["status"] == "open"
    except RefusedError as error:
        assert "issues.id" in str(error)
