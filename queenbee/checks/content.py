"""Searches one file for patterns, as a separate program: a regular expression can run forever.

It is started by path, with the file and a JSON list of `[pattern, is_literal, is_case_sensitive]`;
it imports nothing from QueenBee, and prints `{"problem": text}` or, for each pattern,
`[line_number, line, problem]`, where the line is null for a pattern that does not occur. ADR 0012.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import sys
import warnings

try:
    import resource
except ImportError:  # Windows has no such limit.
    resource = None  # type: ignore[assignment]

MAX_BYTES = 16 * 1024 * 1024
MAX_MEMORY_BYTES = 1024 * 1024 * 1024
"""Limit of address space: the file as text takes up to 64 MiB, and the search needs more."""

_LINE_SHOWN = 200


def main(path: str, patterns: str) -> dict[str, object]:
    """Returns what the program prints."""
    with contextlib.suppress(ValueError, OSError):  # A lower limit is already set.
        if resource is not None:
            resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    try:
        text = _text(path)
    except (OSError, ValueError) as error:
        return {"problem": getattr(error, "strerror", None) or str(error)}
    return {"matches": [_first(text, *pattern) for pattern in json.loads(patterns)]}


def _text(path: str) -> str:
    # O_NONBLOCK: opening a FIFO must not hang.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
    # Normalizes line endings to \n; otherwise `$` would not match before \r\n.
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n")


def _first(text: str, pattern: str, literal: bool, case_sensitive: bool) -> list[object]:
    flags = re.MULTILINE if case_sensitive else re.MULTILINE | re.IGNORECASE
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = re.search(re.escape(pattern) if literal else pattern, text, flags)
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        return [None, None, f"is not a usable regular expression: {error}"]
    if found is None:
        return [None, None, None]
    start = text.rfind("\n", 0, found.start()) + 1
    line = text[start : start + _LINE_SHOWN].split("\n", 1)[0]
    return [text.count("\n", 0, found.start()) + 1, line, None]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], sys.argv[2])))
