"""What a pattern shares with each of many, compared one by one with the product's `overlap`."""

from __future__ import annotations

from collections.abc import Iterable

from queenbee.core.glob import pattern as globs
from queenbee.errors import BadPattern


def is_pattern(text: str) -> bool:
    """Returns whether a text is a valid pattern."""
    try:
        return bool(globs.compiled(text))
    except BadPattern:
        return False


def compared(pattern: str, held: Iterable[tuple[str, str]], fold_case: bool) -> list[str]:
    """Returns the key of each valid pattern that overlaps this one."""
    return [
        key
        for key, text in held
        if is_pattern(text) and globs.overlap(pattern, text, fold_case=fold_case) is not None
    ]
