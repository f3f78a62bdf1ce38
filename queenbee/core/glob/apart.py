"""Explains to a person why two patterns share no path."""

from __future__ import annotations

from queenbee.core.glob.pattern import is_literal, literal_path, literal_prefix, matches

_ENDS = frozenset("*?[]{}\\,/")


def why_apart(left: str, right: str) -> str:
    """Returns the simplest reason why two patterns that do not overlap share no path.

    It explains the verdict of `glob.overlap` and decides nothing. Raises `BadPattern`.
    """
    if is_literal(left) and is_literal(right):
        return f"{literal_path(left)} and {literal_path(right)} are different paths"
    for one, other in ((left, right), (right, left)):
        path = literal_path(one)
        if path is not None and not matches(other, path):
            return f"{other} does not cover {path}, the only path of {one}"
    folders = literal_prefix(left).split("/"), literal_prefix(right).split("/")
    if any(mine != theirs for mine, theirs in zip(*folders, strict=False) if mine and theirs):
        return f"one is in {literal_prefix(left)}/, the other in {literal_prefix(right)}/"
    ends = _literal_end(left), _literal_end(right)
    if all(ends) and not (ends[0].endswith(ends[1]) or ends[1].endswith(ends[0])):
        return f"one matches names ending in {ends[0]}, the other in {ends[1]}"
    return "no path fits both patterns"


def _literal_end(pattern: str) -> str:
    """Returns the literal text that every path of the pattern ends in, or ""."""
    if "{" in pattern or "\\" in pattern or pattern.endswith("**"):
        return ""
    begin = len(pattern)
    while begin > 0 and pattern[begin - 1] not in _ENDS:
        begin -= 1
    return pattern[begin:]
