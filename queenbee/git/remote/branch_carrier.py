"""The branch of a git remote as a carrier: the lines of its files after a commit, and more lines.

A ledger above 1 MiB becomes a segment, so every push packs little. ADR 0029.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.git.remote.branch import MOST_NUMBER
from queenbee.store.files import split_lines

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from queenbee.git.remote.branch import Branch, Tree
    from queenbee.store.carriers.carrier import Carrier, Lines

    Commit = str | None
    """The id of a commit; None before the first one."""

SEGMENT_BYTES = 2**20
"""A ledger on the branch that grows beyond this becomes a segment, which never changes again. So
what a push has to pack stays small."""


class BranchCarrier:
    """Implements `store.carriers.carrier.Carrier`. Raises `Unreachable` and `Unreadable`."""

    def __init__(self, branch: Branch) -> None:
        self.branch = branch
        self.head: Commit = None
        """The newest commit that is known here: `after` and `add` go by it."""
        self._tree: Tree | None = None

    def news(self, timeout_s: float = 0) -> Commit:
        """Returns the newest commit there, fetched at once: a remote announces nothing."""
        return self._at(self.branch.fetch())

    def fetched(self) -> Commit:
        """Returns the newest commit that was fetched."""
        return self._at(self.branch.head())

    def _at(self, head: Commit) -> Commit:
        self.head, self._tree = head, None
        return head

    def files(self) -> Tree:
        """Returns the files of the newest commit that is known here."""
        if self._tree is None:
            self._tree = self.branch.tree(self.head)
        return self._tree

    def after(self, position: Commit) -> Iterator[tuple[str, list[bytes]]]:
        """Yields the lines that a commit of the branch does not have, with their kind, by file."""
        files, old = self.files().files, self.branch.tree(position).files
        changed = {
            key: file for key, file in files.items() if key not in old or old[key].oid != file.oid
        }
        read_bytes = 0
        # Segments first, by number: lines without `rev` count in their order.
        for (kind, number), file in sorted(
            changed.items(), key=lambda each: (each[0][0], each[0][1] or 2**40)
        ):
            was = old.get((kind, number))
            blobs = self.branch.read([file, *([was] if was else [])], read_bytes)
            read_bytes += sum(map(len, blobs.values()))
            data = blobs[file.oid]
            before_it = blobs[was.oid] if was is not None else b""
            # Only whole lines are known: what goes on with a torn one is a line with its beginning.
            if before_it.endswith(b"\n") and data.startswith(before_it):
                data = data[len(before_it) :]
            yield kind, split_lines(data)

    def number(self) -> int:
        """Returns the number of the newest commit: what is added next has the next one."""
        return self.branch.number(self.head)

    def add(self, lines: Lines, position: Commit) -> Commit:
        """Pushes a commit with these lines on top of one, which must be the newest that is known;
        returns it, or None if somebody else was faster.
        """
        contents = self._contents(lines)
        commit = self.branch.write(self.files(), contents, position, self.number() + 1)
        # The push is refused unless `position` is still the newest commit there.
        return commit if self.branch.push(commit) else None

    def _contents(self, lines: Lines) -> Iterator[tuple[tuple[str, int], bytes]]:
        """Yields the files of the branch that change, with the new lines at their end."""
        files = self.files().files
        ledgers = {kind: files[kind, 0] for kind in lines if (kind, 0) in files}
        blobs = self.branch.read(ledgers.values())
        for kind, added in lines.items():
            data = blobs[ledgers[kind].oid] if kind in ledgers else b""
            size, piece = len(data), [data, b"" if data.endswith(b"\n") or not data else b"\n"]
            numbers = _free_numbers({count for each, count in files if each == kind})
            for line in added:
                if size and size + len(line) > SEGMENT_BYTES:
                    yield (kind, next(numbers)), b"".join(piece)
                    size, piece = 0, []
                piece += [line, b"\n"]
                size += len(line) + 1
            yield (kind, 0), b"".join(piece)


def _free_numbers(taken: Collection[int]) -> Iterator[int]:
    """Yields numbers for new segments: those after the last one, as long as their names fit."""
    last = max(taken, default=0)
    yield from range(last + 1, MOST_NUMBER + 1)
    # Somebody used up the numbers: lines under any free one arrive, those beyond would not.
    yield from (each for each in range(1, MOST_NUMBER) if each not in taken and each < last)


if TYPE_CHECKING:
    _: type[Carrier[Commit, Iterator[tuple[str, list[bytes]]], Commit]] = BranchCarrier
