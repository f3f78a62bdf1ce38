"""`queen schema`: what QueenBee writes, as JSON Schemas."""

from __future__ import annotations

from typing import Any

import click

from queenbee.cli.app import Invocation, command
from queenbee.cli.rendering import show_json
from queenbee.cli.terminal import say


def _show(schema: dict[str, Any]) -> None:
    """Shows a schema; of all of them, the names."""
    from queenbee.library.schemas import schema_names  # noqa: PLC0415 - start-up

    if "$ref" in schema or "type" in schema or "anyOf" in schema:
        show_json(schema)
    else:
        say("\n".join(schema_names()))


@command(
    show=_show,
    example="queen schema\nqueen schema msg send\nqueen schema queen_messages.jsonl",
    opens_hive=False,
)
@click.argument("name", nargs=-1, metavar="[NAME]")
def schema(call: Invocation, name: tuple[str, ...]) -> dict[str, Any]:
    """Print the JSON Schema of what is written

    NAME is a ledger, a command, or "error" for what is refused. Without one, it prints the names,
    and with --json all schemas.
    """
    from queenbee.library import schemas  # noqa: PLC0415 - start-up

    return schemas.schema(" ".join(name) or None)
