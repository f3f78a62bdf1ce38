"""Required fields of a session's documents, with errors in the words of their source."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NOUNS: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    list: "an array",
    dict: "an object",
}


def field_fault(fields: Mapping[Any, Any], name: str, kind: type) -> str | None:
    """Returns what is wrong with a required field, or None; an empty string counts as missing."""
    value = fields.get(name)
    if value is None or value == "":
        return f"{name} ({NOUNS[kind].split()[1]}) is missing"
    if not isinstance(value, kind):
        return f"{name} must be {NOUNS[kind]}, it is {value!r:.60}"
    return None
