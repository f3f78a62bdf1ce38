"""What `queen setup` has to know about an agent, and where it writes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from queenbee.agents import section
from queenbee.agents.files.allow_rules import AllowRules
from queenbee.agents.files.file_edits import Part
from queenbee.agents.files.marked_blocks import Marked, OwnFile


@dataclass(frozen=True)
class Surroundings:
    """Where an agent is set up: in a working tree, or for a user in all of them."""

    env: Mapping[str, str]
    tree: str | None
    """The top of the working tree; None for all repositories of the user."""
    hook: str
    """The shell command that runs the hook."""
    mcp: Sequence[str]
    """The program and arguments of the MCP server."""
    roots: Sequence[str]
    """The folders of the hive's records, for an agent in a sandbox."""
    home: str = field(default_factory=lambda: os.path.expanduser("~"))

    @property
    def server(self) -> dict[str, object]:
        """The MCP server, as most agents' settings have it."""
        program, *arguments = self.mcp
        return {"command": program, "args": arguments}

    def at(self, in_tree: str, in_home: str, variable: str | None = None) -> str:
        """Returns a file of the tree, or of the user's home.

        `variable` may name the folder that stands for the first one of `in_home`.
        """
        if self.tree is not None:
            return os.path.join(self.tree, in_tree)
        return self.in_home(in_home, variable)

    def in_home(self, path: str, variable: str | None = None) -> str:
        """Returns a file of the user's home."""
        folder = self.env.get(variable) if variable is not None else None
        if folder:
            return os.path.join(folder, path.partition("/")[2])
        return os.path.join(self.home, path)


@dataclass(frozen=True)
class Agent:
    """One agent: how it is found, and the parts of files that it needs."""

    name: str
    title: str
    parts: Callable[[Surroundings], list[Part]]
    """Returns what its files get in a place; the hook comes first."""
    programs: Sequence[str]
    in_tree: Sequence[str]
    in_home: Sequence[str]
    rules: Callable[[Surroundings], AllowRules] | None = None
    """Returns the rules that let it use `queen` without asking, if one of its files has such."""
    notes: Sequence[str] = ()
    """What is left for the user to do."""

    def found(self, place: Surroundings) -> str | None:
        """Returns why we think that the agent is used here, or None."""
        for name in self.in_tree if place.tree is not None else ():
            if os.path.exists(os.path.join(place.tree or "", name)):
                return f"{name} is in the repository"
        for name in self.in_home:
            if os.path.exists(os.path.join(place.home, name)):
                return f"{name} is in your home directory"
        path = place.env.get("PATH")
        program = next((each for each in self.programs if shutil.which(each, path=path)), None)
        return f"{program} is on the PATH" if program is not None else None


def instructions(place: Surroundings, name: str) -> list[Part]:
    """Returns our section of a file of instructions. A user's files get none: they would speak of
    QueenBee in every repository.
    """
    if place.tree is None:
        return []
    path = os.path.join(place.tree, name)
    return [Marked(path, "section", section.BEGIN, section.section(), section.END)]


def skill(place: Surroundings, in_tree: str, in_home: str | None = None) -> list[Part]:
    """Returns the skill, in the folder of skills."""
    name = "queenbee/SKILL.md"
    path = place.at(f"{in_tree}/{name}", f"{in_home or in_tree}/{name}")
    return [OwnFile(path, "skill", section.skill(), section.MARK)]
