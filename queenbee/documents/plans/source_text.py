"""Plans on disk: read whole, and rewritten only for annotations."""

from __future__ import annotations

from codecs import BOM_UTF8 as BOM
from typing import TYPE_CHECKING

from queenbee.documents.markdown import MAX_BYTES, MAX_LINES
from queenbee.documents.plans.annotate import annotate_plan
from queenbee.errors import NotFound, Unreadable
from queenbee.store.whole_files import read_document, write_named

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO


def read_markdown(path: str) -> str:
    """Returns the text of a Markdown file, without a byte order mark.

    Raises `NotFound`, or `Unreadable` for a file that is not UTF-8, or larger than 1 MiB or
    50,000 lines.
    """
    if "\0" in path:
        raise NotFound(f"{path!r} does not exist: a file name cannot contain a NUL", path=path)
    return _decoded(read_document(path, max_bytes=MAX_BYTES), path)


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


def annotate_file(path: str, beads: Mapping[str, str]) -> bool:
    """Writes the beads' ids under the headings of a plan; returns whether that changed the file.

    See `annotate_plan`. An up-to-date file is not written, and a symbolic link stays one: the file
    that it leads to is written.
    """
    text = read_markdown(path)
    annotated = annotate_plan(text, beads)
    if annotated == text:
        return False
    write_named(path, annotated.encode())
    return True
