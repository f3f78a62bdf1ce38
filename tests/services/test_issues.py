"""Issues: Beads' `issues.jsonl`, read as its writers really write it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen, snapshot, write_lines

from queenbee import Hive
from queenbee.errors import NotFound, Unreadable

pytestmark = pytest.mark.both_engines(thorough=True)


@pytest.fixture
def tracker(beads: Path) -> Path:
    """The tracker's file."""
    return beads / "issues.jsonl"


def row(identifier: str, **more: object) -> dict[str, object]:
    return {"id": identifier, "title": f"Issue {identifier}", "status": "open", **more}


def test_an_issue_is_read_as_bd_writes_it(hive: Hive, tracker: Path) -> None:
    write_lines(
        tracker,
        '{"id":"qb-42","title":"Button component","description":"A button.","status":"open",'
        '"priority":1,"issue_type":"feature","assignee":"ui-engineer",'
        '"created_at":"2024-12-14T10:30:00.123456789+01:00","created_by":"human",'
        '"updated_at":"2024-12-14T10:30:00.123456789+01:00","labels":["ui"],'
        '"dependencies":[{"issue_id":"qb-42","depends_on_id":"qb-40","type":"blocks",'
        '"created_at":"2024-12-14T10:30:00Z","created_by":"human","metadata":"{}"}]}',
    )
    issue = hive.issues.get("qb-42")
    assert (issue.title, issue.status, issue.priority) == ("Button component", "open", 1)
    assert (issue.issue_type, issue.assignee) == ("feature", "ui-engineer")
    assert issue.created_ms == 1_734_168_600_123
    assert issue.dependencies == [("qb-40", "blocks")]
    assert issue.to_dict()["labels"] == ["ui"]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_lines_may_end_either_way_and_the_last_one_in_nothing(
    hive: Hive, tracker: Path, ending: bytes
) -> None:
    lines = [b'{"id":"qb-%d","title":"x","status":"open"}' % number for number in range(3)]
    tracker.write_bytes(ending.join(lines))
    assert sorted(hive.issues.all()) == ["qb-0", "qb-1", "qb-2"]
    assert len(hive.issues.unusable_lines) == 0


def test_blank_lines_are_nothing(hive: Hive, tracker: Path) -> None:
    write_lines(tracker, "", "  ", row("qb-1"), "\t")
    assert list(hive.issues.all()) == ["qb-1"]
    assert len(hive.issues.unusable_lines) == 0


def test_memories_are_neither_issues_nor_errors(hive: Hive, tracker: Path) -> None:
    write_lines(tracker, '{"_type":"memory","key":"k","value":"v"}', row("qb-1"))
    assert list(hive.issues.all()) == ["qb-1"]
    assert len(hive.issues.unusable_lines) == 0


def test_a_tombstone_is_not_an_issue(hive: Hive, tracker: Path) -> None:
    write_lines(tracker, row("qb-1", status="tombstone", deleted_at="2024-12-14T10:30:00Z"))
    assert hive.issues.all() == {}
    with pytest.raises(NotFound):
        hive.issues.get("qb-1")


@pytest.mark.parametrize("newest_first", [True, False])
def test_the_newest_row_of_an_id_wins_in_any_order(
    hive: Hive, tracker: Path, newest_first: bool
) -> None:
    old = row("qb-1", title="old", updated_at="2024-12-14T23:30:00+02:00")
    new = row("qb-1", title="new", updated_at="2024-12-14T22:00:00.000000001Z")
    write_lines(tracker, *([new, old] if newest_first else [old, new]))
    assert hive.issues.get("qb-1").title == "new"


def test_a_tombstone_wins_only_where_it_is_the_newest(hive: Hive, tracker: Path) -> None:
    gone = row("qb-1", status="tombstone", updated_at="2024-12-14T10:00:00Z")
    write_lines(tracker, gone, row("qb-1", updated_at="2024-12-14T11:00:00Z"))
    assert hive.issues.get("qb-1").status == "open"


def test_of_two_rows_without_times_the_later_line_wins(hive: Hive, tracker: Path) -> None:
    write_lines(tracker, row("qb-1", title="first"), row("qb-1", title="second"))
    assert hive.issues.get("qb-1").title == "second"


def test_conflict_markers_and_garbage_are_counted_and_left_alone(hive: Hive, tracker: Path) -> None:
    write_lines(
        tracker,
        "<<<<<<< HEAD",
        row("qb-1"),
        "=======",
        row("qb-2"),
        ">>>>>>> theirs",
        "not json",
        '["a list"]',
        b'{"id":"qb-\xff"}',
        '{"title":"no id"}',
    )
    before = snapshot(tracker.parent)
    assert sorted(hive.issues.all()) == ["qb-1", "qb-2"]
    assert len(hive.issues.unusable_lines) == 7
    assert snapshot(tracker.parent) == before


def test_a_line_of_ninety_kilobytes_is_an_issue_like_any_other(hive: Hive, tracker: Path) -> None:
    write_lines(tracker, row("qb-1", description="x" * 90_000, notes="é" * 10_000))
    assert len(hive.issues.get("qb-1").description) == 90_000


