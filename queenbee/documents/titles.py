"""Names made from the titles of documents."""

from __future__ import annotations

import re
import unicodedata

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
