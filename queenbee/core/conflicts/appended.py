"""Files that everybody appends to: change logs by their names, and what a setting names.

`queen land` keeps what both sides added there. Cheap to import: hooks ask it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pathspec import GitIgnoreSpec

_NAMES = ("changelog", "changes", "history", "news")
_ENDINGS = ("md", "rst", "txt", "adoc", "org")


def is_change_log(path: str) -> bool:
    """Returns whether a file is a change log, by its name, and no code."""
    return is_prose(path) and path.rpartition("/")[2].lower().startswith(_NAMES)


def is_prose(path: str) -> bool:
    """Returns whether a file is a text for people, by its ending: two additions to code may be one
    half each of something.
    """
    name = path.rpartition("/")[2].lower()
    return "." not in name or name.rpartition(".")[2] in _ENDINGS


def everybody_appends_to(path: str, join: str, union: Sequence[str]) -> bool:
    """Returns whether landing keeps both additions to a file, given `land.join` and `land.union`.

    Raises `ValueError` for what is no pattern.
    """
    if join == "off":
        return False
    return is_change_log(path) or bool(union and _spec(tuple(union)).match_file(path))


@lru_cache(1)
def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - start-up

    return GitIgnoreSpec.from_lines(patterns)
