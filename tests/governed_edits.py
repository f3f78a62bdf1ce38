"""Edits of files that several hives may govern."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from entry_points import run_hook
from hives import environment

from queenbee import Hive

EVENT = {"hook_event_name": "PreToolUse", "session_id": "s-1234567", "tool_name": "Edit"}


def edited(tree: Path, *files: str, **env: str) -> dict[str, Any] | None:
    """Returns the hook's answer to an edit of these files."""
    arguments = {"file_path": files[0], "files": list(files[1:])}
    event = {**EVENT, "tool_input": arguments, "cwd": str(tree)}
    told = {"QUEEN_DROID": "mo", **environment(), **env}
    return run_hook(json.dumps(event).encode(), told, str(tree))


def leased(folder: Path) -> list[str]:
    return [
        each.pattern for each in Hive.open(folder, env=environment()).reservations.find(droid="mo")
    ]
