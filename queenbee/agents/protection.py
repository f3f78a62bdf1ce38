"""Worktrees in which an agent does not ask the hive, although it does in another one."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.agents.agent import Surroundings
from queenbee.agents.files import file_edits
from queenbee.agents.setup import AGENTS, GUARD, Setup, is_set_up, place_of
from queenbee.errors import QueenError
from queenbee.git import hooks
from queenbee.services.diagnosis import Diagnosis
from queenbee.store.git_files.worktrees import worktrees

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from queenbee.agents.agent import Agent
    from queenbee.store.layout import Layout


def unprotected(layout: Layout, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yields the worktrees that lack the hook of an agent, or the guard, that another one has.

    The files of an agent belong to one worktree until they are committed and merged. A repository
    that uses no agent's hook lacks nothing.
    """
    trees = [each.path for each in worktrees(layout)]
    for agent in AGENTS.values():
        if _has(agent, None, env):
            continue  # In the user's own settings, for all worktrees.
        having = [tree for tree in trees if _has(agent, tree, env)]
        for tree in trees:
            if having and tree not in having:
                hook = agent.parts(_place(tree, env))[0]
                yield Diagnosis(
                    "unprotected",
                    hook.path,
                    f"{agent.title} does not ask the hive in this worktree, as it does in "
                    f"{having[0]}",
                    hint=f"commit it there and merge it here, or: queen setup {agent.name} --user",
                    severity="note",
                )
    guarded = [tree for tree in trees if _has_guard(tree)]
    for tree in trees:
        if guarded and tree not in guarded:
            yield Diagnosis(
                "unprotected",
                tree,
                f"git's hooks of this worktree lack the guard that {guarded[0]} has",
                hint="run there: queen guard install",
                severity="note",
            )
    with suppress(QueenError, OSError):
        if said := (here := hooks.HookFolder(layout.tree)).to_commit():
            yield Diagnosis("hooks", here.folder, said, severity="note")


def outdated(layout: Layout, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yields each file of this worktree that an earlier version of `queen setup` wrote, or `queen
    guard install`, and that is written otherwise now."""
    with suppress(QueenError, OSError):
        wanted = Setup(place_of(layout.tree, env, user=False), layout.tree, ())
        guarded = wanted.guard is not None and any(
            each.state == hooks.INSTALLED for each in hooks.states(wanted.guard)
        )
        for state, path, part in wanted.lacking():
            if state == file_edits.OLD or (guarded and part == GUARD):
                yield Diagnosis(
                    "outdated",
                    path,
                    f"the {part} is that of an earlier version of QueenBee",
                    hint="queen setup",
                    severity="note",
                )


def _has(agent: Agent, tree: str | None, env: Mapping[str, str]) -> bool:
    with suppress(QueenError, OSError):
        return is_set_up(agent, _place(tree, env))
    return False


def _place(tree: str | None, env: Mapping[str, str]) -> Surroundings:
    return Surroundings(env, tree=tree, hook="queen-hook", mcp=["queen", "mcp"], roots=[])


def _has_guard(tree: str) -> bool:
    with suppress(QueenError, OSError):
        return all(each.state == hooks.INSTALLED for each in hooks.states(hooks.HookFolder(tree)))
    return False
