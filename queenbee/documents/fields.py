"""Fields of several documents: ids and titles that become names of files, and environment
variables.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from queenbee.core.text import visible
from queenbee.documents.findings import Finding

_ID_MAX_BYTES = 200
"""Leaves room for `.json` and for the suffix of a file that is being written."""


def id_problem(text: str) -> str | None:
    """Returns why a text cannot be an id and part of a file's name, or None."""
    if not text:
        return "it is empty"
    if text.startswith("."):
        return "it starts with a dot"
    if text.startswith("-"):
        return "it starts with a dash, as an option does"
    if any(char in "/\\" for char in text):
        return "it contains a path separator"
    if not visible(text):
        return "it contains a character that cannot be printed"
    if len(text.encode()) > _ID_MAX_BYTES:
        return f"it is longer than {_ID_MAX_BYTES} bytes"
    return None


def environment_findings(env: object, path: str) -> list[Finding]:
    """Returns what is wrong with an `env`: a list of names to pass on, or names with values."""
    if env is None:
        return []
    names = list(env) if isinstance(env, (list, dict)) else [None]
    values = list(env.values()) if isinstance(env, dict) else []
    good = all(
        isinstance(name, str) and name and "=" not in name and "\0" not in name for name in names
    ) and all(value is None or (isinstance(value, str) and "\0" not in value) for value in values)
    message = "must be a list of names, or an object of names and strings"
    return [] if good else [Finding(path, message)]


def named_environment(env: Any) -> dict[str, str | None]:
    """Returns the variables that a valid `env` names; None means the caller's own value."""
    if isinstance(env, list):
        return dict.fromkeys(env)
    return dict(env or {})


_MAX_LENGTH = 80
"""A branch is also the name of a folder, and file systems allow 255 bytes at most."""


def slug(title: str) -> str:
    """Returns a title in lower case, with `-` for spaces and without special characters.

    An accented letter loses its accent; a letter without an ASCII form is dropped. May be empty.
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    kept = re.sub(r"[^a-z0-9_-]", "", re.sub(r"\s+", "-", plain.strip()))
    short = re.sub(r"-{2,}", "-", kept).strip("-")
    if len(short) <= _MAX_LENGTH:
        return short
    return short[:_MAX_LENGTH].rpartition("-")[0] or short[:_MAX_LENGTH]
