"""Values as sources write them: lists, names, keys, times and texts in the shapes of their APIs.

Pure. A shape that is none of these says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from queenbee.core.text import one_line
from queenbee.core.timestamps import format_ms, instant_ms

_MOMENTS = (
    "%Y-%m-%d", "%Y-%m-%d %H:%M", "%d/%b/%y %I:%M %p", "%d/%b/%y %H:%M", "%d/%b/%y",
    "%m/%d/%Y %H:%M", "%a %b %d %Y %H:%M:%S GMT%z",
)  # fmt: skip
"""How sources write a time, beside ISO 8601; without a zone, it is UTC."""
_KEYED = ("identifier", "key", "iid", "number", "html_url", "web_url", "url", "id")
"""Where an object has the key of an issue."""
_NAMED = ("name", "login", "username", "displayname", "value", "title", "type", "key")
"""Where an object has the name of a label, a person, a state."""
_PARTS = re.compile(r"[;,]")


def is_empty(value: Any) -> bool:
    return (
        value is None
        or value is False
        or value in ("", [], {})
        or (isinstance(value, dict) and value.get("totalCount") == 0)
    )


def moment_ms(text: str) -> int | None:
    for form in _MOMENTS:
        try:
            moment = datetime.strptime(text, form)
        except ValueError:
            continue
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    return None


def bare(value: Any) -> Any:
    """Returns a value without what GraphQL puts around a list, and with lower-case names."""
    if isinstance(value, dict):
        if isinstance(value.get("nodes"), list):
            return bare(value["nodes"])
        return {str(name).lower(): inner for name, inner in value.items()}
    return [bare(each) for each in value] if isinstance(value, list) else value


def scalar(value: Any) -> str:
    if isinstance(value, list):
        return scalar(value[0]) if value else ""
    is_text = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if is_text else ""


def objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def all_words(value: Any) -> list[str]:
    """Returns every word of a state: its name, its type, its category."""
    if isinstance(value, dict):
        inner = bare(value.get("statuscategory"))
        own = [scalar(value.get(name)) for name in ("name", "type", "key", "value")]
        return [*filter(None, own), *(all_words(inner) if inner else [])]
    return [text] if (text := scalar(value).strip()) else []


def words(value: Any) -> list[str]:
    """Returns the names in a list of texts or of objects with a name, or in a text with commas."""
    if isinstance(value, str):
        return [each.strip() for each in _PARTS.split(value) if each.strip()]
    found = []
    for each in value if isinstance(value, list) else [value]:
        text = named(each)
        if text:
            found.append(text)
    return found


def named(value: Any) -> str:
    if isinstance(value, dict):
        return next((text for name in _NAMED if (text := scalar(value.get(name)))), "")
    return scalar(value).strip()


def first(value: Any) -> str | None:
    return named(value[0] if isinstance(value, list) and value else value) or None


def keys(value: Any) -> list[str]:
    """Returns the keys of issues in a value: texts with commas, numbers, objects with a key."""
    if isinstance(value, str):
        return [each.strip().lstrip("#") for each in _PARTS.split(value) if each.strip()]
    if isinstance(value, list):
        return [key for each in value for key in keys(each)]
    if isinstance(value, dict):
        value = bare(value)
        return next(([text] for name in _KEYED if (text := scalar(value.get(name)))), [])
    return [scalar(value)] if scalar(value) else []


def comments(value: Any) -> list[dict[str, str]]:
    """Returns comments as rows have them."""
    if isinstance(value, dict):
        value = value.get("comments", value)
    found = []
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            inner = bare(each)
            body = next((inner[name] for name in ("body", "text") if inner.get(name)), None)
            text = "\n".join(prose(body)) if isinstance(body, dict) else scalar(body)
            author = named(bare(inner.get("author") or inner.get("user") or ""))
            at = scalar(inner.get("createdat") or inner.get("created_at") or inner.get("created"))
        elif isinstance(each, str) and each.count(";") >= 2:  # Jira's tables.
            at, author, text = each.split(";", 2)
        else:
            continue
        at_ms = instant_ms(at) or moment_ms(at.strip())
        found.append({"author": one_line(author, 80), "text": text}
                     | ({"created_at": format_ms(at_ms)} if at_ms is not None else {}))  # fmt: skip
    return [each for each in found if each["text"]]


def prose(node: Any) -> Iterator[str]:
    """Yields the paragraphs of one of Jira's documents, as text."""
    inner = node.get("content") if isinstance(node, dict) else None
    inner = inner if isinstance(inner, list) else []
    if any(isinstance(each, dict) and each.get("type") in ("text", "hardBreak") for each in inner):
        yield "".join(scalar(each.get("text")) or "\n" for each in inner if isinstance(each, dict))
        return
    for each in inner:
        yield from prose(each)
