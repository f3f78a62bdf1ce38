"""Worktrees in which an agent does not ask the hive, although it does in another one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

from queenbee.agents.agent import Agent, Surroundings
from queenbee.agents.files import file_edits
from queenbee.agents.setup import AGENTS, GUARD, Setup, is_set_up, place_of
from queenbee.errors import QueenError
from queenbee.git import hooks
from queenbee.services.diagnosis import Diagnosis
from queenbee.store.git_files.worktrees import worktrees
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
    yield from _unguarded_trees(layout, trees)


def _unguarded_trees(layout: Layout, trees: list[str]) -> Iterator[Diagnosis]:
    guarded = [tree for tree in trees if _has_guard(tree)]
    for tree in trees:
        if guarded and tree not in guarded:
            lacks = f"git's hooks of this worktree lack the guard that {guarded[0]} has"
            yield _unguarded(tree, lacks, guarded[0])
    with suppress(QueenError, OSError):
        here = hooks.HookFolder(layout.tree)
        if not guarded and os.path.lexists(here.runner):
            yield _unguarded(here.tree, "git's hooks lack the guard that was installed here")
        elif not guarded and (here.snippet is not None or here.is_shared):
            yield _unguarded(here.tree, "git's hooks do not run the guard")
    with suppress(QueenError, OSError):
        if said := (here := hooks.HookFolder(layout.tree)).to_commit():
            yield Diagnosis("hooks", here.folder, said, severity="note")


def _unguarded(tree: str, why: str, guarded: str | None = None) -> Diagnosis:
    hint = hooks.cure(tree, guarded)
    return Diagnosis("unprotected", tree, why, hint=f"there: {hint}", severity="note")


def outdated(layout: Layout, env: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yields each file of this worktree that an earlier version of `queen setup` wrote, or `queen
    guard install`, and that is written otherwise now."""
    with suppress(QueenError, OSError):
        wanted = Setup(place_of(layout.tree, env, user=False), layout.tree, ())
        guarded = wanted.guard is not None and any(
            each.state in (hooks.INSTALLED, hooks.OUTDATED) for each in hooks.states(wanted.guard)
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
