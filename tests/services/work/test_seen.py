"""What a droid is told of those who have nothing, and of what it has waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import QuickQueen, write_lines

from queenbee import Hive
from queenbee.services.waiting.pauses import finish
from queenbee.services.work import Begin, Nothing, take_next


def test_status_names_those_without_an_issue_for_an_hour(
    quick: QuickQueen, open_as: Callable[[str], Hive]
) -> None:
    quick("issue", "new", "one", "--id", "qb-1", as_="lead")
    quick("claim", "qb-1", as_="busy")
    quick("inbox", as_="idler")
    quick("msg", "inbox", as_="idler")
    shown = quick("status", as_="lead").out
    assert "without an issue: idler (seen" in shown
    assert "busy (seen" not in shown


def test_status_says_how_many_more_are_done(quick: QuickQueen) -> None:
    for number in range(7):
        quick("issue", "new", "one", "--id", f"qb-{number}", as_="lead")
        quick("claim", f"qb-{number}", as_="lead")
        quick("complete", f"qb-{number}", as_="lead")
    assert "… 2 more: queen issue assignments --status completed" in quick("status", as_="lead").out


@pytest.mark.parametrize("then", [[], ["qb-3"]])
def test_who_had_to_wait_is_told_for_whom(
    beads: Path, quick: QuickQueen, repo: Path, then: list[str]
) -> None:
    rows = [{"id": each, "title": "x", "status": "open"} for each in ("qb-1", *then)]
    if then:
        rows[-1]["dependencies"] = ["qb-1"]  # type: ignore[assignment]
        rows.append({"id": "qb-2", "title": "something else", "status": "open"})
    write_lines(beads / "issues.jsonl", *rows)
    if then:
        quick("claim", "qb-2", as_="other")
    quick("claim", "qb-1", as_="slow")
    answers = []

    def wait() -> None:
        with Hive.open(repo, droid="ui", env={}) as hive:
            answers.append(finish(take_next(hive, wait_s=30)))

    waiting = threading.Thread(target=wait)
    waiting.start()
    with Hive.open(repo, droid="slow", env={}) as hive:
        while not hive.queue.everything():
            pass
        hive.assignments.complete("qb-1")
    waiting.join(30)
    (answer,) = answers
    assert isinstance(answer, Begin if then else Nothing)
    assert answer.waited_for == {"qb-1": "slow"}
