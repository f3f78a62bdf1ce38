"""What every agent reads at every start: the tools, in few words, and no word changes unnoticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp_clients import ERAS, inside
from tokens import tokens

from queenbee.mcp.guide import INSTRUCTIONS

SNAPSHOT = Path(__file__).parent / "tools.json"
MOST_TOKENS = 1500
NAMES = [
    "next",
    "status",
    "claim",
    "complete",
    "reserve",
    "release",
    "check",
    "send",
    "inbox",
    "wait",
]


def listed(tree: Path, era: str) -> list[dict[str, Any]]:
    """Returns the tools as they are on the wire."""

    async def act(client: Any) -> list[dict[str, Any]]:
        found = await client.list_tools()
        return [each.model_dump(by_alias=True, exclude_none=True) for each in found.tools]

    tools: list[dict[str, Any]] = inside(tree, act, mode=era)
    return tools


@pytest.mark.parametrize("era", ERAS)
def test_the_list_is_the_one_that_was_looked_at(repo: Path, era: str) -> None:
    """After a change on purpose: `python tests/mcp_surface/test_tool_list.py`."""
    assert listed(repo, era) == json.loads(SNAPSHOT.read_text())


def test_there_are_ten_tools_and_each_says_what_it_is_for() -> None:
    tools = json.loads(SNAPSHOT.read_text())
    assert [each["name"] for each in tools] == NAMES
    assert all(each["description"] for each in tools)


def test_each_tool_says_that_it_destroys_nothing_and_reaches_nobody_outside() -> None:
    """Codex refuses every other tool, unless its user approves each call."""
    for each in json.loads(SNAPSHOT.read_text()):
        reads = each["name"] in ("status", "check", "wait")
        hints = {"destructiveHint": False, "openWorldHint": False}
        assert each["annotations"] == {"readOnlyHint": reads, **hints}


def test_the_list_and_the_instructions_cost_few_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps(json.loads(SNAPSHOT.read_text()), separators=(",", ":"))
    of_list, of_instructions = tokens(text), tokens(INSTRUCTIONS)
    with capsys.disabled():
        print(f"\ntokens: tool list {of_list}, instructions {of_instructions}")
    assert 0 < of_list + of_instructions < MOST_TOKENS


if __name__ == "__main__":
    here = Path(__file__).parent
    SNAPSHOT.write_text(json.dumps(listed(here, "legacy"), indent=1, ensure_ascii=False) + "\n")
