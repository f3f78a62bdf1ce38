"""The copy of a tracker's rows that another program keeps in a database of its own.

Beads' `bd` keeps issues in Dolt; its `issues.jsonl` is an export, which may be missing or old. So
the rows are asked of the program, and kept here with the mark of the database that they are of:
while that is the same, nobody is asked. `br` writes its database to `issues.jsonl`, and is told to
if that is older. `docs/format.md`, section "Issues"; ADR 0048.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.timestamps import format_duration
from queenbee.store.safe_open import unlink
from queenbee.store.tracker.issue_owner import OWNED
from queenbee.store.whole_files import keep, recall, take_name

if TYPE_CHECKING:
    from typing import Any

    from queenbee.store.layout import Layout

DATABASES = ("embeddeddolt", "dolt")
_SIGNS = frozenset({*DATABASES, "dolt-server.port", "dolt-server.pid", "last-touched"})
"""What `bd` makes beside its description, and git does not carry."""
_TRUSTED_MS = 5_000
"""How long rows are good enough where nothing shows that the database changed: a server's."""


class Origin:
    """Where rows are from: the program that owns them, and since when they are known."""

    __slots__ = ("as_of_ms", "hint", "program", "why")

    def __init__(self, program: str, as_of_ms: int | None, why: str | None, hint: str | None):
        self.program: str = program
        self.as_of_ms: int | None = as_of_ms
        """When they were what the program said; None if only its old export is known, or nothing.
        """
        self.why: str | None = why
        """Why they may be old; None if they are what the program says now."""
        self.hint: str | None = hint

    def sentence(self, now_ms: int) -> str:
        """Returns in words what the rows are."""
        age = None if self.as_of_ms is None else format_duration((now_ms - self.as_of_ms) / 1000)
        known = "its last export" if age is None else f"as of {age} ago"
        why = f", because {self.why}" if self.why else ""
        return f"these rows are {self.program}'s, {known}{why}"

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {"program": self.program, "as_of_ms": self.as_of_ms, "why": self.why}


class OwnedCopy:
    """The rows of a program's tracker, as it said them last."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.path: str = os.path.join(layout.state_dir, OWNED)
        self._note_path = os.path.join(layout.state_dir, "owned-issues.json")

    @property
    def as_of_ms(self) -> int | None:
        """When the rows were asked for; None if they never were."""
        try:
            return int(os.stat(self.path).st_mtime * 1000)
        except OSError:
            return None

    def is_current(self, now_ms: int) -> bool:
        """Returns whether the database has not changed since."""
        note, mark = recall(self._note_path), self.mark()
        if not isinstance(note, dict) or not os.path.exists(self.path):
            return False
        if mark or not self.is_here:
            return bool(mark and note.get("mark") == mark)
        at_ms = note.get("at_ms")
        return isinstance(at_ms, int) and 0 <= now_ms - at_ms < _TRUSTED_MS

    def gave_up(self, now_ms: int, *, recently_ms: int) -> bool:
        """Returns whether somebody gave up waiting for the program a moment ago."""
        at_ms = recall(f"{self._note_path}.slow")
        return isinstance(at_ms, int) and 0 <= now_ms - at_ms < recently_ms

    def give_up(self, now_ms: int) -> None:
        """Notes that the program did not answer in time."""
        keep(f"{self._note_path}.slow", now_ms)

    def put(self, rows: bytes, mark: list[list[Any]], now_ms: int) -> None:
        """Keeps rows; `mark` is what the database had before they were asked for."""
        take_name(self.path, rows, durable=False)
        keep(self._note_path, {"mark": mark, "at_ms": now_ms})

    def doubt(self) -> None:
        """Forgets which state of the database the rows are of."""
        with suppress(OSError):
            unlink(self._note_path)

    def mark(self) -> list[list[Any]]:
        """Returns what changes whenever the database does; empty where it is not on this machine.

        Dolt writes each change to a file of chunks, and then to `manifest`, both in `noms`.
        """
        found: list[list[Any]] = []
        for name in DATABASES:
            for folder in _folders(os.path.join(self._layout.beads_dir, name)):
                noms = os.path.join(folder, ".dolt", "noms")
                found += [[each, *_stamp(os.path.join(noms, each))] for each in _names(noms)]
        return found

    @property
    def is_here(self) -> bool:
        """Whether the program works on this machine: a fresh clone has only its description."""
        names = _names(self._layout.beads_dir)
        return not _SIGNS.isdisjoint(names)


class FlushedFile(OwnedCopy):
    """`issues.jsonl`, which `br` writes after each change of its database, unless it is set not
    to.
    """

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.path = layout.issues_path

    def is_current(self, now_ms: int) -> bool:
        """Returns whether the database has not changed since the file was written, or since it was
        asked to write it.
        """
        note, mark = recall(self._note_path), self.mark()
        written_ns = max(_stamp(self.path)[1:], default=0)
        is_noted = isinstance(note, dict) and note.get("mark") == mark
        return is_noted or all(at_ns < written_ns for *_, at_ns in mark)

    def put(self, rows: bytes, mark: list[list[Any]], now_ms: int) -> None:
        """Notes that the file is that of a database with this mark."""
        keep(self._note_path, {"mark": mark, "at_ms": now_ms})

    def mark(self) -> list[list[Any]]:
        """Returns what changes whenever the database does; empty where it is not on this machine,
        as in a fresh clone.
        """
        folder = self._layout.beads_dir
        names = [each for each in _names(folder) if each.endswith((".db", ".db-wal"))]
        return [[each, *stamp] for each in names if (stamp := _stamp(os.path.join(folder, each)))]

    @property
    def is_here(self) -> bool:
        """Whether the database is on this machine."""
        return bool(self.mark())


def _names(folder: str) -> list[str]:
    try:
        return sorted(each for each in os.listdir(folder) if each != "LOCK")
    except OSError:
        return []


def _folders(database: str) -> list[str]:
    return [database, *(os.path.join(database, each) for each in _names(database))]


def _stamp(path: str) -> list[int]:
    try:
        status = os.stat(path)
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]
