"""What the answer of a host has at a place, whatever it is: others wrote it."""

from __future__ import annotations

from typing import Any

from queenbee.core.names import is_commit_id


def at(said: Any, *path: str | int) -> Any:
    """Returns the value at a path of names and places in lists; None if it leads nowhere."""
    for each in path:
        if isinstance(each, int):
            said = said[each] if isinstance(said, list) and len(said) > each else None
        else:
            said = said.get(each) if isinstance(said, dict) else None
    return said


def text(said: Any, *path: str | int) -> str:
    """Returns the text at a path; empty if there is none."""
    value = at(said, *path)
    return value if isinstance(value, str) else ""


def commit(said: Any, *path: str | int) -> str:
    """Returns the id of a commit at a path; empty if there is none."""
    value = text(said, *path)
    return value if is_commit_id(value) else ""


def number(said: Any, *path: str | int) -> int:
    """Returns the whole number at a path; 0 if there is none."""
    value = at(said, *path)
    return value if type(value) is int else 0


def objects(said: Any, *path: str | int) -> list[dict[str, Any]]:
    """Returns the objects of the list at a path."""
    value = at(said, *path)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
