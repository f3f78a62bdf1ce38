"""Cursor: `.cursor/hooks.json`, a server in `.cursor/mcp.json`, AGENTS.md, a skill."""

from __future__ import annotations

from queenbee.agents.agent import Agent, Surroundings, instructions, skill
from queenbee.agents.files.file_edits import Part
from queenbee.agents.files.hook_entries import Group, HookEntries
from queenbee.agents.files.json_member import JsonMember
from queenbee.agents.launch import guarded

EDITS = "Write|Delete"
NEWS = f"{EDITS}|Shell|Task"
"""The tools after which an agent hears what is new: those that take longer than the hook."""


def groups(run: str) -> dict[str, Group]:
    """Returns the hooks by event.

    `afterFileEdit` also reports edits that no tool is named for, but carries nothing to the model;
    nor does `beforeSubmitPrompt`, which is left out.
    """
    run = guarded(run)
    return {
        "preToolUse": {"command": run, "matcher": f"{EDITS}|Shell"},
        "postToolUse": {"command": run, "matcher": NEWS},
        "afterFileEdit": {"command": run},
        "stop": {"command": run},
        "sessionStart": {"command": run},
        "sessionEnd": {"command": run},
    }


def parts(place: Surroundings) -> list[Part]:
    """Returns what Cursor's files get."""
    hooks = place.at(".cursor/hooks.json", ".cursor/hooks.json")
    found: list[Part] = [
        HookEntries(hooks, groups(place.hook), comments=True, versioned=True),
    ]
    path = place.at(".cursor/mcp.json", ".cursor/mcp.json")
    found.append(JsonMember(path, "mcpServers", place.server, comments=True))
    return [*found, *instructions(place, "AGENTS.md"), *skill(place, ".agents/skills")]


AGENT = Agent(
    "cursor",
    "Cursor",
    parts,
    programs=["cursor", "cursor-agent"],
    in_tree=[".cursor"],
    in_home=[".cursor"],
)
