"""Each source's export is known by its shape and read in its own words; the rest is counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from queenbee.core.beads import read_rows
from queenbee.core.readiness import standings
from queenbee.documents.issue_lists.folders import read_issue_folder
from queenbee.documents.issue_lists.issue_table import as_csv, left_out
from queenbee.documents.issue_lists.list_import import Importing, import_issue_list, list_summary
from queenbee.documents.issue_lists.listed import IssueList, read_issue_list
from queenbee.documents.issue_rows import RowImport
from queenbee.errors import InvalidInput

NOW_MS = 1_770_458_400_000
Row = dict[str, Any]


def taken(
    listed: IssueList, rows: Sequence[Row] = (), *, complete: bool = False, at_ms: int = NOW_MS
) -> RowImport:
    return import_issue_list(listed, rows, Importing("qb", "ann", at_ms, complete=complete))


def read(text: str | object, **how: Any) -> IssueList:
    data = text if isinstance(text, str) else json.dumps(text)
    return read_issue_list(data.encode(), **how)


def rows_of(text: str | object, **how: Any) -> dict[str, Row]:
    """The rows that a list makes, by title."""
    found = taken(read(text, **how))
    return {change.row["title"]: change.row for change in found.changes}


def ready(rows: dict[str, Row]) -> set[str]:
    """The titles of what an agent could take."""
    issues = read_rows(rows.values())
    found = standings(issues, holders={}, now_ms=NOW_MS, held_back={})
    return {each.issue.title for each in found.values() if each.state == "ready"}


def needs(rows: dict[str, Row], title: str) -> list[tuple[str, str]]:
    """What an issue depends on, by title, with the kinds."""
    titles = {row["id"]: name for name, row in rows.items()}
    return sorted(
        (titles[each["depends_on_id"]], each["type"]) for each in rows[title]["dependencies"]
    )


def warnings(listed: IssueList) -> dict[str, str]:
    parts = (each.message.split(": ", 1) for each in listed.findings())
    return dict(parts)  # type: ignore[arg-type]


LINEAR_CSV = """\
ID,Team,Title,Description,Status,Estimate,Priority,Project ID,Project,Creator,Assignee,Labels,\
Cycle Number,Cycle Name,Cycle Start,Cycle End,Created,Updated,Started,Triaged,Completed,Canceled,\
Archived,Due Date,Parent issue,Initiatives,UUID,Related to,Blocked by,Duplicate of
CLA-1,Claw,Login,Text,Backlog,3,Urgent,p,Shop,a@x.org,,"Bug, ui",,,,,2024-05-14T08:53:33Z,\
2024-05-23T16:06:19Z,,,,,,2026-03-01,,,u-1,,,
CLA-2,Claw,Old,,Canceled,,High,,,,,,,,,,2024-05-14T08:53:33Z,2024-05-23T16:06:19Z,,,,\
2024-05-23T16:06:19Z,,,,,u-2,,,
CLA-3,Claw,Copy,,Duplicate,,No priority,,,,,,,,,,,,,,,,,,,,u-3,,,CLA-1
CLA-4,Claw,Begun,,In Progress,,Low,,,,,,,,,,,,,,,,,,,,u-4,,,
CLA-5,Claw,Review,,In Review,,,,,,,,,,,,,,,,,,,,CLA-1,,u-5,,"CLA-1, CLA-4",
CLA-6,Claw,Asked,,Waiting for legal,,,,,,,,,,,,\
Wed Oct 04 2023 14:44:12 GMT+0000 (GMT),,,,,,,,,,u-6,,,
CLA-7,Claw,Shipped,,Released,,,,,,,,,,,,,,,,2024-05-23T16:06:19Z,,,,,,u-7,,,
"""


class TestLinear:
    def test_table_is_known_and_read_in_its_words(self) -> None:
        listed = read(LINEAR_CSV)
        assert list_summary(listed) == "Linear export, 7 issues"
        rows = rows_of(LINEAR_CSV)
        login = rows["Login"]
        assert (login["external_ref"], login["priority"], login["issue_type"]) == (
            "linear:CLA-1", 0, "bug",
        )  # fmt: skip
        assert (login["labels"], login["status"]) == (["Bug", "ui"], "open")
        assert login["created_at"] == "2024-05-14T08:53:33.000Z"
        assert login["due_at"] == "2026-03-01T00:00:00.000Z"
        assert [rows[name]["priority"] for name in ("Old", "Copy", "Begun")] == [1, 2, 3]

    def test_what_nobody_will_do_is_closed_with_its_word(self) -> None:
        rows = rows_of(LINEAR_CSV)
        assert (rows["Old"]["status"], rows["Old"]["close_reason"]) == ("closed", "canceled")
        assert rows["Old"]["closed_at"] == "2024-05-23T16:06:19.000Z"
        assert (rows["Copy"]["status"], rows["Copy"]["close_reason"]) == ("closed", "duplicate")
        assert (rows["Shipped"]["status"], rows["Shipped"].get("close_reason")) == ("closed", None)

    def test_only_what_is_to_do_is_ready(self) -> None:
        rows = rows_of(LINEAR_CSV)
        assert ready(rows) == {"Login"}
        assert rows["Begun"]["status"] == "in_progress"
        assert rows["Review"]["status"] == "in_review"

    def test_dependencies_and_parents_are_kept(self) -> None:
        rows = rows_of(LINEAR_CSV)
        assert needs(rows, "Review") == [
            ("Begun", "blocks"), ("Login", "blocks"), ("Login", "parent-child"),
        ]  # fmt: skip

    def test_what_is_not_understood_is_counted_by_name(self) -> None:
        found = warnings(read(LINEAR_CSV))
        assert found["states not known, kept on hold"] == "Waiting for legal (1)"
        assert found["not imported"] == "estimate (1), project (1), duplicate of (1)"
        assert rows_of(LINEAR_CSV)["Asked"]["status"] == "waiting_for_legal"
        (stuck,) = [
            each.message for each in taken(read(LINEAR_CSV)).findings if "parts" in each.message
        ]
        assert stuck.endswith("so neither can begin: linear:CLA-5")

    def test_a_table_is_one_whatever_its_cells_hold(self) -> None:
        for text in ("- [ ] One", "x 2026-01-01 Done", "(A) Call"):
            table = LINEAR_CSV.replace("Login,Text", f'Login,"See:\n{text}\nend"')
            assert list_summary(read(table)) == "Linear export, 7 issues"
            assert rows_of(table)["Login"]["description"] == f"See:\n{text}\nend"
            own = f'title,key\n"a\n{text}",T-1\n'
            assert list_summary(read(own)) == "list, 1 issue"

    def test_a_state_is_what_somebody_says(self) -> None:
        rows = rows_of(LINEAR_CSV, mapped=["Waiting for legal=open"])
        assert rows["Asked"]["status"] == "open"
        with pytest.raises(InvalidInput, match="does not end with a field"):
            read(LINEAR_CSV, mapped=["Waiting for legal=soon"])

    def test_json_has_relations_and_numbers_for_priorities(self) -> None:
        node = {
            "id": "u", "identifier": "CLA-1", "title": "A", "priority": 1,
            "url": "https://linear.app/claw/issue/CLA-1", "labels": {"nodes": [{"name": "Bug"}]},
            "state": {"name": "Shaping", "type": "unstarted"}, "assignee": {"name": "ann"},
            "relations": {"nodes": [{"type": "blocks", "relatedIssue": {"identifier": "CLA-2"}}]},
            "createdAt": "2026-01-02T03:04:05.678Z", "updatedAt": "2026-01-03T03:04:05.678Z",
        }  # fmt: skip
        other = {"identifier": "CLA-2", "title": "B", "priority": 0, "state": {"type": "canceled"},
                 "parent": {"identifier": "CLA-1"}}  # fmt: skip
        rows = rows_of({"data": {"issues": {"nodes": [node, other]}}})
        assert (rows["A"]["priority"], rows["A"]["status"]) == (0, "open")
        assert (rows["A"]["issue_type"], rows["A"]["assignee"]) == ("bug", "ann")
        assert (rows["B"]["priority"], rows["B"]["close_reason"]) == (2, "canceled")
        assert needs(rows, "B") == [("A", "blocks"), ("A", "parent-child")]
        assert rows["B"]["external_ref"] == "linear:CLA-2"


JIRA_CSV = """\
Summary,Issue key,Issue id,Issue Type,Status,Project key,Priority,Resolution,Assignee,Created,\
Updated,Resolved,Labels,Labels,Description,Parent,Parent key,Parent summary,\
Inward issue link (Blocks),Inward issue link (Blocks),Outward issue link (Blocks),Comment,Sprint,\
Status Category
Shop,P-1,101,Epic,In Progress,P,Highest,,"Roe, Ann",14/Jul/25 3:42 PM,\
14/Jul/25 3:42 PM,,,,,,,,,,,,,\
In Progress
Pay,P-2,102,Story,To Do,P,Medium,,,14/Jul/25 3:42 PM,15/Jul/25 3:42 PM,,ui,api,Text,101,P-1,Shop,\
P-3,P-9,,14/Jul/25 4:00 PM;ann;Ask; then act,Sprint 2,To Do
Bank,P-3,103,Bug,Done,P,Lowest,Won't Do,,,,15/Jul/25 9:00 AM,,,,,,,,,P-4,,,Done
Books,P-4,104,Sub-task,Ready to merge,P,Wish,,,,,,,,,102,P-2,Pay,,,,,,In Progress
"""


class TestJira:
    def test_table_with_columns_that_repeat(self) -> None:
        assert list_summary(read(JIRA_CSV)) == "Jira export, 4 issues"
        rows = rows_of(JIRA_CSV)
        assert rows["Pay"]["labels"] == ["ui", "api"]
        assert needs(rows, "Pay") == [("Bank", "blocks"), ("Shop", "parent-child")]
        assert needs(rows, "Books") == [("Bank", "blocks"), ("Pay", "parent-child")]
        assert rows["Shop"]["assignee"] == "Roe, Ann"
        kinds = [rows[name]["issue_type"] for name in ("Shop", "Pay", "Bank", "Books")]
        assert kinds == ["epic", "feature", "bug", "task"]
        assert rows["Pay"]["created_at"] == "2025-07-14T15:42:00.000Z"
        assert rows["Pay"]["comments"] == [
            {"author": "ann", "text": "Ask; then act", "created_at": "2025-07-14T16:00:00.000Z"}
        ]

    def test_an_older_table_calls_the_key_in_one_word(self) -> None:
        assert rows_of(JIRA_CSV.replace("Issue key", "Issuekey")) == rows_of(JIRA_CSV)

    def test_its_states_and_resolutions(self) -> None:
        rows = rows_of(JIRA_CSV)
        assert (rows["Bank"]["status"], rows["Bank"]["close_reason"]) == ("closed", "won't do")
        # Its category says what its own word does not.
        assert rows["Books"]["status"] == "in_progress"
        assert [row["priority"] for row in rows.values()] == [0, 2, 4, 2]

    def test_what_it_names_and_nobody_has_is_said(self) -> None:
        found = taken(read(JIRA_CSV))
        messages = [each.message for each in found.findings]
        assert "not imported: sprint (1)" in messages
        assert "priorities not known: Wish (1)" in messages
        assert any(each.endswith("neither in the list nor here: P-9") for each in messages)

    def test_json_of_a_search(self) -> None:
        prose = {"type": "doc", "content": [
            {"type": "paragraph", "content": [{"type": "text", "text": "One"}]},
            {"type": "paragraph", "content": [{"type": "text", "text": "Two"}]},
        ]}  # fmt: skip
        fields = {
            "summary": "Pay", "description": prose, "priority": {"name": "High"},
            "status": {"name": "Cooking", "statusCategory": {"key": "indeterminate"}},
            "issuetype": {"name": "Bug"}, "labels": ["ui"], "parent": {"key": "P-9"},
            "issuelinks": [{"type": {"name": "Blocks"}, "inwardIssue": {"key": "P-3"}}],
            "created": "2025-07-14T15:42:00.000+0200",
        }  # fmt: skip
        bank = {"summary": "Bank", "status": {"name": "To Do"}, "resolution": None}
        issues = [{"id": "1", "key": "P-2", "fields": fields}, {"key": "P-3", "fields": bank}]
        rows = rows_of({"startAt": 0, "issues": issues})
        assert rows["Pay"]["description"] == "One\nTwo"
        assert (rows["Pay"]["status"], rows["Pay"]["priority"]) == ("in_progress", 1)
        assert rows["Pay"]["external_ref"] == "jira:P-2"
        assert rows["Pay"]["created_at"] == "2025-07-14T13:42:00.000Z"
        assert needs(rows, "Pay") == [("Bank", "blocks")]


class TestCodeHosts:
    def test_gitlab_is_known_by_its_own_number_and_address(self) -> None:
        entry = {
            "id": 76, "iid": 6, "project_id": 4, "title": "Pipes", "state": "opened",
            "web_url": "https://gitlab.com/g/p/-/issues/6", "labels": ["bug"], "weight": 3,
            "issue_type": "issue", "assignees": [{"username": "ann"}], "type": "ISSUE",
            "updated_at": "2026-01-04T15:31:51.081Z", "milestone": {"title": "v1"},
        }  # fmt: skip
        listed = read([entry, {**entry, "id": 77, "iid": 7, "title": "Two", "state": "closed",
                               "web_url": "https://gitlab.com/g/p/-/issues/7"}])  # fmt: skip
        assert list_summary(listed) == "GitLab export, 2 issues"
        assert warnings(listed) == {"not imported": "weight (2), milestone (2)"}
        assert "--map 'NAME=labels'" in str(listed.findings()[0].hint)
        mapped = read_issue_list(json.dumps([entry]).encode(), mapped=["milestone=labels"])
        assert [each.fields["labels"] for each in mapped.issues] == [["v1", "bug"]]
        pipes, two = (change.row for change in taken(listed).changes)
        assert pipes["external_ref"] == "https://gitlab.com/g/p/-/issues/6"
        assert (pipes["status"], two["status"], pipes["assignee"]) == ("open", "closed", "ann")
        assert not any("76" in ref for each in listed.issues for ref in each.refs)

    def test_gitlab_has_a_table(self) -> None:
        text = ("Title,Description,Issue ID,URL,State,Author,Assignee,Due Date,Created At (UTC),"
                "Labels\nPipes,,6,https://gitlab.com/g/p/-/issues/6,Closed,Ann,Bob,,"
                "2024-01-01 10:00:00,\"a,b\"\n")  # fmt: skip
        assert list_summary(read(text)) == "GitLab export, 1 issue"
        row = rows_of(text)["Pipes"]
        assert (row["status"], row["labels"]) == ("closed", ["a", "b"])
        assert row["created_at"] == "2024-01-01T10:00:00.000Z"

    def test_a_page_of_github_leaves_its_pull_requests_out(self) -> None:
        page = {
            "number": 9, "title": "A", "body": None, "state": "closed", "node_id": "x",
            "state_reason": "not_planned", "html_url": "https://github.com/o/r/issues/9",
            "url": "https://api.github.com/repos/o/r/issues/9", "comments": 3, "user": {},
            "labels": [{"name": "P1"}], "closed_at": "2026-01-05T00:00:00Z",
        }  # fmt: skip
        request = {**page, "number": 10, "pull_request": {"url": "x"}, "draft": False}
        listed = read([page, request])
        assert list_summary(listed) == "GitHub list, 1 issue"
        assert warnings(listed) == {"left out": "pull requests (1)"}
        row = taken(listed).changes[0].row
        assert (row["external_ref"], row["close_reason"]) == (page["html_url"], "not planned")
        assert (row["description"], row["priority"]) == ("", 1)

    def test_pages_that_follow_each_other_are_one_list(self) -> None:
        pages = [json.dumps([{"number": n, "title": f"{n} ] ["}], indent=1) for n in (1, 2)]
        assert [each.title for each in read("\n".join(pages)).issues] == ["1 ] [", "2 ] ["]
        with pytest.raises(InvalidInput, match=r"value 2 is not JSON: .*line 1"):
            read(pages[0] + "[{")

    def test_the_same_issue_on_two_pages_is_one(self) -> None:
        issue = {"number": 1, "title": "A"}
        listed = read([issue, {"number": 2, "title": "B"}, issue])
        assert [each.title for each in listed.issues] == ["A", "B"]
        assert warnings(listed) == {"left out": "the same issue again (1)"}

    def test_github_has_parents_and_blockers(self) -> None:
        def issue(number: int, **more: Any) -> Row:
            url = f"https://github.com/o/r/issues/{number}"
            return {"number": number, "title": f"#{number}", "state": "OPEN", "url": url, **more}

        of = {"nodes": [{"number": 1, "url": "https://github.com/o/r/issues/1"}], "totalCount": 1}
        none = {"nodes": [], "totalCount": 0}
        rows = rows_of([
            issue(1, blockedBy=none), issue(2, blockedBy=of, issueType={"name": "Feature"}),
            issue(3, parent={"number": 2}), issue(4, blocking=of, stateReason=""),
        ])  # fmt: skip
        assert needs(rows, "#2") == [("#1", "blocks")]
        assert rows["#2"]["issue_type"] == "feature"
        assert needs(rows, "#3") == [("#2", "parent-child")]
        assert needs(rows, "#1") == [("#4", "blocks")]

    def test_gitea_and_its_client(self) -> None:
        page = {"id": 5, "number": 2, "title": "A", "original_author": "", "state": "open",
                "html_url": "https://gitea.com/o/r/issues/2", "repository": {}}  # fmt: skip
        assert list_summary(read([page])) == "Gitea export, 1 issue"
        assert rows_of([page])["A"]["external_ref"] == page["html_url"]
        client = {"index": "2", "title": "A", "state": "closed", "author": "z",
                  "url": "https://gitea.com/o/r/issues/2"}  # fmt: skip
        assert rows_of([client])["A"]["external_ref"] == page["html_url"]
        assert rows_of([client])["A"]["status"] == "closed"

    def test_a_project_of_github_with_tabs_and_as_json(self) -> None:
        table = ("Title\tURL\tAssignees\tStatus\tLabels\n"
                 "A\thttps://github.com/o/r/issues/1\tann\tIn progress\tui, bug\n"
                 "Idea\t\t\tTodo\t\n")  # fmt: skip
        assert list_summary(read(table)) == "GitHub project, 2 issues"
        rows = rows_of(table)
        assert (rows["A"]["status"], rows["A"]["assignee"]) == ("in_progress", "ann")
        assert rows["Idea"]["external_ref"].startswith("github-project:draft")
        item = {"id": "PVTI_x", "title": "A", "status": "Done", "content": {
            "type": "Issue", "number": 1, "url": "https://github.com/o/r/issues/1", "body": "B",
        }}  # fmt: skip
        found = rows_of({"items": [item], "totalCount": 1})["A"]
        assert (found["external_ref"], found["status"]) == (rows["A"]["external_ref"], "closed")
        assert found["description"] == "B"


class TestBoards:
    def test_trello(self) -> None:
        board = {
            "name": "Shop", "lists": [{"id": "l1", "name": "To Do"}, {"id": "l2", "name": "Ideas"}],
            "cards": [
                {"id": "c1", "shortLink": "Ab", "shortUrl": "https://trello.com/c/Ab",
                 "name": "Pay", "desc": "Text", "idList": "l1", "labels": [{"color": "red"}],
                 "idMembers": ["m1"], "dateLastActivity": "2026-01-02T00:00:00.000Z"},
                {"id": "c2", "shortLink": "Cd", "name": "Old", "idList": "l1", "closed": True,
                 "dateLastActivity": "2026-01-02T00:00:00.000Z"},
                {"id": "c3", "shortLink": "Ef", "name": "Idea", "idList": "l2"},
                {"id": "c4", "shortLink": "Gh", "name": "Done", "idList": "l2",
                 "dueComplete": True},
            ],
            "members": [{"id": "m1", "username": "ann"}],
            "checklists": [{"idCard": "c1", "checkItems": [{"name": "form", "state": "complete"}]}],
            "actions": [{"type": "commentCard", "date": "2026-01-02T00:00:00.000Z",
                         "data": {"text": "Now", "card": {"id": "c1"}},
                         "memberCreator": {"username": "bob"}}],
        }  # fmt: skip
        assert list_summary(read(board)) == "Trello board, 4 issues"
        rows = rows_of(board)
        assert (rows["Pay"]["labels"], rows["Pay"]["assignee"]) == (["red"], "ann")
        assert rows["Pay"]["acceptance_criteria"] == "- [x] form"
        assert rows["Pay"]["comments"][0]["text"] == "Now"
        assert (rows["Old"]["status"], rows["Old"]["close_reason"]) == ("closed", "archived")
        assert (rows["Idea"]["status"], rows["Done"]["status"]) == ("ideas", "closed")
        assert ready(rows) == {"Pay"}

    def test_task_master_with_tags_and_subtasks(self) -> None:
        tasks = [
            {"id": 1, "title": "Base", "status": "done", "priority": "high", "dependencies": []},
            {"id": 2, "title": "API", "status": "pending", "priority": "low", "dependencies": [1],
             "details": "How", "testStrategy": "Run it", "subtasks": [
                {"id": 1, "title": "Route", "status": "pending", "dependencies": []},
                {"id": 2, "title": "Auth", "status": "pending", "dependencies": [1, "3"]},
                {"id": 3, "title": "Keys", "status": "review", "dependencies": ["1.1"]},
            ]},
            {"id": 3, "title": "Gone", "status": "cancelled", "dependencies": [2]},
            {"id": 4, "title": "Later", "status": "deferred", "dependencies": ["2.2"]},
        ]  # fmt: skip
        text = {"master": {"tasks": tasks, "metadata": {}}, "v2": {"tasks": [
            {"id": 1, "title": "Other", "status": "pending", "dependencies": []}]}}  # fmt: skip
        assert list_summary(read(text)) == "Task Master file, 8 issues"
        rows = rows_of(text)
        assert [rows["Base"]["priority"], rows["API"]["priority"]] == [1, 3]
        assert (rows["API"]["design"], rows["API"]["acceptance_criteria"]) == ("How", "Run it")
        assert needs(rows, "API") == [("Base", "blocks")]
        assert needs(rows, "Auth") == [
            ("API", "parent-child"),
            ("Keys", "blocks"),
            ("Route", "blocks"),
        ]
        assert needs(rows, "Later") == [("Auth", "blocks")]
        assert (rows["Gone"]["close_reason"], rows["Later"]["status"]) == ("cancelled", "deferred")
        assert rows["Other"]["labels"] == ["v2"]
        assert rows["Other"]["external_ref"] == "taskmaster:v2/1"
        assert ready(rows) == {"API", "Route", "Other"}
        assert rows_of({"tasks": tasks})["API"]["external_ref"] == "taskmaster:master/2"

    def test_task_master_by_the_list_of_one_tag(self) -> None:
        tasks = [{"id": 1, "title": "A", "status": "done", "testStrategy": "", "dependencies": []},
                 {"id": 2, "title": "B", "status": "pending", "testStrategy": "Run it",
                  "dependencies": [1]}]  # fmt: skip
        assert list_summary(read(tasks)) == "Task Master file, 2 issues"
        assert needs(rows_of(tasks), "B") == [("A", "blocks")]

    def test_keys_that_several_tasks_have_are_said(self) -> None:
        tasks = [{"id": 1, "title": name, "status": "pending", "dependencies": []}
                 for name in ("A", "B", "B")]  # fmt: skip
        listed = read({"master": {"tasks": tasks}})
        assert warnings(listed) == {
            "keys that several issues have": "taskmaster:master/1 (2)",
            "left out": "the same issue again (1)",
        }
        first = [each.refs for each in listed.issues]
        assert [each.title for each in listed.issues] == ["A", "B"]
        assert [each.refs for each in read({"tasks": tasks}).issues] == first


class TestTexts:
    def test_a_check_list_has_parents_and_no_code(self) -> None:
        text = "# Shop\n- [ ] Pay\n  by card\n  - [x] Form\n* [-] Ship\n```\n- [ ] not this\n```\n"
        listed = read(text, name="TODO.md")
        assert list_summary(listed) == "Markdown check list, 3 issues"
        rows = rows_of(text, name="TODO.md")
        assert rows["Pay"]["description"] == "by card\n\nFrom TODO.md, Shop."
        assert needs(rows, "Form") == [("Pay", "parent-child")]
        states = {name: row["status"] for name, row in rows.items()}
        assert states == {"Pay": "open", "Form": "closed", "Ship": "in_progress"}
        assert rows["Pay"]["external_ref"].startswith("markdown:TODO.md#")

    def test_the_same_item_below_two_headings_is_two(self) -> None:
        text = "# One\n- [ ] Test\n# Two\n- [ ] Test\n- [ ] Test\n"
        refs = [each.refs[0] for each in read(text).issues]
        assert len({*refs}) == 3
        assert [each.refs[0] for each in read(text.replace("Two", "Two ")).issues] == refs

    def test_spec_kit_waits_as_it_has_its_tasks_done(self) -> None:
        text = (
            "## Phase 1: Setup\n- [x] T001 Make it\n- [ ] T002 [P] Lint\n- [ ] T003 [P] Test\n"
            "## Phase 2: Foundation\n- [ ] T004 Schema\n"
            "## Phase 3: Story 1\n- [ ] T005 [P] [US1] Model\n- [ ] T006 [US1] Service\n"
            "## Phase 4: Story 2\n- [ ] T007 [US2] Page in src/page.py\n"
            "## Phase 5: Polish\n- [ ] T008 [P] Docs\n"
        )
        listed = read(text, name="specs/1/tasks.md")
        assert list_summary(listed) == "spec-kit tasks, 8 issues"
        rows = rows_of(text, name="specs/1/tasks.md")
        blocked = {name: [one for one, _ in needs(rows, name)] for name in rows}
        assert blocked == {
            "Make it": [], "Lint": ["Make it"], "Test": ["Make it"], "Schema": ["Lint", "Test"],
            "Model": ["Schema"], "Service": ["Model"], "Page in src/page.py": ["Schema"],
            "Docs": ["Page in src/page.py", "Schema", "Service"],
        }  # fmt: skip
        assert rows["Model"]["labels"] == ["US1"]
        assert ready(rows) == {"Lint", "Test"}

    def test_kiro_has_numbers(self) -> None:
        text = ("- [ ] 1. Set up\n- [x] 1.1 Make folders\n  - _Requirements: 1.1, 2_\n"
                "- [ ]* 2. Test\n")  # fmt: skip
        assert list_summary(read(text, name="t.md")) == "Kiro tasks, 3 issues"
        rows = rows_of(text, name="t.md")
        assert needs(rows, "1.1 Make folders") == [("1. Set up", "parent-child")]
        assert rows["2. Test"]["external_ref"] == "kiro:t.md#2"

    def test_todo_txt(self) -> None:
        text = ("(A) 2026-01-02 Call the bank +shop @phone due:2026-02-01\n"
                "x 2026-01-05 2026-01-01 Write id:7\n(Z) Someday https://a.b/c\n")  # fmt: skip
        assert list_summary(read(text, name="todo.txt")) == "todo.txt, 3 issues"
        first, second, third = rows_of(text, name="todo.txt").values()
        assert (first["priority"], first["labels"]) == (0, ["shop", "phone"])
        assert first["due_at"] == "2026-02-01T00:00:00.000Z"
        assert (second["status"], second["closed_at"]) == ("closed", "2026-01-05T00:00:00.000Z")
        assert second["external_ref"] == "todo:todo.txt#7"
        assert third["priority"] == 4

    @pytest.mark.parametrize(
        "text", ["2026-01-02 Call the bank, again\n", "Call the bank, again\nWrite +shop\n"]
    )
    def test_todo_txt_of_tasks_that_are_neither_done_nor_urgent(self, text: str) -> None:
        listed = read(text, name=".todo/todo.txt")
        assert list_summary(listed).startswith("todo.txt, ")
        assert {row["status"] for row in rows_of(text, name="todo.txt").values()} == {"open"}
        for name, prose in (("notes.txt", text), ("todo.txt", "Moving with keys, mail a@b.org\n")):
            with pytest.raises(InvalidInput):
                read(prose, name=name)

    def test_a_folder_of_backlog_md(self, tmp_path: Path) -> None:
        folder = tmp_path / "backlog" / "tasks"
        folder.mkdir(parents=True)
        (folder / "task-1 - Base.md").write_text(
            "---\nid: TASK-1\ntitle: >-\n  A long\n  title\nstatus: Done\nlabels: []\n---\n"
        )
        (folder / "task-2 - API.md").write_text(
            "---\nid: BACK-2\ntitle: 'API: one'\nstatus: To Do\nassignee:\n  - '@ann'\n"
            "created_date: '2026-06-15 02:43'\nlabels:\n  - ui\ndependencies:\n  - task-1\n"
            "priority: high\nordinal: 1000\nmilestone: m-1\n---\n\n## Description\n\n"
            "<!-- SECTION:DESCRIPTION:BEGIN -->\nText\n<!-- SECTION:DESCRIPTION:END -->\n\n"
            "## Acceptance Criteria\n<!-- AC:BEGIN -->\n- [ ] #1 It runs\n<!-- AC:END -->\n"
            "## Implementation Plan\n\nSteps\n"
        )
        (folder / "task-2.1 - Part.md").write_text(
            "---\nid: TASK-2.1\ntitle: Part\nassignee: [@ann, @bob]\nreporter: @eve\n"
            "status: Won't Do\nparent_task_id: TASK-2\n---## Description\n\nBody\n"
        )
        (folder / "readme.md").write_text("No task")
        for path in (tmp_path, tmp_path / "backlog", folder):
            listed = read_issue_folder(str(path))
            assert list_summary(listed) == "Backlog.md folder, 3 issues"
        assert warnings(listed) == {"not imported": "milestone (1)"}
        rows = {change.row["title"]: change.row for change in taken(listed).changes}
        api = rows["API: one"]
        assert (api["description"], api["design"]) == ("Text", "Steps")
        assert api["acceptance_criteria"] == "- [ ] #1 It runs"
        assert (api["priority"], api["created_at"]) == (1, "2026-06-15T02:43:00.000Z")
        assert needs(rows, "API: one") == [("A long title", "blocks")]
        assert needs(rows, "Part") == [("API: one", "parent-child")]
        assert (rows["Part"]["close_reason"], rows["Part"]["description"]) == ("won't do", "Body")

    def test_a_link_in_a_folder_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("---\nid: task-9\ntitle: Secret\nstatus: To Do\n---\n")
        folder = tmp_path / "clone" / "backlog" / "tasks"
        folder.mkdir(parents=True)
        (folder / "task-9 - x.md").symlink_to(tmp_path / "secret")
        with pytest.raises(InvalidInput, match="has no tasks of"):
            read_issue_folder(str(tmp_path / "clone"))


class TestOurOwn:
    ROWS = (
        {"id": "qb-1", "title": "A", "status": "closed", "close_reason": "done", "priority": 0,
         "issue_type": "epic", "created_at": "2026-01-01T00:00:00Z", "notes": "N",
         "updated_at": "2026-01-02T00:00:00Z", "labels": ["bug"], "x": {"y": 12345678901234567890}},
        {"id": "qb-2", "title": "B", "status": "in_review", "priority": 3, "issue_type": "task",
         "updated_at": "2026-01-02T00:00:00Z", "external_ref": "gh-9", "dependencies": [
             {"issue_id": "qb-2", "depends_on_id": "qb-1", "type": "parent-child"}]},
        {"id": "qb-3", "title": "C", "status": "tombstone", "issue_type": "task"},
    )  # fmt: skip

    @pytest.mark.parametrize("form", ["list", "lines", "br", "bd 2"])
    def test_comes_back_whole(self, form: str) -> None:
        text = {
            "list": json.dumps(self.ROWS),
            "lines": '{"_schema": "beads-jsonl/1"}\n{"_type": "memory", "key": "k"}\n'
            + "".join(json.dumps({**row, "_type": "issue"}) + "\n" for row in self.ROWS),
            "br": json.dumps({"issues": self.ROWS, "total": 3}),
            "bd 2": json.dumps({"schema_version": 1, "data": self.ROWS}),
        }[form]
        listed = read(text)
        assert list_summary(listed) == "Beads export, 3 issues"
        assert [change.row for change in taken(listed).changes] == [*self.ROWS]
        again = taken(listed, [dict(row) for row in self.ROWS])
        assert {change.kind for change in again.changes} == {"keep"}

    def test_changes_only_what_is_not_newer_here_and_opens_nothing(self) -> None:
        here = [{**self.ROWS[0], "title": "Mine", "updated_at": "2026-01-03T00:00:00Z"},
                {**self.ROWS[1], "status": "closed", "title": "Old"}]  # fmt: skip
        first, second, _ = taken(read(list(self.ROWS)), here).changes
        assert (first.kind, first.row["title"]) == ("keep", "Mine")
        assert (second.row["title"], second.row["status"]) == ("B", "closed")

    def test_takes_the_ids_that_its_issues_have_here(self) -> None:
        here = [{"id": "x-7", "title": "B", "external_ref": "gh-9", "updated_at": "2025-01-01"}]
        waiting = {"id": "qb-4", "title": "D", "issue_type": "task", "dependencies": ["qb-2"]}
        rows = [change.row for change in taken(read([*self.ROWS, waiting]), here).changes]
        assert [row["id"] for row in rows] == ["qb-1", "x-7", "qb-3", "qb-4"]
        assert rows[1]["dependencies"][0]["issue_id"] == "x-7"
        assert rows[3]["dependencies"] == ["x-7"]

    def test_does_not_change_the_checks_of_an_issue(self) -> None:
        here = {**self.ROWS[0], "dod": {"verifiers": [1]}, "metadata": {"dod": 2, "a": 1}}
        listed = read([{**self.ROWS[0], "title": "New", "dod": {}, "metadata": {}}])
        row = taken(listed, [here]).changes[0].row
        assert (row["title"], row["dod"], row["metadata"]) == (
            "New", here["dod"], here["metadata"],
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("here", "there"),
        [
            ({}, {"dod": {"verifiers": [1]}}),
            ({"metadata": {"a": 1}}, {"metadata": {"dod": 1}}),
            ({"metadata": {"qa_agents": [1], "branch": "a"}}, {"metadata": {"qa_agents": []}}),
            ({"metadata": {"qa_agents": [1], "branch": "a"}}, {"metadata": {"branch": "b"}}),
        ],
    )
    def test_gives_an_issue_no_checks_or_judges(
        self, here: dict[str, Any], there: dict[str, Any]
    ) -> None:
        listed = read([{**self.ROWS[0], "title": "New", **there}])
        row = taken(listed, [{**self.ROWS[0], **here}]).changes[0].row
        said = {name: row[name] for name in ("title", "dod", "metadata") if name in row}
        assert said == {"title": "New", **here}

    def test_as_a_table_keeps_ids_and_numbers(self) -> None:
        rows = [change.row for change in taken(read(as_csv(self.ROWS[:2]))).changes]
        assert [(row["id"], row["priority"], row["status"]) for row in rows] == [
            ("qb-1", 0, "closed"), ("qb-2", 3, "in_review"),
        ]  # fmt: skip
        lacks = {"close_reason": 1, "notes": 1, "x": 1, "dependencies": 1}
        assert left_out(self.ROWS) == lacks

    @pytest.mark.parametrize("identifier", ["--help", "two words", "a\x1b[1m"])
    def test_has_no_id_that_is_none(self, identifier: str) -> None:
        with pytest.raises(InvalidInput):
            taken(read([{**self.ROWS[0], "id": identifier}]))

    def test_rows_of_another_tracker_with_an_id_and_a_type_are_not_ours(self) -> None:
        text = "ID,Title,Issue_Type,Priority\nPRD-1,Pay,Bug,High\n"
        assert list_summary(read(text)) == "list, 1 issue"
        row = rows_of(text)["Pay"]
        assert (row["external_ref"], row["priority"], row["issue_type"]) == ("list:PRD-1", 1, "bug")
        plan = [{"id": "BL-1", "title": "Pay", "dependencies": ["BL-0"]}]
        assert list_summary(read(plan)) == "list, 1 issue"


class TestAgain:
    def test_only_what_changed_there_changes_here(self) -> None:
        rows = [change.row for change in taken(read(LINEAR_CSV)).changes]
        assert {change.kind for change in taken(read(LINEAR_CSV), rows).changes} == {"keep"}
        rows[0] = {**rows[0], "title": "Mine", "priority": 4}
        later = LINEAR_CSV.replace("Login,Text", "Login,More text")
        change = taken(read(later), rows).changes[0]
        assert [each.path for each in change.differences] == [
            "description", "metadata.source_fields.description",
        ] or "description" in [each.path for each in change.differences]  # fmt: skip
        assert (change.row["title"], change.row["priority"]) == ("Mine", 4)
        assert change.row["description"] == "More text"

    def test_what_is_closed_there_is_closed_here_and_never_opened_again(self) -> None:
        rows = [change.row for change in taken(read(LINEAR_CSV)).changes]
        done = LINEAR_CSV.replace("Login,Text,Backlog", "Login,Text,Done")
        closed = taken(read(done), rows).changes[0].row
        assert closed["status"] == "closed"
        again = taken(read(LINEAR_CSV), [closed, *rows[1:]]).changes[0].row
        assert again["status"] == "closed"

    def test_an_older_list_changes_nothing(self) -> None:
        rows = [change.row for change in taken(read(LINEAR_CSV)).changes]
        older = LINEAR_CSV.replace("2024-05-23T16:06:19Z", "2024-05-20T16:06:19Z")
        change = taken(read(older.replace("Login", "Older")), rows).changes[0]
        assert change.kind == "keep"

    def test_a_dependency_added_here_stays_and_one_removed_there_goes(self) -> None:
        rows = {change.row["title"]: change.row for change in taken(read(LINEAR_CSV)).changes}
        mine = {"issue_id": "x", "depends_on_id": "qb-else", "type": "blocks"}
        rows["Review"]["dependencies"].append(mine)
        later = LINEAR_CSV.replace('"CLA-1, CLA-4"', "CLA-4")
        found = taken(read(later), [*rows.values()])
        row = next(each.row for each in found.changes if each.row["title"] == "Review")
        begun = rows["Begun"]["id"]
        blocking = [
            each["depends_on_id"] for each in row["dependencies"] if each["type"] == "blocks"
        ]
        assert blocking == [begun, "qb-else"]

    def test_what_is_missing_is_said_and_closed_only_if_the_list_is_all(self) -> None:
        rows = [change.row for change in taken(read(LINEAR_CSV)).changes]
        mine = {"id": "qb-mine", "title": "Mine", "status": "open"}
        foreign = {**rows[0], "id": "qb-other", "external_ref": "linear:OPS-1"}
        short = "\n".join(line for line in LINEAR_CSV.split("\n") if not line.startswith("CLA-1,"))
        found = taken(read(short), [*rows, mine, foreign])
        assert found.orphans == (rows[0]["id"],)
        assert {change.kind for change in found.changes} == {"keep"}
        complete = taken(read(short), [*rows, mine, foreign], complete=True)
        (gone,) = [change.row for change in complete.changes if change.kind != "keep"]
        assert (gone["id"], gone["status"]) == (rows[0]["id"], "closed")
        assert gone["close_reason"] == "no longer in the list"

    def test_two_sources_with_the_same_numbers_are_two(self) -> None:
        gitlab = [{"iid": 6, "title": "Six there", "state": "opened"}]
        rows = [change.row for change in taken(read(gitlab)).changes]
        github = taken(read([{"number": 6, "title": "Six here"}]), rows)
        assert [change.kind for change in github.changes] == ["add"]

    def test_what_was_edited_here_since_version_0_2_imported_it_stays(self) -> None:
        issue = {"number": 9, "title": "There", "updatedAt": "2026-01-03T00:00:00Z"}
        old = {"id": "qb-1", "title": "Here", "external_ref": "gh-9", "status": "open",
               "metadata": {"source_updated_at": "2026-01-03T00:00:00Z"}}  # fmt: skip
        assert taken(read([issue]), [old]).changes[0].row == old
        later = {**issue, "updatedAt": "2026-01-04T00:00:00Z"}
        assert taken(read([later]), [old]).changes[0].row["title"] == "There"

    def test_what_version_0_2_imported_is_found(self) -> None:
        old = {"id": "qb-1", "title": "Old", "external_ref": "CLA-1", "status": "open"}
        change = taken(read(LINEAR_CSV), [old]).changes[0]
        assert (change.kind, change.row["id"]) == ("update", "qb-1")
        assert change.row["external_ref"] == "linear:CLA-1"


class TestWhoever:
    def test_says_where_it_is_from_is_believed(self) -> None:
        text = "id,title,state\nA-1,x,Canceled\n"
        assert list_summary(read(text)) == "list, 1 issue"
        assert list_summary(read(text, insisted="linear")) == "Linear export, 1 issue"
        with pytest.raises(InvalidInput, match="'linaer' is not a source"):
            read(text, insisted="linaer")

    def test_names_the_columns_is_understood(self) -> None:
        text = "Task,Ticket,Wo\nPay,T-1,Spain\n"
        with pytest.raises(InvalidInput, match="no column title; it has task, ticket, wo"):
            read(text)
        listed = read(text, mapped=["Task=title", "Ticket=key"])
        row = taken(listed).changes[0].row
        assert (row["title"], row["external_ref"]) == ("Pay", "list:T-1")
        assert warnings(listed) == {"not imported": "wo (1)"}


class TestHostile:
    def test_issues_that_wait_for_each_other_are_refused(self) -> None:
        text = LINEAR_CSV.replace(",Begun,,In Progress", ",Begun,,Todo").replace(
            "u-4,,,", 'u-4,,"CLA-5",'
        )
        with pytest.raises(InvalidInput, match=r"wait for each other: .*linear:CLA-5"):
            taken(read(text))

    def test_deep_and_large_lists_are_refused(self) -> None:
        for text in ("[" * 100_000, '{"a":' * 500 + "1" + "}" * 500, "\0" * 100):
            with pytest.raises(InvalidInput):
                read(text)
        with pytest.raises(InvalidInput, match="has more than 67,108,864 bytes"):
            read_issue_list(b"[" + b" " * (64 * 1024 * 1024))

    def test_texts_are_texts(self) -> None:
        title = "--force \x1b[31m$(rm -rf /)\n=1+1" + "x" * 600
        row = next(iter(rows_of([{"number": 1, "title": title, "state": ["OPEN", 7]}]).values()))
        assert row["title"].startswith("--force [31m$(rm -rf /) =1+1x")
        assert len(row["title"]) <= 500
        assert row["description"] == title

    @pytest.mark.parametrize("value", [7, True, [], {}, [[["x"]]], {"nodes": 3}, None, "\ud800"])
    def test_any_value_in_any_field_is_no_crash(self, value: object) -> None:
        names = ("title", "state", "labels", "assignees", "url", "body", "parent", "blockedBy",
                 "comments", "createdAt", "stateReason", "issueType", "priority")  # fmt: skip
        for name in names:
            try:
                taken(read([{"number": 1, "title": "x", name: value}]))
            except InvalidInput:
                assert name == "title"
        for board in ({"cards": [value], "lists": value}, {"master": {"tasks": [value]}}):
            try:
                taken(read(board))
            except InvalidInput as error:
                assert (
                    "no list" in str(error) or "no title" in str(error) or "neither" in str(error)
                )
