"""A large ledger from another clone arrives where nothing is: most of it goes to segments.

Appended line by line, a long history would be in one file that no host of git accepts, until
somebody rotates it. So what is closed goes to the archive at once, as a rotation would leave it,
and the journal takes the segments over as in any fresh clone. `docs/format.md`, "Archive".
"""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee.store import safe_open
from queenbee.store.documents import create_document
from queenbee.store.files import Appender, Original, size_of, split_lines
from queenbee.store.ledger.journal import joined
from queenbee.store.ledger.ledger import usable_lines
from queenbee.store.ledger.long_survey import LongSurvey
from queenbee.store.ledger.rotation import SEGMENT_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from queenbee.store.ledger.ledger import Ledger
    from queenbee.store.ledger.rotation import IsClosed


class Arrival:
    """What arrived: how many lines, and those of them that are in the ledger."""

    __slots__ = ("archived_bytes", "lines", "staying")

    def __init__(self, lines: int, staying: list[bytes], archived_bytes: int) -> None:
        self.lines = lines
        self.staying = staying
        self.archived_bytes = archived_bytes
        """The size of all segments. The journal begins with their lines, if it has no others."""


def has_nothing(ledger: Ledger) -> bool:
    """Returns whether no line of a kind was ever here: no journal, no ledger and no segment."""
    return ledger.journal.is_empty() and not size_of(ledger.path) and not ledger.archive.listing()


def arrive(ledger: Ledger, pieces: Iterable[bytes], is_closed: IsClosed, temporary: str) -> Arrival:
    """Writes lines from elsewhere to segments, and those that stay to the ledger. Needs the hive's
    lock, a ledger that `has_nothing`, and a write of the ledger in the same turn, which takes both
    over to the journal.

    `pieces` are whole files in order, as somebody else wrote them: only usable lines of them count.
    `temporary` is the path of a file that may be replaced. A crash leaves some of the lines in
    segments, and the others can be appended as ever. Raises `Unwritable` and `Unreadable`.
    """
    try:
        # 1. One file with all usable lines, which is surveyed as a long ledger is.
        count = _gather(temporary, pieces)
        original = Original(temporary, unread=True)
        try:
            survey = LongSurvey(original, is_closed)
            staying = survey.left()
            # 2. Segments first, each on disk before the next: the ledger alone has nothing twice.
            names = list[str]()
            archived_bytes = 0
            for data in survey.moving(SEGMENT_BYTES):
                archived_bytes += len(data)
                made = False
                while not made:  # A pull may bring the archive now.
                    names.append(ledger.archive.next_name(dict.fromkeys(names)))
                    made = create_document(ledger.archive.path(names[-1]), data)
        finally:
            original.close()
        # 3. The rest.
        file = Appender(ledger.path)
        try:
            torn = b"" if file.ends_with_newline() else b"\n"
            file.append(torn + staying)
        finally:
            file.close()
    finally:
        with suppress(OSError):
            safe_open.unlink(temporary)
    return Arrival(count, split_lines(staying), archived_bytes)


def _gather(path: str, pieces: Iterable[bytes]) -> int:
    count = 0
    with suppress(FileNotFoundError):
        safe_open.unlink(path)
    with os.fdopen(safe_open.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        for data in pieces:
            lines = usable_lines(split_lines(data))
            count += len(lines)
            file.write(joined(lines))
    return count
