"""Qwen Code: hooks and a server in `.qwen/settings.json`, AGENTS.md, a skill."""

from __future__ import annotations

from queenbee.agents.agent import Agent, Surroundings, instructions, skill
from queenbee.agents.files.allow_rules import AllowRules
from queenbee.agents.files.file_edits import Part
from queenbee.agents.files.hook_entries import Group
from queenbee.agents.gemini import handled, hooks_and_server

EDITS = "edit|write_file|notebook_edit"
NEWS = f"{EDITS}|run_shell_command|agent"
"""The tools after which an agent hears what is new: those that take longer than the hook."""
_SETTINGS = ".qwen/settings.json"
_OTHERS = (
    *("UserPromptSubmit", "Stop", "SessionStart", "SessionEnd"),
    *("SubagentStart", "SubagentStop"),
)


def groups(run: str) -> dict[str, Group]:
    """Returns the hooks by event."""
    every = handled(run)
    return {
        "PreToolUse": {"matcher": f"{EDITS}|run_shell_command", **every},
        "PostToolUse": {"matcher": NEWS, **every},
        **dict.fromkeys(_OTHERS, every),
    }


def parts(place: Surroundings) -> list[Part]:
    """Returns what Qwen Code's files get."""
    settings = place.at(_SETTINGS, _SETTINGS)
    found = hooks_and_server(place, settings, groups(place.hook))
    return [*found, *instructions(place, "AGENTS.md"), *skill(place, ".qwen/skills")]


def rules(place: Surroundings) -> AllowRules:
    """Returns the rules that let Qwen Code run `queen` and our tools without asking."""
    settings = place.at(_SETTINGS, _SETTINGS)
    allowed = ["Bash(queen *)", "mcp__queenbee__*"]
    return AllowRules(settings, ("permissions", "allow"), allowed, comments=True)


AGENT = Agent(
    "qwen",
    "Qwen Code",
    parts,
    rules=rules,
    programs=["qwen"],
    in_tree=[".qwen", "QWEN.md"],
    in_home=[".qwen"],
)
