"""`queen prime`, `mcp`: what an agent must know, and the hive as tools for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from queenbee.cli.app import Invocation, command
from queenbee.cli.terminal import say
from queenbee.core.names import checked_name
from queenbee.core.text import printable
from queenbee.services.telling import briefing
from queenbee.store.layout import working_directory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.library.hive import Hive
    from queenbee.mcp.workspace import Workspace


_HELP_CHARS = 60


def _commands(root: click.Context) -> Iterator[str]:
    """Yields a line for each command: what it does, or what a group consists of."""
    queen = root.command
    assert isinstance(queen, click.Group)
    for name in queen.list_commands(root):
        each = queen.get_command(root, name)
        assert each is not None
        if isinstance(each, click.Group):
            context = click.Context(each, info_name=name, parent=root)
            yield f"- {name} {' | '.join(each.list_commands(context))}"
        else:
            yield f"- {name}: {each.get_short_help_str(_HELP_CHARS)}"


@command(
    show=lambda value: say(printable(value["text"].rstrip("\n"), keep_newlines=True)),
    example="queen prime\nqueen prime --full",
)
@click.option("--full", is_flag=True, help="Add the rules and a list of all commands")
def prime(hive: Hive, full: bool) -> dict[str, object]:
    """Print what an agent must know to work here

    The loop, the commands it needs, who it is and what is going on, in at most 350 tokens; with
    --full the whole reference in at most 1,500.
    """
    if full:
        commands = _commands(click.get_current_context().find_root())
        text = briefing.reference(hive, commands)
    else:
        text = briefing.prime(hive)
    return {"actor": hive.actor_or_none, "text": text}


@command(show=lambda _: None, example="queen mcp", opens_hive=False)
def mcp(call: Invocation) -> None:
    """Serve the hive as tools to an agent (MCP)

    Agents start this command themselves and speak to it on standard input and output; to set one
    up, see docs/mcp.md. It ends when the agent does.
    """
    from queenbee.mcp.server import serve  # noqa: PLC0415 - start-up

    if call.actor is not None:
        checked_name(call.actor)  # Whoever wrote it into a configuration wants to know at once.
    given = {"droid": call.actor, "beads_dir": call.beads_dir}

    def opened() -> Workspace:
        from queenbee.mcp.workspace import Workspace  # noqa: PLC0415 - start-up

        return Workspace(os.environ, working_directory(), **given)

    serve(opened)
    # Standard output was the protocol's: no answer follows, not even under --json.
    raise click.exceptions.Exit(0)
