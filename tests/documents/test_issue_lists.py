"""Issues from a code host or a table become rows, once, and follow what changes there."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenbee.documents.issue_lists.issue_table import as_csv
from queenbee.documents.issue_lists.list_import import Importing, import_issue_list
from queenbee.documents.issue_lists.listed import read_issue_list
from queenbee.documents.issue_rows import RowImport
from queenbee.documents.reconcile import LONGEST_ID, digits_for
from queenbee.errors import InvalidInput

NOW_MS = 1_770_458_400_000
URL = "https://github.com/o/r/issues/9"
ISSUE = {
    "number": 9,
    "title": "Login\nfails",
    "body": "It says 500.",
    "state": "OPEN",
    "labels": [{"id": "x", "name": "bug"}, {"name": "P1"}],
    "assignees": [{"login": "ann"}, {"login": "bob"}],
    "url": URL,
    "createdAt": "2026-01-02T03:04:05Z",
    "updatedAt": "2026-01-03T00:00:00Z",
}


def imported(
    entries: list[dict[str, Any]] | str, rows: list[dict[str, Any]] | None = None
) -> RowImport:
    text = entries if isinstance(entries, str) else json.dumps(entries)
    listed = read_issue_list(text.encode())
    return import_issue_list(listed, rows or [], Importing("qb", "ann", NOW_MS))


def row_of(found: RowImport) -> dict[str, Any]:
    (change,) = found.changes
    return change.row


class TestAList:
    def test_of_gh_becomes_rows_as_beads_writes_them(self) -> None:
        row = row_of(imported([ISSUE]))
        assert row["id"].startswith("qb-")
        assert (row["title"], row["description"]) == ("Login fails", "It says 500.")
        assert (row["external_ref"], row["issue_type"], row["priority"]) == (URL, "bug", 1)
        assert (row["labels"], row["assignee"], row["status"]) == (["bug", "P1"], "ann", "open")
        assert row["created_at"] == "2026-01-02T03:04:05.000Z"
        assert row["updated_at"] > row["created_at"]

    @pytest.mark.parametrize(
        ("labels", "priority"),
        [
            (["priority: high"], 1),
            (["Priority/Critical"], 0),
            (["priority:low"], 3),
            (["priority::1"], 1),
            (["prio-lowest"], 4),
            (["P: medium", "p0"], 2),
            (["p3"], 3),
            (["priority: none", "priority: soon", "P1"], 1),
            (["2", "high", "p-high", "priority", "prioritize", "p: x", "pr: high"], 2),
        ],
    )
    def test_takes_its_priority_from_labels(self, labels: list[str], priority: int) -> None:
        row = row_of(imported([{**ISSUE, "labels": [{"name": each} for each in labels]}]))
        assert (row["priority"], row["labels"]) == (priority, labels)

    def test_makes_the_same_ids_in_every_clone(self) -> None:
        assert row_of(imported([ISSUE]))["id"] == row_of(imported([{**ISSUE, "title": "x"}]))["id"]

    def test_that_was_imported_changes_nothing(self) -> None:
        row = row_of(imported([ISSUE]))
        assert [each.kind for each in imported([ISSUE], [row]).changes] == ["keep"]
        edited = {**row, "title": "Edited here"}
        assert row_of(imported([ISSUE], [edited]))["title"] == "Edited here"

    def test_that_changed_changes_the_row(self) -> None:
        row = row_of(imported([ISSUE]))
        older = {**ISSUE, "title": "Old", "updatedAt": "2026-01-02T00:00:00Z"}
        assert row_of(imported([older], [row])) == row
        later = {**ISSUE, "title": "New", "updatedAt": "2026-01-04T00:00:00Z"}
        changed = row_of(imported([later], [{**row, "design": "kept"}]))
        assert (changed["title"], changed["design"], changed["id"]) == ("New", "kept", row["id"])
        assert changed["updated_at"] > row["updated_at"]

    def test_closes_and_never_opens(self) -> None:
        row = row_of(imported([ISSUE]))
        closed = {**ISSUE, "state": "CLOSED", "updatedAt": "2026-01-05T00:00:00Z"}
        closed["closedAt"] = "2026-01-05T00:00:00Z"
        done = row_of(imported([closed], [row]))
        assert (done["status"], done["closed_at"]) == ("closed", "2026-01-05T00:00:00.000Z")
        again = {**ISSUE, "updatedAt": "2026-01-06T00:00:00Z"}
        assert row_of(imported([again], [done]))["status"] == "closed"

    def test_leaves_a_deleted_issue_deleted(self) -> None:
        row = {**row_of(imported([ISSUE])), "status": "tombstone"}
        assert row_of(imported([{**ISSUE, "updatedAt": "2027-01-01T00:00:00Z"}], [row])) == row

    def test_may_know_only_the_number(self) -> None:
        row = row_of(imported([{"number": 9, "title": "x"}]))
        assert row["external_ref"] == "gh-9"
        both = row_of(imported([{"number": 9, "url": URL, "title": "x"}], [row]))
        assert both == {**row, "external_ref": URL, "updated_at": both["updated_at"]}

    @pytest.mark.parametrize("at_once", [False, True])
    def test_of_another_repository_is_not_found_by_its_number(self, at_once: bool) -> None:
        row = row_of(imported([{"number": 9, "title": "x"}]))
        lists = [
            [{"number": 9, "url": URL, "title": "x"}],
            [{"number": 9, "url": "https://github.com/o/other/issues/9", "title": "other"}],
        ]
        if at_once:
            changes = imported([*lists[0], *lists[1]], [row]).changes
        else:
            row = row_of(imported(lists[0], [row]))
            changes = imported(lists[1], [row]).changes
        assert changes[-1].kind == "add"
        assert changes[-1].row["id"] != row["id"]

    def test_may_be_a_table(self) -> None:
        text = '\ufeffNumber,Title,Status,Labels,Priority\r\n#12,"a, b",Done,"ui; P3",0\r\n'
        row = row_of(imported(text))
        assert (row["external_ref"], row["title"]) == ("gh-12", "a, b")
        assert (row["status"], row["labels"], row["priority"]) == ("closed", ["ui", "P3"], 0)

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("[", "no list of issues"),
            ("", "it is empty"),
            ("the log of a build", "no item such as .* and no columns"),
            ("[5]", "is not a JSON object"),
            ('[{"number": 1}]', "entry 1 of the list has no title"),
            ('[{"title": "x"}]', "neither a number nor an address"),
            ('[{"title": "x", "number": 1}, {"title": "y", "number": 1}]', "gh-1 2 times"),
            ("name,number\nx,1\n", "no column title"),
        ],
    )
    def test_that_cannot_be_used_is_refused(self, text: str, why: str) -> None:
        with pytest.raises(InvalidInput, match=why):
            imported(text)

    def test_may_be_empty(self) -> None:
        assert imported("[]").changes == ()

    def test_may_have_long_texts(self) -> None:
        text = "a" * 200_000
        assert row_of(imported(f"title,number,body\nx,1,{text}\n"))["description"] == text

    @pytest.mark.parametrize("title", ["=1+1", "+1", "-1", "@SUM(1)", "'=1", "''-1"])
    def test_has_no_formula_and_is_read_as_it_was(self, title: str) -> None:
        row = {"id": "qb-1", "title": title, "description": "a\rb", "updated_at": "2026-01-01"}
        listed = as_csv([row])
        (cells,) = csv.DictReader(io.StringIO(listed, newline=""))
        assert cells["title"] == f"'{title}"
        assert cells["description"] == "a\rb"
        assert [each.kind for each in imported(listed, [row]).changes] == ["keep"]


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.from_regex(r"qb-[a-z0-9]{3,6}", fullmatch=True),
            "title": st.text(min_size=1).filter(lambda text: text.strip() != ""),
            "description": st.text(),
            "labels": st.lists(st.sampled_from(["ui", "api"]), max_size=2),
            "status": st.sampled_from(["open", "closed"]),
            "priority": st.integers(0, 4),
        }
    ),
    max_size=4,
    unique_by=lambda row: row["id"],
)


@given(ROWS)
def test_what_is_exported_and_imported_again_changes_nothing(rows: list[dict[str, Any]]) -> None:
    at = "2026-01-01T00:00:00Z"
    rows = [{**row, "title": " ".join(row["title"].split()), "updated_at": at} for row in rows]
    rows = [row for row in rows if row["title"].isprintable()]
    found = imported(as_csv(rows), rows)
    fields = ("id", "title", "description", "labels", "priority")
    assert [[each.row.get(name) for name in fields] for each in found.changes] == [
        [row.get(name) for name in fields] for row in rows
    ]
    assert {each.kind for each in found.changes} <= {"keep"}


@given(st.integers(0, 1_000_000))
def test_ids_grow_with_the_number_of_issues(count: int) -> None:
    digits = digits_for(count)
    assert 6 <= digits <= LONGEST_ID
    assert digits_for(count + 1) >= digits
    if digits < LONGEST_ID:
        assert count**2 / (2 * 36**digits) <= 1e-5
