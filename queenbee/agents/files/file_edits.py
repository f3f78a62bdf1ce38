"""Changes of files, decided before the first one is written.

Each part of a file knows how it is added and removed. Before anything is written it is certain,
for every file, that removing it again gives back what there was.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from queenbee.errors import NotFound, QueenError, Unreadable, Unwritable
from queenbee.store import safe_open
from queenbee.store.whole_files import read_document, write_document

MADE, CHANGED, REMOVED, UNCHANGED = "made", "changed", "removed", "unchanged"
MISSING, OLD = "missing", "old"


class Part(Protocol):
    """What we want to be in a file."""

    path: str

    @property
    def what(self) -> str:
        """What it is, for people."""

    def key(self) -> object:
        """Returns what makes two parts of one file the same."""

    def added(self, text: str | None) -> str:
        """Returns the text with this part in it; None stands for a file that is not there."""

    def removed(self, text: str | None) -> str | None:
        """Returns the text without it, or None if nothing else was in the file."""


class Edit:
    """What becomes of one file."""

    def __init__(self, path: str, real: str, parts: Sequence[Part]) -> None:
        self.path = path
        self.real = real
        """The file itself, where the path is a link to it."""
        self.parts: list[Part] = list(parts)
        self.before: bytes | None = _read(real)
        self.after: bytes | None = self.before

    @property
    def text(self) -> str | None:
        """What is in the file now; None if it is not there."""
        return _text(self.before)

    @property
    def state(self) -> str:
        """What the edit does: made, changed, removed or unchanged."""
        if self.after == self.before:
            return UNCHANGED
        if self.before is None:
            return MADE
        return REMOVED if self.after is None else CHANGED

    def lacking(self) -> list[tuple[str, Part]]:
        """Returns the parts that are missing or old in the file as it is."""
        text = self.text
        return [
            (MISSING if part.removed(text) == text else OLD, part)
            for part in self.parts
            if part.added(text) != text
        ]

    def diff(self) -> str:
        """Returns the change as a unified diff."""
        import difflib  # noqa: PLC0415 - start-up

        old, new = (_lines(data) for data in (self.before, self.after))
        left, right = (
            self.path if data is not None else os.devnull for data in (self.before, self.after)
        )
        return "".join(difflib.unified_diff(old, new, left, right))

    def set_up(self) -> None:
        """Decides to add the parts. Raises `Unreadable` if that could not be taken back."""
        text = self.text
        for part in self.parts:
            text = part.added(text)
        if _without(self.parts, text) != _without(self.parts, self.text):
            raise Unreadable(
                f"{self.path} cannot be changed so that it could be restored; nothing was changed",
                hint="add it by hand: queen setup --dry-run shows what",
                path=self.path,
            )
        self._decide(text)

    def undo(self) -> None:
        """Decides to remove the parts."""
        self._decide(_without(self.parts, self.text))

    def _decide(self, text: str | None) -> None:
        if text is None:
            self.after = None
        elif text != self.text:
            bom = codecs.BOM_UTF8 if (self.before or b"").startswith(codecs.BOM_UTF8) else b""
            self.after = bom + text.encode("utf-8", "surrogateescape")


def gathered(parts: Iterable[Part]) -> list[Edit]:
    """Returns the files of the parts, each once, also if several paths are links to one file.

    Raises `Unreadable` if a link in a working tree leads out of it.
    """
    files: dict[str, tuple[str, dict[object, Part]]] = {}
    for part in parts:
        real = safe_open.resolved(part.path)
        _, keys = files.setdefault(real, (part.path, {}))
        keys.setdefault((type(part), part.key()), part)
    return [Edit(path, real, list(keys.values())) for real, (path, keys) in files.items()]


def write(edits: Sequence[Edit], tree: str | None) -> None:
    """Writes what was decided. If one file cannot be written, none is changed."""
    wanted = [edit for edit in edits if edit.state != UNCHANGED]
    for edit in wanted:
        _refuse_read_only(edit)
    done: list[Edit] = []
    try:
        for edit in wanted:
            done.append(edit)
            _put(edit.real, edit.after)
    except QueenError:
        for edit in reversed(done):
            with suppress(QueenError):
                _put(edit.real, edit.before)
        raise
    if tree is not None:
        for edit in wanted:
            if edit.after is None and _is_in(edit.real, tree):
                _remove_empty_folders(os.path.dirname(edit.real), tree)


def _put(path: str, data: bytes | None) -> None:
    if data is not None:
        write_document(path, data)
        return
    try:
        safe_open.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unwritable(f"{path} cannot be removed: {error.strerror}", path=path) from error


def _refuse_read_only(edit: Edit) -> None:
    """Raises `Unwritable` for a file that somebody has made read-only, or in such a folder."""
    folder = os.path.dirname(edit.real)
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    for path in (edit.real, folder):
        with suppress(FileNotFoundError):
            if not os.stat(path).st_mode & stat.S_IWUSR or not os.access(path, os.W_OK):
                raise Unwritable(
                    f"{path} is read-only; nothing was changed",
                    hint="make it writable, or leave that agent out: queen setup AGENT",
                    path=path,
                )


def _remove_empty_folders(folder: str, tree: str) -> None:
    # Git keeps no empty folders either.
    while _is_in(folder, tree):
        with suppress(OSError):
            os.rmdir(folder)
        if os.path.isdir(folder):
            return
        folder = os.path.dirname(folder)


def _is_in(path: str, tree: str) -> bool:
    return path.startswith(tree + os.sep)


def _without(parts: Sequence[Part], text: str | None) -> str | None:
    for part in reversed(parts):
        text = part.removed(text)
    return text


def _read(path: str) -> bytes | None:
    try:
        text = read_document(path)
    except NotFound:
        return None
    with_bom = safe_open.read(path, 3) == codecs.BOM_UTF8
    return codecs.BOM_UTF8 + text if with_bom else text


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def _lines(data: bytes | None) -> list[str]:
    lines = (_text(data) or "").splitlines(keepends=True)
    return [
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    ]
