"""Who brought a line of `queen.toml` in, as git knows it."""

from __future__ import annotations

import os
import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.text import printable
from queenbee.errors import QueenError
from queenbee.git.run import git
from queenbee.store.settings import FILE_NAME, by_name
from queenbee.store.settings_file.changing_text import text_of

if TYPE_CHECKING:
    from queenbee.store.layout import Layout

_LIMIT_S = 2.0


def line_of(text: str, name: str) -> int | None:
    """Returns the line, from 1, with which a setting such as `land.check` is set, or None."""
    lines = text.splitlines(keepends=True)
    for number in range(1, len(lines) + 1):
        with suppress(ValueError, QueenError):  # A value of several lines ends later.
            if name in by_name(FILE_NAME, tomllib.loads("".join(lines[:number]))):
                return number
    return None


def problem_sentence(layout: Layout) -> str | None:
    """Returns why the settings cannot be read, on which line, who wrote it, and what counts in
    their place; None while they can be.
    """
    settings = layout.settings
    problem = settings.problem
    if problem is None:
        return None
    line, name = problem.details.get("line"), problem.details.get("setting")
    if line is None and isinstance(name, str):
        with suppress(QueenError):
            line = line_of(text_of(os.path.join(layout.beads_dir, FILE_NAME)), name)
    at = f", line {line}" if isinstance(line, int) and isinstance(name, str) else ""
    by = who(layout, line) if isinstance(line, int) else ""
    counts = "the last good settings count" if settings.is_known else "nothing can be written"
    way = problem.hint or "queen doctor --fix"
    return f"{problem.message}{at}{f' ({by})' if by else ''}; until it is mended, {counts}: {way}"


def who(layout: Layout, line: int, folder: str | None = None) -> str:
    """Returns who wrote a line of the settings, in words, or "" if git does not know. Never fails.
    `folder` has those of a branch, in place of the hive's.

    The author is the droid where commits are made under its name, else whoever git names.
    """
    if layout.common_dir is None:
        return ""
    asked = ("blame", "--porcelain", f"-L{line},{line}", "--", FILE_NAME)
    try:
        said = git(*asked, cwd=folder or layout.beads_dir, repository={}, limit_s=_LIMIT_S)
    except QueenError:
        return ""
    lines = os.fsdecode(said).splitlines()
    commit = lines[0].split()[0] if lines else ""
    if not commit.strip("0"):
        return "not committed yet"
    author = next((each[7:] for each in lines if each.startswith("author ")), "")
    return f"{printable(author)} in {commit[:10]}"
