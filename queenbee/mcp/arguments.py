"""The arguments of a tool: declared once, told to clients as a schema, and read with care.

A client sends whatever its model wrote. Everything is checked before the hive hears of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queenbee.core.names import nearest
from queenbee.core.text import quotation, shortened
from queenbee.core.timestamps import parse_duration_s
from queenbee.errors import InvalidInput

MOST_CHARS = 1024 * 1024
"""What all texts of one call may have together: no record may be larger."""
MOST_ITEMS = 10_000
MOST_WORD_CHARS = 4096
"""An id, a name, a path or a pattern: longer ones name nothing, and are not worth repeating."""
_SHOWN = 60


@dataclass(frozen=True)
class Argument:
    """One argument of a tool: its schema, and how a value is read."""

    schema: Mapping[str, object]
    read: Callable[[str, object], object]
    """Returns the value that the tool gets. Raises `InvalidInput`."""
    required: bool = False


def text(about: str = "", *, required: bool = False) -> Argument:
    """Returns an argument that is one text."""
    return Argument(_schema("string", about), _text, required=required)


def word(about: str = "", *, required: bool = False) -> Argument:
    """Returns an argument that is one short text, such as an id."""
    return Argument(_schema("string", about), _word, required=required)


def texts(about: str = "", *, required: bool = False) -> Argument:
    """Returns an argument that is a list of short texts, such as paths."""
    schema = {**_schema("array", about), "items": {"type": "string"}}
    return Argument(schema, _texts, required=required)


def flag(about: str = "") -> Argument:
    """Returns an argument that is true or false."""
    return Argument(_schema("boolean", about), _flag)


def count(about: str = "", *, least: int = 1) -> Argument:
    """Returns an argument that is a whole number of at least so many."""

    def read(name: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise _wrong(name, f"a whole number of at least {least}", value)
        return value

    return Argument(_schema("integer", about), read)


def duration(about: str = "") -> Argument:
    """Returns an argument such as `90s` or `2h`, which is read as seconds."""
    return Argument(_schema("string", about), _duration)


def choice(values: Sequence[str]) -> Argument:
    """Returns an argument that is one of these texts."""

    def read(name: str, value: object) -> str:
        given = _text(name, value)
        if given not in values:
            raise InvalidInput(f"{name} is one of {', '.join(values)}, not {_shown(given)}")
        return given

    return Argument({"enum": list(values)}, read)


def schema_of(arguments: Mapping[str, Argument]) -> dict[str, object]:
    """Returns the JSON schema of the arguments of a tool."""
    schema: dict[str, object] = {"type": "object"}
    if arguments:
        schema["properties"] = {name: dict(each.schema) for name, each in arguments.items()}
    required = [name for name, each in arguments.items() if each.required]
    return {**schema, "required": required} if required else schema


def read(
    tool: str, arguments: Mapping[str, Argument], given: Mapping[str, object] | None
) -> dict[str, Any]:
    """Returns the values of all arguments, None for those that were not given.

    Raises `InvalidInput` for a missing or an unknown argument, a wrong type, and too much text.
    """
    given = {name: each for name, each in (given or {}).items() if each is not None}
    for name in given:
        if name not in arguments:
            close = nearest(name, arguments) if len(name) <= _SHOWN else None
            known = ", ".join(arguments) or "none"
            raise InvalidInput(
                f"{tool} has no argument {_shown(name)}",
                hint=f"did you mean {close}?" if close else f"its arguments: {known}",
            )
    if _size(given) > MOST_CHARS:
        raise InvalidInput(
            f"the arguments have more than {MOST_CHARS} characters",
            hint="put long text in a file in the repository and send its path",
        )
    for name, each in arguments.items():
        if each.required and name not in given:
            raise InvalidInput(f"{tool} needs the argument {name}")
    return {
        name: each.read(name, given[name]) if name in given else None
        for name, each in arguments.items()
    }


def _schema(kind: str, about: str) -> dict[str, object]:
    return {"type": kind, "description": about} if about else {"type": kind}


def _size(given: Mapping[str, object]) -> int:
    lists = [each for each in given.values() if isinstance(each, list)]
    alone = [each for each in given.values() if isinstance(each, str)]
    return sum(len(each) for each in alone) + sum(
        len(each) for many in lists for each in many if isinstance(each, str)
    )


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(name, "a string", value)
    # Half an emoji, as a model may cut it, is no text.
    return (
        value
        if value.isascii()
        else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )


def _word(name: str, value: object) -> str:
    given = _text(name, value)
    if len(given) > MOST_WORD_CHARS:
        raise _wrong(name, f"at most {MOST_WORD_CHARS} characters", value)
    return given


def _texts(name: str, value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _wrong(name, "a list of strings", value)
    if len(value) > MOST_ITEMS:
        raise InvalidInput(f"{name} has more than {MOST_ITEMS} elements")
    return [_word(name, each) for each in value]


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, "true or false", value)
    return value


def _duration(name: str, value: object) -> int:
    given = _text(name, value)
    if len(given) > _SHOWN:
        raise _wrong(name, "a duration such as 90s", value)
    return parse_duration_s(given)


def _wrong(name: str, wanted: str, value: object) -> InvalidInput:
    given = "null" if value is None else _shown(str(value))
    return InvalidInput(f"{name} is {wanted}, not {given}")


def _shown(value: str) -> str:
    return quotation(shortened(value, _SHOWN))
