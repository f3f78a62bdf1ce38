"""Checks a JSON value against a schema and reports everything that is wrong. ADR 0013.

It supports the keywords that our own schemas use, and refuses a schema with any other;
`is_understood` says which schemas of others it can judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from queenbee.core.timestamps import instant_ms
from queenbee.documents.findings import Finding, first_findings

Formats = Mapping[str, Callable[[str], str | None]]
"""Returns what is wrong with a text, or None, for each name of a `format`."""

_ANNOTATIONS = {"$schema", "$id", "title", "description", "definitions", "$defs"} | {
    "$comment",
    "default",
    "examples",
}
_NOUNS = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_DRAFTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
)
"""The versions in which the keywords of `is_understood` mean the same."""
_SHOWN = 60
"""Characters of a wrong value that a message repeats."""
_MOST_BITS = 1_000
"""Python refuses to write out an integer of more than 4,300 digits."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)
"""The parts of a pattern that can have a `$`: an escape, a class of characters, the end."""


def schema_findings(
    value: object,
    schema: dict[str, Any],
    *,
    enums: Literal["error", "warning"] = "error",
    formats: Formats | None = None,
    exact: bool = False,
) -> list[Finding]:
    """Returns what is wrong with `value`, in the schema's order, each with its path.

    `enums` is the severity of a value outside an `enum`: a later minor version may add values.
    `formats` adds to `date-time`, or replaces it. With `exact`, `5.0` is not an integer, and a
    string must be valid Unicode.
    """
    return _Walk(schema, enums, formats or {}, exact).findings(value, schema, "")


def is_understood(schema: object) -> bool:
    """Returns whether a schema of unknown origin is valid and this reader can judge by it.

    Left out are references, and `pattern` and `format`: an expression may run forever, and our
    formats are stricter than JSON Schema's.
    """
    if not isinstance(schema, dict):
        return False
    try:
        return str(schema.get("$schema", _DRAFTS[0])).rstrip("#") in _DRAFTS and all(
            word == "$schema" or (word in _SHAPES and _SHAPES[word](rule))
            for word, rule in schema.items()
        )
    except RecursionError:
        return False


def _is_list_of_names(rule: object) -> bool:
    return (
        isinstance(rule, list)
        and all(isinstance(name, str) for name in rule)
        and len(set(rule)) == len(rule)
    )


_SHAPES: dict[str, Callable[[Any], bool]] = {
    "type": lambda rule: (
        (isinstance(rule, str) and rule in _NOUNS)
        or (bool(rule) and _is_list_of_names(rule) and set(rule) <= set(_NOUNS))
    ),
    "required": _is_list_of_names,
    "properties": lambda rule: isinstance(rule, dict) and all(map(is_understood, rule.values())),
    "items": is_understood,
    "enum": lambda rule: isinstance(rule, list),
    "minimum": lambda rule: _is_a("number", rule),
    "maximum": lambda rule: _is_a("number", rule),
    "minItems": lambda rule: is_whole(rule) and rule >= 0,
    **dict.fromkeys(("title", "description", "$comment"), lambda rule: isinstance(rule, str)),
    "default": lambda rule: True,
    "examples": lambda rule: isinstance(rule, list),
}
"""The keywords that are understood in a schema of unknown origin, and what each may say."""


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
        self._words: dict[str, tuple[str | None, Callable[[Any, Any, str], Iterable[Finding]]]] = {
            "required": ("object", self._required),
            "properties": ("object", self._properties),
            "items": ("array", self._items),
            "minItems": ("array", self._min_items),
            "enum": (None, self._enum),
            "minimum": ("number", self._minimum),
            "maximum": ("number", self._maximum),
            "format": ("string", self._format),
            "pattern": ("string", self._pattern),
            "$ref": (None, self._reference),
        }
        """What each keyword says, and of which type of value; of any other it says nothing."""

    def findings(self, value: object, schema: dict[str, Any], path: str) -> list[Finding]:
        found: list[Finding] = []
        for word, rule in schema.items():
            if word == "type":
                names = [rule] if isinstance(rule, str) else rule
                if not any(self._is_a(name, value) for name in names):
                    # If the type is wrong, nothing else is worth reporting.
                    return [Finding(path, self._type_message(names, value))]
            elif word in self._words:
                kind, judge = self._words[word]
                if kind is None or _is_a(kind, value):
                    found += judge(value, rule, path)
                if found and not isinstance(value, (dict, list)):
                    # One finding is enough for one text or number.
                    return found
            elif word not in _ANNOTATIONS:
                raise ValueError(f"the JSON Schema keyword {word!r} is not supported")
        return found

    def _required(self, value: dict[str, Any], names: list[str], path: str) -> Iterator[Finding]:
        for name in names:
            if name not in value:
                yield Finding(member_path(path, name), "is required, but missing")

    def _properties(
        self, value: dict[str, Any], members: dict[str, Any], path: str
    ) -> Iterator[Finding]:
        for name, schema in members.items():
            if name in value:
                yield from self.findings(value[name], schema, member_path(path, name))

    def _items(self, value: list[Any], schema: dict[str, Any], path: str) -> list[Finding]:
        found = (self.findings(item, schema, f"{path}[{at}]") for at, item in enumerate(value))
        return first_findings(chain.from_iterable(found), path)

    def _min_items(self, value: list[Any], least: int, path: str) -> Iterator[Finding]:
        if len(value) < least:
            message = f"must have at least {least} items" if value else "must not be empty"
            yield Finding(path, message)

    def _enum(self, value: object, allowed: list[object], path: str) -> Iterator[Finding]:
        if not any(_are_equal(value, each) for each in allowed):
            names = ", ".join(
                name if isinstance(name, str) else _shown(name)
                for name in allowed
                if name is not None
            )
            yield Finding(path, f"must be one of {names}; it is {_shown(value)}", self._enums)

    def _minimum(self, value: Any, least: int, path: str) -> Iterator[Finding]:
        if value < least:
            yield Finding(path, f"must be at least {least}; it is {_shown(value)}")

    def _maximum(self, value: Any, most: int, path: str) -> Iterator[Finding]:
        if value > most:
            yield Finding(path, f"must be at most {most}; it is {_shown(value)}")

    def _pattern(self, value: str, pattern: str, path: str) -> Iterator[Finding]:
        if not re.search(_in_python(pattern), value):
            wanted = f"must match {pattern}; it is {_shown(value)}"
            yield Finding(path, "must not be empty" if pattern == r"\S" else wanted)

    def _format(self, value: str, name: str, path: str) -> Iterator[Finding]:
        if name in self._formats:
            problem = self._formats[name](value)
            if problem:
                yield Finding(path, f"{problem}; it is {_shown(value)}")
        elif name != "date-time":
            raise ValueError(f"the format {name!r} is not supported")
        elif instant_ms(value) is None:
            hint = "write it as 2024-12-14T10:30:00Z"
            yield Finding(path, f"{_shown(value)} is not an RFC 3339 timestamp", hint=hint)
        elif not any(sign in value[19:] for sign in "Zz+-"):
            message = "has no offset from UTC and is read as UTC"
            yield Finding(path, message, "warning", hint="end it with Z")

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


def _in_python(pattern: str) -> str:
    # In JSON Schema `$` is the end of the text; in Python it also precedes a last line end.
    return _PARTS.sub(lambda part: r"\Z" if part[0] == "$" else part[0], pattern)


def _are_equal(one: object, other: object) -> bool:
    """Compares as JSON does: `True` is not 1, at no depth, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            _are_equal(one[name], other[name]) for name in one
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_are_equal, one, other))
    return one == other


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
