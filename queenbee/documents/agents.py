"""Agents are Markdown files in `.claude/agents/`: which exist, and whether a bead names one.

After the document on sprint beads, "Agent Path Validation".
"""

from __future__ import annotations

import os
from collections.abc import Collection

from queenbee.core.names import nearest
from queenbee.documents.findings import Finding

AGENTS_DIR = ".claude/agents/"
DEFAULT_AGENT = "claude"
MODELS = ("sonnet", "opus", "haiku")

_MAX_DEPTH = 8


def agent_path(name: str) -> str:
    """Returns an agent's path as a bead has it: `.claude/agents/backend-dev`."""
    return name if name == DEFAULT_AGENT or "/" in name else f"{AGENTS_DIR}{name}"


def list_agents(folder: str) -> frozenset[str]:
    """Returns the agents in a folder, as paths below it without `.md`; none without the folder."""
    found: set[str] = set()
    root = folder.rstrip("/") or "/"
    for folder_path, folders, files in os.walk(root):
        below = os.path.relpath(folder_path, root)
        if below.count(os.sep) >= _MAX_DEPTH:
            folders.clear()
        for file in files:
            # The folder may also contain broken links, which cannot be read.
            if file.endswith(".md") and os.path.isfile(os.path.join(folder_path, file)):
                found.add(os.path.normpath(os.path.join(below, file[:-3])))
    return frozenset(found)


def agent_finding(path: str, agents: Collection[str] | None, where: str) -> Finding | None:
    """Returns what is wrong with an agent's path, or None; `claude` needs no file.

    `agents` is the result of `list_agents`, or None if nobody knows which exist.
    `.claude/agents/x` and `.claude/agents/x.md` both name the file `x.md`; a path outside the
    folder never names an agent.
    """
    if path == DEFAULT_AGENT:
        return None
    normal = os.path.normpath(path)
    name = normal.removeprefix(AGENTS_DIR).removesuffix(".md")
    if normal.startswith(AGENTS_DIR) and (agents is None or name in agents):
        return None
    what = "is not in" if agents is None else "does not exist in"
    message = f"Agent path '{path}' {what} {AGENTS_DIR}"
    meant = nearest(os.path.basename(path).removesuffix(".md"), agents or ())
    hint = f"write the agent as {AGENTS_DIR}<name>.md, or name 'claude'"
    return Finding(where, message, hint=f"did you mean {AGENTS_DIR}{meant}?" if meant else hint)
