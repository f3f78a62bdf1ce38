"""Gemini CLI: hooks and a server in `.gemini/settings.json`, GEMINI.md, a skill."""

from __future__ import annotations

from queenbee.agents.agent import Agent, Surroundings, instructions, skill
from queenbee.agents.files.allow_rules import AllowRules
from queenbee.agents.files.file_edits import Part
from queenbee.agents.files.hook_entries import Group, HookEntries
from queenbee.agents.files.json_member import JsonMember
from queenbee.agents.launch import guarded

EDITS = "write_file|replace"
NEWS = f"{EDITS}|run_shell_command"
"""The tools after which an agent hears what is new: those that take longer than the hook."""
_TIMEOUT_MS = 10_000


def handled(run: str) -> Group:
    """Returns the hook of an event; also in Qwen Code, which was made from Gemini CLI."""
    command = {"name": "queenbee", "type": "command", "command": guarded(run)}
    return {"hooks": [{**command, "timeout": _TIMEOUT_MS}]}


def hooks_and_server(place: Surroundings, settings: str, hooks: dict[str, Group]) -> list[Part]:
    """Returns what the settings get, in both."""
    return [
        HookEntries(settings, hooks, comments=True),
        JsonMember(settings, "mcpServers", place.server, comments=True),
    ]


def groups(run: str) -> dict[str, Group]:
    """Returns the hooks by event."""
    every = handled(run)
    return {
        "BeforeTool": {"matcher": f"{EDITS}|run_shell_command", **every},
        "AfterTool": {"matcher": NEWS, **every},
        "BeforeAgent": every,
        "AfterAgent": every,
        "SessionStart": every,
        "SessionEnd": every,
    }


def parts(place: Surroundings) -> list[Part]:
    """Returns what Gemini CLI's files get."""
    settings = place.at(".gemini/settings.json", ".gemini/settings.json")
    found = hooks_and_server(place, settings, groups(place.hook))
    return [*found, *instructions(place, "GEMINI.md"), *skill(place, ".agents/skills")]


def rules(place: Surroundings) -> AllowRules:
    """Returns the rules that let Gemini CLI run `queen` and our tools without asking."""
    settings = place.at(".gemini/settings.json", ".gemini/settings.json")
    allowed = ["run_shell_command(queen)", "mcp_queenbee_*"]
    return AllowRules(settings, ("tools", "allowed"), allowed, comments=True)


AGENT = Agent(
    "gemini",
    "Gemini CLI",
    parts,
    rules=rules,
    programs=["gemini"],
    in_tree=[".gemini", "GEMINI.md"],
    in_home=[".gemini"],
)
