"""Sessions: who acts in one, and what it is told when it begins: the parts inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_inputs import NAME, SESSION, recorded, shaped
from tokens import tokens

from queenbee import Hive
from queenbee.core.names import session_name
from queenbee.services.telling import briefing

Ask = Callable[..., dict[str, Any] | None]


def hive_of(tree: Path, droid: str) -> Hive:
    return Hive.open(tree, droid=droid, env={"QUEEN_DURABILITY": "buffered"})


def told(answer: dict[str, Any] | None) -> list[str]:
    assert answer is not None
    output = answer["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    return str(output["additionalContext"]).splitlines()


def test_a_session_is_named_after_its_agent_and_the_beginning_of_its_id() -> None:
    assert session_name("claude", SESSION) == NAME


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("0199a213-81c0-7800-8aa1-bbab2a035a53", "0199a213-81c1-7c00-9aa1-0bab2a035a99"),
        ("ses_5f3a9b2c1dffeXyZabcdefghij", "ses_5f3a9b2c1dffeXyZabcdefghik"),
    ],
)
def test_sessions_that_begin_together_get_two_names(left: str, right: str) -> None:
    assert session_name("codex", left) != session_name("codex", right)


@pytest.mark.parametrize("session", [None, "", "---", "\x00\n"])
def test_a_session_without_an_id_has_no_name(session: str | None) -> None:
    assert session_name("claude", session) is None


@pytest.mark.parametrize("agent", ["", "a b", "x" * 80, "ünïcode"])
def test_an_agent_with_an_invalid_name_is_called_agent(agent: str) -> None:
    assert session_name(agent, SESSION) == "agent-1b4e28ba"


def test_a_session_is_told_what_queen_prime_prints(ask: Ask, tree: Path) -> None:
    reviewer = hive_of(tree, "reviewer")
    reviewer.messages.send("tester", "Please wait", subject="About the parser")
    reviewer.reservations.reserve(["docs/**"], issue_id="qb-4")
    hive_of(tree, "tester").reservations.reserve(["tests/**"])

    answer = ask(recorded("claude/session-start", tree), QUEEN_DROID="tester")

    assert "\n".join(told(answer)) + "\n" == briefing.prime(hive_of(tree, "tester"))
    assert told(answer)[-5:] == [
        "You are tester.",
        "You have tests/**.",
        "Unread messages: 1 (queen msg read)",
        "- “About the parser” from reviewer",
        "reviewer has docs/**.",
    ]


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ("claude/session-start", "CLAUDE.md"),
        ("gemini/session-start", "GEMINI.md"),
        ("codex/session-start", "AGENTS.md"),
        ("copilot/claude-names-session-start", "AGENTS.md"),
        ("opencode/session-start", "AGENTS.md"),
    ],
)
def test_what_its_instructions_say_a_session_is_not_told_again(
    ask: Ask, tree: Path, shape: str, name: str
) -> None:
    start = shaped(shape, tree)
    assert briefing.section().splitlines()[2] in str(ask(start))
    (tree / name).write_text(f"# Ours\n\n<!-- x -->\n{briefing.section()}<!-- y -->\n")
    answer = ask(start)
    assert answer is not None
    text = answer["hookSpecificOutput"]["additionalContext"]
    assert text.startswith("QueenBee: You are ")
    assert tokens(text + briefing.section()) <= 350


def test_instructions_that_take_in_others_are_read_with_them(ask: Ask, tree: Path) -> None:
    (tree / "CLAUDE.md").write_text("See below.\n@AGENTS.md\n")
    (tree / "AGENTS.md").write_text(briefing.section())
    assert told(ask(recorded("claude/session-start", tree)))[0] == f"QueenBee: You are {NAME}."
