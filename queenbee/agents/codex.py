"""Codex: `.codex/hooks.json`, a server in `.codex/config.toml`, AGENTS.md, a skill, and the folders
that its sandbox may write to, which only the user's own `config.toml` can say.
"""

from __future__ import annotations

import json

from queenbee.agents.agent import Agent, Surroundings, instructions, skill
from queenbee.agents.files.file_edits import Part
from queenbee.agents.files.hook_entries import Group, HookEntries
from queenbee.agents.files.marked_blocks import MarkedToml
from queenbee.agents.files.writable_roots import WritableRoots
from queenbee.agents.launch import guarded

_HOME = "CODEX_HOME"
EDITS = "apply_patch"
NEWS = f"{EDITS}|Bash"
"""The tools after which an agent hears what is new: those that take longer than the hook."""
_TIMEOUT_S = 10
_END_TIMEOUT_S = 3
"""The most that Codex gives a hook at a session's end; it warns of more at its start."""


def groups(run: str) -> dict[str, Group]:
    """Returns the hooks by event. Versions that do not know an event leave it out."""
    handler = {"type": "command", "command": guarded(run), "timeout": _TIMEOUT_S}
    every: Group = {"hooks": [handler]}
    return {
        "PreToolUse": {"matcher": f"{EDITS}|Bash", "hooks": [handler]},
        "PostToolUse": {"matcher": NEWS, "hooks": [handler]},
        "UserPromptSubmit": every,
        "Stop": every,
        "SessionStart": every,
        "SessionEnd": {"hooks": [{**handler, "timeout": _END_TIMEOUT_S}]},
        "SubagentStart": every,
        "SubagentStop": every,
    }


def parts(place: Surroundings) -> list[Part]:
    """Returns what Codex's files get."""
    hooks = place.at(".codex/hooks.json", ".codex/hooks.json", _HOME)
    found: list[Part] = [HookEntries(hooks, groups(place.hook))]
    path = place.at(".codex/config.toml", ".codex/config.toml", _HOME)
    program, *arguments = (json.dumps(word) for word in place.mcp)
    table = f"[mcp_servers.queenbee]\ncommand = {program}\nargs = [{', '.join(arguments)}]"
    begin, end = (f"# {three} queenbee: MCP server {three}" for three in (">>>", "<<<"))
    found.append(MarkedToml(path, "MCP server", begin, table, end))
    if place.roots:
        found.append(WritableRoots(place.in_home(".codex/config.toml", _HOME), place.roots))
    return [*found, *instructions(place, "AGENTS.md"), *skill(place, ".agents/skills")]


AGENT = Agent(
    "codex",
    "Codex",
    parts,
    programs=["codex"],
    in_tree=[".codex"],
    in_home=[".codex"],
    notes=["Codex runs a new hook only after you have reviewed it: type /hooks in Codex"],
)
