"""What a sprint says that it depends on: sprints of its plan, and beads.

Only what is plain is read. Everything else is an error: a dependency that is guessed wrong or
left out lets work begin too early.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from queenbee.documents.findings import Finding
from queenbee.documents.plans.fields import is_field
from queenbee.documents.sprints.numbers import is_sprint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from queenbee.documents.markdown import Block

_BEAD = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_.]*[A-Za-z0-9_])+")
_NUMBER = r"[0-9]+[a-z]*\.[0-9]+[a-z]*"
_NOTHING = re.compile(r"(?:none|nothing|n/a|no|[-–—])(?:\W.*)?", re.IGNORECASE | re.DOTALL)
_MENTION = re.compile(rf"(?<![\w.])(?:{_NUMBER})(?![\w.])")
_TITLED = re.compile(rf"(?:sprint[ \t]+)?({_NUMBER})[ \t]*(?::|[ \t][–—-][ \t])[ \t]*(\S.*)", re.I)
_SEPARATOR = re.compile(r"[,;\n&+]|\band\b", re.IGNORECASE)
_LINK = re.compile(r"\[([^\[\]]{1,200})\]\([^()]{0,500}\)")
_ALMOST = re.compile(
    r"[ \t|]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)?[*_`]{0,3}"
    r"((?:depends|depending|dependent|dependenc(?:y|ies)|requires?|needs|after|prerequisites?"
    r"|preconditions?|blocked|waits)(?:[ _-](?:on|upon|by|for))?)\b[^:\n]{0,30}:[*_` \t|]*"
    rf"(?:sprints?[ \t]+)?[*_`]{{0,3}}({_NUMBER})(?![\w])",
    re.IGNORECASE,
)
_MAX_LENGTH = 2_000
"""Characters of one value: no list of dependencies is longer."""


def read_needs(values: Sequence[str], where: str, line: int) -> tuple[list[str], list[Finding]]:
    """Returns the sprint numbers and bead ids that a sprint says it depends on.

    They are separated by commas, semicolons, "and", or lines; `Sprint 1.2a: Title` is `1.2a`.
    """
    needs: list[str] = []
    findings: list[Finding] = []
    for value in values:
        for part in _parts(value[:_MAX_LENGTH]):
            if is_sprint(part) or _BEAD.fullmatch(part):
                needs.append(part)
                continue
            message = f"{part[:80]!r} is neither a sprint's number nor a bead's id"
            lower = part.lower()
            right = lower if is_sprint(lower) else "1.1, 1.2a"
            hint = f"write **Depends On:** {right}; put other conditions in the text"
            findings.append(Finding(where, message, hint=hint, line=line))
    return list(dict.fromkeys(needs)), findings


def unread_needs(blocks: Sequence[Block], where: str, known: Collection[str]) -> Iterator[Finding]:
    """Yields an error for each line under a sprint that names others to wait for, but is no field.

    Such as `Depends on: 1.1`, which is not bold, or `**Prerequisites:** 1.1`. `known` are the
    numbers of the plan's sprints: "Needs: 1.5 GB" is prose.
    """
    for block in blocks:
        rows = block.text.split("\n") if block.kind in ("paragraph", "list", "other") else ()
        for at, row in enumerate(rows, start=block.first + 1):
            match = _ALMOST.match(row)
            if match and match[2].lower() in known and not is_field(row):
                message = f"{row.strip()[:80]!r} names sprints to wait for, but is not a field"
                hint = f"write it as **Depends On:** {match[2].lower()}"
                yield Finding(where, message, hint=hint, line=at)


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
