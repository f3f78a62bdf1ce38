"""Many patterns for many questions: found by the literal path that each begins with.

An invalid one, written by another tool, covers no path here, and `queen doctor` reports it.
"""

from __future__ import annotations

from queenbee.core.glob.chars import fold
from queenbee.core.glob.pattern import common_path, compiled, covers, head_of
from queenbee.errors import BadPattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queenbee.core.glob.pattern import Pattern


class ByFolder:
    """A set of patterns with keys that finds those that cover a path, or overlap a new pattern."""

    def __init__(
        self, patterns: Iterable[tuple[str, str]] = (), *, fold_case: bool = False
    ) -> None:
        self._fold_case = fold_case
        self._heads: dict[str, str] = {}
        self._tables: dict[str, dict[str, Pattern]] = {}
        """The patterns, by key, below each literal path that some of them begin with."""
        for key, text in patterns:
            self.add(key, text)

    def add(self, key: str, text: str) -> None:
        """Adds a pattern under a key that has none; ignores an invalid one."""
        try:
            new = compiled(text, self._fold_case)
        except BadPattern:
            return
        head = self._heads[key] = head_of(new)
        self._tables.setdefault(head, {})[key] = new

    def discard(self, key: str) -> None:
        """Removes the key's pattern, if there is one."""
        head = self._heads.pop(key, None)
        if head is not None:
            del self._tables[head][key]
            if not self._tables[head]:
                del self._tables[head]

    def covering(self, path: str) -> list[str]:
        """Returns the key of each pattern that covers the path, which is literal."""
        folded = fold(path) if self._fold_case else path
        near = self._above(folded)
        return [key for table in near for key, other in table.items() if covers(other, folded)]

    def meeting(self, text: str) -> list[str]:
        """Returns the key of each pattern that overlaps this one. Raises `BadPattern`."""
        new = compiled(text, self._fold_case)
        head = head_of(new)
        near = list(self._above(head))
        if new.path is None:
            below = head + "/" if head else ""
            near += [
                table
                for each, table in self._tables.items()
                if each.startswith(below) and each != head
            ]
        return [
            key
            for table in near
            for key, other in table.items()
            if common_path(new, other) is not None
        ]

    def _above(self, path: str) -> Iterator[dict[str, Pattern]]:
        """Yields the tables of the root, of each folder on the way, and of the path itself."""
        folders = [path[:at] for at, char in enumerate(path) if char == "/"]
        for head in dict.fromkeys(["", *folders, path]):
            if head in self._tables:
                yield self._tables[head]
