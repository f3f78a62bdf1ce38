"""Plans on disk: read whole, and rewritten only for annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.documents.markdown import MAX_BYTES
from queenbee.documents.plans.annotate import annotate_plan
from queenbee.errors import NotFound, Unreadable
from queenbee.store.documents import read_document, write_named

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_markdown(path: str) -> str:
    """Returns the text of a Markdown file, without a byte order mark.

    Raises `NotFound`, or `Unreadable` for a file that is not UTF-8 or larger than 1 MiB.
    """
    if "\0" in path:
        raise NotFound(f"{path!r} does not exist: a file name cannot contain a NUL", path=path)
    try:
        return read_document(path, max_bytes=MAX_BYTES).decode()
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 (byte {error.start})"
        raise Unreadable(message, path=path) from error


def annotate_file(path: str, beads: Mapping[str, str]) -> bool:
    """Writes the beads' ids under the headings of a plan; returns whether that changed the file.

    See `annotate_plan`. An up-to-date file is not written.
    """
    text = read_markdown(path)
    annotated = annotate_plan(text, beads)
    if annotated == text:
        return False
    write_named(path, annotated.encode())
    return True
