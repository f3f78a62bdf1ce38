"""`queen next`: one issue for each, with all that is needed to begin."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from acting import answer
from hives import Clock, Queen, environment, git, snapshot, write_lines
from waiters import waits

from queenbee import Hive
from queenbee.core.queue import Want
from queenbee.errors import Busy, Held
from queenbee.services.waiting.pauses import finish
from queenbee.services.work import taking
from queenbee.services.work.members import to_land
from queenbee.services.work.taking import Begin, Nothing
from queenbee.store.droids import roster
from queenbee.store.droids.liveness import described
from queenbee.store.git_files.tree_id import read_tree_id

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]


def row(identifier: str, *needs: str, **more: object) -> dict[str, object]:
    return {
        "id": identifier,
        "title": f"do {identifier}",
        "status": "open",
        "dependencies": list(needs),
        **more,
    }


@pytest.fixture
def tracker(beads: Path) -> Path:
    return beads / "issues.jsonl"


def begun(hive: Hive, *options: str) -> dict[str, Any]:
    taken: dict[str, Any] = answer(hive, "next", *options)
    assert taken["state"] == "yours"
    return taken


def nothing(hive: Hive, *options: str) -> dict[str, Any]:
    taken: dict[str, Any] = answer(hive, "next", *options)
    assert taken["state"] != "yours"
    return taken


def test_two_droids_never_get_the_same_issue(hive: Hive, reviewer: Hive, tracker: Path) -> None:
    write_lines(tracker, row("qb-1"), row("qb-2"))
    assert begun(hive)["issue_id"] == "qb-1"
    assert begun(reviewer)["issue_id"] == "qb-2"


@pytest.mark.parametrize("why", ["it builds on my last issue", "it is about my file"])
def test_of_two_alike_the_one_that_the_droid_knows_comes_first(
    hive: Hive, repo: Path, tracker: Path, why: str
) -> None:
    (repo / "tax.py").touch()
    mine = row("qb-1", title="about tax.py")
    other = row("qb-2")
    known = row("qb-3", "qb-1") if "builds" in why else row("qb-3", title="more of tax.py")
    write_lines(tracker, mine, other, known)
    assert begun(hive)["issue_id"] == "qb-1"
    hive.assignments.complete("qb-1")
    assert begun(hive)["issue_id"] == "qb-3"


class TestAnIssueThatGoesBetweenTheLookAndTheTurn:
    """What is taken is looked for before the turn at writing, and looked at again in it."""

    @pytest.fixture
    def meanwhile(
        self, hive: Hive, tracker: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[[Callable[[], object]], None]:
        def before_the_turn(happens: Callable[[], object]) -> None:
            def transaction() -> object:
                monkeypatch.undo()
                happens()
                return hive.transaction()

            monkeypatch.setattr(hive, "transaction", transaction)

        return before_the_turn

    def test_is_left_to_whoever_claimed_it(
        self, hive: Hive, reviewer: Hive, tracker: Path, meanwhile: Any
    ) -> None:
        write_lines(tracker, row("qb-1"), row("qb-2"), row("qb-3"))
        meanwhile(lambda: [reviewer.assignments.claim(each) for each in ("qb-1", "qb-2")])
        taken = finish(taking.take_next(hive))
        assert isinstance(taken, Begin)
        assert taken.assignment.issue_id == "qb-3"

    def test_is_not_given_once_it_waits_for_another(
        self, hive: Hive, tracker: Path, meanwhile: Any
    ) -> None:
        write_lines(tracker, row("qb-1"), row("qb-2"))
        changed = (row("qb-1", "qb-3"), row("qb-2"), row("qb-3", issue_type="epic"))
        meanwhile(lambda: write_lines(tracker, *changed))
        taken = finish(taking.take_next(hive))
        assert isinstance(taken, Begin)
        assert taken.assignment.issue_id == "qb-2"

    def test_leaves_nothing_if_it_was_the_last(
        self, hive: Hive, reviewer: Hive, tracker: Path, meanwhile: Any
    ) -> None:
        write_lines(tracker, row("qb-1"))
        meanwhile(lambda: reviewer.assignments.claim("qb-1"))
        assert isinstance(finish(taking.take_next(hive)), Nothing)

    def test_is_left_to_whoever_began_to_wait(
        self, hive: Hive, reviewer: Hive, tracker: Path, meanwhile: Any
    ) -> None:
        write_lines(tracker, row("qb-1"), row("qb-2"))
        place = reviewer.queue.place(Want(any_issue=True), 60)
        with place:
            meanwhile(place.take)
            taken = finish(taking.take_next(hive))
        assert isinstance(taken, Begin)
        assert taken.assignment.issue_id == "qb-2"


def test_who_waits_longer_keeps_nobody_from_what_it_gave_back(
    hive: Hive, reviewer: Hive, open_as: Opener, tracker: Path
) -> None:
    """It waits within its `queen land --next`, say; nobody else would ever take it."""
    write_lines(tracker, row("qb-1"), row("qb-2"))
    said = {"supervisor": described(os.getpid()), "without": ["qb-1"]}
    roster.write(hive.layout, roster.Entry(reviewer.actor, said))
    with waits(reviewer, any_issue=True):
        assert begun(hive)["issue_id"] == "qb-1"
        assert nothing(open_as("ui"))["ahead"] == [reviewer.actor]


def test_an_issue_that_one_has_already_comes_again(hive: Hive, tracker: Path) -> None:
    write_lines(tracker, row("qb-1"), row("qb-2"))
    assert not begun(hive)["again"]
    again = begun(hive)
    assert (again["issue_id"], again["again"]) == ("qb-1", True)


@pytest.mark.parametrize(
    ("entry", "fields", "begins"),
    [
        ({"only": ["qb-2"]}, {}, "qb-2"),
        ({}, {"status": "deferred"}, "qb-2"),
        ({"issue_id": "qb-1"}, {"status": "deferred"}, "qb-1"),
        ({}, {}, "qb-1"),
    ],
)
def test_an_agent_of_a_team_begins_nothing_that_was_only_assigned_to_it(
    hive: Hive, tracker: Path, entry: dict[str, Any], fields: dict[str, Any], begins: str
) -> None:
    write_lines(tracker, row("qb-1"), row("qb-2"))
    hive.assignments.claim("qb-1")
    write_lines(tracker, row("qb-1", updated_at="2096-01-01T00:00:00Z", **fields))
    said = {"supervisor": described(os.getpid()), **entry}
    roster.write(hive.layout, roster.Entry(hive.actor, said))
    assert begun(hive)["issue_id"] == begins
    assert to_land(hive, hive.actor) == [begins]  # Nor does a landing complete it.


def test_an_issue_is_of_the_worktree_where_its_droid_goes_on(repo: Path, tracker: Path) -> None:
    """It was made anew, or an older version did not note which one it was."""
    write_lines(tracker, row("qb-1"))
    tree = repo.parent / "ui"
    git(repo, "worktree", "add", "-q", "-b", "ui", str(tree))
    Hive.open(repo, droid="ui", env=environment()).assignments.claim("qb-1", worktree="ui")
    hive = Hive.open(tree, droid="ui", env=environment())
    assert begun(hive)["again"]
    (now,) = hive.assignments.find()
    assert now.tree_id == read_tree_id(hive.layout) is not None
    assert begun(hive)["again"]
    assert hive.assignments.find() == [now]


def test_one_that_was_closed_meanwhile_does_not_come_again(hive: Hive, tracker: Path) -> None:
    write_lines(tracker, row("qb-1"), row("qb-2"))
    begun(hive)
    write_lines(tracker, row("qb-1", status="closed", updated_at="2024-12-15T00:00:00Z"))
    assert begun(hive)["issue_id"] == "qb-2"


def test_all_that_is_needed_to_begin_is_there(
    hive: Hive, reviewer: Hive, tracker: Path, repo: Path
) -> None:
    write_lines(
        tracker,
        row("qb-1"),
        row("qb-2", "qb-1", description="In README.md."),
        row("qb-3", description="Also in README.md, and in gone.md."),
    )
    begun(reviewer)
    reviewer.assignments.complete("qb-1", reason="merged in 3f2a1bc")
    reviewer.messages.send("ui-engineer", "mind the tests")
    begun(reviewer)
    taken = begun(hive)
    assert taken["issue"]["id"] == "qb-3"
    assert [each["body"] for each in taken["messages"]] == ["mind the tests"]
    assert hive.messages.inbox(unread=True) == []
    (other,) = taken["others"]
    assert (other["droid"], other["shared_files"]) == ("reviewer", ["README.md"])
    (built,) = begun(reviewer)["builds_on"]
    assert (built["id"], built["close_reason"]) == ("qb-1", "merged in 3f2a1bc")


def test_patterns_are_reserved_with_the_issue_or_neither(
    hive: Hive, reviewer: Hive, tracker: Path, beads: Path
) -> None:
    write_lines(tracker, row("qb-1"))
    reviewer.reservations.reserve(["src/**"])
    before = snapshot(beads)
    with pytest.raises(Held):
        begun(hive, "--reserve", "src/a.py")
    assert snapshot(beads) == before
    taken = begun(hive, "--reserve", "docs/**")
    assert [(each["pattern"], each["issue_id"]) for each in taken["reservations"]] == [
        ("docs/**", "qb-1")
    ]


class TestNothing:
    def test_is_left_when_everything_is_done(self, hive: Hive, tracker: Path) -> None:
        assert nothing(hive)["state"] == "done"
        write_lines(tracker, row("qb-1", status="closed"))
        assert nothing(hive)["state"] == "done"

    def test_is_there_while_others_work_on_it(
        self, hive: Hive, reviewer: Hive, tracker: Path
    ) -> None:
        write_lines(tracker, row("qb-1"), row("qb-2", "qb-1"))
        begun(reviewer)
        left = nothing(hive)
        assert left["state"] == "under_way"
        assert [(each["issue_id"], each["holder"], each["waits_for"]) for each in left["open"]] == [
            ("qb-1", "reviewer", []),
            ("qb-2", None, ["qb-1"]),
        ]

    def test_can_be_started_where_all_wait_for_what_nobody_has(
        self, hive: Hive, tracker: Path
    ) -> None:
        write_lines(tracker, row("qb-1", "qb-2"), row("qb-2", status="deferred"))
        assert nothing(hive)["state"] == "blocked"

    def test_is_written(self, hive: Hive, beads: Path) -> None:
        before = snapshot(beads)
        nothing(hive)
        assert snapshot(beads) == before


class TestWaiting:
    def test_ends_when_an_issue_becomes_ready(
        self, open_as: Opener, reviewer: Hive, tracker: Path
    ) -> None:
        write_lines(tracker, row("qb-1"), row("qb-2", "qb-1"))
        begun(reviewer)
        later = threading.Timer(0.2, lambda: open_as("reviewer").assignments.complete("qb-1"))
        later.start()
        assert begun(open_as("ui"), "--wait", "30s")["issue_id"] == "qb-2"
        later.join()

    def test_ends_when_everything_is_done(
        self, open_as: Opener, reviewer: Hive, tracker: Path
    ) -> None:
        write_lines(tracker, row("qb-1"))
        begun(reviewer)
        later = threading.Timer(0.2, lambda: open_as("reviewer").assignments.complete("qb-1"))
        later.start()
        assert nothing(open_as("ui"), "--wait", "30s")["state"] == "done"
        later.join()

    def test_ends_with_urgent_mail_to_all(
        self, open_as: Opener, reviewer: Hive, tracker: Path
    ) -> None:
        write_lines(tracker, row("qb-1"))
        begun(reviewer)
        reviewer.messages.send("@all", "good morning")
        send = partial(reviewer.messages.send, "@all", "stop", importance="urgent")
        later = threading.Timer(0.2, send)
        later.start()
        taken = nothing(open_as("ui"), "--wait", "30s")
        later.join()
        assert [each["body"] for each in taken["messages"]] == ["good morning", "stop"]

    def test_ends_at_the_timeout(self, hive: Hive, reviewer: Hive, tracker: Path) -> None:
        write_lines(tracker, row("qb-1"))
        begun(reviewer)
        with pytest.raises(Busy, match="no issue is ready for you") as refusal:
            answer(hive, "next", "--wait", "1s")
        assert refusal.value.details["state"] == "under_way"


def test_processes_at_once_share_the_issues(queen: Queen, beads: Path) -> None:
    write_lines(beads / "issues.jsonl", *(row(f"qb-{n}") for n in range(6)))
    started = [queen.start("next", "--json", as_=f"droid-{n}") for n in range(8)]
    ended = [(each.wait(60), *each.communicate()) for each in started]
    assert sorted(code for code, _, _ in ended) == [0] * 6 + [1] * 2
    hive = Hive.open(beads.parent, droid="x", env=environment(), clock=Clock())
    assert sorted(each.issue_id for each in hive.assignments.find()) == [
        f"qb-{n}" for n in range(6)
    ]
