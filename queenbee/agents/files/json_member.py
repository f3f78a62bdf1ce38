"""One member of an agent's JSON settings, such as our MCP server."""

from __future__ import annotations

import json
from collections.abc import Sequence

from queenbee.agents.files.hook_entries import json_object
from queenbee.documents.json_text import Container, begin, cut, insert, loads
from queenbee.errors import Conflict, Unreadable

NAME = "queenbee"


class JsonMember:
    """Our member `queenbee` of an object in a settings file, such as `mcpServers`."""

    what = "MCP server"

    def __init__(
        self, path: str, parent: str, value: dict[str, object], *, comments: bool = False
    ) -> None:
        self.path = path
        self._parent = parent
        self._value = value
        self._comments = comments

    def key(self) -> object:
        """Returns what makes two parts of one file the same."""
        return (self._parent, json.dumps(self._value))

    def added(self, text: str | None) -> str:
        """Returns the settings with the member. Raises `Conflict` if another has its name."""
        if text is None:
            return json.dumps({self._parent: {NAME: self._value}}, indent=2) + "\n"
        found = self._find(text)
        if found is not None:
            value = self._value_of(text, *found)
            if value == self._value:
                return text
            if not _is_ours(value):
                raise Conflict(
                    f"{self.path} has another {self._parent}.{NAME}; nothing was changed",
                    hint="rename it, or remove it",
                    path=self.path,
                )
            cleared = cut(text, *found)
            return self.added(cleared)
        root = Container(text, begin(text))
        parent = root.member(self._parent)
        if parent is None:
            return insert(text, root, self._parent, {NAME: self._value}, 1)
        return insert(text, self._members(text, parent.value), NAME, self._value, 2)

    def removed(self, text: str | None) -> str | None:
        """Returns the settings without the member, or None if they held nothing else."""
        if text is None:
            return None
        found = self._find(text)
        if found is None or not _is_ours(self._value_of(text, *found)):
            return text
        return cut(text, *found)

    def _find(self, text: str) -> tuple[list[Container], int] | None:
        json_object(self.path, text, comments=self._comments)
        root = Container(text, begin(text))
        parent = root.member(self._parent)
        if parent is None:
            return None
        members = self._members(text, parent.value)
        names = [item.key for item in members.items]
        return ([root, members], names.index(NAME)) if NAME in names else None

    def _members(self, text: str, start: int) -> Container:
        if text[start] != "{":
            raise Unreadable(
                f"{self.path}: {self._parent} is not an object; nothing was changed", path=self.path
            )
        return Container(text, start)

    def _value_of(self, text: str, path: Sequence[Container], index: int) -> object:
        item = path[-1].items[index]
        return loads(text[item.value : item.end], comments=self._comments)


def _is_ours(value: object) -> bool:
    command = value.get("command") if isinstance(value, dict) else None
    words = command if isinstance(command, list) else [command, *_list(value)]
    return "mcp" in words and any(isinstance(word, str) and "queen" in word for word in words)


def _list(value: object) -> list[object]:
    words = value.get("args") if isinstance(value, dict) else None
    return words if isinstance(words, list) else []
