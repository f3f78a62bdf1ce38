"""The phases and the units of work of a plan, found by its levels and numbers.

Pure. Which headings are the units is found or given; every line of the document is then in a
unit, in a phase's own text, or in a part that belongs to neither, which is told.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from queenbee.documents.findings import Finding
from queenbee.documents.front_matter import read_front_matter
from queenbee.documents.markdown import Block, parse_blocks, split_lines
from queenbee.documents.plans.headings import (
    PHASE,
    PHASE_LEVEL,
    SPRINT,
    Heading,
    Unit,
    headings_of,
)
from queenbee.documents.plans.missed import has_form, missed_units
from queenbee.documents.plans.numbering import numbers_of
from queenbee.documents.plans.sections import (
    ANNOTATION,
    Boxes,
    Part,
    Phase,
    Section,
    boxes_in,
    is_annotation,
)
from queenbee.documents.sprints.numbers import is_sprint

_ITEM = re.compile(r"^[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S", re.MULTILINE)


@dataclass(frozen=True)
class Outline:
    """The phases and units of a plan, and what belongs to neither.

    `left_out` are the lines that have the form of a unit and are none.
    """

    unit: Unit | None
    headings: tuple[Heading, ...]
    phases: tuple[tuple[Phase, Sequence[Block]], ...] = ()
    sections: tuple[Section, ...] = ()
    parts: tuple[Part, ...] = ()
    findings: tuple[Finding, ...] = ()
    left_out: tuple[int, ...] = ()

    @property
    def other_units(self) -> dict[str, int]:
        """The forms of the other headings with numbers, and how many have each."""
        taken = {one.first for one in self.sections} | {one.line - 1 for one, _ in self.phases}
        groups = _groups([one for one in self.headings if one.first not in taken])
        several = {form: count for form, count in groups.items() if count > 1}
        return {str(Unit(level, word or "1")): n for (level, word), n in several.items()}


def read_outline(text: str, unit: Unit | None = None) -> Outline:
    """Returns the outline of a Markdown document. Never raises, whatever the text."""
    text = _without_front_matter(text.removeprefix("\ufeff"))
    return _Reading(parse_blocks(text), [line for line, _ in split_lines(text)], unit).outline()


def own_headings(text: str, unit: Unit | None = None) -> list[tuple[str, int, list[Block]]]:
    """Returns (sprint, index of its last line, blocks under it) for each heading of a sprint's own.

    A record of a sprint has none, nor a skipped sprint whose number another sprint has.
    """
    sections = [each for each in read_outline(text, unit).sections if not each.record]
    planned = {each.number for each in sections if each.mark != "skipped"}
    return [
        (each.number, each.first + each.heading.lines - 1, list(each.blocks))
        for each in sections
        if each.mark != "skipped" or each.number not in planned
    ]


class _Reading:
    def __init__(self, blocks: list[Block], lines: list[str], unit: Unit | None) -> None:
        self._lines = lines
        self._all = blocks
        self._blocks = [each for each in blocks if not each.nested]
        self._firsts = [each.first for each in self._blocks]
        self._notes = {each.first for each in self._blocks if is_annotation(each)}
        self._headings = headings_of(blocks)
        self._above = _ancestors(self._headings)
        self._last = dict(_ends(self._headings, len(lines)))
        self._unit = unit or self._found_unit()

    def outline(self) -> Outline:
        units = self._units()
        phases = self._phase_headings(units)
        used = {each.first for one in units for each in self._above[one.first]}
        lone = [each for each in phases.values() if each.first not in used and self._is_unit(each)]
        alone = {each.first for each in lone}
        units = sorted([*units, *lone], key=lambda one: one.first)
        over = {one.first: self._phase_over(one, phases) for one in units}
        numbers, names = numbers_of(units, over, phases, self._unit)
        made = {
            first: _phase(
                each,
                names[first],
                "" if first in alone else self._verbatim(first, self._last[first], units),
            )
            for first, each in phases.items()
        }
        sections = _with_records(
            [self._section(one, numbers[one.first], made.get(over[one.first])) for one in units]
        )
        findings, left_out = missed_units(
            self._all, self._lines, self._headings, self._unit, sections, {*made, *used}
        )
        return Outline(
            self._unit,
            tuple(self._headings),
            tuple((made[first], self._phase_blocks(each, units)) for first, each in phases.items()),
            tuple(sections),
            tuple(self._parts(units, phases)),
            tuple(findings),
            tuple(left_out),
        )

    def _is_unit(self, phase: Heading) -> bool:
        """Returns whether a phase without units below it is one: if it has a list, or parts."""
        last = self._last[phase.first]
        text = self._verbatim(phase.first, last)
        work = _ITEM.search(text) or _between(self._headings, phase.first + 1, last)
        return bool(work) and not has_form(text, self._unit.word if self._unit else "")

    def _found_unit(self) -> Unit | None:
        """Returns what headings are the units: sprints, or numbers below numbers, or boxes.

        Headings of phases are the outer ones, even below numbers.
        """
        sprints = [one for one in self._headings if one.word == SPRINT and one.number]
        if any(one.level > 1 for one in sprints) or len(sprints) > 1:
            return Unit(0, SPRINT)
        groups = _groups(self._headings)
        several = {group: count for group, count in groups.items() if count > 1} or groups
        phases = [level for level, word in several if word == PHASE]
        outer = _most(several, min(phases or [level for level, _ in several], default=0))
        if outer is not None:
            form = Unit(outer[0], outer[1] or "1")
            below = [one for one in self._headings if any(map(form.takes, self._above[one.first]))]
            deeper = {group: count for group, count in _groups(below).items() if count > 1}
            inner = _most(deeper, min((level for level, _ in deeper), default=0))
            if inner is not None and deeper[inner] * 2 >= several[outer]:
                outer = inner
            return Unit(outer[0], outer[1] or "1")
        levels = Counter(one.level for one in self._headings if any(self._boxes(one)))
        often = [level for level, count in sorted(levels.items()) if count > 1 and level > 1]
        level = next(iter([*often, *sorted(levels, reverse=True)]), None)
        return None if level is None else Unit(level, "[ ]")

    def _units(self) -> list[Heading]:
        """Returns the headings of units. One below another is a part of it."""
        unit = self._unit
        if unit is None:
            return []
        found = [one for one in self._headings if unit.takes(one)]
        if unit.word == "[ ]":
            found = [one for one in found if any(self._boxes(one))]
        elif unit.word:
            # In a plan with whole numbers, "Sprint 12" is a slip for "Sprint 1.2".
            full = [one for one in found if is_sprint(one.number)]
            found = full if full and len(full) * 2 >= len(found) else found
        if not unit.level and any(one.level > 1 for one in found):
            found = [one for one in found if one.level > 1]
        kept: list[Heading] = []
        for one in found:
            if not kept or one.first >= self._last[kept[-1].first]:
                kept.append(one)
        return kept

    def _phase_headings(self, units: Sequence[Heading]) -> dict[int, Heading]:
        """Returns the headings of phases, by the index of their line."""
        if self._unit is not None and self._unit.word != PHASE:
            above = {each.first: each for one in units for each in self._above[one.first]}
            named = Counter((each.level, each.word) for each in above.values() if each.number)
            named.update({key: len(units) for key in named if key[1] == PHASE})
            form = next((form for form, _ in named.most_common(1)), (PHASE_LEVEL, PHASE))
            found: dict[int, Heading] = {}
            end = 0
            inside = {one.first: self._last[one.first] for one in units}
            for each in self._headings:
                end = max(end, inside.get(each.first, 0))
                if not each.number or (each.level, each.word) != form or each.first < end:
                    continue
                # A second "Phase 1" without units is about the first, such as its check list.
                numbers = {one.number for one in found.values()}
                if each.first in above or each.number not in numbers:
                    found[each.first] = each
            if found:
                # Where few "Sections" have sprints, the others are none.
                with_units = {first: each for first, each in found.items() if first in above}
                return with_units if 0 < len(with_units) * 2 < len(found) else found
        nearest = {up[-1].first: up[-1] for one in units if (up := self._above[one.first])}
        return nearest if len(nearest) > 1 else {}

    def _phase_over(self, unit: Heading, phases: Mapping[int, Heading]) -> int:
        inner = [each.first for each in self._above[unit.first] if each.first in phases]
        return unit.first if unit.first in phases else inner[-1] if inner else -1

    def _verbatim(self, first: int, last: int, but: Sequence[Heading] = ()) -> str:
        """Returns lines as they stand, but for our annotations and the units in `but`."""
        kept: list[int] = []
        at = first
        for unit in _between(but, first + 1, last):
            kept += range(at, max(at, unit.first))
            at = max(at, self._last[unit.first])
        kept += range(at, last)
        return "\n".join(self._lines[n] for n in kept if n not in self._notes).strip("\n")

    def _section(self, unit: Heading, number: str, phase: Phase | None) -> Section:
        last = self._last[unit.first]
        blocks = self._within(unit.first + 1, last)
        text = self._verbatim(unit.first, last)
        return Section(unit, number, last, phase, blocks, text, boxes_in(blocks))

    def _within(self, first: int, last: int) -> list[Block]:
        return self._blocks[bisect_left(self._firsts, first) : bisect_left(self._firsts, last)]

    def _phase_blocks(self, phase: Heading, units: Sequence[Heading]) -> list[Block]:
        """Returns the blocks above a phase's first unit."""
        last = self._last[phase.first]
        below = _between(units, phase.first + 1, last)
        return self._within(phase.first + 1, below[0].first if below else last)

    def _boxes(self, heading: Heading) -> Boxes:
        return boxes_in(self._within(heading.first + 1, self._last[heading.first]))

    def _parts(self, units: Sequence[Heading], phases: Mapping[int, Heading]) -> Iterator[Part]:
        """Yields the headings that are in no unit and no phase, the outermost of each."""
        taken = sorted([*units, *phases.values()], key=lambda one: one.first)
        end = -1
        for one in self._headings:
            if one.first in phases or _between(taken, one.first, one.first + 1):
                end = max(end, self._last[one.first])
            elif not (below := _between(taken, one.first, self._last[one.first])):
                if one.first >= end:
                    end = self._last[one.first]
                    yield Part(one, self._boxes(one))
            elif one.first > taken[0].first:
                # "Part two" says something above its phases.
                own = self._within(one.first + 1, below[0].first)
                if own and own[0].kind != "heading":
                    yield Part(one, boxes_in(own))


