"""What every agent reads at every start: the tools, in few words, and no word changes unnoticed."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from mcp_clients import ERAS, inside
from tokens import tokens

from queenbee.mcp.guide import INSTRUCTIONS

SNAPSHOT = Path(__file__).parent / "tools.json"
MOST_TOKENS = 1600
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
    "show",
    "edit",
    "note",
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


def test_there_are_few_tools_and_each_says_what_it_is_for() -> None:
    tools = json.loads(SNAPSHOT.read_text())
    assert [each["name"] for each in tools] == NAMES
    assert all(each["description"] for each in tools)


def test_each_tool_says_that_it_destroys_nothing_and_reaches_nobody_outside() -> None:
    """Codex refuses every other tool, unless its user approves each call."""
    for each in json.loads(SNAPSHOT.read_text()):
        reads = each["name"] in ("status", "check", "show", "wait")
        hints = {"destructiveHint": False, "openWorldHint": False}
        assert each["annotations"] == ({"readOnlyHint": True} if reads else {}) | hints


def test_a_client_that_defers_tools_is_asked_for_those_of_the_loop() -> None:
    """Claude Code lists others by their name alone, until its model searches for them."""
    asked = [each["name"] for each in json.loads(SNAPSHOT.read_text()) if "_meta" in each]
    assert asked == ["next", "complete", "reserve"]


SEARCHES = {
    "lock files": "reserve",
    "lock files before editing": "reserve",
    "coordinate with other agents": "status",
    "take a task": "next",
    "take the next issue": "next",
    "create an issue": "edit",
    "search issues": "show",
    "send a message": "send",
    "unlock": "release",
}


@pytest.mark.parametrize("query", SEARCHES)
def test_what_an_agent_searches_for_finds_the_tool(query: str) -> None:
    """By BM25 over names, descriptions and arguments, as Codex searches the tools that it defers;
    Claude Code wants a word of the query in the name or the description.
    """
    documents = {each["name"]: words_of(each) for each in json.loads(SNAPSHOT.read_text())}
    best = max(documents, key=lambda name: relevance(words(query), name, documents))
    assert best == SEARCHES[query]


def words(text: str) -> list[str]:
    return [each.removesuffix("s") for each in re.findall("[a-z]+", text.lower())]


def words_of(tool: dict[str, Any]) -> list[str]:
    return words(
        " ".join((tool["name"], tool["description"], *tool["inputSchema"].get("properties", ())))
    )


def relevance(query: list[str], name: str, documents: dict[str, list[str]]) -> float:
    """Returns how well a document fits a query, by Okapi BM25 with its usual 1.2 and 0.75."""
    usual = sum(map(len, documents.values())) / len(documents)
    text, found = documents[name], 0.0
    for each in query:
        having = sum(each in other for other in documents.values())
        rare = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        times = text.count(each)
        found += rare * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * len(text) / usual))
    return found


def test_the_list_and_the_instructions_cost_few_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps(json.loads(SNAPSHOT.read_text()), separators=(",", ":"))
    of_list, of_instructions = tokens(text), tokens(INSTRUCTIONS)
    with capsys.disabled():
        print(f"\ntokens: tool list {of_list}, instructions {of_instructions}")
    assert 0 < of_list <= MOST_TOKENS
    assert of_instructions < 100


if __name__ == "__main__":
    here = Path(__file__).parent
    SNAPSHOT.write_text(json.dumps(listed(here, "legacy"), indent=1, ensure_ascii=False) + "\n")
