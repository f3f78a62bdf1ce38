"""Holds a JSON value against a schema of ours and tells everything that is wrong at once.

It knows the few words of JSON Schema, Draft 7, that our own schemas use, and refuses a schema
with any other; the tests hold it against the jsonschema library, whose import takes 75 ms, more
than the rest of a `queen` process.
"""

from __future__ import annotations

from queenbee.core.timestamps import instant_ms
from queenbee.documents.findings import Finding, first_told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

_ANNOTATIONS = {"$schema", "$id", "title", "description", "definitions"}
_NOUNS = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_SHOWN = 60
"""Characters of a wrong value that a message repeats."""


def schema_findings(
    value: object,
    schema: dict[str, Any],
    *,
    path: str = "",
    enums: Literal["error", "warning"] = "error",
) -> list[Finding]:
    """Returns what is wrong with `value`, in the schema's order, each with its path.

    `enums` is how bad a value outside an `enum` is: a later minor version may add values.
    """
    return _Walk(schema, enums).findings(value, schema, path)


def member_path(path: str, name: str) -> str:
    """Returns the path of a member of the object at `path`."""
    return f"{path}.{name}" if path else name


def is_whole(value: object) -> bool:
    """Returns whether JSON Schema takes the value for an integer: `5` and `5.0`, never `true`."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


class _Walk:
    def __init__(self, root: dict[str, Any], enums: Literal["error", "warning"]) -> None:
        self._root = root
        self._enums = enums
        self._words: dict[str, Callable[[object, Any, str], list[Finding]]] = {
            "required": self._required,
            "properties": self._properties,
            "items": self._items,
            "enum": self._enum,
            "minimum": self._minimum,
            "maximum": self._maximum,
            "format": self._format,
            "$ref": self._reference,
        }

    def findings(self, value: object, schema: dict[str, Any], path: str) -> list[Finding]:
        found: list[Finding] = []
        for word, rule in schema.items():
            if word == "type":
                names = [rule] if isinstance(rule, str) else rule
                if not any(_is_a(name, value) for name in names):
                    # Of a value of the wrong type nothing else is worth saying.
                    return [Finding(path, _type_message(names, value))]
            elif word in self._words:
                found += self._words[word](value, rule, path)
            elif word not in _ANNOTATIONS:
                raise ValueError(f"{word!r} is not a word of JSON Schema that is known here")
        return found

    def _required(self, value: object, names: list[str], path: str) -> list[Finding]:
        if not isinstance(value, dict):
            return []
        return [
            Finding(member_path(path, name), "is required, but missing")
            for name in names
            if name not in value
        ]

    def _properties(self, value: object, members: dict[str, Any], path: str) -> list[Finding]:
        if not isinstance(value, dict):
            return []
        return [
            finding
            for name, schema in members.items()
            if name in value
            for finding in self.findings(value[name], schema, member_path(path, name))
        ]

    def _items(self, value: object, schema: dict[str, Any], path: str) -> list[Finding]:
        if not isinstance(value, list):
            return []
        found = (
            finding
            for place, item in enumerate(value)
            for finding in self.findings(item, schema, f"{path}[{place}]")
        )
        return first_told(found, path)

    def _enum(self, value: object, allowed: list[object], path: str) -> list[Finding]:
        # Python holds True for 1; the `type` beside every enum of ours is what keeps them apart.
        if value in allowed:
            return []
        names = ", ".join(str(name) for name in allowed)
        return [Finding(path, f"must be one of {names}; it is {_shown(value)}", self._enums)]

    def _minimum(self, value: object, least: int, path: str) -> list[Finding]:
        if _is_a("number", value) and value < least:  # type: ignore[operator]
            return [Finding(path, f"must be at least {least}; it is {_shown(value)}")]
        return []

    def _maximum(self, value: object, most: int, path: str) -> list[Finding]:
        if _is_a("number", value) and value > most:  # type: ignore[operator]
            return [Finding(path, f"must be at most {most}; it is {_shown(value)}")]
        return []

    def _format(self, value: object, name: str, path: str) -> list[Finding]:
        if name != "date-time":
            raise ValueError(f"the format {name!r} is not known here")
        if not isinstance(value, str):
            return []
        if instant_ms(value) is None:
            hint = "write it as 2024-12-14T10:30:00Z"
            return [Finding(path, f"{_shown(value)} is not an RFC 3339 timestamp", hint=hint)]
        if not any(sign in value[19:] for sign in "Zz+-"):
            message = "names no offset from UTC and is read as UTC"
            return [Finding(path, message, "warning", hint="end it in Z")]
        return []

    def _reference(self, value: object, name: str, path: str) -> list[Finding]:
        target = self._root
        for step in name.removeprefix("#/").split("/"):
            target = target[step]
        return self.findings(value, target, path)


def _is_a(name: str, value: object) -> bool:
    if name == "integer":
        return is_whole(value)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    return isinstance(value, kinds[name])


def _type_message(names: list[str], value: object) -> str:
    wanted = " or ".join(_NOUNS[name] for name in names)
    order = ("null", "boolean", "integer", "number", "string", "array", "object")
    given = next(_NOUNS[name] for name in order if _is_a(name, value))
    return f"must be {wanted}; it is {given}"


def _shown(value: object) -> str:
    text = repr(value[:_SHOWN]) if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN + 2 else text[:_SHOWN] + "…"
