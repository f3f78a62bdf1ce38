"""The parts of a plan as values: phases, sections of sprints, and what is in neither."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from queenbee.documents.findings import Finding
from queenbee.documents.markdown import Block, check_item, unfenced_lines
from queenbee.documents.plans.headings import Heading
from queenbee.documents.plans.marks import Mark

ANNOTATION = re.compile(r"[ \t]{0,3}<!--[ \t]*beads-ralph:[ \t]*([^\s<>]+?)[ \t]*-->[ \t]*")


@dataclass(frozen=True)
class Unread(Finding):
    """A line that has the form of something, and is not read; a strict check refuses each."""


class Boxes(NamedTuple):
    """How many tasks of a text are ticked, and how many are open."""

    ticked: int = 0
    open: int = 0


NO_BOXES = Boxes()


@dataclass(frozen=True)
class Phase:
    """A phase: its heading's `line`, and its `text`, which is what of it is in no sprint."""

    number: str
    title: str
    line: int
    mark: Mark | None = None
    text: str = ""
    place: str = ""


@dataclass(frozen=True)
class Section:
    """A unit of work: its number in this plan, the phase above it, and its blocks.

    A `record` is a second heading of a sprint that only says that it is done.
    """

    heading: Heading
    number: str
    last: int
    phase: Phase | None
    blocks: Sequence[Block]
    text: str = ""
    boxes: Boxes = NO_BOXES
    record: bool = False

    @property
    def first(self) -> int:
        """The index of its heading's line."""
        return self.heading.first

    @property
    def mark(self) -> Mark | None:
        """Whether it is done or skipped, by its own mark or else its phase's."""
        return self.heading.mark or (self.phase.mark if self.phase else None)


class Part(NamedTuple):
    """A part of the document that is in no sprint and no phase: its heading, and its boxes."""

    heading: Heading
    boxes: Boxes


def is_annotation(block: Block) -> bool:
    """Returns whether a block is the annotation of a bead."""
    return block.kind == "html" and ANNOTATION.fullmatch(block.text) is not None


def boxes_in(blocks: Sequence[Block]) -> Boxes:
    """Returns the boxes in the lists of some blocks."""
    lists = (each.text for each in blocks if each.kind == "list")
    items = filter(None, (check_item(line) for text in lists for line in unfenced_lines(text)))
    ticked = [item.mark in "xX" for item in items]
    return Boxes(sum(ticked), len(ticked) - sum(ticked))