@pytest.mark.parametrize(
    "identifier", ["qb-42", "my-long-prefix-a1b2.3", "proj_x-a1.2.10", "A-1", "x.y-z_0"]
)
def test_ids_have_hyphens_underscores_and_dots(hive: Hive, tracker: Path, identifier: str) -> None:
    write_lines(tracker, row(identifier))
    assert hive.issues.get(identifier).id == identifier
    assert hive.assignments.claim(identifier).issue_id == identifier


@pytest.mark.parametrize(
    "spelled", [[None, 1, 3], [None, 2, 1], [None, 0, 2], [None], [None, None]]
)
def test_an_absent_priority_means_two_in_every_file(
    hive: Hive, tracker: Path, spelled: list[int | None]
) -> None:
    for number, priority in enumerate(spelled):
        more = {} if priority is None else {"priority": priority}
        write_lines(tracker, row(f"qb-{number}", **more))
    assert hive.issues.get("qb-0").priority == 2
    assert hive.issues.get("qb-0").to_dict()["priority"] == 2


@pytest.mark.parametrize("nonsense", ["1", True, None, 1.5, [1]])
def test_a_priority_that_is_not_a_number_counts_as_absent(
    hive: Hive, tracker: Path, nonsense: object
) -> None:
    write_lines(tracker, row("qb-1", priority=nonsense))
    assert hive.issues.get("qb-1").priority == 2


@pytest.mark.parametrize(
    ("rows", "meant"),
    [
        (None, []),
        ([], []),
        ("qb-2", []),
        (["qb-2", ""], [("qb-2", "blocks")]),
        ([{"issue_id": "qb-1", "depends_on_id": "qb-2", "type": "related"}], [("qb-2", "related")]),
        ([{"depends_on_id": "qb-2"}], [("qb-2", "blocks")]),
        ([{"id": "qb-2", "dependency_type": "parent-child"}], [("qb-2", "parent-child")]),
        ([{"issue_id": "qb-9", "depends_on_id": "qb-2", "type": "blocks"}], []),
        ([{"issue_id": "qb-1"}, 7, None, {"depends_on_id": 3}], []),
    ],
)
def test_dependencies_come_in_every_shape_that_writers_use(
    hive: Hive, tracker: Path, rows: object, meant: list[tuple[str, str]]
) -> None:
    write_lines(tracker, row("qb-1", dependencies=rows))
    assert hive.issues.get("qb-1").dependencies == meant


def test_absent_dependencies_are_none(hive: Hive, tracker: Path) -> None:
    write_lines(tracker, row("qb-1"))
    assert hive.issues.get("qb-1").dependencies == []


def test_the_listing_is_by_priority_then_age_then_id(hive: Hive, tracker: Path) -> None:
    write_lines(
        tracker,
        row("b", priority=1, created_at="2024-12-14T10:00:00Z"),
        row("c", priority=1, created_at="2024-12-13T10:00:00Z"),
        row("d", priority=0, created_at="2024-12-15T10:00:00Z"),
        row("a", priority=1, created_at="2024-12-14T10:00:00Z"),
        row("e", priority=4, status="closed"),
    )
    assert [issue.id for issue in hive.issues.find()] == ["d", "c", "a", "b", "e"]
    assert [issue.id for issue in hive.issues.find(status="closed")] == ["e"]


def test_an_issue_without_a_file_is_not_found(hive: Hive) -> None:
    assert hive.issues.all() == {}
    with pytest.raises(NotFound, match="'qb-1'"):
        hive.issues.get("qb-1")


def test_an_open_hive_follows_the_tracker(hive: Hive, tracker: Path) -> None:
    write_lines(tracker, row("qb-1"))
    assert hive.issues.get("qb-1").status == "open"
    write_lines(tracker, row("qb-1", status="closed"), row("qb-2"))
    assert hive.issues.get("qb-1").status == "closed"
    assert hive.issues.get("qb-2").status == "open"
    tracker.unlink()
    assert hive.issues.all() == {}


def test_no_command_ever_writes_to_the_tracker(
    hive: Hive, tracker: Path, quick: QuickQueen
) -> None:
    write_lines(tracker, row("qb-1"), "{torn", '{"_type":"memory"}')
    before = tracker.read_bytes()
    for arguments in (
        ("claim", "qb-1"),
        ("issue", "assign", "qb-1", "tester", "--reassign"),
        ("issues",),
        ("issue", "ready"),
        ("show", "qb-1"),
        ("doctor", "--fix"),
    ):
        quick(*arguments, as_="ui-engineer")
    assert tracker.read_bytes() == before


def test_a_tracker_that_is_not_a_file_is_refused(hive: Hive, tracker: Path) -> None:
    tracker.mkdir()
    with pytest.raises(Unreadable, match=r"issues\.jsonl is not a regular file") as refusal:
        hive.issues.all()
    assert refusal.value.hint == "move it away, or name another file"


def test_a_tracker_that_is_a_link_out_of_the_hive_is_not_followed(
    hive: Hive, tracker: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.jsonl").write_text('{"id":"qb-1","title":"secret"}\n')
    tracker.symlink_to(tmp_path / "secret.jsonl")
    with pytest.raises(Unreadable, match="symbolic link"):
        hive.issues.all()
