"""What is ours by a mark: a block of lines in somebody's text file, or a file as a whole."""

from __future__ import annotations

import re
import tomllib

from queenbee.agents.files.hook_entries import refuse_other_bytes
from queenbee.errors import Conflict, Unreadable

_FENCED = re.compile(
    r"^ {0,3}(`{3,}(?!`)|~{3,}(?!~))[^\n]*\n(?:[^\n]*\n)*? {0,3}\1[`~]*[ \t]*\r?$", re.MULTILINE
)
"""A block of code in Markdown: marks in it are quoted."""


class Marked:
    """A block between a line that begins with one mark, and a line that begins with another.

    One line ending before the block is ours, and one after it if there was one in the text before.
    So what is left without the block is, byte for byte, what was there before.
    """

    def __init__(self, path: str, what: str, begin: str, body: str, end: str) -> None:
        self.path = path
        self.what = what
        self._begin = begin
        self._end = end
        self._block = f"{begin}\n{body.rstrip()}\n{end}"
        self._mark = begin.partition(" (")[0]

    def key(self) -> object:
        """Returns what makes two parts of one file the same."""
        return self._block

    def added(self, text: str | None) -> str:
        """Returns the text with the current block: where the old one is, or at the end."""
        if text is None:
            return self._block + "\n"
        newline = "\r\n" if "\r\n" in text else "\n"
        block = self._block.replace("\n", newline)
        found = self._find(text)
        if found is not None:
            return text[: found[0]] + block + text[found[1] :]
        ending = newline if not text or text.endswith("\n") else ""
        return f"{text}{newline}{block}{ending}"

    def removed(self, text: str | None) -> str | None:
        """Returns the text without the block, or None if there was nothing else."""
        found = self._find(text) if text is not None else None
        if text is None or found is None:
            return text
        before, after = text[: found[0]], text[found[1] :]
        if not before and after in ("\n", "\r\n"):
            return None
        ours = "\r\n" if before.endswith("\r\n") else "\n" if before.endswith("\n") else ""
        rest = after.removeprefix("\r\n") if after.startswith("\r\n") else after.removeprefix("\n")
        if ours and rest and (above := before.removesuffix(ours)) and not above.endswith("\n"):
            return before + rest  # Lines were added below a text without a final line ending.
        return before.removesuffix(ours) + rest

    def _find(self, text: str) -> tuple[int, int] | None:
        quoted = [each.span() for each in _FENCED.finditer(text)]
        start = _line_that_begins(text, self._mark, 0)
        while any(first <= start < last for first, last in quoted):
            start = _line_that_begins(text, self._mark, start + 1)
        if start < 0:
            return None
        end = _line_that_begins(text, self._end, start)
        if end < 0:
            raise Unreadable(
                f"{self.path}: the end of our block is missing; nothing was changed",
                hint=f"put it back: {self._end}",
                path=self.path,
            )
        return start, end + len(self._end)


class MarkedToml(Marked):
    """A block of tables at the end of a TOML file; checked to add just what it says."""

    def added(self, text: str | None) -> str:
        """Returns the text with the block. Raises `Conflict` if its tables are there already."""
        before, ours = parsed_toml(self.path, self.removed(text) or ""), tomllib.loads(self._block)
        changed = super().added(text)
        try:
            after = tomllib.loads(changed)
        except ValueError as error:
            raise self._refused(before, ours, error) from error
        if after != merged(before, ours):
            raise Conflict(
                f"{self.path} cannot be changed safely; nothing was changed",
                hint=f"add it by hand: {self._block}",
                path=self.path,
            )
        return changed

    def _refused(
        self, before: dict[str, object], ours: dict[str, object], error: ValueError
    ) -> Conflict:
        for name, tables in ours.items():
            theirs = before.get(name)
            if isinstance(theirs, dict) and isinstance(tables, dict) and not theirs.keys() & tables:
                return Conflict(
                    f"{self.path} has {name} = {{…}} in one line, which no table can be added to; "
                    "nothing was changed",
                    hint=f"write it as tables, such as [{name}.{next(iter(theirs), 'NAME')}]",
                    path=self.path,
                )
        return Conflict(
            f"{self.path} has a table of ours already: {error}; nothing was changed",
            hint="rename it, or remove it",
            path=self.path,
        )


def parsed_toml(path: str, text: str) -> dict[str, object]:
    """Returns what a TOML file says. Raises `Unreadable`, naming the file."""
    refuse_other_bytes(path, text)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(
            f"{path} is not TOML: {error}; nothing was changed",
            hint="correct the file, then run it again",
            path=path,
        ) from error


def merged(one: dict[str, object], other: dict[str, object]) -> dict[str, object]:
    """Returns two tables as one; the second one's values win."""
    result = dict(one)
    for key, value in other.items():
        mine = result.get(key)
        both = isinstance(mine, dict) and isinstance(value, dict)
        result[key] = merged(mine, value) if both else value  # type: ignore[arg-type]
    return result


def _line_that_begins(text: str, mark: str, start: int) -> int:
    at = text.find(mark, start)
    while at > 0 and text[at - 1] != "\n":
        at = text.find(mark, at + 1)
    return at


class OwnFile:
    """A file with our mark in it. Another file with its name is never touched."""

    def __init__(self, path: str, what: str, content: str, mark: str) -> None:
        self.path = path
        self.what = what
        self._content = content
        self._mark = mark
        assert mark in content

    def key(self) -> object:
        """Returns what makes two parts of one file the same."""
        return self._content

    def added(self, text: str | None) -> str:
        """Returns the file's content. Raises `Conflict` if another file has its name."""
        if text is not None and self._mark not in text:
            raise Conflict(
                f"{self.path} is not a file of queen setup; nothing was changed",
                hint="move it away, then run it again",
                path=self.path,
            )
        return self._content

    def removed(self, text: str | None) -> str | None:
        """Returns None for our file, and another one unchanged."""
        return None if text is None or self._mark in text else text
