"""The text of a plan: read whole, and rewritten only for the ids of beads under its headings.

After the document on sprint beads, "Annotation Format".
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8 as BOM
from collections.abc import Mapping
from typing import BinaryIO

from queenbee.documents.markdown import MAX_BYTES, MAX_LINES, Block, split_lines
from queenbee.documents.plans.headings import Unit
from queenbee.documents.plans.outline import own_headings
from queenbee.documents.plans.sections import ANNOTATION, is_annotation
from queenbee.errors import InvalidInput, NotFound, Unreadable
from queenbee.store.git_files.named_files import read_named
from queenbee.store.whole_files import write_named


def read_markdown(path: str) -> str:
    """Returns the text of a Markdown file, without a byte order mark.

    Raises `NotFound`, or `Unreadable` for a file that is not UTF-8, or larger than 1 MiB or
    50,000 lines.
    """
    if "\0" in path:
        raise NotFound(f"{path!r} does not exist: a file name cannot contain a NUL", path=path)
    try:
        return _decoded(read_named(path, max_bytes=MAX_BYTES), path)
    except NotFound as error:
        error.hint = "git ls-files '*.md'"
        raise


def read_markdown_stream(stream: BinaryIO, name: str) -> str:
    """Returns the Markdown in a stream. Raises `Unreadable` as `read_markdown` does."""
    data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Unreadable(f"{name} is larger than {MAX_BYTES:,} bytes", path=name)
    return _decoded(data.removeprefix(BOM), name)


def _decoded(data: bytes, name: str) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"{name} is not UTF-8 (byte {error.start})", path=name) from error
    lines = text.count("\n") + text.count("\r") - text.count("\r\n")
    if lines > MAX_LINES:
        message = f"{name} has {lines:,} lines; a plan has at most {MAX_LINES:,}"
        raise Unreadable(message, path=name)
    return text


def annotate_file(path: str, beads: Mapping[str, str], unit: Unit | None = None) -> bool:
    """Writes the beads' ids under the headings of a plan; returns whether that changed the file.

    See `annotate_plan`. An up-to-date file is not written, and a symbolic link stays one: the file
    that it leads to is written.
    """
    text = read_markdown(path)
    annotated = annotate_plan(text, beads, unit)
    if annotated == text:
        return False
    write_named(path, annotated.encode())
    return True


_ID = re.compile(r"[^\s<>]+")


def annotate_plan(text: str, beads: Mapping[str, str], unit: Unit | None = None) -> str:
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
    for sprint, heading, section in reversed(own_headings(body, unit)):
        if sprint in beads:
            _annotate(lines, heading, section, f"<!-- beads-ralph: {beads[sprint]} -->")
    return mark + "".join(line + ending for line, ending in lines)


def _annotate(
    lines: list[tuple[str, str]], heading: int, section: list[Block], annotation: str
) -> None:
    present = [block.first for block in section if is_annotation(block)]
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
        lines[heading] = (text, next((usual for _, usual in lines if usual), "\n"))
        lines.append((annotation, ""))


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
