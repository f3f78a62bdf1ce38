"""A plan in the form of the document on sprint beads: `## Phase 1: Title`, `### Sprint 1.1: Title`.

Only headings change, and their levels. Pure. `docs/plans.md`, section "How a plan is read".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from queenbee.core.text import suggested
from queenbee.documents.findings import errors_in
from queenbee.documents.issue_rows import metadata_of
from queenbee.documents.markdown import parse_blocks, split_lines, strip_item
from queenbee.documents.plans.headings import (
    PHASE,
    PHASE_LEVEL,
    SPRINT,
    SPRINT_LEVEL,
    Heading,
    Unit,
    own_form,
    read_unit,
)
from queenbee.documents.plans.marks import read_marks
from queenbee.documents.plans.outline import Outline, read_outline
from queenbee.documents.plans.plan import parse_plan
from queenbee.documents.plans.plan_check import check_plan
from queenbee.documents.plans.sections import Phase, Section, boxes_in
from queenbee.documents.plans.source_text import read_markdown
from queenbee.documents.sprints.numbers import phase_of
from queenbee.errors import InvalidInput
from queenbee.store.whole_files import write_named

LIST = "list"
"""The unit whose sprints are the items of lists."""
_OWN = {
    PHASE_LEVEL: re.compile(r"Phase[ \t]+[0-9]+[a-z]*(?:[ \t]*:[ \t]*.*)?"),
    SPRINT_LEVEL: re.compile(r"Sprint[ \t]+[0-9]+[a-z]*\.[0-9]+[a-z]*:[ \t]*\S.*"),
}
_TITLE = 200
"""Characters of an item that become a title; the item then stays below it, whole."""


def convert_plan(text: str, unit: Unit | None = None, *, items: bool = False) -> str:
    """Returns the plan in the document's own form; with `items`, lists are its sprints.

    The sprints keep their numbers, titles, marks and order, and their text but for headings.
    Converting the result changes nothing. Raises `InvalidInput` if that cannot be done.
    """
    mark, body = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
    if items:
        body, unit = _with_headings(body), Unit(0, "task")
    outline = read_outline(body, unit)
    converted = _Writing(body, outline).text()
    after = read_outline(converted)
    if _facts(after) != _facts(outline) or _Writing(converted, after).text() != converted:
        raise InvalidInput(
            "this plan cannot be written in its own form without a change of its sprints",
            hint="queen plan check says how it is read; give each phase and sprint one number",
        )
    return mark + converted


def convert_file(path: str, said: str | None, *, write: bool) -> str:
    """Returns how a plan would change as a diff, and changes it if `write`.

    Raises `NotFound`, `Unreadable`, and `InvalidInput` as `read_unit` and `convert_plan` do.
    """
    text = read_markdown(path)
    unit = read_unit(said) if said and said != LIST else None
    converted = convert_plan(text, unit, items=said == LIST)
    wrong = errors_in(check_plan(parse_plan(converted)))
    if wrong and not errors_in(check_plan(parse_plan(text, unit))) and said != LIST:
        raise InvalidInput(
            f"{path} cannot have its own form: there, line {wrong[0].line} {wrong[0].message}",
            hint=suggested("queen plan import", path),
        )
    if write and converted != text:
        write_named(path, converted.encode())
    before, after = (each.splitlines(keepends=True) for each in (text, converted))
    return "".join(unified_diff(before, after, path, path))


def unit_of(rows: Iterable[Mapping[str, Any]], text: str) -> Unit | None:
    """Returns which headings somebody named as the sprints of a plan when these beads were made.

    A plan that has the document's own form by now needs nobody to say it.
    """
    said = (metadata_of(row).get("plan_unit") for row in rows)
    unit = next((each for each in said if isinstance(each, str) and each), None)
    with suppress(InvalidInput):
        if unit is not None and convert_plan(text) != text:
            return read_unit(unit)
    return None


def _facts(outline: Outline) -> list[tuple[object, ...]]:
    sections = (one for one in outline.sections if not one.record)
    return [(one.number, one.heading.title, one.mark, one.boxes) for one in sections]


@dataclass
class _Writing:
    source: str
    outline: Outline

    def __post_init__(self) -> None:
        self._lines = split_lines(self.source)

    def text(self) -> str:
        """Returns the text with each heading in its place."""
        lines = [*self._lines]
        usual = next((ending for _, ending in lines if ending), "\n")
        for heading, written in reversed([*self._headings()]):
            if written == [f"{'#' * heading.level} {heading.text}"]:
                continue
            last = heading.first + heading.lines
            ending = lines[last - 1][1]
            new = [(each, usual) for each in written]
            new[-1] = (written[-1], ending)
            lines[heading.first : last] = new
        return "".join(line + ending for line, ending in lines)

    def _headings(self) -> Iterator[tuple[Heading, list[str]]]:
        """Yields each heading that changes, with the lines that it becomes."""
        sections = {one.first: one for one in self.outline.sections}
        phases = {phase.line - 1: phase for phase, _ in self.outline.phases}
        made: set[str] = set()
        unit = self.outline.unit
        starts = phases or (sections if unit is not None and unit.word == PHASE else ())
        level_of_phase = next(
            (one.level for one in self.outline.headings if one.first in starts), 0
        )
        over: Section | None = None
        begun = False
        for one in self.outline.headings:
            if over is not None and one.first >= over.last:
                over = None
            if one.first in sections:
                over, begun = sections[one.first], True
                yield from self._changed(one, self._unit(over, phases.get(one.first), made))
            elif one.first in phases:
                begun = True
                phase = phases[one.first]
                title = phase.title or ("" if one.number else one.title)
                yield from self._changed(one, [own_form(PHASE, phase.number, title, one.mark)])
            elif over is not None:
                yield from self._moved(one, one.level + SPRINT_LEVEL - over.heading.level)
            elif level_of_phase and begun:
                lower = one.level + PHASE_LEVEL - level_of_phase
                is_below = one.level > level_of_phase
                yield from self._moved(one, lower if is_below else min(one.level, PHASE_LEVEL))
            elif begun and not level_of_phase:
                yield from self._moved(one, max(SPRINT_LEVEL, one.level))

    def _moved(self, heading: Heading, level: int) -> Iterator[tuple[Heading, list[str]]]:
        level = min(level, 6)
        if level != heading.level:
            line = self._lines[heading.first][0]
            yield heading, [f"{'#' * level} {line.strip().strip('#').strip()}"]

    def _changed(self, heading: Heading, lines: list[str]) -> Iterator[tuple[Heading, list[str]]]:
        """Yields the lines of a heading, unless it has the document's own form."""
        if len(lines) > 1 or not _is_own(self._lines[heading.first][0].strip()):
            yield heading, lines

    def _unit(self, section: Section, phase: Phase | None, made: set[str]) -> list[str]:
        """Returns the heading of a unit, below that of its phase if the plan has none for it."""
        one = section.heading
        own = own_form(SPRINT, section.number, one.title, one.mark)
        number = phase_of(section.number)
        if phase is not None or (one.word == PHASE and one.number):
            return [own_form(PHASE, number, one.title if one.title != one.text else ""), "", own]
        if section.phase is None and number not in made and not section.record:
            made.add(number)
            return [own_form(PHASE, number, ""), "", own]
        return [own]


