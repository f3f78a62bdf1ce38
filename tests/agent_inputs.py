"""The recorded inputs of agents, as they reach a hook on standard input."""

from __future__ import annotations

import json
from pathlib import Path

FIXTURES = Path(__file__).parent / "hook" / "fixtures"
SHAPES = Path(__file__).parent / "hook" / "shapes"
SESSION = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
OTHER_SESSION = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
NAME = "claude-1b4e28ba"
OTHER_NAME = "claude-7c9e6679"


def recorded(name: str, tree: Path, **changes: object) -> bytes:
    """Returns a recorded input (`claude/pre-edit`) for a working tree, some fields changed."""
    text = (FIXTURES / f"{name}.json").read_text(encoding="utf-8")
    fields = json.loads(text.replace("@TREE@", str(tree)))
    return json.dumps({**fields, **changes}).encode()


def shaped(name: str, tree: Path | str, **changes: object) -> bytes:
    """Returns the input of a documented shape (`codex/stop`), some fields changed."""
    text = (SHAPES / f"{name}.json").read_text(encoding="utf-8")
    fields = json.loads(text.replace("@TREE@", str(tree)))["input"]
    return json.dumps({**fields, **changes}).encode()


def edit_of(path: Path | str, tree: Path, **changes: object) -> bytes:
    """Returns Claude Code's input before it edits this file."""
    arguments = {"file_path": str(path), "old_string": "a", "new_string": "b"}
    return recorded("claude/pre-edit", tree, **{"tool_input": arguments, **changes})
