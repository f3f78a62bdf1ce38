"""OpenCode: a plugin that calls the hook, a server in `opencode.json`, AGENTS.md, a skill.

Kilo CLI was made from it, and has its own name in those of the files.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

from queenbee.agents.agent import Agent, Surroundings, instructions, skill
from queenbee.agents.files.allow_rules import AllowRules
from queenbee.agents.files.file_edits import Part
from queenbee.agents.files.json_member import JsonMember
from queenbee.agents.files.marked_blocks import OwnFile

_MARK = "// queenbee: made by `queen setup`, which replaces this file"
_KILOS = {
    'AGENT = "opencode"': 'AGENT = "kilo"',
    'export default { id: "queenbee", server, setup }': "export default server",
}
"""What is otherwise in Kilo CLI: its older versions load functions only."""


def plugin(name: str) -> str:
    """Returns the plugin: OpenCode and Kilo CLI run modules, not commands."""
    path = os.path.join(os.path.dirname(__file__), "opencode_plugin.js")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for ours, kilos in _KILOS.items() if name == "kilo" else ():
        text = text.replace(ours, kilos)
    return text


def parts(name: str, place: Surroundings) -> list[Part]:
    """Returns what the files of OpenCode or Kilo CLI get."""
    path = _at(place, name, f".{name}/plugins/queenbee.js", "plugins/queenbee.js")
    found: list[Part] = [OwnFile(path, "hook", plugin(name), _MARK)]
    server: dict[str, object] = {"type": "local", "command": place.mcp, "enabled": True}
    found.append(JsonMember(_config(place, name), "mcp", server, comments=True))
    return [*found, *instructions(place, "AGENTS.md"), *skill(place, ".agents/skills")]


def _config(place: Surroundings, name: str) -> str:
    """Returns the configuration that is there; several are read, so any of them will do."""
    paths = [
        _at(place, name, f"{folder}{name}.{end}", f"{name}.{end}")
        for folder in ("", f".{name}/")
        for end in ("jsonc", "json")
    ]
    return next((path for path in paths if os.path.exists(path)), paths[1])


def _at(place: Surroundings, name: str, in_tree: str, in_config: str) -> str:
    folder = place.env.get("XDG_CONFIG_HOME") or os.path.join(place.home, ".config")
    if place.tree is not None:
        return os.path.join(place.tree, in_tree)
    return os.path.join(folder, name, in_config)


def kilo_rules(place: Surroundings) -> AllowRules:
    """Returns the rule that lets Kilo CLI run `queen` without asking, as OpenCode does anyway."""
    path = _config(place, "kilo")
    return AllowRules(path, ("permission", "bash"), ["queen *"], value="allow", comments=True)


def _agent(name: str, title: str, other_program: str) -> Agent:
    return Agent(
        name,
        title,
        partial(parts, name),
        programs=[name, other_program],
        in_tree=[f".{name}", f"{name}.jsonc", f"{name}.json"],
        in_home=[f".config/{name}"],
    )


AGENT = _agent("opencode", "OpenCode", "opencode2")
KILO = replace(_agent("kilo", "Kilo CLI", "kilocode"), rules=kilo_rules)
