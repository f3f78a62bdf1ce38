"""OpenCode: a plugin that calls the hook, a server in `opencode.json`, AGENTS.md, a skill."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.agents.agent import Agent, Place, instructions, skill
from queenbee.agents.files.json_member import JsonMember
from queenbee.agents.files.marked import OwnFile

if TYPE_CHECKING:
    from queenbee.agents.files.file_edits import Part

_MARK = "// queenbee: made by `queen setup`, which replaces this file"
_CONFIG = ("opencode.jsonc", "opencode.json")


def plugin() -> str:
    """Returns the plugin: OpenCode runs modules, not commands."""
    with open(
        os.path.join(os.path.dirname(__file__), "opencode_plugin.js"), encoding="utf-8"
    ) as file:
        return file.read()


def parts(place: Place) -> list[Part]:
    """Returns what OpenCode's files get."""
    path = _at(place, ".opencode/plugins/queenbee.js", "plugins/queenbee.js")
    found: list[Part] = [OwnFile(path, "hook", plugin(), _MARK)]
    server: dict[str, object] = {"type": "local", "command": place.mcp, "enabled": True}
    found.append(JsonMember(_config(place), "mcp", server, comments=True))
    return [*found, *instructions(place, "AGENTS.md"), *skill(place, ".agents/skills")]


def _config(place: Place) -> str:
    """Returns the configuration that is there; several are read, so any of them will do."""
    names = [_at(place, name, name) for name in _CONFIG]
    names += [_at(place, f".opencode/{name}", name) for name in _CONFIG]
    return next((path for path in names if os.path.exists(path)), names[1])


def _at(place: Place, in_tree: str, in_config: str) -> str:
    folder = place.env.get("XDG_CONFIG_HOME") or os.path.join(place.home, ".config")
    if place.tree is not None:
        return os.path.join(place.tree, in_tree)
    return os.path.join(folder, "opencode", in_config)


AGENT = Agent(
    "opencode",
    "OpenCode",
    parts,
    programs=["opencode", "opencode2"],
    in_tree=[".opencode", *_CONFIG],
    in_home=[".config/opencode"],
)
