"""The front matter of a Markdown file: YAML between two lines of three dashes.

Pure. Anyone may have written it: size, nesting and aliases are limited before a value is built, and
tags never create objects.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

MAX_BYTES = 64 * 1024
MAX_DEPTH = 16
MAX_ALIASES = 8
MAX_EVENTS = 4_000

_SLIPS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_MARKER = re.compile(r"---[ \t]*\Z")
_END = re.compile(r"(?:---|\.\.\.)[ \t]*\Z")


@dataclass(frozen=True)
class FrontMatter:
    """The front matter of a file, and the text after it.

    `fields` is None if the front matter cannot be used; `problem` then says why. `body` begins
    in line `body_line`, counted from 1.
    """

    fields: dict[Any, Any] | None
    problem: str | None
    body: str
    body_line: int


def read_front_matter(text: str) -> FrontMatter:
    """Returns the front matter of a Markdown text and its body. Never raises."""
    lines = re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))
    if not _MARKER.match(lines[0]):
        return FrontMatter(None, "the first line is not ---", text, 1)
    end = next((at for at, line in enumerate(lines) if at and _END.match(line)), None)
    if end is None:
        return FrontMatter(None, "the second --- is missing", text, 1)
    body = "\n".join(lines[end + 1 :])
    fields, problem = load_yaml_object("\n".join(lines[1:end]))
    return FrontMatter(fields, problem, body, end + 2)


def load_yaml_object(text: str) -> tuple[dict[Any, Any] | None, str | None]:
    """Returns the YAML mapping in a text, or None and the reason."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        return None, f"it has more than {MAX_BYTES:,} bytes"
    try:
        # One object for each pass: after an error it holds state.
        fault = _fault(YAML(typ="safe", pure=True).parse(text))
        if fault is not None:
            return None, fault
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        return None, f"it is not YAML: {_first_line(error)}"
    except _SLIPS as error:
        # The library does not catch these when a value does not match its tag.
        return None, f"it cannot be read: {_first_line(error)}"
    if not isinstance(value, dict):
        return None, "it is not a list of `name: value` lines"
    return value, None


def _fault(events: Any) -> str | None:
    """Returns which limit the events exceed; nothing is built from them yet."""
    depth = aliases = 0
    anchors: set[str] = set()
    for count, event in enumerate(events):
        kind = type(event).__name__
        depth += kind in ("MappingStartEvent", "SequenceStartEvent")
        depth -= kind in ("MappingEndEvent", "SequenceEndEvent")
        anchor = getattr(event, "anchor", None)
        if kind == "AliasEvent":
            aliases += 1
        elif anchor is not None:
            if anchor in anchors:
                return f"the anchor &{anchor} is defined twice"
            anchors.add(anchor)
        if depth > MAX_DEPTH:
            return f"it has more than {MAX_DEPTH} levels of nesting"
        if aliases > MAX_ALIASES or len(anchors) > MAX_ALIASES:
            return f"it has more than {MAX_ALIASES} aliases"
        if count >= MAX_EVENTS:
            return f"it has more than {MAX_EVENTS:,} parts"
    return None


def _first_line(error: Exception) -> str:
    problem = getattr(error, "problem", None)
    mark = getattr(error, "problem_mark", None)
    text = str(problem or error).strip().splitlines()
    where = f" (line {mark.line + 2})" if problem and mark is not None else ""
    return (text[0] if text else type(error).__name__)[:200] + where
