"""What a layer above knows of issues, as the services ask for it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import pytest
from hives import Clock, environment, records, snapshot, write_lines

from queenbee.core.beads import Issue
from queenbee.errors import IssueClosed, NotFound, NotYours
from queenbee.services.care.doctor import examine, repair
from queenbee.services.diagnosis import Diagnosis
from queenbee.services.document_questions import Documents
from queenbee.services.hive import Services
from queenbee.services.work.overview import overview
from queenbee.services.writing.transaction import Transaction
from queenbee.store import creating

pytestmark = pytest.mark.both_engines(thorough=True)


class Known(Documents):
    """Documents that a test fills in."""

    def __init__(self) -> None:
        self.beads: dict[str, Issue] = {}
        self.waiting: dict[str, str] = {}
        self.wrong: list[Diagnosis] = []

    def issues(self) -> dict[str, Issue]:
        return self.beads

    def held_back(self, issues: object) -> dict[str, str]:
        return self.waiting

    def about(self, issue_id: str, issue: Issue | None) -> dict[str, object] | None:
        return {"kind": "ralph"} if issue_id in self.beads else None

    def examine(self) -> list[Diagnosis]:
        return self.wrong

    def repair(self) -> None:
        self.wrong = []


class Joined(Services):
    """A hive with such documents."""

    @cached_property
    def documents(self) -> Known:
        return Known()


def bead(identifier: str, **more: object) -> Issue:
    return Issue({"id": identifier, "title": identifier, "status": "open", **more})


@pytest.fixture
def joined(repo: Path, clock: Clock) -> Joined:
    hive = Joined.open(repo, droid="ui", env=environment(), clock=clock)
    assert isinstance(hive, Joined)
    creating.init(hive.layout)
    return hive


@pytest.fixture
def tracker(beads: Path) -> Path:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "Tracked", "status": "open"})
    return beads / "issues.jsonl"


def ready(hive: Services) -> list[str]:
    return [issue.id for issue in hive.issues.ready(actor="ui")]


class TestABeadBesideTheTracker:
    def test_is_listed_found_and_ready(self, joined: Joined, tracker: Path) -> None:
        joined.documents.beads = {"gt-1": bead("gt-1")}
        assert sorted(joined.issues.all()) == ["gt-1", "qb-1"]
        assert joined.issues.get("gt-1").title == "gt-1"
        assert sorted(ready(joined)) == ["gt-1", "qb-1"]

    def test_can_be_claimed_where_only_known_issues_can(
        self, joined: Joined, tracker: Path
    ) -> None:
        with pytest.raises(NotFound):
            joined.assignments.claim("gt-1")
        joined.documents.beads = {"gt-1": bead("gt-1")}
        assert joined.assignments.claim("gt-1").issue_id == "gt-1"

    def test_takes_no_claim_once_it_is_closed(self, joined: Joined) -> None:
        joined.documents.beads = {"gt-1": bead("gt-1", status="closed")}
        with pytest.raises(IssueClosed):
            joined.assignments.claim("gt-1")

    def test_gives_way_to_the_row_with_its_id(self, joined: Joined, tracker: Path) -> None:
        joined.documents.beads = {"qb-1": bead("qb-1", title="Bead")}
        assert joined.issues.get("qb-1").title == "Tracked"

    def test_blocks_the_issues_that_wait_for_it(self, joined: Joined, tracker: Path) -> None:
        write_lines(tracker, {"id": "qb-2", "status": "open", "dependencies": ["gt-1"]})
        joined.documents.beads = {"gt-1": bead("gt-1", status="in_progress", assignee="api")}
        assert ready(joined) == ["qb-1"]
        joined.documents.beads = {"gt-1": bead("gt-1", status="closed")}
        assert sorted(ready(joined)) == ["qb-1", "qb-2"]

    def test_is_no_missing_blocker(self, joined: Joined, tracker: Path) -> None:
        write_lines(tracker, {"id": "qb-2", "status": "open", "dependencies": ["gt-1"]})
        assert "missing_blocker" in [finding.code for finding in examine(joined)]
        joined.documents.beads = {"gt-1": bead("gt-1", dependencies=["gt-2"])}
        assert "missing_blocker" not in [finding.code for finding in examine(joined)]


def test_issues_held_back_are_not_ready(joined: Joined, tracker: Path) -> None:
    joined.documents.waiting = {"qb-1": "its gate has not passed"}
    assert ready(joined) == []


def test_an_overview_describes_beads_but_not_other_issues(joined: Joined, tracker: Path) -> None:
    joined.documents.beads = {"gt-1": bead("gt-1")}
    assert overview(joined, "gt-1").to_dict()["bead"] == {"kind": "ralph"}
    assert "bead" not in overview(joined, "qb-1").to_dict()


def test_the_doctor_examines_and_repairs_documents_too(joined: Joined) -> None:
    joined.documents.wrong = [Diagnosis("stale_copy", "a.json", "is there twice")]
    assert [finding.code for finding in examine(joined)] == ["stale_copy"]
    assert [finding.fixed for finding in repair(joined)] == [True]


class TestCompletingWithMore:
    def test_records_both_or_neither(self, joined: Joined, beads: Path) -> None:
        joined.assignments.claim("qb-1")
        before = snapshot(beads)

        def fails(tx: Transaction) -> None:
            tx.put_issue({"id": "qb-1", "status": "closed"})
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            joined.assignments.complete("qb-1", also=fails)
        assert snapshot(beads) == before
        joined.assignments.complete(
            "qb-1", also=lambda tx: tx.put_issue({"id": "qb-1", "status": "closed"})
        )
        assert joined.issues.get("qb-1").done
        assert records(beads / "queen_assignments.jsonl")[-1]["status"] == "completed"

    def test_is_refused_before_anything_else_happens(
        self, joined: Joined, repo: Path, clock: Clock
    ) -> None:
        joined.assignments.claim("qb-1")
        other = Services.open(repo, droid="api", env=environment(), clock=clock)
        with pytest.raises(NotYours):
            other.assignments.check_ending("qb-1")
        with pytest.raises(NotFound, match="there is no issue 'qb-2'"):
            other.assignments.check_ending("qb-2")
        assert joined.assignments.check_ending("qb-1").droid == "ui"
