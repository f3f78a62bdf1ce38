"""`queen setup`: connects the agents of a repository or of a user, and disconnects them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from queenbee.agents import claude, codex, copilot, cursor, gemini, opencode, qwen
from queenbee.agents.agent import Agent, Surroundings
from queenbee.agents.files import file_edits
from queenbee.agents.files.file_edits import Part
from queenbee.agents.ignored import Ignored, ignored
from queenbee.agents.launch import hook_command, mcp_command
from queenbee.errors import InvalidInput, NoHive, NotFound, QueenError
from queenbee.git import hooks as git_hooks
from queenbee.store import safe_open
from queenbee.store.creating import folders_to_grant
from queenbee.store.git_trees import git_tree
from queenbee.store.layout import discover

GUARD = "git guard"
AGENTS: dict[str, Agent] = {
    each.name: each
    for each in (
        claude.AGENT,
        codex.AGENT,
        gemini.AGENT,
        cursor.AGENT,
        opencode.AGENT,
        copilot.AGENT,
        qwen.AGENT,
        opencode.KILO,
    )
}


def place_of(cwd: str, env: Mapping[str, str], *, user: bool, undo: bool = False) -> Surroundings:
    """Returns where to set up: the working tree around `cwd`, or the user's home.

    A sandbox must not name the folders of a hive that is not there, but a hive that is gone may
    have left them. Raises `NotFound` for a working tree outside git.
    """
    home = git_tree(os.path.realpath(cwd))
    if home is None and not user:
        raise NotFound(
            f"{cwd} is not in a git working tree",
            hint="run it inside a repository, or for all of yours: queen setup --user",
        )
    roots: list[str] = []
    if home is not None:
        # What is broken must not keep anyone from taking our parts out.
        with suppress(QueenError if undo else NoHive):
            roots = folders_to_grant(discover(cwd, env, must_exist=not undo))
    return Surroundings(
        env,
        tree=None if user or home is None else home.tree,
        hook=hook_command(),
        mcp=mcp_command(),
        roots=roots,
    )


class Setup:
    """What becomes of the files of some agents in one place, and of git's hooks.

    Everything is decided when it is made; `write` changes the files.
    """

    def __init__(
        self,
        place: Surroundings,
        cwd: str,
        names: Sequence[str],
        *,
        undo: bool = False,
        allow: bool = False,
    ) -> None:
        self.place = place
        self.undo = undo
        self.found: dict[str, str | None] = {
            name: agent.found(place) for name, agent in AGENTS.items()
        }
        """Why we think that each agent is used here, or None."""
        self.agents: list[Agent] = _chosen(names, self.found, undo=undo)
        parts = [part for agent in self.agents for part in agent.parts(place)]
        rules = [each.rules(place) for each in self.agents if each.rules is not None]
        parts += [each for each in rules if allow or (undo and _is_there(each))]
        if undo:
            parts = _without_shared(parts, self.agents, place)
        self.edits: list[file_edits.Edit] = file_edits.gathered(parts)
        for edit in self.edits:
            if undo:
                edit.undo()
            else:
                edit.set_up()
        self.guard: git_hooks.HookFolder | None = None
        """Git's hooks, if they are changed too: not when only some agents are taken out, nor if the
        guard in them is to stay because the user installed it."""
        self.guard_stays: bool = False
        if place.tree is not None and not (undo and names):
            self.guard = git_hooks.HookFolder(cwd)
            if not self.guard.is_shared:  # Else it stays as it is.
                git_hooks.refuse_conflict(self.guard)
            if undo and (self.guard.is_shared or not self.guard.of_setup):
                self.guard_stays = os.path.lexists(self.guard.runner)
                self.guard = None

    def write(self) -> None:
        """Changes the files, all or none."""
        if not self.undo:
            for folder in self.place.roots:
                # Codex does not start in a sandbox with a folder that is not there.
                safe_open.make_folder(folder)
        file_edits.write(self.edits, self.place.tree)
        if self.guard is not None:
            change = git_hooks.uninstall if self.undo else git_hooks.install_for_setup
            change(self.guard)

    def lacking(self) -> list[tuple[str, str, str]]:
        """Returns what is missing or old: the state, the file and the part of it."""
        found = [
            (state, edit.path, part.what) for edit in self.edits for state, part in edit.lacking()
        ]
        if self.guard is not None and not self.guard.is_shared:
            found += [
                (file_edits.MISSING, each.path, GUARD)
                for each in git_hooks.states(self.guard)
                if each.state != git_hooks.INSTALLED
            ]
        return found

    def ignored(self) -> list[Ignored]:
        """Returns what the agents will ignore of what is set up."""
        return [each for agent in self.agents for each in ignored(agent, self.place)]

    def notes(self) -> list[str]:
        """Returns what the user should know or do."""
        if self.guard_stays:
            return ["the git guard stays, as you installed it: queen guard uninstall removes it"]
        if self.undo or not self.agents:
            return []
        notes = [note for agent in self.agents for note in agent.notes]
        if self.place.tree is None and claude.AGENT in self.agents:
            server = " ".join(self.place.mcp)
            notes.append(
                "for the MCP server in all repositories: "
                f"claude mcp add --scope user queenbee -- {server}"
            )
        if self.place.tree is not None:
            if os.sep in self.place.hook:
                notes.append(
                    "queen-hook is not on the PATH, so the files name it by its path on this "
                    "machine: put it there before you commit them, or run: queen setup --user"
                )
            changed = [edit for edit in self.edits if edit.state != file_edits.UNCHANGED]
            if any(edit.real.startswith(self.place.tree + os.sep) for edit in changed):
                notes.append("other worktrees get these files when they are committed and merged")
        return notes


def is_set_up(agent: Agent, place: Surroundings) -> bool:
    """Returns whether an agent's hook is in its settings in a place."""
    return _is_there(agent.parts(place)[0])


def _is_there(part: Part) -> bool:
    (edit,) = file_edits.gathered([part])
    return edit.text is not None and part.removed(edit.text) != edit.text


def _chosen(names: Sequence[str], found: Mapping[str, str | None], *, undo: bool) -> list[Agent]:
    unknown = [name for name in names if name not in AGENTS]
    if unknown:
        raise InvalidInput(
            f"{unknown[0]!r} is not an agent that queen setup knows",
            hint=f"one of: {', '.join(AGENTS)}; what others need to read: queen prime",
        )
    if names or undo:
        return [agent for name, agent in AGENTS.items() if not names or name in names]
    return [agent for name, agent in AGENTS.items() if found[name] is not None]


def _without_shared(
    parts: Iterable[Part], agents: Sequence[Agent], place: Surroundings
) -> list[Part]:
    """Returns the parts that no other agent needs: several read AGENTS.md, for example."""
    others = [each for each in AGENTS.values() if each not in agents and is_set_up(each, place)]
    needed = {(part.path, part.what) for each in others for part in each.parts(place)}
    return [part for part in parts if (part.path, part.what) not in needed]
