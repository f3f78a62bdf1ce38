"""Writes the ids of beads under the headings of their plan.

Pure. After the document on sprint beads, "Annotation Format".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from queenbee.documents.markdown import split_lines
from queenbee.documents.plans.grammar import ANNOTATION
from queenbee.documents.plans.outline import sprint_headings
from queenbee.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.documents.markdown import Block

_ID = re.compile(r"[^\s<>]+")


def annotate_plan(text: str, beads: Mapping[str, str]) -> str:
    """Returns the plan with exactly one `<!-- beads-ralph: ID -->` under each sprint's heading.

    `beads` has the id of each sprint's bead; sprints that it does not name do not change. A
    second run changes nothing. Every other line keeps its bytes and its line ending; the new line
    gets the ending of its heading. Raises `InvalidInput` for an id that would end the comment.
    """
    for identifier in beads.values():
        if _ID.fullmatch(identifier) is None or "--" in identifier:
            raise InvalidInput(f"{identifier!r} cannot be used in a Markdown comment")
    mark, body = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
    lines = split_lines(body)
    # From the last heading upwards, so that the line numbers above stay valid.
    for sprint, heading, section in reversed(sprint_headings(body)):
        if sprint in beads:
            _annotate(lines, heading, section, f"<!-- beads-ralph: {beads[sprint]} -->")
    return mark + "".join(line + ending for line, ending in lines)


def _annotate(
    lines: list[tuple[str, str]], heading: int, section: list[Block], annotation: str
) -> None:
    present = [block.first for block in section if _is_annotation(block)]
    in_place = heading + 1 in present
    for at in reversed(present[1:] if in_place else present):
        _remove(lines, at, heading)
    text, ending = lines[heading]
    if in_place:
        lines[heading + 1] = (annotation, lines[heading + 1][1])
    elif ending:
        lines.insert(heading + 1, (annotation, ending))
    else:
        # The heading is the last line: it gets a line ending, and the annotation has none.
        lines[heading] = (text, _usual_ending(lines))
        lines.append((annotation, ""))


def _is_annotation(block: Block) -> bool:
    return block.kind == "html" and ANNOTATION.fullmatch(block.text) is not None


def _remove(lines: list[tuple[str, str]], at: int, heading: int) -> None:
    """Removes a line; two paragraphs that only this line separated stay separate."""
    above, ending = lines[at - 1]
    below = lines[at + 1] if at + 1 < len(lines) else ("", "")
    parts_text = (
        at - 1 > heading and above.strip() and not ANNOTATION.fullmatch(above) and below[0].strip()
    )
    # A lone carriage return would join with the line feed of an empty line below.
    if parts_text or (ending == "\r" and below == ("", "\n")):
        lines[at] = ("", ending)
    else:
        del lines[at]


def _usual_ending(lines: list[tuple[str, str]]) -> str:
    return next((ending for _, ending in lines if ending), "\n")
