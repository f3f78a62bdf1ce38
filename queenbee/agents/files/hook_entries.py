"""Hooks in an agent's JSON settings: adds ours and cuts them out again; the rest stays.

Two structures are in use. Nested: `{"hooks": {EVENT: [{"matcher": …, "hooks": [HANDLER]}]}}`, in
which a group may mix our handlers with others'. Flat: `{"hooks": {EVENT: [HANDLER]}}`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping

from queenbee.documents.json_text import Container, begin, cut, insert, loads
from queenbee.errors import Unreadable

Group = dict[str, object]

_WORD = r"""(?:'[^'\n]*'|"[^"\n]*"|[^\s;&|<>`$()'"])+"""
_RUN = rf"({_WORD})((?: {_WORD})*)"
_FOUND = rf"command -v {_WORD}(?: {_WORD})* >/dev/null 2>&1"
_OURS = re.compile(
    rf"(?:! {_FOUND} \|\| )?{_RUN}|if {_FOUND}; then {_RUN}; else echo '[^'\n]*'; fi"
)
"""The commands that we write, and others that run one program and nothing else."""
_BEFORE = '{"hooks":'
_EMPTY = '{"version": 1\n}\n'
"""What is left of a file with a version that we made."""


class HookEntries:
    """Our hooks in one settings file, by event."""

    what = "hook"

    def __init__(
        self,
        path: str,
        wanted: Mapping[str, Group],
        *,
        comments: bool = False,
        versioned: bool = False,
    ) -> None:
        self.path = path
        self.wanted: dict[str, Group] = dict(wanted)
        self._comments = comments
        """Whether the agent accepts comments in the file."""
        self._versioned = versioned
        """Whether the agent wants `"version": 1` in the file."""

    def key(self) -> object:
        """Returns what makes two parts of one file the same."""
        return json.dumps(self.wanted)

    def added(self, text: str | None) -> str:
        """Returns the settings with the hooks in them; keeps every byte that was there."""
        if text is not None:
            self.parsed(text)
            found = self.installed(text)
            if len(found) == len(self.wanted) and dict(found) == self.wanted:
                return text
            text = self.removed(text)
        if text is None:
            entries = {event: [group] for event, group in self.wanted.items()}
            made = json.dumps({"hooks": entries}, indent=2, ensure_ascii=False) + "\n"
            return '{"version": 1,' + made[1:] if self._versioned else made
        for event, group in self.wanted.items():
            root = Container(text, begin(text))
            hooks = root.member("hooks")
            if hooks is None:
                every = {each: [one] for each, one in self.wanted.items()}
                return insert(text, root, "hooks", every, 1)
            events = self._container(text, hooks.value, "{", "hooks")
            entry = events.member(event)
            if entry is None:
                text = insert(text, events, event, [group], 2)
            else:
                entries_ = self._container(text, entry.value, "[", f"hooks.{event}")
                text = insert(text, entries_, None, group, 3)
        return text

    def removed(self, text: str | None) -> str | None:
        """Returns the settings without our hooks, or None if they held nothing else."""
        if text is not None:
            self.parsed(text)
        if text is None or next(self._ours(text), None) is None:
            return text
        # In a text of their own: to read thousands of other settings again for each takes seconds.
        root = Container(text, begin(text))
        index = [item.key for item in root.items].index("hooks")
        hooks = root.items[index]
        own: str | None = _BEFORE + text[hooks.value : hooks.end] + "}"
        while own and (found := next(self._ours(own), None)):
            own = cut(own, *found)
        if own and own.startswith(_BEFORE):
            return text[: hooks.value] + own[len(_BEFORE) : -1] + text[hooks.end :]
        rest = cut(text, [root], index)
        return None if rest == _EMPTY else rest

    def installed(self, text: str) -> list[tuple[str, object]]:
        """Returns the groups that run our hook, each with its event."""
        found = []
        for containers, index in self._ours(text):
            _, events, groups, *deeper = containers
            group = groups.items[0 if deeper else index]
            event = next(item for item in events.items if item.value == groups.open)
            found.append((str(event.key), self._loads(text[group.start : group.end])))
        return found

    def parsed(self, text: str) -> dict[str, object]:
        """Returns what the settings say. Raises `Unreadable` for another structure."""
        return json_object(self.path, text, comments=self._comments)

    def _loads(self, text: str) -> object:
        return loads(text, comments=self._comments)

    def _ours(self, text: str) -> Iterator[tuple[list[Container], int]]:
        """Yields where our hook is: the containers from the root down, and the index in the last.

        That is the whole group if all of its handlers are ours, else the handler in it.
        """
        root = Container(text, begin(text))
        hooks = root.member("hooks")
        if hooks is None:
            return
        events = self._container(text, hooks.value, "{", "hooks")
        for event in events.items:
            entries = self._container(text, event.value, "[", f"hooks.{event.key}")
            for number, entry in enumerate(entries.items):
                group = self._loads(text[entry.start : entry.end])
                handlers = group.get("hooks") if isinstance(group, dict) else None
                mine = [_is_ours(each) for each in handlers] if isinstance(handlers, list) else []
                if _is_ours(group) or (mine and all(mine)):
                    yield [root, events, entries], number
                elif any(mine):
                    inner = Container(text, entry.value)
                    member = inner.member("hooks")
                    assert member is not None
                    inner_handlers = Container(text, member.value)
                    yield [root, events, entries, inner, inner_handlers], mine.index(True)

    def _container(self, text: str, start: int, bracket: str, name: str) -> Container:
        if text[start] != bracket:
            kind = "an object" if bracket == "{" else "an array"
            raise Unreadable(
                f"{self.path}: {name} is not {kind}; nothing was changed", path=self.path
            )
        return Container(text, start)


def json_object(path: str, text: str, *, comments: bool) -> dict[str, object]:
    """Returns the object that a settings file holds. Raises `Unreadable`, naming the file."""
    refuse_other_bytes(path, text)
    try:
        value = loads(text, comments=comments)
    except (ValueError, RecursionError) as error:
        raise Unreadable(
            f"{path} is not JSON: {error}; nothing was changed",
            hint="correct the file, then run it again",
            path=path,
        ) from error
    if not isinstance(value, dict):
        raise Unreadable(f"{path} is not a JSON object; nothing was changed", path=path)
    return value


def refuse_other_bytes(path: str, text: str) -> None:
    """Raises `Unreadable` for a file that is not UTF-8; its bytes are escaped in the text."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Unreadable(f"{path} is not UTF-8; nothing was changed", path=path) from error


def _is_ours(handler: object) -> bool:
    if not isinstance(handler, dict):
        return False
    runs = (handler.get("command"), handler.get("bash"))
    return any(isinstance(run, str) and _runs_only_the_hook(run) for run in runs)


def _runs_only_the_hook(run: str) -> bool:
    """Returns whether a command runs our hook and nothing else; one that does more is a user's."""
    found = _OURS.fullmatch(run)
    if found is None:
        return False
    program, arguments = found[1] or found[3], found[2] or found[4] or ""
    is_hook = os.path.basename(program.strip("'\"")) == "queen-hook"
    return is_hook or " -m queenbee.hook.main" in arguments
