"""The state of a pull request: each row of the table, and what each event makes of each state."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from queenbee.core.reviews.pull_requests import (
    FAILED,
    PASSED,
    PENDING,
    STATES,
    Check,
    PullRequest,
    state_of,
)
from queenbee.core.reviews.review import Review

PUSHED, OTHER, MERGE = "a" * 40, "b" * 40, "c" * 40


def pull(**more: object) -> PullRequest:
    """Returns one that is open and could be merged."""
    plain = {"checks": checks(PASSED), "merge_state": "CLEAN", "decision": "APPROVED"}
    return replace(PullRequest(1, "OPEN", PUSHED), **{**plain, **more})  # type: ignore[arg-type]


def checks(*states: str, required: bool = True) -> list[Check]:
    return [Check(f"c{at}", each, is_required=required) for at, each in enumerate(states)]


MERGED = {"state": "MERGED", "merge_commit": MERGE, "merge_state": "UNKNOWN"}
ROWS: list[tuple[str, PullRequest | None, bool]] = [
    ("landed", pull(**MERGED), True),
    ("merged", pull(**MERGED), False),
    ("merged", pull(**MERGED, head=OTHER), False),
    ("partly_landed", pull(**MERGED, head=OTHER), True),
    ("closed", pull(state="CLOSED", merge_state="UNKNOWN"), False),
    ("closed", pull(state="CLOSED", head=OTHER), False),
    ("foreign", pull(head=OTHER), False),
    ("foreign", pull(head=OTHER, merge_state="DIRTY"), False),
    ("unknown", None, False),
    ("unknown", pull(state=""), False),
    ("unknown", pull(merge_state="UNKNOWN"), False),
    ("unknown", pull(merge_state="something new"), False),
    ("conflict", pull(merge_state="DIRTY", checks=checks(FAILED)), False),
    ("failing", pull(checks=checks(PENDING, FAILED), decision="CHANGES_REQUESTED"), False),
    ("failing", pull(checks=checks(FAILED), merge_state="UNKNOWN"), False),
    ("changes", pull(decision="CHANGES_REQUESTED", merge_state="BLOCKED"), False),
    ("changes", pull(decision="CHANGES_REQUESTED", merge_state="UNKNOWN"), False),
    ("behind", pull(merge_state="BEHIND", checks=checks(PENDING)), False),
    ("checking", pull(checks=checks(PENDING), decision="REVIEW_REQUIRED"), False),
    ("waiting", pull(decision="REVIEW_REQUIRED", merge_state="BLOCKED", is_draft=True), False),
    ("waiting", pull(merge_state="BLOCKED"), False),
    ("waiting", pull(merge_state="BLOCKED", checks=None), False),
    ("draft", pull(is_draft=True, merge_state="DRAFT"), False),
    ("queued", pull(is_queued=True, merge_state="BLOCKED"), False),
    ("ready", pull(), False),
    ("ready", pull(merge_state="HAS_HOOKS", decision=""), False),
    ("ready", pull(merge_state="UNSTABLE", checks=checks(FAILED, required=False)), False),
]


@pytest.mark.parametrize(("state", "seen", "is_in"), ROWS)
def test_each_row(state: str, seen: PullRequest | None, is_in: bool) -> None:
    assert state_of(seen, PUSHED, is_in_target=is_in) == state


def test_each_state_has_a_row() -> None:
    assert {state for state, _, _ in ROWS} == {*STATES}


BEGIN = {state: seen for state, seen, _ in ROWS if seen is not None and seen.state}
"""One pull request in each state."""
EVENTS: dict[str, tuple[dict[str, object], str, tuple[str, ...]]] = {
    "a check fails": ({"checks": checks(FAILED)}, "failing", ("conflict",)),
    "a check begins": (
        {"checks": checks(PENDING)},
        "checking",
        ("conflict", "changes", "behind"),
    ),
    "a review wants changes": (
        {"decision": "CHANGES_REQUESTED"},
        "changes",
        ("conflict", "failing"),
    ),
    "the target moves, with a conflict": ({"merge_state": "DIRTY"}, "conflict", ()),
    "somebody pushes to it": ({"head": OTHER}, "foreign", ()),
    "somebody closes it": ({"state": "CLOSED"}, "closed", ()),
    "somebody merges it": ({**MERGED, "head": PUSHED}, "landed", ()),
    "somebody merges what was pushed before": ({**MERGED, "head": OTHER}, "partly_landed", ()),
}
"""What changes, the state after it, and the states that stay because they come first."""
OPEN_ENDED = ("landed", "merged", "partly_landed", "closed", "foreign")


@pytest.mark.parametrize(("before", "event"), [*product(BEGIN, EVENTS)])
def test_each_event_in_each_state(before: str, event: str) -> None:
    seen, (changes, after, stays) = BEGIN[before], EVENTS[event]
    if before in OPEN_ENDED and "state" not in changes:
        stays = OPEN_ENDED
    if before in stays:
        # What has ended, or is somebody else's, is that whatever else is said of it.
        after = before if before in ("foreign", "closed") or before not in OPEN_ENDED else ""
    found = state_of(replace(seen, **changes), PUSHED, is_in_target=True)  # type: ignore[arg-type]
    assert found == after or (not after and found in ("landed", "partly_landed"))


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {},
        {"number": 0, "url": "", "branch": "b", "head": PUSHED, "target": "t"},
        {"number": True, "url": "", "branch": "b", "head": PUSHED, "target": "t"},
        {"number": 1, "url": "", "branch": "--all", "head": PUSHED, "target": "t"},
        {"number": 1, "url": "", "branch": "b", "head": "--exec=x", "target": "t"},
        {"number": 1, "url": None, "branch": "b", "head": PUSHED, "target": "t"},
    ],
)
def test_a_record_that_says_something_else_is_no_review(said: object) -> None:
    assert Review.of(said) is None


def test_a_review_is_read_as_it_was_written() -> None:
    review = Review(7, url="https://h/7", branch="ui-q-1", head=PUSHED, target="origin/main")
    review.rounds, review.asks, review.told = 2, "failing", ("k",)
    again = Review.of(review.to_dict())
    assert again is not None
    assert again.to_dict() == review.to_dict()
    assert str(again) == "#7"
