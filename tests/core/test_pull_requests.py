"""The state of a pull request: each row of the table, and what each event makes of each state."""

from __future__ import annotations

from dataclasses import replace

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

PUSHED, OTHER, MERGE, MENDED = (letter * 40 for letter in "abcd")


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


BEGIN: dict[str, PullRequest] = {
    "landed": pull(**MERGED),
    "merged": pull(**MERGED),
    "partly_landed": pull(**MERGED, head=OTHER),
    "closed": pull(state="CLOSED", merge_state="UNKNOWN"),
    "foreign": pull(head=OTHER),
    "unknown": pull(merge_state="UNKNOWN"),
    "conflict": pull(merge_state="DIRTY"),
    "failing": pull(checks=checks(FAILED), merge_state="BLOCKED"),
    "changes": pull(decision="CHANGES_REQUESTED", merge_state="BLOCKED"),
    "behind": pull(merge_state="BEHIND"),
    "checking": pull(checks=checks(PENDING), merge_state="BLOCKED"),
    "waiting": pull(decision="REVIEW_REQUIRED", merge_state="BLOCKED"),
    "draft": pull(is_draft=True, merge_state="DRAFT"),
    "queued": pull(is_queued=True, merge_state="BLOCKED"),
    "ready": pull(),
}
"""One pull request in each state, for one reason alone."""
EVENTS: dict[str, dict[str, object]] = {
    "a check fails": {"checks": checks(FAILED)},
    "checks begin": {"checks": checks(PENDING)},
    "checks pass": {"checks": checks(PASSED)},
    "a review wants changes": {"decision": "CHANGES_REQUESTED"},
    "it is approved": {"decision": "APPROVED"},
    "the target moves into a conflict": {"merge_state": "DIRTY"},
    "the target moves on": {"merge_state": "BEHIND"},
    "nothing is in its way": {"merge_state": "CLEAN", "is_draft": False},
    "it is made a draft": {"is_draft": True},
    "it is queued": {"is_queued": True},
    "somebody pushes to it": {"head": OTHER},
    "somebody closes it": {"state": "CLOSED"},
    "somebody reopens it": {"state": "OPEN"},
    "it is merged": {**MERGED, "head": PUSHED},
    "what was pushed before is merged": {**MERGED, "head": OTHER},
    "it is pushed again": {
        "head": MENDED, "checks": checks(PENDING), "merge_state": "UNKNOWN", "decision": ""
    },
    "the target is fetched": {},
}  # fmt: skip
"""What happens, and what changes in the answer of the host."""
AFTER = """
landed        land land land land land land land land land land part    -    - land part    - land
merged        merg merg merg merg merg merg merg merg merg merg merg    -    - merg merg    - land
partly_landed part part part part part part part part part part part    -    - land part    - part
closed        clos clos clos clos clos clos clos clos clos clos clos clos unkn land part    - clos
foreign       fore fore fore fore fore fore fore fore fore fore fore clos fore land part chec fore
unknown       fail chec unkn chan unkn conf behi read draf queu fore clos unkn land part chec unkn
conflict      conf conf conf conf conf conf behi read conf conf fore clos conf land part chec conf
failing       fail chec wait fail fail conf fail fail fail fail fore clos fail land part chec fail
changes       fail chan chan chan wait conf chan chan chan chan fore clos chan land part chec chan
behind        fail behi behi chan behi conf behi read behi behi fore clos behi land part chec behi
checking      fail chec wait chan chec conf behi chec chec chec fore clos chec land part chec chec
waiting       fail chec wait chan wait conf behi wait wait wait fore clos wait land part chec wait
draft         fail chec draf chan draf conf behi read draf draf fore clos draf land part chec draf
queued        fail chec queu chan queu conf behi queu draf queu fore clos queu land part chec queu
ready         fail chec read chan read conf behi read draf queu fore clos read land part chec read
"""
"""The state after each event, in their order, by its first letters; `-` for what cannot happen."""
AWAITED = {
    (line.split()[0], event): state
    for line in AFTER.strip().splitlines()
    for event, state in zip(EVENTS, line.split()[1:], strict=True)
    if state != "-"
}


def test_each_state_has_a_line_in_the_table() -> None:
    assert [*BEGIN] == [line.split()[0] for line in AFTER.strip().splitlines()] == [*STATES]
    for state, seen in BEGIN.items():
        assert state_of(seen, PUSHED, is_in_target=state != "merged") == state


@pytest.mark.parametrize(("before", "event"), AWAITED)
def test_each_event_in_each_state(before: str, event: str) -> None:
    seen = replace(BEGIN[before], **EVENTS[event])  # type: ignore[arg-type]
    pushed = MENDED if "pushed again" in event else PUSHED
    is_in = before != "merged" or "fetched" in event
    assert state_of(seen, pushed, is_in_target=is_in).startswith(AWAITED[before, event])


@pytest.mark.parametrize("before", BEGIN)
def test_a_host_that_is_away_says_nothing_in_any_state(before: str) -> None:
    assert state_of(None, PUSHED, is_in_target=before != "merged") == "unknown"


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
