"""What agents ask a person reaches whoever is at the keyboard, and can be answered there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen, environment


@pytest.fixture
def asked(quick: QuickQueen, beads: Path) -> QuickQueen:
    sent = quick("msg", "send", "human", "Which currency?", "--ack", as_="dahlia")
    assert sent.code == 0, sent
    return quick


def lines(quick: QuickQueen, *arguments: str, as_: str | None = None) -> list[str]:
    ran = quick(*arguments, as_=as_, env=environment())
    assert ran.code == 0, ran
    return ran.out.splitlines()


def test_a_question_is_the_first_line_of_queen(asked: QuickQueen) -> None:
    first = lines(asked)[0]
    assert "dahlia wants your answer: “Which currency?”" in first
    assert "queen answer " in first


def test_somebody_without_a_name_answers_as_human(asked: QuickQueen) -> None:
    name = lines(asked)[0].split("queen answer ")[1].split()[0]
    lines(asked, "answer", name, "Euros")
    assert not any("for a person" in each for each in lines(asked))
    [reply] = asked("--json", "msg", "inbox", as_="dahlia").json
    assert (reply["from"], reply["body"]) == ("human", "Euros")


def test_a_person_with_a_name_answers_under_it(asked: QuickQueen) -> None:
    name = lines(asked, as_="Dora")[0].split("queen answer ")[1].split()[0]
    lines(asked, "answer", name, "Euros", as_="Dora")
    [reply] = asked("--json", "msg", "inbox", as_="dahlia").json
    assert reply["from"] == "Dora"


def test_an_agent_does_not_answer_for_a_person(asked: QuickQueen) -> None:
    name = lines(asked)[0].split("queen answer ")[1].split()[0]
    ran = asked("answer", name, "Euros", as_="ui", env={**environment(), "CLAUDECODE": "1"})
    assert ran.code == 5
    assert "is to human, not to ui" in ran.err


def test_a_name_is_forgotten(quick: QuickQueen, beads: Path) -> None:
    lines(quick, "hive", "whoami", "--set", "Dora")
    lines(quick, "hive", "whoami", "--unset")
    assert quick("hive", "whoami").code != 0
