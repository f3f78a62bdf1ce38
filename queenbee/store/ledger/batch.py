"""What a reader of a ledger gets, and the position it has reached."""

from __future__ import annotations

from queenbee.store.files import START, Mark, common_lines, split_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.store.files import Chunk, Stamp


class Position:
    """The position reached in both files, and the segments of the archive at that point."""

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


class Lines:
    """The lines of the tracked file and its journal: what both begin with, and the rest of each."""

    __slots__ = ("common", "journal", "journal_only", "size_bytes", "tracked", "unended")

    def __init__(self, tracked: Chunk, journal: bytes) -> None:
        data = tracked.lines + tracked.rest
        self.unended = bool(tracked.rest)
        self.size_bytes = len(data) + len(journal)
        same = common_lines(data, journal)
        self.common = split_lines(data[:same])
        self.tracked = split_lines(data[same:])
        self.journal = split_lines(journal[same:])
        known = set(self.tracked) if self.journal else set()
        self.journal_only = [line for line in self.journal if line not in known]

    @property
    def alike(self) -> bool:
        """Whether both files hold the same lines in the same order."""
        return self.tracked == self.journal and not self.unended


class Batch:
    """What was read: the archive's lines, the tracked file's, then those of the journal alone."""

    __slots__ = (
        "alike",
        "archived",
        "journal_only",
        "position",
        "restarted",
        "size_bytes",
        "tracked",
        "unended",
        "unrecorded",
    )

    def __init__(
        self,
        archived: list[bytes],
        lines: Lines,
        position: Position,
        *,
        restarted: bool,
        unrecorded: bool,
    ) -> None:
        self.archived = archived
        self.tracked = [*lines.common, *lines.tracked]
        self.journal_only = lines.journal_only
        self.position = position
        self.restarted = restarted
        """Whether a file was rewritten: the batch then has all lines, to start over with."""
        self.unrecorded = unrecorded
        """Whether the tracked files have lines that the journal lacks."""
        self.unended = lines.unended
        """Whether the last tracked line has no newline yet: it may still change."""
        self.alike = lines.alike and not unrecorded
        """Whether ledger and journal got the same lines."""
        self.size_bytes = sum(map(len, archived)) + lines.size_bytes
