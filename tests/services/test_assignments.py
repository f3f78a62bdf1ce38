"""Assignments: one droid to an issue, who may end it, and what ends with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, environment, git, records, snapshot, write_lines, write_settings

from queenbee import Hive
from queenbee.errors import (
    InvalidInput,
    IssueClosed,
    NoActor,
    NotFound,
    Taken,
    UnknownDroid,
)
from queenbee.store.git_files.tree_id import read_tree_id
from queenbee.store.memory.recorded import Recorded

pytestmark = pytest.mark.both_engines

Opener = Callable[[str], Hive]


def ledger(beads: Path) -> Path:
    return beads / "queen_assignments.jsonl"


def issues(beads: Path, *ids: str, **more: object) -> None:
    rows = [{"id": each, "title": f"Issue {each}", "status": "open", **more} for each in ids]
    write_lines(beads / "issues.jsonl", *rows)


# Claiming


def test_a_claim_is_one_line_with_the_fields_of_the_records_document(
    hive: Hive, beads: Path
) -> None:
    claimed = hive.assignments.claim("qb-42", worktree="feature-ui", reason="next on my list")
    assert records(ledger(beads)) == [
        {
            "id": claimed.id,
            "created_at": "2024-12-14T10:30:00.000Z",
            "updated_at": "2024-12-14T10:30:00.000Z",
            "issue_id": "qb-42",
            "droid": "ui-engineer",
            "assigned_by": "ui-engineer",
            "status": "active",
            "worktree": "feature-ui",
            "reason": "next on my list",
            "rev": 1,
        }
    ]


def test_a_claim_says_in_which_worktree_it_was_made_last(repo: Path) -> None:
    """Two clones may have folders of one name."""
    issues(repo / ".beads", "qb-42")
    said = []
    for name in ("one", "two"):
        tree = repo.parent / name / "ui"
        git(repo, "worktree", "add", "-q", "-b", name, str(tree))
        hive = Hive.open(tree, droid="ui", env=environment())
        hive.assignments.claim("qb-42")
        assert hive.assignments.claim("qb-42").rev == len(said) + 1
        said.append((hive.assignments.claim("qb-42").worktree, read_tree_id(hive.layout)))
        assert hive.assignments.claim("qb-42").tree_id == said[-1][1]
    assert said[0] != said[1]


def test_claiming_again_returns_the_same_claim_and_writes_nothing(
    hive: Hive, beads: Path, clock: Clock
) -> None:
    claimed, before = hive.assignments.claim("qb-42"), snapshot(beads)
    clock.advance(60)
    assert hive.assignments.claim("qb-42") == claimed
    assert snapshot(beads) == before


def test_a_claim_never_steals(hive: Hive, reviewer: Hive, beads: Path) -> None:
    claimed, before = hive.assignments.claim("qb-42"), snapshot(beads)
    with pytest.raises(Taken, match="qb-42 is assigned to ui-engineer \\(for 0s") as refusal:
        reviewer.assignments.claim("qb-42")
    assert refusal.value.holder == "ui-engineer"
    assert refusal.value.assignment == claimed.to_dict()
    assert "queen msg send ui-engineer" in str(refusal.value.hint)
    assert snapshot(beads) == before


def test_nobody_claims_anonymously(repo: Path, beads: Path) -> None:
    with pytest.raises(NoActor):
        Hive.open(repo, env=environment()).assignments.claim("qb-42")
    assert snapshot(beads) == {}


@pytest.mark.parametrize(
    "issue_id", ["", "two words", "tab\t", "esc\x1b[2J", "x" * 129, "a\u202eb"]
)
def test_an_id_that_no_tracker_prints_is_refused(hive: Hive, beads: Path, issue_id: str) -> None:
    for attempt in (hive.assignments.claim, hive.assignments.complete, hive.assignments.release):
        with pytest.raises(InvalidInput, match="is not an issue id"):
            attempt(issue_id)
    assert snapshot(beads) == {}


@pytest.mark.parametrize("issue_id", ["qb-42", "my-long-prefix-a1b2.3", "A_b.1.2", "42", "é-1"])
def test_ids_of_every_shape_that_trackers_use_are_taken(hive: Hive, issue_id: str) -> None:
    assert hive.assignments.claim(issue_id).issue_id == issue_id


# The tracker


def test_an_issue_that_the_tracker_does_not_have_is_refused_with_what_was_meant(
    hive: Hive, beads: Path
) -> None:
    issues(beads, "qb-142", "other-7")
    before = snapshot(beads)
    with pytest.raises(NotFound, match="there is no issue 'qb-124'") as refusal:
        hive.assignments.claim("qb-124")
    assert refusal.value.hint == "did you mean 'qb-142'? queen show qb-142"
    assert refusal.value.issue_id == "qb-124"
    assert snapshot(beads) == before


def test_an_issue_unlike_any_other_is_refused_with_where_to_look(hive: Hive, beads: Path) -> None:
    issues(beads, "qb-142")
    with pytest.raises(NotFound) as refusal:
        hive.assignments.claim("zzz")
    assert refusal.value.hint == "queen issues"


@pytest.mark.parametrize(("status", "refusal"), [("closed", IssueClosed), ("tombstone", NotFound)])
def test_an_issue_that_is_over_cannot_be_claimed(
    hive: Hive, beads: Path, status: str, refusal: type[Exception]
) -> None:
    issues(beads, "qb-1", status=status)
    before = snapshot(beads)
    with pytest.raises(refusal, match="qb-1"):
        hive.assignments.claim("qb-1")
    assert snapshot(beads) == before


@pytest.mark.parametrize("status", ["open", "in_progress", "blocked", "hooked", "own"])
def test_an_issue_of_any_other_status_can_be_claimed(hive: Hive, beads: Path, status: str) -> None:
    issues(beads, "qb-1", status=status)
    assert hive.assignments.claim("qb-1").status == "active"


@pytest.mark.parametrize(
    ("setting", "tracked", "granted"),
    [
        ("auto", False, True),
        ("auto", True, False),
        ("strict", False, False),
        ("strict", True, False),
        ("off", False, True),
        ("off", True, True),
    ],
)
def test_the_setting_issues_decides_whether_an_unknown_id_serves(
    open_as: Opener, beads: Path, setting: str, tracked: bool, granted: bool
) -> None:
    write_settings(beads, f'issues = "{setting}"\n')
    if tracked:
        issues(beads, "qb-1")
    claims = open_as("ui-engineer").assignments
    if granted:
        assert claims.claim("new-1").issue_id == "new-1"
    else:
        with pytest.raises(NotFound, match="there is no issue 'new-1'"):
            claims.claim("new-1")


def test_a_closed_issue_cannot_be_claimed_even_where_any_id_serves(
    open_as: Opener, beads: Path
) -> None:
    write_settings(beads, 'issues = "off"\n')
    issues(beads, "qb-1", status="closed")
    with pytest.raises(IssueClosed, match=r"issue qb-1 is closed \(Issue qb-1\)"):
        open_as("ui-engineer").assignments.claim("qb-1")


# Assigning


def test_an_assignment_names_its_giver_and_notifies_its_droid(hive: Hive, reviewer: Hive) -> None:
    given = hive.assignments.assign("qb-42", "reviewer", reason="you know it best")
    assert (given.droid, given.assigned_by) == ("reviewer", "ui-engineer")
    [message] = reviewer.messages.inbox()
    assert (message.from_, message.issue_id) == ("ui-engineer", "qb-42")
    assert message.subject == "[qb-42] Assigned"
    assert message.body == "Assigned by ui-engineer: you know it best"


def test_the_message_carries_the_title_of_the_issue(
    hive: Hive, reviewer: Hive, beads: Path
) -> None:
    issues(beads, "qb-42")
    hive.assignments.assign("qb-42", "reviewer")
    assert reviewer.messages.inbox()[0].subject == "[qb-42] Assigned: Issue qb-42"


def test_assigning_to_yourself_is_a_claim_and_notifies_nobody(hive: Hive) -> None:
    assert hive.assignments.assign("qb-42", "ui-engineer").assigned_by == "ui-engineer"
    assert hive.messages.sent() == []


def test_assigning_again_changes_nothing_and_notifies_nobody(
    hive: Hive, reviewer: Hive, beads: Path
) -> None:
    given, before = hive.assignments.assign("qb-42", "reviewer"), snapshot(beads)
    assert hive.assignments.assign("qb-42", "reviewer", reassign=True) == given
    assert snapshot(beads) == before


def test_work_that_somebody_has_is_not_moved_by_accident(
    hive: Hive, reviewer: Hive, beads: Path
) -> None:
    reviewer.assignments.claim("qb-42")
    before = snapshot(beads)
    with pytest.raises(Taken, match="assigned to reviewer"):
        hive.assignments.assign("qb-42", "tester")
    assert snapshot(beads) == before


def test_work_is_given_to_well_formed_names_only(hive: Hive, beads: Path) -> None:
    with pytest.raises(InvalidInput, match="'no one' is not a droid name"):
        hive.assignments.assign("qb-42", "no one")
    assert snapshot(beads) == {}


def test_work_is_given_to_listed_droids_only(hive: Hive, repo: Path, beads: Path) -> None:
    droids = repo / ".factory" / "droids"
    droids.mkdir(parents=True)
    for name in ("ui-engineer", "reviewer"):
        (droids / f"{name}.md").touch()
    with pytest.raises(UnknownDroid, match="there is no droid 'reviewr'") as refusal:
        hive.assignments.assign("qb-42", "reviewr")
    assert refusal.value.hint == "did you mean 'reviewer'?"
    assert snapshot(beads) == {}


# Moving


def test_moving_work_ends_the_old_record_and_begins_one_that_remembers_it(
    hive: Hive, reviewer: Hive, beads: Path, clock: Clock
) -> None:
    old = reviewer.assignments.claim("qb-42", reason="mine")
    clock.advance(60)
    new = hive.assignments.assign("qb-42", "tester", reassign=True, reason="needs a test")
    first, ended, begun = records(ledger(beads))
    assert ended == {
        **first,
        "status": "reassigned",
        "updated_at": "2024-12-14T10:31:00.000Z",
        "updated_by": "ui-engineer",
        "reason": "needs a test",
        "rev": 2,
    }
    assert (begun["id"], begun["droid"], begun["previous_droid"]) == (new.id, "tester", "reviewer")
    assert old.id != new.id
    assert [each.droid for each in hive.assignments.find(issue_id="qb-42")] == ["tester"]


def test_reassigning_notifies_both_droids(hive: Hive, open_as: Opener) -> None:
    reviewer, tester = open_as("reviewer"), open_as("tester")
    reviewer.assignments.claim("qb-42")
    hive.assignments.assign("qb-42", "tester", reassign=True, reason="needs a test")
    (told,) = reviewer.messages.inbox()
    assert told.subject == "[qb-42] Reassigned to tester"
    assert told.body.endswith(": needs a test")
    assert [m.subject for m in tester.messages.inbox()] == ["[qb-42] Assigned"]


def test_moving_work_releases_the_leases_made_for_it_and_says_so(
    hive: Hive, reviewer: Hive
) -> None:
    reviewer.assignments.claim("qb-42")
    reviewer.reservations.reserve(["src/ui/**"], issue_id="qb-42")
    reviewer.reservations.reserve(["docs/**"], issue_id="qb-7")
    hive.assignments.assign("qb-42", "tester", reassign=True)
    assert [lease.pattern for lease in reviewer.reservations.find()] == ["docs/**"]
    assert "Your leases for it ended: src/ui/**." in reviewer.messages.inbox()[0].body


def test_giving_away_ones_own_work_sends_no_message_to_oneself(hive: Hive) -> None:
    hive.assignments.claim("qb-42")
    hive.assignments.assign("qb-42", "tester", reassign=True)
    assert [m.to for m in hive.messages.sent()] == ["tester"]


def test_moving_work_that_nobody_has_simply_gives_it(hive: Hive) -> None:
    given = hive.assignments.assign("qb-42", "tester", reassign=True)
    assert (given.status, given.previous_droid) == ("active", None)


def test_the_last_completions_come_by_their_end(hive: Hive, beads: Path, clock: Clock) -> None:
    issues(beads, *(f"qb-{number}" for number in range(4)))
    for number in range(4):
        hive.assignments.claim(f"qb-{number}")
        clock.advance(1)
    for number in (2, 0, 3, 1):
        hive.assignments.complete(f"qb-{number}")
        clock.advance(1)
    last = [each.issue_id for each in hive.assignments.last_completed(3)]
    assert last == ["qb-1", "qb-3", "qb-0"]


@pytest.mark.parametrize("status", ["completed", "released"])
def test_what_became_of_one_issue_is_found_by_that_issue(
    hive: Hive, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a year, nearly all assignments have such a status, and few are of one issue."""
    plans = []

    def explained(self: Recorded, query: str, *values: object, **more: object) -> list[object]:
        plans.append(hive.engine.memory.database.ask(f"EXPLAIN QUERY PLAN {query}", *values))
        return []

    state = hive.state("assignments")
    monkeypatch.setattr(Recorded, "_fields", explained)
    state.select({"status": status, "issue_id": "qb-1"})
    state.last("updated_at", {"status": status}, 5)
    by_issue, by_end = (str(plan) for plan in plans)
    assert "(issue_id=?)" in by_issue
    assert "USE TEMP B-TREE FOR ORDER BY" not in by_end