def _is_own(line: str) -> bool:
    """Returns whether a line is the heading of a phase or a sprint in the document's own form."""
    level = len(line) - len(line.lstrip("#"))
    plain, _ = read_marks(line.strip("# \t"))
    return _OWN[level].fullmatch(plain) is not None if level in _OWN else False


def _with_headings(text: str) -> str:
    """Returns a text in which the items of its lists are headings, one level below the others."""
    lines = split_lines(text)
    usual = next((ending for _, ending in lines if ending), "\n")
    blocks = parse_blocks(text)
    lists = [each for each in blocks if each.kind == "list"]
    with_boxes = [each for each in lists if any(boxes_in([each]))]
    level = min(6, max((one.level for one in blocks if one.kind == "heading"), default=1) + 1)
    for each in reversed(with_boxes or lists):
        ends = [*(item.first for item in each.items[1:]), each.last]
        new: list[tuple[str, str]] = []
        for n, (item, last) in enumerate(zip(each.items, ends, strict=True), 1):
            whole, ticked = strip_item([line for line, _ in lines[item.first : last]])
            first, _, rest = whole.partition("\n")
            rest = whole if len(first) > _TITLE else rest.strip("\n")
            box = "[x] " if ticked else ""
            said = f"{'#' * level} {box}Task {n}: {first[:_TITLE].strip() or 'Task'}"
            body = ["", *rest.split("\n"), ""] if rest.strip() else [""]
            new += ((line, usual) for line in (said, *body))
        lines[each.first : each.last] = [("", usual), *new]
    return "".join(line + ending for line, ending in lines)
