"""What a reader of a ledger is given, and how far it has come."""

from __future__ import annotations

from queenbee.store.files import START, Mark, common_lines, split_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.store.files import Chunk
    from queenbee.store.ledger.archive import Stamp


class Position:
    """How far a reader has come: in the tracked file, in the journal, and with which segments."""

    __slots__ = ("journal", "segments", "tracked")

    def __init__(
        self,
        tracked: Mark = START,
        journal: Mark = START,
        segments: Mapping[str, Stamp] | None = None,
    ) -> None:
        self.tracked = tracked
        self.journal = journal
        self.segments = segments or {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Position) and (self.tracked, self.journal, self.segments) == (
            other.tracked,
            other.journal,
            other.segments,
        )

    __hash__ = None  # type: ignore[assignment]


class Batch:
    """What was read: the archive's lines, the tracked file's, then those of the journal alone.

    `restarted` says that a file was rewritten since the position: the lines are then all there
    are, and the reader begins anew. `unended` says that no newline ends the last tracked line
    yet: what it says may change.
    """

    __slots__ = (
        "archived",
        "journal_only",
        "position",
        "restarted",
        "size_bytes",
        "tracked",
        "unended",
    )

    def __init__(
        self,
        archived: list[bytes],
        tracked: list[bytes],
        journal_only: list[bytes],
        position: Position,
        *,
        restarted: bool,
        size_bytes: int,
        unended: bool,
    ) -> None:
        self.archived = archived
        self.tracked = tracked
        self.journal_only = journal_only
        self.position = position
        self.restarted = restarted
        self.size_bytes = size_bytes
        self.unended = unended


class Lines:
    """The lines of both files: those they begin with alike, and each one's after that."""

    __slots__ = ("common", "journal", "journal_only", "size_bytes", "tracked")

    def __init__(self, tracked: bytes, journal: bytes) -> None:
        self.size_bytes = len(tracked) + len(journal)
        same = common_lines(tracked, journal)
        self.common = split_lines(tracked[:same])
        self.tracked = split_lines(tracked[same:])
        self.journal = split_lines(journal[same:])
        known = set(self.tracked)
        self.journal_only = [line for line in self.journal if line not in known]


def batch_of(
    archived: list[bytes], lines: Lines, tracked: Chunk, position: Position, *, restarted: bool
) -> Batch:
    """Returns what a reader is given."""
    return Batch(
        archived,
        [*lines.common, *lines.tracked],
        lines.journal_only,
        position,
        restarted=restarted,
        size_bytes=sum(map(len, archived)) + lines.size_bytes,
        unended=bool(tracked.rest),
    )
