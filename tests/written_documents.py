"""Documents and lines that tests meet, held against the schemas that `queen schema` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import click
from jsonschema import Draft202012Validator

from queenbee.cli.main import queen
from queenbee.library.schemas import schema

WITHOUT = ("mcp", "watch")
"""What prints no document: a protocol, a screen."""
RECORDS = ("message", "assignment", "reservation", "issue", "verification")


def check(arguments: Sequence[str], out: str, err: str, *, records: bool = False) -> None:
    """Fails if a document of a command is not what its schema says."""
    name = command_of(arguments)
    if out and name is not None and name not in WITHOUT:
        for text in out.rstrip("\n").split("\n") if name in ("log", "show") else [out]:
            _hold(json.loads(text), name, records=records)
    if err.startswith("{"):
        _hold(json.loads(err), "error", records=records)


def check_line(line: bytes, ledger: str) -> None:
    """Fails if a line that QueenBee wrote to a ledger is not what its schema says."""
    _hold(json.loads(line), ledger, records=True)


def _hold(document: object, name: str, *, records: bool = False) -> None:
    """Fails if a document is not what its schema says, which `queen schema` prints. Records are
    looked at if they are QueenBee's own: other programs write what they like into theirs.
    """
    errors = _validator(name, records=records).iter_errors(document)
    wrong = [f"{each.json_path}: {each.message:.300}" for each in errors]
    assert not wrong, f"queen schema {name}: {wrong[:5]}"


@cache
def _validator(name: str, *, records: bool) -> Draft202012Validator:
    exact = exactly(schema(name))
    for each in RECORDS if not records else ():
        exact.setdefault("$defs", {})[each] = {"type": "object"}
    return Draft202012Validator(exact)


def exactly(part: Any) -> Any:
    """Returns a schema that allows no property which it does not name: readers must allow them."""
    if isinstance(part, list):
        return [exactly(each) for each in part]
    if not isinstance(part, dict):
        return part
    closed = {"additionalProperties": False} if isinstance(part.get("properties"), dict) else {}
    return {**closed, **{key: exactly(value) for key, value in part.items()}}


def command_of(arguments: Sequence[str]) -> str | None:
    """Returns the name of the command that is called, such as `msg send`; None if it is none."""
    found: click.Command = queen
    context, names, words = click.Context(queen), list[str](), [*arguments]
    while words and isinstance(found, click.Group):
        if words[0] in ("--as", "--beads-dir"):
            del words[:2]
        elif words[0].startswith("-"):
            del words[0]
        else:
            try:
                name, inner, words = found.resolve_command(context, words)
            except click.ClickException:
                return None
            assert inner is not None
            found, context = inner, click.Context(inner, parent=context)
            names.append(str(name))
    return " ".join(names) if names and not isinstance(found, click.Group) else None
