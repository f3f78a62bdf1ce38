"""What this machine last heard of a code host: the states of pull requests, and how old that is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from queenbee.store.layout import Layout

_NAME = "pull-requests.json"
_MOST_BYTES = 2**20


class HostNote:
    """The note in the state folder of a clone; it can be lost."""

    def __init__(self, layout: Layout) -> None:
        self._path = os.path.join(layout.state_dir, _NAME)
        said = recall(self._path, _MOST_BYTES)
        self._said: dict[str, Any] = said if isinstance(said, dict) else {}
        states = self._said.get("states")
        self.states: dict[str, dict[str, Any]] = {
            number: each
            for number, each in (states.items() if isinstance(states, dict) else ())
            if isinstance(each, dict)
        }
        """What was seen of each pull request, by number: its `state`, and `at_ms`."""

    def _ms(self, name: str) -> int:
        said = self._said.get(name)
        return said if type(said) is int else 0

    @property
    def asked_ms(self) -> int:
        """When the host was asked last, in ms since 1970."""
        return self._ms("asked_ms")

    @property
    def until_ms(self) -> int:
        """Until when it wants to be left alone."""
        return self._ms("until_ms")

    @property
    def error(self) -> str:
        """Why it was not heard when it was asked last; empty if it was."""
        return str(self._said.get("error") or "")

    def note(self, **said: object) -> None:
        """Notes more of it. Never fails."""
        self._said = {**self._said, **said, "states": self.states}
        keep(self._path, self._said)
