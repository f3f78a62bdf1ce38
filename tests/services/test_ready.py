"""What is ready: each rule that keeps an issue out, by itself, and the order of the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, write_lines

from queenbee import Hive

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]


@pytest.fixture
def add(beads: Path) -> Callable[..., None]:
    """Adds an issue to the tracker."""

    def added(identifier: str, **more: object) -> None:
        row = {"id": identifier, "title": identifier, "status": "open", "priority": 2}
        write_lines(beads / "issues.jsonl", {**row, **more})

    return added


def ready(hive: Hive, actor: str | None = "ui-engineer") -> list[str]:
    return [issue.id for issue in hive.issues.ready(actor=actor)]


def on(target: str, kind: str = "blocks") -> list[dict[str, str]]:
    return [{"depends_on_id": target, "type": kind}]


def test_open_issues_are_ready_and_those_that_somebody_unknown_has_begun_are_not(
    hive: Hive, add: Callable[..., None]
) -> None:
    add("qb-1", status="open")
    add("qb-2", status="in_progress")
    assert ready(hive) == ["qb-1"]


@pytest.mark.parametrize(
    "status", ["closed", "tombstone", "blocked", "deferred", "hooked", "pinned", "custom", ""]
)
def test_issues_of_any_other_status_are_not(
    hive: Hive, add: Callable[..., None], status: str
) -> None:
    add("qb-1", status=status)
    assert ready(hive) == []


@pytest.mark.parametrize("flag", ["pinned", "ephemeral", "is_template"])
def test_a_flag_that_sets_an_issue_apart_keeps_it_out(
    hive: Hive, add: Callable[..., None], flag: str
) -> None:
    add("qb-1", **{flag: True})
    add("qb-2", **{flag: False})
    assert ready(hive) == ["qb-2"]


@pytest.mark.parametrize("documents", [False, True])
def test_an_id_that_looks_like_a_secret_stops_nobody(
    hive: Hive, add: Callable[..., None], beads: Path, documents: bool
) -> None:
    """Who takes the next issue gets the one after it, instead of a refusal each time."""
    secret = "x-ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    add(secret, priority=0)
    add("qb-2")
    if documents:  # Then no standings are kept.
        (beads / "active").mkdir()
        (beads / "active" / "b.json").write_text('{"id": "b"}')
    assert ready(hive) == ["qb-2"]
    assert hive.next().assignment.issue_id == "qb-2"
    assert hive.issues.standing(secret).because == "its id seems to hold a secret"


def test_what_a_person_decides_is_not_for_agents(hive: Hive, add: Callable[..., None]) -> None:
    add("qb-1", labels=["ui", "human"])
    add("qb-2", labels=["ui"])
    assert ready(hive) == ["qb-2"]


def test_an_issue_is_kept_out_until_the_instant_that_it_was_deferred_to(
    hive: Hive, add: Callable[..., None], clock: Clock
) -> None:
    add("qb-1", defer_until="2024-12-14T12:30:01.000000000+02:00")
    assert ready(hive) == []
    clock.advance(1)
    assert ready(hive) == ["qb-1"]


@pytest.mark.parametrize("kind", ["blocks", "conditional-blocks"])
@pytest.mark.parametrize("status", ["open", "in_progress", "blocked", "deferred", "custom"])
def test_an_issue_waits_for_one_that_is_not_closed(
    hive: Hive, add: Callable[..., None], kind: str, status: str
) -> None:
    add("qb-1", dependencies=on("qb-2", kind))
    add("qb-2", status=status, pinned=True)
    assert ready(hive) == []


@pytest.mark.parametrize("kind", ["blocks", "waits-for"])
@pytest.mark.parametrize("status", ["closed", "tombstone"])
def test_an_issue_waits_no_longer_for_one_that_is_over(
    hive: Hive, add: Callable[..., None], kind: str, status: str
) -> None:
    add("qb-1", dependencies=on("qb-2", kind))
    add("qb-2", status=status)
    assert ready(hive) == ["qb-1"]


@pytest.mark.parametrize("kind", ["related", "discovered-from", "duplicates", "parent-child", "x"])
def test_other_dependencies_do_not_block(hive: Hive, add: Callable[..., None], kind: str) -> None:
    add("qb-1", dependencies=on("qb-2", kind))
    add("qb-2")
    assert ready(hive) == ["qb-1", "qb-2"]


def test_a_dependency_that_is_a_plain_id_blocks(hive: Hive, add: Callable[..., None]) -> None:
    add("qb-1", dependencies=["qb-2"])
    add("qb-2")
    assert ready(hive) == ["qb-2"]


def test_a_blocker_that_does_not_exist_does_not_block(hive: Hive, add: Callable[..., None]) -> None:
    add("qb-1", dependencies=on("qb-nowhere"))
    assert ready(hive) == ["qb-1"]


def test_the_children_of_a_blocked_parent_are_blocked_with_it(
    hive: Hive, add: Callable[..., None]
) -> None:
    add("epic", dependencies=on("gate"))
    add("epic.1", dependencies=on("epic", "parent-child"))
    add("epic.1.1", dependencies=on("epic.1", "parent-child"))
    add("free", dependencies=on("gate", "related"))
    add("gate", status="blocked")
    assert ready(hive) == ["free"]
    add("gate", status="closed")
    assert ready(hive) == ["epic", "epic.1", "epic.1.1", "free"]


def test_a_circle_of_blockers_and_parents_ends_in_nothing_ready(
    hive: Hive, add: Callable[..., None]
) -> None:
    add("a", dependencies=on("b"))
    add("b", dependencies=[*on("a"), *on("c", "parent-child")])
    add("c", dependencies=on("b", "parent-child"))
    assert ready(hive) == []


def test_what_another_droid_has_is_not_ready_and_what_i_have_is(
    hive: Hive, reviewer: Hive, add: Callable[..., None]
) -> None:
    for each in ("mine", "theirs", "nobodys"):
        add(each)
    hive.assignments.claim("mine")
    reviewer.assignments.claim("theirs")
    assert ready(hive) == ["mine", "nobodys"]
    assert ready(hive, "reviewer") == ["nobodys", "theirs"]
    assert ready(hive, None) == ["nobodys"]


def test_what_was_given_back_is_ready_again(
    hive: Hive, reviewer: Hive, add: Callable[..., None]
) -> None:
    add("qb-1")
    reviewer.assignments.claim("qb-1")
    reviewer.assignments.release("qb-1")
    assert ready(hive) == ["qb-1"]


def test_what_the_tracker_says_another_has_begun_is_not_ready(
    hive: Hive, add: Callable[..., None]
) -> None:
    add("begun", status="in_progress", assignee="reviewer")
    add("mine", status="in_progress", assignee="ui-engineer")
    add("meant", status="open", assignee="reviewer")
    add("nobodys", status="in_progress", assignee="")
    assert ready(hive) == ["meant", "mine"]


def test_the_hives_own_assignment_outranks_the_trackers_assignee(
    hive: Hive, add: Callable[..., None]
) -> None:
    add("qb-1", status="in_progress", assignee="reviewer")
    hive.assignments.claim("qb-1", anyway=True)
    assert ready(hive) == ["qb-1"]
    assert ready(hive, "reviewer") == []


def test_the_order_is_priority_then_age_then_id(hive: Hive, add: Callable[..., None]) -> None:
    add("c", priority=1, created_at="2024-12-14T10:00:00.5Z")
    add("b", priority=1, created_at="2024-12-14T12:00:00.500000000+02:00")
    add("d", priority=1, created_at="2024-12-13T10:00:00Z")
    add("e", priority=0, created_at="2024-12-15T10:00:00Z")
    add("f", priority=4)
    assert ready(hive) == ["e", "d", "b", "c", "f"]


def test_blockers_are_named_in_the_order_of_the_row(hive: Hive, add: Callable[..., None]) -> None:
    add(
        "qb-1", dependencies=[*on("z"), *on("a", "conditional-blocks"), *on("over"), *on("nowhere")]
    )
    for each in ("z", "a"):
        add(each)
    add("over", status="closed")
    assert hive.issues.blockers(hive.issues.get("qb-1")) == ["z", "a"]


def test_what_was_completed_here_is_not_offered_again(
    hive: Hive, add: Callable[..., None], clock: Clock
) -> None:
    add("qb-1", updated_at="2024-12-14T10:00:00Z")
    hive.assignments.claim("qb-1")
    hive.assignments.complete("qb-1")
    assert ready(hive) == []
    assert ready(hive, "reviewer") == []


def test_what_was_completed_is_offered_again_once_the_tracker_has_touched_it(
    hive: Hive, add: Callable[..., None], clock: Clock
) -> None:
    add("qb-1", updated_at="2024-12-14T10:00:00Z")
    hive.assignments.claim("qb-1")
    hive.assignments.complete("qb-1")
    add("qb-1", updated_at="2999-01-01T00:00:00Z")
    assert ready(hive) == ["qb-1"]


# A broken file of issues


@pytest.mark.parametrize(
    "torn",
    [
        '{"id":"qb-1","title":"the blocker","stat',
        '"id":"qb-1","status":"closed"}',
        '{"title":"the blocker","status":"open","created_at',
    ],
    ids=["its end is gone", "its beginning is gone", "its id is gone"],
)
def test_a_blocker_that_cannot_be_read_blocks(hive: Hive, beads: Path, torn: str) -> None:
    waits = {"id": "qb-2", "title": "waits", "status": "open", "dependencies": ["qb-1"]}
    write_lines(beads / "issues.jsonl", torn, waits, {"id": "qb-3", "title": "free"})
    assert [each.id for each in hive.issues.ready()] == ["qb-3"]
    [note] = hive.notes()
    assert "1 of the lines" in note
    assert "(1)" in note


def test_a_blocker_that_the_file_never_had_does_not_block(hive: Hive, beads: Path) -> None:
    waits = {"id": "qb-2", "title": "waits", "status": "open", "dependencies": ["qb-1"]}
    write_lines(beads / "issues.jsonl", "<<<<<<< HEAD", waits, '{"_type":"memory"}')
    assert [each.id for each in hive.issues.ready()] == ["qb-2"]
