"""Claude Code: hooks in `.claude/settings.json`, a server in `.mcp.json`, CLAUDE.md, a skill."""

from __future__ import annotations

import os

from queenbee.agents.agent import Agent, Surroundings, instructions, skill
from queenbee.agents.files.allow_rules import AllowRules
from queenbee.agents.files.file_edits import Part
from queenbee.agents.files.hook_entries import Group, HookEntries
from queenbee.agents.files.json_member import JsonMember
from queenbee.agents.launch import guarded
from queenbee.errors import QueenError
from queenbee.store.whole_files import read_document

SETTINGS = os.path.join(".claude", "settings.json")
EDITS = "Edit|Write|MultiEdit|NotebookEdit"
NEWS = f"{EDITS}|Bash|Task|Agent"
"""The tools after which an agent hears what is new: those that take longer than the hook."""
_TIMEOUT_S = 10
_MISSING = '{"systemMessage": "queen-hook was not found: QueenBee does not guard edits"}'


def groups(run: str) -> dict[str, Group]:
    """Returns what is added to the settings, by event.

    On a machine without the hook, such as a colleague's, nothing fails, and the start of a session
    reports that the hook is missing.
    """
    silent = _handler(guarded(run))
    return {
        "PreToolUse": {"matcher": f"{EDITS}|Bash", "hooks": [silent]},
        "PostToolUse": {"matcher": NEWS, "hooks": [silent]},
        "UserPromptSubmit": {"hooks": [silent]},
        "Stop": {"hooks": [silent]},
        "SessionStart": {"hooks": [_handler(guarded(run, _MISSING))]},
        "SessionEnd": {"hooks": [silent]},
        "SubagentStart": {"hooks": [silent]},
        "SubagentStop": {"hooks": [silent]},
    }


def parts(place: Surroundings) -> list[Part]:
    """Returns what Claude Code's files get."""
    settings = place.at(SETTINGS, ".claude/settings.json", "CLAUDE_CONFIG_DIR")
    found: list[Part] = [HookEntries(settings, groups(place.hook))]
    if place.tree is not None:
        # The user's servers are in ~/.claude.json, which Claude Code itself rewrites all the time.
        path = os.path.join(place.tree, ".mcp.json")
        found.append(JsonMember(path, "mcpServers", place.server))
    name = "AGENTS.md" if _reads_agents(place) else "CLAUDE.md"
    return [*found, *instructions(place, name), *skill(place, ".claude/skills")]


def _reads_agents(place: Surroundings) -> bool:
    """Returns whether CLAUDE.md takes in AGENTS.md, which then is enough."""
    try:
        text = read_document(os.path.join(place.tree or "", "CLAUDE.md")).decode()
        return "@AGENTS.md" in map(str.strip, text.splitlines())
    except (QueenError, UnicodeDecodeError):
        return False


def _handler(run: str) -> dict[str, object]:
    return {"type": "command", "command": run, "timeout": _TIMEOUT_S}


def rules(place: Surroundings) -> AllowRules:
    """Returns the rules that let Claude Code run `queen` and our tools without asking."""
    settings = place.at(SETTINGS, ".claude/settings.json", "CLAUDE_CONFIG_DIR")
    return AllowRules(settings, ("permissions", "allow"), ["Bash(queen:*)", "mcp__queenbee__*"])


AGENT = Agent(
    "claude",
    "Claude Code",
    parts,
    rules=rules,
    programs=["claude"],
    in_tree=[".claude", "CLAUDE.md"],
    in_home=[".claude"],
)
