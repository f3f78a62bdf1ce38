"""What a sprint says that it depends on: sprints of its plan, and beads.

Only what is plain is read. Everything else is an error: a dependency that is guessed wrong or
left out lets work begin too early.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from queenbee.documents.plans.grammar import BEAD, NUMBER, unread
from queenbee.documents.sprints.numbers import is_sprint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queenbee.documents.findings import Finding

_NOTHING = re.compile(r"(?:none|nothing|n/a|no|[-–—])(?:\W.*)?", re.IGNORECASE | re.DOTALL)
_MENTION = re.compile(rf"(?<![\w.])(?:{NUMBER})(?![\w.])")
_TITLED = re.compile(rf"(?:sprint[ \t]+)?({NUMBER})[ \t]*(?::|[ \t][–—-][ \t])[ \t]*(\S.*)", re.I)
_SEPARATOR = re.compile(r"[,;\n&+]|\band\b", re.IGNORECASE)
_LINK = re.compile(r"\[([^\[\]]{1,200})\]\([^()]{0,500}\)")
_MAX_LENGTH = 2_000
"""Characters of one value: no list of dependencies is longer."""


def read_needs(values: Sequence[str], where: str, line: int) -> tuple[list[str], list[Finding]]:
    """Returns the sprint numbers and bead ids that a sprint says it depends on.

    They are separated by commas, semicolons, "and", or lines; `Sprint 1.2a: Title` is `1.2a`.
    """
    parts = [part for value in values for part in _parts(value[:_MAX_LENGTH])]
    needs = [part for part in parts if is_sprint(part) or BEAD.fullmatch(part)]
    others = [part for part in parts if part not in needs]
    return list(dict.fromkeys(needs)), [
        unread("a dependency", part, line, path=where) for part in others
    ]


def _parts(value: str) -> Iterator[str]:
    """Yields the names in a value, without the words and marks around them."""
    text = _LINK.sub(r"\1", value).strip()
    if not text or (_NOTHING.fullmatch(text.strip("*_`. ")) and not _MENTION.search(text)):
        return
    titled = _TITLED.fullmatch(text.strip("*_` "))
    # Commas in a title separate nothing, unless another sprint is behind one.
    if titled is not None and not _MENTION.search(titled[2]):
        yield titled[1]
        return
    # A remark in brackets is none of the names: "1.1 (merged, and tested)".
    for part in _SEPARATOR.split(re.sub(r"[ \t]\([^()]*\)", "", text)):
        name = re.sub(r"^sprints?[ \t]+", "", part.strip("*_` \t."), flags=re.IGNORECASE)
        name = name.strip("*_` \t\u2705\u2714\ufe0f")
        if inner := _TITLED.fullmatch(name):
            name = inner[1]
        if name:
            yield name
