"""Where the paths of a pattern can be, as two short texts that a database can sort and compare.

The *head* of a pattern is what all its paths begin with: whole folders, or the path itself if it is
literal. Its *tail* is the two letters that they all end in. Two patterns can only share a path if
their heads lie in one line of folders and their tails do not differ. What can be told from the
text alone is told; a head or tail of "" says nothing, and is always looked at. ADR 0003.
"""

from __future__ import annotations

from queenbee.core.glob.chars import fold
from queenbee.core.glob.index import beginning_of, ends_of, folders_of, tail_of
from queenbee.core.glob.parse import SPECIAL
from queenbee.core.glob.pattern import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_UNTIDY = ("//", "./")
"""Signs that a text may not be in normal form: its segments may not be those of its paths."""
_OPEN = frozenset("]}/")
_MANY = 8
"""More branches than this are not looked up one by one."""
_DEEP = 200
"""Nor are more heads: old builds of SQLite allow 999 parameters."""


class Places:
    """Where a pattern or a path may meet patterns: what lies elsewhere shares no path with it."""

    __slots__ = ("below", "heads", "tails")

    def __init__(
        self,
        heads: Iterable[str] | None,
        below: Iterable[str] = (),
        tails: Iterable[str] | None = None,
    ) -> None:
        found = None if heads is None else _storable(heads)
        self.heads = found if found is None or len(found) <= _DEEP else None
        """The heads themselves; None for all of them."""
        self.below = _storable(below)
        """Folders, with their `/`: any head that begins with one counts too."""
        self.tails = None if tails is None else _storable(tails)
        """The tails; None for all of them."""

    def include(self, text: str) -> bool:
        """Returns whether a pattern's text may share a path with what these are the places of."""
        head, tail = place_of(text)
        if self.tails is not None and tail not in self.tails:
            return False
        return self.heads is None or head in self.heads or head.startswith(tuple(self.below))


def place_of(text: str) -> tuple[str, str]:
    """Returns the head and the tail of a pattern's text, folded; the text may be invalid."""
    if text[:1] in ("/", "!") or text[-1:] == "." or any(sign in text for sign in _UNTIDY):
        return "", ""
    folded = fold(text)
    specials = [at for at in map(folded.find, SPECIAL) if at >= 0]
    head = folded[: folded.rfind("/", 0, min(specials)) + 1] if specials else folded
    if "{" in folded and folded.count(".", len(head)) > 1:
        head = ""  # With nothing between them, two dots are a segment that removes another.
    end = folded[-2:]
    is_open = len(end) < 2 or not SPECIAL.isdisjoint(end) or not _OPEN.isdisjoint(end)
    return head, "" if is_open or "\\" in folded else end


def places_of_path(path: str) -> Places:
    """Returns where the patterns are that may cover a literal path."""
    folded = fold(path)
    return Places([*folders_of(folded + "/"), folded], tails=(tail_of(folded), ""))


def places_of_pattern(pattern: str) -> Places:
    """Returns where the patterns are that may overlap this one. Raises `BadPattern`."""
    new = compiled(pattern)
    if new.path is not None:
        return places_of_path(new.path)
    beginnings = {fold(beginning_of(branch)) for branch in new.branches}
    ends = {fold(end) for branch in new.branches for end in ends_of(branch)}
    tails = None if "" in ends else [*ends, ""]
    if "" in beginnings or len(beginnings) > _MANY:
        return Places(None, tails=tails)
    heads = {each for beginning in beginnings for each in (*folders_of(beginning), beginning[:-1])}
    return Places(heads, beginnings, tails)


def _storable(texts: Iterable[str]) -> tuple[str, ...]:
    """Returns the texts that a stored pattern can have; bytes that are not UTF-8 it escapes."""
    return tuple(sorted(text for text in texts if text.isascii() or _is_unicode(text)))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
