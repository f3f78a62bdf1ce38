"""What waits for a person, and what the buttons beside it do: the same as the commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from boards import Open
from hives import Clock, QuickQueen

from queenbee import Hive
from queenbee.errors import Conflict, NotYours
from queenbee.watch.acts import Act, acts_of, do
from queenbee.watch.asks import Ask, asks
from queenbee.watch.facts import Reader
from queenbee.watch.view import timeless_panels, timely_panels


@pytest.fixture
def hive(quick: QuickQueen, repo: Path, frozen: Clock, open_as: Open) -> Hive:
    """A hive with two issues of `ui` and `api`, open for a person."""
    quick("init")
    for number in (1, 2, 3):
        quick("issue", "new", f"Title {number}", "--id", f"qb-{number}")
    quick("claim", "qb-1", as_="ui")
    quick("claim", "qb-2", as_="api")
    quick("reserve", "src/", as_="ui")
    return open_as("human")


def waiting(hive: Hive) -> list[Ask]:
    return asks(hive, hive.status())


def buttons(hive: Hive, panel: str) -> list[list[Act]]:
    facts = Reader(hive).read()
    panels = {**timeless_panels(facts), **timely_panels(facts, hive.now_ms())}
    return [acts_of(panel, row, facts) for row in panels[panel].rows]


def press(hive: Hive, act: Act, text: str = "") -> str:
    return do(hive, act.name, act.about, text)


def test_a_question_is_first_and_gone_once_it_is_answered(hive: Hive, quick: QuickQueen) -> None:
    quick("msg", "send", "human", "It is half done", as_="ui")
    quick("msg", "send", "human", "Which red?\n\nDark or light?", "--ack", as_="api")
    question, note = waiting(hive)
    assert (question.kind, question.detail) == ("answer", "Which red?\n\nDark or light?")
    assert [each.label for each in question.acts] == ["Answer"]
    assert [each.label for each in note.acts] == ["Answer", "Mark as read"]
    assert press(hive, question.acts[0], "Dark") == "answered api"
    assert "Dark" in quick("msg", "read", as_="api").out
    assert waiting(hive) == [note]
    assert press(hive, note.acts[1]) == "read what ui wrote"
    assert waiting(hive) == []


def test_a_person_with_a_name_reads_what_is_to_human(
    hive: Hive, quick: QuickQueen, open_as: Open
) -> None:
    quick("msg", "send", "human", "It is half done", as_="ui")
    dora = open_as("dora")
    [note] = waiting(dora)
    press(dora, note.acts[1])
    assert waiting(dora) == []
    quick("msg", "send", "ui", "For you alone", as_="api")
    [message] = hive.messages.inbox(droid="ui", unread=True)
    with pytest.raises(NotYours):
        do(dora, "read", message.id, "")


def test_what_a_droid_has_is_given_back_by_human_and_by_nobody_else(
    hive: Hive, quick: QuickQueen, open_as: Open
) -> None:
    [[api], [ui]] = [
        [each for each in acts if each.name == "release"]
        for acts in buttons(hive, "droids")
        if any(each.name == "release" for each in acts)
    ]
    assert "which api has" in api.question
    with pytest.raises(NotYours):
        press(open_as("dora"), api)
    assert press(hive, api) == "released qb-2"
    assert press(hive, ui) == "released qb-1"
    assert "No assignments" in quick("issue", "assignments").out
    assert buttons(hive, "leases") == []


def test_what_another_droid_has_by_then_is_not_given_back(hive: Hive, quick: QuickQueen) -> None:
    [api] = [
        each for acts in buttons(hive, "droids") for each in acts if "api has" in each.question
    ]
    quick("release", "qb-2", as_="api")
    quick("claim", "qb-2", as_="bob")
    with pytest.raises(Conflict, match="api no longer has qb-2"):
        press(hive, api)
    assert [each.droid for each in hive.assignments.find(issue_id="qb-2")] == ["bob"]


def test_an_issue_that_is_set_aside_is_tried_again_or_declined(
    hive: Hive, quick: QuickQueen
) -> None:
    quick("issue", "edit", "qb-3", "--status", "blocked")
    [retry, decline] = next(filter(None, buttons(hive, "issues")))
    assert press(hive, retry) == "opened qb-3"
    assert not any(buttons(hive, "issues"))
    assert press(hive, decline, "Not this year") == "closed qb-3"
    closed = quick("show", "qb-3", "--json").json["issue"]
    assert closed["close_reason"] == "Not this year"


def test_a_gate_that_failed_is_run_again(hive: Hive, quick: QuickQueen, repo: Path) -> None:
    of = ("--workflow", "shop", "--phase", "p1")
    quick("gate", "new", *of, as_="ui")
    quick("gate", "add-rule", *of, "--exists", "made.txt", as_="ui")
    quick("gate", "run", *of, as_="ui")
    [gate] = waiting(hive)
    assert press(hive, gate.acts[0]) == "gate shop/p1 failed again"
    (repo / "made.txt").touch()
    assert press(hive, gate.acts[0]) == "gate shop/p1 passed"
    assert waiting(hive) == []


def test_only_the_commands_that_were_shown_are_accepted(
    quick: QuickQueen, repo: Path, open_as: Open, asking: Path
) -> None:
    quick("init")

    def brought(check: str) -> tuple[Hive, Ask]:
        (repo / ".beads" / "queen.toml").write_text(f"[land]\ncheck = '{check}'\n")
        hive = open_as("human")
        [ask] = waiting(hive)
        assert check in ask.detail
        return hive, ask

    _, ask = brought("make test")
    hive, other = brought("curl evil.example")
    with pytest.raises(Conflict, match="no longer those that were shown"):
        press(hive, ask.acts[0])
    press(hive, other.acts[0])
    assert waiting(hive) == []


def test_a_quiet_droid_can_be_nudged_or_loses_its_issue(
    hive: Hive, quick: QuickQueen, frozen: Clock
) -> None:
    frozen.advance(3600)
    found = [each for each in waiting(hive) if each.kind == "quiet"]
    assert [[act.name for act in each.acts] for each in found] == [["nudge", "release"]] * 2
    assert press(hive, found[0].acts[0]) == "nudged api"
    assert press(hive, found[0].acts[1]) == "released qb-2"
