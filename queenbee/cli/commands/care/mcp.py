"""`queen mcp`: the hive as tools for agents that speak the Model Context Protocol."""

from __future__ import annotations

import os
from importlib.util import find_spec

import click

from queenbee.cli.app import Invocation, command
from queenbee.core.names import checked_name
from queenbee.errors import MissingPackage
from queenbee.store.layout import working_directory


@command("mcp", show=lambda _: None, example="queen mcp", opens_hive=False)
def mcp(call: Invocation) -> None:
    """Serve the hive as tools to an agent (MCP)

    Agents start this command themselves and speak to it on standard input and output; to set one
    up, see docs/mcp.md. It ends when the agent does. Needs: pip install 'queenbee-hive[mcp]'
    """
    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise MissingPackage.of("queen mcp", "mcp 2.0 or later", "mcp")
    from queenbee.mcp.server import serve  # noqa: PLC0415 - start-up
    from queenbee.mcp.workspace import Workspace  # noqa: PLC0415 - start-up

    if call.actor is not None:
        checked_name(call.actor)  # Whoever wrote it into a configuration wants to know at once.
    given = {"droid": call.actor, "beads_dir": call.beads_dir}
    serve(Workspace(os.environ, working_directory(), **given))
    # Standard output was the protocol's: no answer follows, not even under --json.
    raise click.exceptions.Exit(0)
