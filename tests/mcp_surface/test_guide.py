"""The loop that a client is given: it speaks of tools, arguments and answers that there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
from hives import write_lines
from mcp_clients import inside, result_of

from queenbee.cli.app import Invocation
from queenbee.cli.main import queen
from queenbee.errors import Held
from queenbee.mcp.guide import INSTRUCTIONS, LOOP
from queenbee.mcp.tools import TOOLS

STATES = {"yours", "under_way", "done", "blocked"}


def words_in(text: str) -> set[str]:
    """Returns the single words between backticks, which are names of ours."""
    return set(re.findall(r"`([a-z_]+)`", text))


def test_every_tool_that_the_loop_calls_exists() -> None:
    called = re.findall(r"\b(?:[Cc]all|by|or|,) `(\w+)`", LOOP)
    assert {"next", "wait", "reserve", "send", "complete", "release"} <= set(called)
    assert set(called) - STATES <= set(TOOLS)
    instructed = re.findall(r"\b[Cc]all (\w+)", INSTRUCTIONS)
    assert instructed == ["next", "complete"]
    assert set(instructed) <= set(TOOLS)


def test_every_argument_that_the_loop_gives_is_one_of_its_tool() -> None:
    given = re.findall(r"`(\w+)`,? with `(\w+)`", LOOP)
    assert given == [("wait", "ready"), ("wait", "free"), ("complete", "next")]
    assert all(argument in TOOLS[tool].arguments for tool, argument in given)
    assert "reason" in TOOLS["release"].arguments


def test_every_other_name_is_a_state_or_a_refusal() -> None:
    arguments = {name for tool in TOOLS.values() for name in tool.arguments}
    assert words_in(LOOP) - set(TOOLS) - arguments == (STATES | {Held.code})


def test_the_states_that_the_loop_names_are_those_that_next_answers(repo: Path) -> None:
    def rows(*found: dict[str, Any]) -> None:
        begun = {"title": "x", "status": "open", "created_at": "2024-12-14T10:00:00Z"}
        write_lines(repo / ".beads" / "issues.jsonl", *({**begun, **row} for row in found))

    def state(droid: str) -> str:
        async def ask(client: Any) -> Any:
            return result_of(await client.call_tool("next", {}))["state"]

        found: str = inside(repo, ask, env={"QUEEN_DROID": droid})
        return found

    rows({"id": "qb-1"})
    answered = [state("first"), state("second")]
    closed = {"id": "qb-1", "status": "closed", "closed_at": "2124-12-14T10:00:00Z"}
    rows({**closed, "updated_at": "2124-12-14T10:00:00Z"})
    answered.append(state("second"))
    rows({"id": "qb-2", "status": "blocked"})
    answered.append(state("second"))
    assert answered == ["yours", "under_way", "done", "blocked"]
    assert set(answered) == STATES


def test_the_command_that_the_loop_names_exists_with_its_options() -> None:
    commands = re.findall(r"`(queen [^`]*)`", LOOP)
    assert commands
    for line in commands:
        _, name, *words = shlex.split(line)
        context = click.Context(queen, info_name="queen", obj=Invocation())
        command = queen.get_command(context, name)
        assert command is not None, line
        command.make_context(name, words, parent=context)
