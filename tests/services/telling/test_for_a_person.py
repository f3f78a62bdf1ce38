"""What agents ask a person reaches whoever is at the keyboard, and can be answered there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, environment, git, write_lines, write_settings


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


def test_a_question_that_was_read_waits_until_it_is_answered(asked: QuickQueen) -> None:
    lines(asked, "msg", "read", as_="human")
    first = lines(asked)[0]
    assert "dahlia wants your answer: “Which currency?”" in first
    lines(asked, "answer", first.split("queen answer ")[1].split()[0], "Euros")
    assert not any("for a person" in each for each in lines(asked))


def test_any_message_can_be_answered_and_who_looks_is_nobody_else(quick: QuickQueen) -> None:
    quick("msg", "send", "human", "I use UTC", as_="dahlia")
    lines(quick, "msg", "inbox", as_="human")
    said = lines(quick)
    assert ": queen answer " in said[0]
    assert not [each for each in said if "human (" in each or "no name" in each]


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


class TestDecisions:
    @pytest.mark.parametrize(
        "row",
        [
            {"labels": ["web", "human"]},
            {"issue_type": "decision"},
        ],
    )
    def test_issue_that_a_person_decides_is_gathered_until_it_is_closed(
        self, quick: QuickQueen, beads: Path, row: dict[str, object]
    ) -> None:
        issue = {"id": "qb-1", "title": "Which color?", "status": "open", **row}
        others = {"id": "qb-2", "title": "human", "status": "open", "owner": "human"}
        write_lines(beads / "issues.jsonl", issue, others)
        asked = "qb-1 needs a decision: “Which color?”"
        assert lines(quick)[0] == f"for a person: {asked}: queen show qb-1"
        assert [each["id"] for each in quick("--json", "status").json["decisions"]] == ["qb-1"]
        assert any(asked in line for line in lines(quick, "msg", "notify", "--once"))
        lines(quick, "issue", "close", "qb-1")
        assert not any("needs a decision" in line for line in lines(quick))


@pytest.mark.slow
class TestFailedLandings:
    @pytest.fixture
    def tree(self, queen: Queen, repo: Path, beads: Path) -> Path:
        """The worktree of one who could not land."""
        check = "test ! -e broken || { seq 60; echo total is wrong; exit 1; }"
        write_settings(beads, f'[land]\ntarget = "main"\ncheck = "{check}"\n')
        rows = [{"id": each, "title": each, "status": "open"} for each in ("qb-1", "qb-2")]
        write_lines(beads / "issues.jsonl", *rows)
        assert queen("claim", "qb-2", as_="api").code == 0
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "hive")
        tree = Path(queen("--json", "worktree", "add", "ui", "qb-1").json["path"])
        (tree / "broken").write_text("")
        return tree

    @pytest.fixture
    def failed(
        self, quick: QuickQueen, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[..., list[str]]:
        """Returns what the status says of landings that failed, some time from now."""

        def failed(after_s: int = 3_600) -> list[str]:
            now_ns = time.time_ns() + after_s * 10**9
            with monkeypatch.context() as patched:
                patched.setattr(time, "time_ns", lambda: now_ns)
                return [each for each in lines(quick) if "could not land" in each]

        return failed

    @pytest.mark.parametrize("options", [(), ("--json",)])
    def test_they_are_gathered_once_the_droid_with_the_issue_is_quiet(
        self,
        queen: Queen,
        tree: Path,
        failed: Callable[..., list[str]],
        options: tuple[str, ...],
    ) -> None:
        assert Queen(tree)("land", "-m", "broken", *options).code == 1
        assert not failed(after_s=0)  # It mends that itself.
        said = "for a person: ui could not land qb-1: “total is wrong”"
        assert failed() == [said]
        assert queen("release", "qb-1", as_="ui").code == 0
        assert not failed()

    def test_what_was_refused_is_told_with_its_reason(
        self, tree: Path, failed: Callable[..., list[str]]
    ) -> None:
        (tree / "broken").unlink()
        assert Queen(tree)("land", "--json").code == 5
        said = "for a person: ui could not land qb-1: “nothing to land: main has all commits of"
        assert failed()[0].startswith(said)

    def test_all_that_a_check_said_last_is_shown(self, tree: Path) -> None:
        queen = Queen(tree)
        assert "\n    total is wrong\n" in queen("land", "-m", "broken").out
        assert "    1\n    2\n" in queen("land", "--result").out
        assert "\n    total is wrong\n" in queen("land", "--result").out

    def test_a_call_where_nothing_can_land_is_none(self, queen: Queen, beads: Path) -> None:
        write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
        assert queen("claim", "qb-1", as_="ui").code == 0
        assert queen("land", "--unchecked", as_="ui").code == 2
        assert "could not land" not in queen("status").out
