"""`queen hooks`: makes coding agents ask the hive before they edit a file."""

from __future__ import annotations

import os

import click

from queenbee.agents import claude
from queenbee.agents.launch import hook_command
from queenbee.cli.app import Answer, Invocation, command, group
from queenbee.cli.commands.care.hive import tell_without_hive
from queenbee.cli.terminal import say
from queenbee.core.text import printable
from queenbee.store.git_trees import git_tree

_settings = click.option(
    "--settings",
    metavar="FILE",
    help="The settings to change; default: .claude/settings.json of this repository",
)
_agent = click.argument("agent", type=click.Choice(["claude"]), metavar="AGENT")


def _path(call: Invocation, settings: str | None) -> str:
    """Returns the settings file. Raises `NoHive` if there is no repository either."""
    if settings is not None:
        return os.path.abspath(settings)
    home = git_tree(os.path.realpath(os.getcwd()))
    return os.path.join(home.tree if home else call.hive.layout.tree, claude.SETTINGS)


def _show(value: dict[str, object]) -> None:
    events = value["events"]
    assert isinstance(events, list)
    runs = f"runs queen-hook on {', '.join(events)}" if events else "does not run queen-hook"
    changed = "" if value["changed"] is None or value["changed"] else " (nothing was changed)"
    say(f"{printable(str(value['settings']))} {runs}{changed}")


def _state(path: str, changed: bool | None) -> dict[str, object]:
    events = claude.installed_events(path)
    return {"agent": "claude", "settings": path, "events": events, "changed": changed}


@command("install", show=_show, example="queen hooks install claude", opens_hive=False)
@_agent
@_settings
def install(call: Invocation, agent: str, settings: str | None) -> dict[str, object]:
    """Make an agent ask the hive before it edits a file

    AGENT is claude. Adds queen-hook to its settings and leaves every other byte unchanged. A
    repository's settings apply to one worktree until you commit them. For other agents, see
    docs/enforcement.md.
    """
    path = _path(call, settings)
    changed = claude.install(path, claude.groups(hook_command()))
    if settings is None:
        tell_without_hive(call)
    return _state(path, changed)


@command("uninstall", show=_show, example="queen hooks uninstall claude", opens_hive=False)
@_agent
@_settings
def uninstall(call: Invocation, agent: str, settings: str | None) -> dict[str, object]:
    """Remove queen-hook from an agent's settings"""
    path = _path(call, settings)
    return _state(path, claude.uninstall(path))


@command("status", show=_show, example="queen hooks status claude", opens_hive=False)
@_agent
@_settings
def status(call: Invocation, agent: str, settings: str | None) -> Answer:
    """Show whether an agent asks the hive

    Exit 0 if it does, 1 if not.
    """
    value = _state(_path(call, settings), None)
    return Answer(value, yes=bool(value["events"]))


hooks = group(
    "hooks",
    [install, uninstall, status],
    help="Make coding agents ask the hive before they edit a file",
    example="queen hooks install claude",
)
