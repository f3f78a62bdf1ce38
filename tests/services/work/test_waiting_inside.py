"""`queen issue wait`: for issues, ready work, free files and mail: the parts inside."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import QuickQueen, write_lines

from queenbee import Hive
from queenbee.cli import progress
from queenbee.cli.app import Invocation
from queenbee.services.waiting.pauses import finish
from queenbee.services.work import Wanted, take_next, wait

pytestmark = pytest.mark.both_engines

Opener = Callable[[str], Hive]


@pytest.fixture(autouse=True)
def _tracked(beads: Path) -> None:
    write_lines(
        beads / "issues.jsonl",
        {"id": "qb-1", "title": "first", "status": "open"},
        {"id": "qb-2", "title": "then", "status": "open", "dependencies": ["qb-1"]},
    )


class Enough(Exception):
    """Raised by a caller that no longer wants to wait."""


def enough_at(calls: int) -> Callable[[float], None]:
    """Returns an `on_progress` that ends the wait when it is called for the nth time."""
    waited: list[float] = []

    def on_progress(waited_s: float) -> None:
        waited.append(waited_s)
        assert waited == sorted(waited)
        if len(waited) == calls:
            raise Enough

    return on_progress


def test_a_wait_that_its_caller_ends_is_over(open_as: Opener) -> None:
    with pytest.raises(Enough):
        finish(wait(open_as("ui"), Wanted(mail=True), timeout_s=60, on_progress=enough_at(3)))


def test_whoever_stops_waiting_for_an_issue_leaves_the_line(
    open_as: Opener, reviewer: Hive
) -> None:
    for each in ("qb-1", "qb-2"):
        reviewer.assignments.claim(each, anyway=True)
    seen: list[int] = []

    def on_progress(waited_s: float) -> None:
        seen.append(len(reviewer.queue.everything()))
        if len(seen) == 2:
            raise Enough

    with pytest.raises(Enough):
        finish(take_next(open_as("ui"), wait_s=60, on_progress=on_progress))
    assert seen == [1, 1]
    assert reviewer.queue.everything() == []


@pytest.mark.slow
def test_whoever_waits_for_an_issue_is_told_again_who_has_which(
    quick: QuickQueen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 0)
    quick("claim", "qb-1", "qb-2", as_="api")
    waited = quick("next", "--wait", "1s", as_="ui")
    assert waited.code == 6
    assert "queen: waiting for an issue, 0s so far: api has qb-1, qb-2\n" in waited.err
    assert "so far" not in quick("next", "--wait", "1s", "--json", as_="ui").err


def test_it_is_told_less_and_less_often(hive: Hive, monkeypatch: pytest.MonkeyPatch) -> None:
    call = Invocation()
    call.use(hive)
    monkeypatch.setattr(progress, "invocation", lambda: call)
    told: list[str] = []
    monkeypatch.setattr(progress, "tell", told.append)
    with progress.waiting_for("an issue", 600) as again:
        for waited_s in range(600):
            again(waited_s)
    said = [re.findall(", (.*) so far", each) for each in told]
    assert said == [["10s"], ["20s"], ["40s"], ["1m 20s"], ["2m 40s"], ["5m 20s"]]
