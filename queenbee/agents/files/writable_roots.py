"""Codex's list of folders that its sandbox may write to: `sandbox_workspace_write.writable_roots`.

Several repositories share the file, so a list is changed in place: `"/state", "/beads", ` comes at
its beginning and goes, and the rest stays. docs/agents.md, "In a sandbox".
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence

from queenbee.agents.files.marked_blocks import Marked, merged, parsed_toml
from queenbee.errors import Conflict

BEGIN = "# >>> queenbee: the folders of its records >>>"
END = "# <<< queenbee: the folders of its records <<<"
_TABLE, _KEY = "sandbox_workspace_write", "writable_roots"
_HEADER = re.compile(rf"^[ \t]*\[[ \t]*{_TABLE}[ \t]*\][ \t]*(?:#[^\n]*)?\r?\n?", re.MULTILINE)
_LIST = re.compile(rf"^[ \t]*{_KEY}[ \t]*=[ \t]*\[", re.MULTILINE)
_TOKEN = re.compile(r""" "(?:[^"\\]|\\.)*" | '[^'\n]*' | \#[^\n]* | \] """, re.VERBOSE)
_NEXT_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)
_OWN = f"{_KEY} = []  # made by queen setup"
_OWN_LINE = re.compile(rf"^{re.escape(_OWN)}\r?\n|\r?\n{re.escape(_OWN)}\Z", re.MULTILINE)

_LEFT = re.compile(
    rf"^{re.escape(BEGIN)}\r?\n\[{_TABLE}\]\r?\n{_KEY} = \[\]\r?\n(?:\r?\n)*"
    rf"(?P<theirs>\[(?s:.*?))^{re.escape(END)}(?:\r?\n)?",
    re.MULTILINE,
)
"""Our block without our folders, and with tables in it that Codex has written there."""


class WritableRoots:
    """Folders of ours in Codex's list."""

    what = "folders that its sandbox may write to"

    def __init__(self, path: str, roots: Sequence[str]) -> None:
        self.path = path
        self.roots: list[str] = list(roots)
        self._ours = "".join(f"{json.dumps(root, ensure_ascii=False)}, " for root in roots)
        empty = f"[{_TABLE}]\n{_KEY} = []"
        self._block = Marked(path, self.what, BEGIN, empty, END)

    def key(self) -> object:
        """Returns what makes two parts of one file the same."""
        return self._ours

    def line(self) -> str:
        """Returns the line to write by hand."""
        return f"{_KEY} = {json.dumps(self.roots, ensure_ascii=False)}"

    def added(self, text: str | None) -> str:
        """Returns the settings with our folders in the list."""
        before = parsed_toml(self.path, text or "")
        if all(root in _roots(before) for root in self.roots):
            return text or ""
        cleared = self.removed(text)
        wanted = [*self.roots, *_roots(parsed_toml(self.path, cleared or ""))]
        made = self._opened(cleared)
        at = _list_start(made)
        changed = made[:at] + self._ours + made[at:] if at is not None else made
        if not _says(changed, merged(before, {_TABLE: {_KEY: wanted}})):
            raise Conflict(
                f"{self.path} cannot be changed safely; nothing was changed",
                hint=f"add it to the table [{_TABLE}] by hand: {self.line()}",
                path=self.path,
            )
        return changed

    def removed(self, text: str | None) -> str | None:
        """Returns the settings without our folders, and the list and the table made for them."""
        at = _list_start(text) if text is not None else None
        if text is None or at is None:
            return text
        begin = next((each for each in _items(text, at) if text.startswith(self._ours, each)), None)
        if begin is None:
            return text
        rest = text[:begin] + text[begin + len(self._ours) :]
        if self._block.added(rest) == rest:  # Our block, and nobody's folders are in it.
            return self._block.removed(rest)
        kept = _LEFT.sub(lambda found: found["theirs"], rest, count=1)
        return _OWN_LINE.sub("", kept)

    def _opened(self, text: str | None) -> str:
        """Returns the settings with a list in them, which may be empty."""
        header = _HEADER.search(text) if text is not None else None
        if text is None or header is None:
            return self._block.added(text)
        if _list_start(text) is not None:
            return text
        newline = "\r\n" if "\r\n" in text else "\n"
        line = _OWN + newline if header[0].endswith("\n") else newline + _OWN
        return text[: header.end()] + line + text[header.end() :]


def _list_start(text: str) -> int | None:
    """Returns where the first item of the list is, or would be; None without a list."""
    header = _HEADER.search(text)
    if header is None:
        return None
    following = _NEXT_TABLE.search(text, header.end())
    found = _LIST.search(text, header.end(), following.start() if following else len(text))
    return found.end() if found is not None else None


def _items(text: str, start: int) -> Iterator[int]:
    """Yields where the items of a list begin; its first one would be at `start`."""
    for token in _TOKEN.finditer(text, start):
        if token[0] == "]":
            return
        if token[0][0] in "\"'":
            yield token.start()


def _roots(settings: dict[str, object]) -> list[object]:
    table = settings.get(_TABLE)
    found = table.get(_KEY) if isinstance(table, dict) else None
    return list(found) if isinstance(found, list) else []


def _says(text: str, wanted: dict[str, object]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except (ValueError, RecursionError):
        return False
