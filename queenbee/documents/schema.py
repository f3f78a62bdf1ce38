"""Checks a JSON value against one of our own schemas and reports everything that is wrong.

It supports the JSON Schema keywords that our schemas use and refuses a schema with any other.
Tests compare it with the jsonschema library, whose import takes longer than the rest of a `queen`
process. `sprints/reports.py` checks against schemas that others write. ADR 0013.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from queenbee.core.timestamps import instant_ms
from queenbee.documents.findings import Finding, first_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    Formats = Mapping[str, Callable[[str], str | None]]
    """Returns what is wrong with a text, or None, for each name of a `format`."""

_ANNOTATIONS = {"$schema", "$id", "title", "description", "definitions", "$defs"}
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
_MOST_BITS = 1_000
"""Python refuses to write out an integer of more than 4,300 digits."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def schema_findings(
    value: object,
    schema: dict[str, Any],
    *,
    path: str = "",
    enums: Literal["error", "warning"] = "error",
    formats: Formats | None = None,
    exact: bool = False,
) -> list[Finding]:
    """Returns what is wrong with `value`, in the schema's order, each with its path.

    `enums` is the severity of a value outside an `enum`: a later minor version may add values.
    `formats` adds to `date-time`, or replaces it. With `exact`, `5.0` is not an integer, and a
    string must be valid Unicode.
    """
    return _Walk(schema, enums, formats or {}, exact).findings(value, schema, path)


def member_path(path: str, name: str) -> str:
    """Returns the path of a member of the object at `path`."""
    return f"{path}.{name}" if path else name


def is_whole(value: object) -> bool:
    """Returns whether JSON Schema counts the value as an integer: `5` and `5.0`, never `true`."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


class _Walk:
    def __init__(
        self,
        root: dict[str, Any],
        enums: Literal["error", "warning"],
        formats: Formats,
        exact: bool,
    ) -> None:
        self._root = root
        self._enums = enums
        self._formats = formats
        self._is_a = _is_exactly_a if exact else _is_a
        self._words: dict[str, Callable[[Any, Any, str], list[Finding]]] = {
            "required": self._required,
            "properties": self._properties,
            "items": self._items,
            "minItems": self._min_items,
            "enum": self._enum,
            "minimum": self._minimum,
            "maximum": self._maximum,
            "format": self._format,
            "pattern": self._pattern,
            "$ref": self._reference,
        }

    def findings(self, value: object, schema: dict[str, Any], path: str) -> list[Finding]:
        found: list[Finding] = []
        for word, rule in schema.items():
            if word == "type":
                names = [rule] if isinstance(rule, str) else rule
                if not any(self._is_a(name, value) for name in names):
                    # If the type is wrong, nothing else is worth reporting.
                    return [Finding(path, self._type_message(names, value))]
            elif word in self._words:
                found += self._words[word](value, rule, path)
                if found and not isinstance(value, (dict, list)):
                    # One finding is enough for one text or number.
                    return found
            elif word not in _ANNOTATIONS:
                raise ValueError(f"the JSON Schema keyword {word!r} is not supported")
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
            for index, item in enumerate(value)
            for finding in self.findings(item, schema, f"{path}[{index}]")
        )
        return first_findings(found, path)

    def _min_items(self, value: object, least: int, path: str) -> list[Finding]:
        if not isinstance(value, list) or len(value) >= least:
            return []
        message = f"must have at least {least} items" if value else "must not be empty"
        return [Finding(path, message)]

    def _enum(self, value: object, allowed: list[object], path: str) -> list[Finding]:
        # In Python True == 1; every enum of ours has a `type` beside it that tells them apart.
        if value in allowed:
            return []
        names = ", ".join(str(name) for name in allowed if name is not None)
        return [Finding(path, f"must be one of {names}; it is {_shown(value)}", self._enums)]

    def _minimum(self, value: Any, least: int, path: str) -> list[Finding]:
        if _is_a("number", value) and value < least:
            return [Finding(path, f"must be at least {least}; it is {_shown(value)}")]
        return []

    def _maximum(self, value: Any, most: int, path: str) -> list[Finding]:
        if _is_a("number", value) and value > most:
            return [Finding(path, f"must be at most {most}; it is {_shown(value)}")]
        return []

    def _pattern(self, value: object, pattern: str, path: str) -> list[Finding]:
        # In JSON Schema `$` is the end of the text; in Python it also precedes a last line end.
        if not isinstance(value, str) or re.search(pattern.replace("$", r"\Z"), value):
            return []
        if pattern == r"\S":
            return [Finding(path, "must not be empty")]
        return [Finding(path, f"must match {pattern}; it is {_shown(value)}")]

    def _format(self, value: object, name: str, path: str) -> list[Finding]:
        if not isinstance(value, str):
            return []
        if name in self._formats:
            problem = self._formats[name](value)
            return [Finding(path, f"{problem}; it is {_shown(value)}")] if problem else []
        if name != "date-time":
            raise ValueError(f"the format {name!r} is not supported")
        if instant_ms(value) is None:
            hint = "write it as 2024-12-14T10:30:00Z"
            return [Finding(path, f"{_shown(value)} is not an RFC 3339 timestamp", hint=hint)]
        if not any(sign in value[19:] for sign in "Zz+-"):
            message = "has no offset from UTC and is read as UTC"
            return [Finding(path, message, "warning", hint="end it with Z")]
        return []

    def _reference(self, value: object, name: str, path: str) -> list[Finding]:
        target = self._root
        for step in name.removeprefix("#/").split("/"):
            target = target[step]
        return self.findings(value, target, path)

    def _type_message(self, names: Sequence[str], value: object) -> str:
        wanted = " or ".join(_NOUNS[name] for name in names)
        order = ("null", "boolean", "integer", "number", "string", "array", "object")
        given = (_NOUNS[name] for name in order if self._is_a(name, value))
        return f"must be {wanted}; it is {next(given, 'half of a surrogate pair')}"


def _is_a(name: str, value: object) -> bool:
    if name == "integer":
        return is_whole(value)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    return isinstance(value, kinds[name])


def _is_exactly_a(name: str, value: object) -> bool:
    if name == "integer":
        return type(value) is int
    if name == "string" and isinstance(value, str):
        return value.isascii() or _SURROGATE.search(value) is None
    return _is_a(name, value)


def _shown(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return "a number of many digits"
    text = repr(value[:_SHOWN]) if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN + 2 else text[:_SHOWN] + "…"
