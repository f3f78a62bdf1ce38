"""Which lines of a long ledger can move to the archive, found without keeping the lines in memory.

Only for a ledger whose bytes are those of its journal, as any is that was never rotated and that
git did not rewrite: then all of its lines are recorded, and none is in a segment. About 60 bytes of
memory a line. `docs/format.md`, section "Archive"; ADR 0009.
"""

from __future__ import annotations

from array import array
from itertools import pairwise

from queenbee.core.fold import MAX_REV, explicit_rev
from queenbee.core.timestamps import instant_ms
from queenbee.store.ledger.codec import decode_records, decoder, without_collection
from queenbee.store.ledger.journal import PIECE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from queenbee.core.fold import Fields, Stated
    from queenbee.store.files import Original

    IsClosed = Callable[[Fields], bool]


class LongSurvey:
    """The lines of a ledger that hold records, by their numbers: where they are, which can move."""

    def __init__(self, original: Original, is_closed: IsClosed) -> None:
        self._original = original
        self._decode = decoder(original.size_bytes)
        self._begins, self._sizes = array("q"), array("q")
        self._created, self._revs = array("q"), array("q")
        self._closed = bytearray()
        self._window = (0, b"")
        hashes = array("q")
        for begin, data in self._pieces():
            with without_collection(len(data)):
                self._look_at(begin, data, is_closed, hashes)
        self.lines = 0
        """How many different lines moved, once all are written."""
        self.records = self._judge(hashes)
        """How many records can move."""

    def moving(self, most_bytes: int) -> Iterator[bytes]:
        """Yields the lines that can move, oldest first: the content of each segment, which ends
        with the first line that reaches this size.
        """
        piece, size, begin, end = list[bytes](), 0, 0, 0
        for number in self._in_order():
            self.lines += 1
            if self._begins[number] != end:
                piece.append(self._original.read_at(begin, end - begin))
                begin = end = self._begins[number]
            end += self._sizes[number]
            size += self._sizes[number]
            if size >= most_bytes:
                yield b"".join([*piece, self._original.read_at(begin, end - begin)])
                piece, size, begin = [], 0, end
        if size:
            yield b"".join([*piece, self._original.read_at(begin, end - begin)])

    def left(self) -> bytes:
        """Returns what remains of the ledger, byte for byte."""
        parts, at = list[bytes](), 0
        for begin, size, closed in zip(self._begins, self._sizes, self._closed, strict=True):
            if closed:
                if at < begin:
                    parts.append(self._original.read_at(at, begin - at))
                at = begin + size
        parts.append(self._original.read_at(at, self._original.size_bytes - at))
        return b"".join(parts)

    def _pieces(self) -> Iterator[tuple[int, bytes]]:
        begin, rest = 0, b""
        while data := self._original.read_at(begin + len(rest), PIECE_BYTES):
            data = rest + data
            whole = data.rfind(b"\n") + 1
            yield begin, data[:whole]
            begin, rest = begin + whole, data[whole:]

    def _look_at(self, at: int, data: bytes, is_closed: IsClosed, hashes: array[int]) -> None:
        lines = data.split(b"\n")
        migrations: list[Stated] = []
        begin, rest = at, iter(lines)
        for line, fields in decode_records(lines, self._original.size_bytes, migrations):
            while (passed := next(rest)) is not line:
                begin += len(passed) + 1
            rev = explicit_rev(fields) or 0
            created_ms = instant_ms(fields.get("created_at")) or 0
            # Lines whose place in the file matters stay, with their record.
            closed = rev > 0 and is_closed(fields)
            self._note(begin, line, created_ms, rev, closed=closed)
            hashes.append(hash(fields["id"]))
            begin += len(line) + 1
        for line, fields in migrations:
            self._note(at + data.index(line), line, 0, 0, closed=False)
            hashes.append(hash(str(fields.get("id", ""))))

    def _note(self, begin: int, line: bytes, created_ms: int, rev: int, *, closed: bool) -> None:
        self._begins.append(begin)
        self._sizes.append(len(line) + 1)
        self._created.append(created_ms)
        self._revs.append(rev)
        self._closed.append(closed)

    def _judge(self, hashes: array[int]) -> int:
        """Decides about records with several lines, all of whose lines go where the newest
        revision says; returns how many records can move.

        The hashes of ids show which records can have several lines; their ids then decide.
        """
        again = _repeated(hashes)
        several = [n for n, each in enumerate(hashes) if each in again]
        alone = sum(self._closed) - sum(self._closed[n] for n in several)
        newest: dict[str, tuple[int, bool]] = {}
        for number in several:
            identifier, rev = self._identifier(number), self._revs[number] or MAX_REV + 1
            closed = bool(self._closed[number])
            known = newest.get(identifier, (0, False))
            if rev > known[0]:
                newest[identifier] = rev, closed
            elif rev == known[0]:
                newest[identifier] = rev, closed and known[1]
        for number in several:
            self._closed[number] = newest[self._identifier(number)][1]
        return alone + sum(closed for _, closed in newest.values())

    def _in_order(self) -> Iterable[int]:
        """Yields the numbers of the lines that can move, each line once: by when their records were
        made, then by id, revision and bytes, as in every clone.
        """
        moving = array("q", (n for n, closed in enumerate(self._closed) if closed))
        if any(self._created[a] > self._created[b] for a, b in pairwise(moving)):
            moving = array("q", sorted(moving, key=self._created.__getitem__))
        same = list[int]()
        for number in moving:
            if same and self._created[number] != self._created[same[0]]:
                yield from self._sorted(same)
                same = []
            same.append(number)
        yield from self._sorted(same)

    def _sorted(self, numbers: list[int]) -> Sequence[int]:
        if len(numbers) < 2:
            return numbers
        keyed = {
            (self._identifier(number), self._revs[number], self._line(number)): number
            for number in numbers
        }
        return [keyed[key] for key in sorted(keyed)]

    def _identifier(self, number: int) -> str:
        return str(self._decode(self._line(number)).get("id", ""))

    def _line(self, number: int) -> bytes:
        begin, size = self._begins[number], self._sizes[number]
        at, data = self._window
        if not at <= begin <= begin + size <= at + len(data):
            at, data = begin, self._original.read_at(begin, max(size, PIECE_BYTES // 64))
            self._window = at, data
        return data[begin - at : begin - at + size - 1]


def _repeated(hashes: array[int]) -> set[int]:
    ordered = sorted(hashes)
    return {one for one, other in pairwise(ordered) if one == other}
