"""The questions that services ask about the records of one kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from queenbee.core.fold import Fields

Cursor = tuple[int, int]
"""How many changes a follower has seen."""

Progress = Callable[[int, int], None]
"""Called with how much is done, and of how much. The last call of a build says that all is done,
even if it failed."""


class Records(Protocol):
    """The folded state of one kind of record. Safe for threads."""

    kind: str

    @property
    def unusable(self) -> int:
        """The number of lines that hold no record."""

    @property
    def migrations(self) -> list[Fields]:
        """The ledger's `_migration` lines."""

    def refresh(self) -> None:
        """Reads what was appended since the last call. Raises `Unreadable`."""

    def close(self) -> None:
        """Closes open files; the next question opens them again."""

    @property
    def is_unrecorded(self) -> bool:
        """Whether the tracked files have lines that no write has recorded."""

    def foreign(self) -> str:
        """Returns a text that changes whenever lines arrive that this clone did not write, or ""
        if there are none. All processes that see the same lines get the same text.
        """

    def lines_after(self, number: int) -> list[tuple[int, bytes]]:
        """Returns the recorded lines after a number, each with its own, in order of arrival."""

    def number_of(self, line: bytes) -> int | None:
        """Returns the number of a line; None if it never arrived."""

    def lacking(self, lines: Iterable[bytes]) -> list[bytes]:
        """Returns those of some usable lines that never arrived."""

    def get(self, identifier: str) -> Fields | None:
        """Returns the folded fields of a record, or None."""

    def exact(self, identifier: str) -> Fields | None:
        """Returns the fields for writing back: long integers keep every digit."""

    def first_line(self, identifier: str) -> bytes | None:
        """Returns the line that created a record, as the ledger has it."""

    def named(self, part: str) -> list[str]:
        """Returns the ids, sorted and at most six, that end in a part; if there are none, those
        that begin with it, else those that contain it. Its case only counts if it must.
        """

    def short_id(self, identifier: str) -> str:
        """Returns the shortest end of an id that no other id of this kind has."""

    def history(self, identifier: str) -> list[Fields]:
        """Returns every line of a record in the order of the fold, each with its `rev`."""

    def select(
        self,
        equals: Mapping[str, object],
        *,
        since_ms: int | None = None,
        newest_first: bool = False,
        limit: int | None = None,
        differs: Mapping[str, object] | None = None,
        lacks: str | None = None,
    ) -> list[Fields]:
        """Returns the records that are not deleted and have these values, by age.

        A flag that is absent is false. `differs` are values that the records must not have, and
        `lacks` is a mark (see `Kind.marks`) that they must not have.
        """

    def everything(self) -> list[Fields]:
        """Returns all records, deleted ones included, in no particular order."""

    def project(
        self,
        columns: Sequence[str],
        equals: Mapping[str, object],
    ) -> list[tuple[object, ...]]:
        """Returns some fields of the records with these values, in no particular order."""

    def distinct(self, column: str) -> set[object]:
        """Returns the values of a field."""

    def greatest(self, column: str) -> str:
        """Returns the greatest text in a field, or ""."""

    def changes(self, since: Cursor | None) -> tuple[list[str] | None, Cursor]:
        """Returns the ids that changed since a cursor (None: read everything anew), and
        the next cursor.
        """
