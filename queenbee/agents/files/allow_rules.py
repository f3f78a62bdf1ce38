"""Rules in an agent's JSON settings that let it run `queen` and our tools without asking."""

from __future__ import annotations

import json
from collections.abc import Sequence

from queenbee.agents.files.hook_entries import json_object
from queenbee.documents.json_text import Container, begin, cut, insert, loads
from queenbee.errors import Unreadable


class AllowRules:
    """Our rules in `outer.inner` of a settings file: a list, or an object whose members each have
    the same value."""

    what = "allow rules"

    def __init__(
        self,
        path: str,
        place: tuple[str, str],
        rules: Sequence[str],
        *,
        value: str | None = None,
        comments: bool = False,
    ) -> None:
        self.path = path
        self.rules: list[str] = list(rules)
        self._outer, self._inner = place
        self._value = value
        self._comments = comments

    def key(self) -> object:
        """Returns what makes two parts of one file the same."""
        return (self._outer, self._inner, *self.rules)

    def lacking(self, text: str | None) -> list[str]:
        """Returns those of the rules that are not in the settings."""
        found = self._containers(text)[2:] if text is not None else []
        known = self._rules_in(text or "", found[0]) if found else []
        return [each for each in self.rules if each not in known]

    def added(self, text: str | None) -> str:
        """Returns the settings with the rules in them."""
        if text is None:
            made = {self._outer: {self._inner: self._given(self.rules)}}
            return json.dumps(made, indent=2, ensure_ascii=False) + "\n"
        missing = self.lacking(text)
        if not missing:
            return text
        root, *deeper = self._containers(text)
        if not deeper:
            return insert(text, root, self._outer, {self._inner: self._given(missing)}, 1)
        if len(deeper) == 1:
            return insert(text, deeper[0], self._inner, self._given(missing), 2)
        for rule in missing:
            key, value = (None, rule) if self._value is None else (rule, self._value)
            text = insert(text, self._containers(text)[2], key, value, 3)
        return text

    def _given(self, rules: list[str]) -> object:
        return rules if self._value is None else dict.fromkeys(rules, self._value)

    def removed(self, text: str | None) -> str | None:
        """Returns the settings without the rules, or None if they held nothing else."""
        while text is not None:
            path = self._containers(text, or_none=True)
            known = self._rules_in(text, path[2]) if len(path) == 3 else []
            ours = [number for number, each in enumerate(known) if each in self.rules]
            if not ours:
                break
            text = cut(text, path, ours[-1])
        return text

    def _containers(self, text: str, *, or_none: bool = False) -> list[Container]:
        """Returns the object of the settings, then as much of the way to the list as is there.

        Raises `Unreadable` if something else is in its place, unless none is needed.
        """
        json_object(self.path, text, comments=self._comments)
        path = [Container(text, begin(text))]
        for name, bracket in (
            (self._outer, "{"),
            (self._inner, "[" if self._value is None else "{"),
        ):
            item = path[-1].member(name)
            if item is None or (or_none and text[item.value] != bracket):
                break
            if text[item.value] != bracket:
                kind = "an object" if bracket == "{" else "an array"
                raise Unreadable(
                    f"{self.path}: {name} is not {kind}; nothing was changed", path=self.path
                )
            path.append(Container(text, item.value))
        return path

    def _rules_in(self, text: str, found: Container) -> list[object]:
        values = [loads(text[i.value : i.end], comments=self._comments) for i in found.items]
        if self._value is None:
            return values
        named = zip(found.items, values, strict=True)
        return [item.key if value == self._value else None for item, value in named]
