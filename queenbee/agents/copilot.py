"""Copilot CLI: `.github/hooks/queenbee.json`, a server in `.mcp.json`, AGENTS.md, a skill."""

from __future__ import annotations

from queenbee.agents.agent import Agent, Surroundings, instructions, skill
from queenbee.agents.files.file_edits import Part
from queenbee.agents.files.hook_entries import Group, HookEntries
from queenbee.agents.files.json_member import JsonMember
from queenbee.agents.launch import guarded

_HOME = "COPILOT_HOME"
_TIMEOUT_S = 10


def groups(run: str) -> dict[str, Group]:
    """Returns the hooks by event, in the spelling for which the input names the event.

    `UserPromptSubmit` is left out: what a hook answers to it does not reach the model.
    """
    handler: Group = {"type": "command", "bash": guarded(run), "timeoutSec": _TIMEOUT_S}
    named = ("PreToolUse", "PostToolUse", "Stop", "SessionStart", "SessionEnd", "SubagentStop")
    return dict.fromkeys(named, handler)


def parts(place: Surroundings) -> list[Part]:
    """Returns what Copilot CLI's files get."""
    hooks = place.at(".github/hooks/queenbee.json", ".copilot/hooks/queenbee.json", _HOME)
    found: list[Part] = [HookEntries(hooks, groups(place.hook), versioned=True)]
    of_user = {"type": "local", "tools": ["*"]} if place.tree is None else {}
    path = place.at(".mcp.json", ".copilot/mcp-config.json", _HOME)
    found.append(JsonMember(path, "mcpServers", {**of_user, **place.server}))
    return [*found, *instructions(place, "AGENTS.md"), *skill(place, ".agents/skills")]


AGENT = Agent(
    "copilot",
    "Copilot CLI",
    parts,
    programs=["copilot"],
    in_tree=[".github/hooks", ".github/copilot-instructions.md"],
    in_home=[".copilot"],
)