def _between(headings: Sequence[Heading], first: int, last: int) -> Sequence[Heading]:
    """Returns those of sorted headings that begin in these lines."""
    start = bisect_left(headings, first, key=lambda one: one.first)
    return headings[start : bisect_left(headings, last, key=lambda one: one.first)]


def _groups(headings: Sequence[Heading]) -> Counter[tuple[int, str]]:
    """Returns how many headings with a number each level has, by their word."""
    return Counter((one.level, one.word) for one in headings if one.number)


def _phase(heading: Heading, number: str, text: str) -> Phase:
    title = heading.title if heading.title != heading.text else ""
    named = " ".join(filter(None, ("#" * heading.level, heading.word.title(), heading.number)))
    place = named if heading.number else heading.place
    return Phase(number, title, heading.first + 1, heading.mark, text, place)


def _most(groups: Mapping[tuple[int, str], int], level: int) -> tuple[int, str] | None:
    """Returns the largest group of a level; phases come first, numbers without a word last."""
    here = [group for group in groups if group[0] == level]
    return max(here, key=lambda one: (one[1] == PHASE, groups[one], bool(one[1])), default=None)


def _ancestors(headings: Sequence[Heading]) -> dict[int, tuple[Heading, ...]]:
    found: dict[int, tuple[Heading, ...]] = {}
    stack: list[Heading] = []
    for one in headings:
        stack = [*(each for each in stack if each.level < one.level)]
        found[one.first] = tuple(stack)
        stack.append(one)
    return found


def _ends(headings: Sequence[Heading], end: int) -> Iterator[tuple[int, int]]:
    """Yields where each heading's part of the document begins and ends."""
    after: dict[int, int] = {}
    for one in reversed(headings):
        next_ones = [first for level, first in after.items() if level <= one.level]
        yield one.first, min(next_ones, default=end)
        after = {level: first for level, first in after.items() if level < one.level}
        after[one.level] = one.first


def _without_front_matter(text: str) -> str:
    """Returns the text with empty lines in place of YAML front matter, which Markdown has not.

    The line of a bead's id does not count: YAML reads it as a name and a value, and so as front
    matter what was none before the plan got that line.
    """
    if read_front_matter(ANNOTATION.sub("", text)).fields is None:
        return text
    front = read_front_matter(text)
    return "\n" * (front.body_line - 1) + front.body


def _with_records(sections: list[Section]) -> list[Section]:
    """Returns the sections, with those that only record a sprint of the phases as done."""
    in_phases = {each.number for each in sections if each.phase is not None}
    return [
        replace(each, record=True)
        if each.phase is None and each.mark == "done" and each.number in in_phases
        else each
        for each in sections
    ]
