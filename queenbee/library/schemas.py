"""What QueenBee writes, as JSON Schemas: lines of ledgers, documents of `--json`, refusals.

`schemas.json` has all of them, kept by hand like the pages that explain them: it is what readers
rely on. Tests hold each line and document that they meet against it.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any

from queenbee.core.names import nearest
from queenbee.core.text import suggested
from queenbee.errors import NotFound
from queenbee.version import FORMAT

_PATH = os.path.join(os.path.dirname(__file__), "schemas.json")
_REF = "#/$defs/"
_SHARED = "shared"
_ID = f"urn:queenbee:format:{FORMAT}"


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    with open(_PATH, encoding="utf-8") as file:
        found: dict[str, dict[str, Any]] = json.load(file)
    return found


def schema_names() -> list[str]:
    """Returns the names of all schemas: of ledgers, such as `queen_messages.jsonl`, of commands,
    such as `msg send`, and `error`.
    """
    return [name for name in _schemas() if name != _SHARED]


def schema(name: str | None = None) -> dict[str, Any]:
    """Returns a schema by its name, whole: what it refers to is in its `$defs`. Without a name,
    `$defs` has all of them. Raises `NotFound`.

    `$id` has the version of the format, `FORMAT`.
    """
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    if name is None:
        named = {each: _schemas()[each] for each in schema_names()}
        return {**head, "$id": _ID, "$defs": {**_schemas()[_SHARED], **named}}
    if name not in schema_names():
        near = nearest(name, schema_names())
        raise NotFound(
            f"there is no schema {name!r}",
            hint=suggested("queen schema", near) if near else "queen schema",
        )
    shared, wanted = _schemas()[_SHARED], _schemas()[name]
    needed: dict[str, Any] = {}
    _collect(wanted, shared, needed)
    definitions = {"$defs": needed} if needed else {}
    return {**head, "$id": f"{_ID}:{name.replace(' ', '-')}", **wanted, **definitions}


def _collect(part: object, shared: dict[str, Any], needed: dict[str, Any]) -> None:
    """Adds the definitions that a part of a schema refers to."""
    for each in part if isinstance(part, list) else ():
        _collect(each, shared, needed)
    for key, value in part.items() if isinstance(part, dict) else ():
        name = str(value).removeprefix(_REF)
        if key != "$ref":
            _collect(value, shared, needed)
        elif name not in needed:
            needed[name] = shared[name]
            _collect(shared[name], shared, needed)
