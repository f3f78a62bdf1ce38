"""Assignments: who may end one, what ends with it, and what a merge brings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, cloned, records, snapshot, write_lines

from queenbee import Hive
from queenbee.errors import (
    InvalidInput,
    NotFound,
    NotYours,
    Taken,
)

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]


def ledger(beads: Path) -> Path:
    return beads / "queen_assignments.jsonl"


# Ending


@pytest.mark.parametrize(("verb", "status"), [("complete", "completed"), ("release", "released")])
def test_its_holder_ends_an_assignment_with_its_whole_record(
    hive: Hive, beads: Path, clock: Clock, verb: str, status: str
) -> None:
    hive.assignments.claim("qb-42", worktree="feature-ui")
    clock.advance(60)
    ended = getattr(hive.assignments, verb)("qb-42", reason="done")
    first, second = records(ledger(beads))
    changes = {"status": status, "updated_at": "2024-12-14T10:31:00.000Z", "reason": "done"}
    assert second == {**first, **changes, "rev": 2}
    assert ended.to_dict() == second
    assert hive.assignments.active("qb-42") is None


@pytest.mark.parametrize("verb", ["complete", "release"])
@pytest.mark.parametrize("supervisor", ["queen", "human"])
def test_queen_and_human_end_anybodys_assignment_and_it_says_who(
    hive: Hive, open_as: Opener, verb: str, supervisor: str
) -> None:
    hive.assignments.claim("qb-42")
    ended = getattr(open_as(supervisor).assignments, verb)("qb-42", reason="no longer needed")
    assert (ended.droid, ended.fields["updated_by"]) == ("ui-engineer", supervisor)
    assert [m.from_ for m in hive.messages.inbox()] == [supervisor]


@pytest.mark.parametrize("verb", ["complete", "release"])
def test_nobody_else_ends_it(hive: Hive, reviewer: Hive, beads: Path, verb: str) -> None:
    hive.assignments.claim("qb-42")
    before = snapshot(beads)
    with pytest.raises(NotYours, match="qb-42 is assigned to ui-engineer, not to reviewer") as no:
        getattr(reviewer.assignments, verb)("qb-42")
    assert no.value.owner == "ui-engineer"
    assert "queen msg send ui-engineer" in str(no.value.hint)
    assert snapshot(beads) == before


def test_the_droid_that_gave_it_cannot_end_it(hive: Hive, reviewer: Hive) -> None:
    hive.assignments.assign("qb-42", "reviewer")
    with pytest.raises(NotYours):
        hive.assignments.complete("qb-42")


@pytest.mark.parametrize("verb", ["complete", "release"])
def test_what_nobody_has_cannot_be_ended(hive: Hive, beads: Path, verb: str) -> None:
    with pytest.raises(NotFound, match="there is no issue 'qb-42'") as refusal:
        getattr(hive.assignments, verb)("qb-42")
    assert refusal.value.hint == "queen issue assignments --issue qb-42 --status all"
    assert snapshot(beads) == {}


def test_ending_twice_is_refused_as_it_is_over(hive: Hive) -> None:
    hive.assignments.claim("qb-42")
    hive.assignments.complete("qb-42")
    with pytest.raises(NotFound):
        hive.assignments.complete("qb-42")


@pytest.mark.parametrize("verb", ["complete", "release"])
def test_ending_it_releases_the_leases_made_for_it_and_no_others(
    hive: Hive, reviewer: Hive, verb: str
) -> None:
    hive.assignments.claim("qb-42")
    hive.reservations.reserve(["src/ui/**", "src/css/**"], issue_id="qb-42")
    hive.reservations.reserve(["notes.md"], issue_id="")
    reviewer.reservations.reserve(["docs/**"], issue_id="qb-42")
    getattr(hive.assignments, verb)("qb-42")
    assert {lease.pattern for lease in hive.reservations.find()} == {"notes.md", "docs/**"}


def test_completing_notifies_whoever_gave_the_work(hive: Hive, reviewer: Hive) -> None:
    hive.assignments.assign("qb-42", "reviewer")
    reviewer.assignments.complete("qb-42", reason="merged in 3f2a1bc")
    [message] = hive.messages.inbox()
    assert message.subject == "[qb-42] Completed"
    assert message.body == "Completed by reviewer: merged in 3f2a1bc"


def test_an_issue_that_was_given_back_can_be_claimed_by_another(hive: Hive, reviewer: Hive) -> None:
    hive.assignments.claim("qb-42")
    hive.assignments.release("qb-42")
    assert reviewer.assignments.claim("qb-42").droid == "reviewer"


@pytest.mark.only_files  # It copies files.
def test_a_clock_set_back_does_not_make_a_new_claim_lose_to_the_old_one(
    hive: Hive, reviewer: Hive, beads: Path, clock: Clock, tmp_path: Path
) -> None:
    hive.assignments.claim("qb-42")
    clock.advance(3600)
    hive.assignments.release("qb-42")
    clock.advance(-1800)
    claimed = reviewer.assignments.claim("qb-42")
    # Where the lines came by git, each grant is judged by what the records say of its time.
    clone = Hive.open(cloned(beads, tmp_path / "clone"), env={}, clock=clock)
    assert clone.assignments.active("qb-42") == claimed
    assert clone.assignments.conflicts() == []


# Listing


def test_the_listing_shows_each_status_oldest_first(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    for number, verb in enumerate(("complete", "release", None, "assign")):
        hive.assignments.claim(f"qb-{number}")
        clock.advance(1)
        if verb == "assign":
            hive.assignments.assign(f"qb-{number}", "reviewer", reassign=True)
        elif verb:
            getattr(hive.assignments, verb)(f"qb-{number}")
        clock.advance(1)

    def listed(**filters: str) -> list[tuple[str, str]]:
        return [(a.issue_id, a.droid) for a in hive.assignments.find(**filters)]

    assert listed() == [("qb-2", "ui-engineer"), ("qb-3", "reviewer")]
    assert listed(status="completed") == [("qb-0", "ui-engineer")]
    assert listed(status="released") == [("qb-1", "ui-engineer")]
    assert listed(status="reassigned") == [("qb-3", "ui-engineer")]
    assert [issue for issue, _ in listed(status="all")] == ["qb-0", "qb-1", "qb-2", "qb-3", "qb-3"]
    assert listed(droid="reviewer") == [("qb-3", "reviewer")]
    assert listed(issue_id="qb-3", status="all") == [("qb-3", "ui-engineer"), ("qb-3", "reviewer")]


def test_a_status_that_does_not_exist_is_refused(hive: Hive) -> None:
    with pytest.raises(InvalidInput, match="'paused' is not an assignment status") as refusal:
        hive.assignments.find(status="paused")
    assert "completed" in str(refusal.value.hint)


# Foreign lines and merges


def test_a_foreign_writers_agent_is_read_as_droid(hive: Hive, beads: Path) -> None:
    row = {"id": "qa-go", "created_at": "2024-12-14T10:00:00Z", "issue_id": "qb-42"}
    write_lines(ledger(beads), {**row, "agent": "ui-engineer", "status": "active", "x": [1]})
    assert hive.assignments.claim("qb-42").id == "qa-go"
    hive.assignments.complete("qb-42")
    assert records(ledger(beads))[-1]["x"] == [1]


def test_the_documents_example_folds_to_what_the_document_says(hive: Hive, beads: Path) -> None:
    line = (
        '{"id":"qa-01HZ2A","created_at":"2024-12-14T10:30:00Z","updated_at":"%s",'
        '"issue_id":"qb-42","droid":"ui-engineer","assigned_by":"queen","status":"%s",'
        '"worktree":"feature-ui"%s}'
    )
    write_lines(
        ledger(beads),
        line % ("2024-12-14T10:30:00Z", "active", ""),
        line % ("2024-12-14T14:00:00Z", "completed", ',"reason":"Implementation complete"'),
    )
    [ended] = hive.assignments.find(status="all")
    assert (ended.status, ended.reason) == ("completed", "Implementation complete")


@pytest.mark.only_files  # It merges files.
def test_a_merge_of_two_claims_keeps_the_older(
    hive: Hive, reviewer: Hive, beads: Path, clock: Clock
) -> None:
    mine = hive.assignments.claim("qb-42")
    row = {"id": "qa-theirs", "created_at": "2024-12-14T10:00:00Z", "issue_id": "qb-42"}
    write_lines(ledger(beads), {**row, "droid": "reviewer", "status": "active"})
    standing = hive.assignments.active("qb-42")
    assert standing is not None and standing.id == "qa-theirs"
    [(winner, loser)] = hive.assignments.conflicts()
    assert (winner.id, loser.id) == ("qa-theirs", mine.id)
    with pytest.raises(Taken):
        hive.assignments.claim("qb-42")
