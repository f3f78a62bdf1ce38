"""What this machine last heard of a code host: the states of pull requests, up to when its issues
are here, and how old that is.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from queenbee.errors import QueenError
    from queenbee.store.layout import Layout

_NAME = "code-host.json"
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

        issues = self._said.get("issues")
        self.issues: dict[str, int] = {
            name: ms
            for name, ms in (issues.items() if isinstance(issues, dict) else ())
            if type(ms) is int
        }
        """Up to when the issues of each repository were imported, in ms, by the host's clock."""

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

    def failed(self, error: QueenError) -> None:
        """Notes that it was not heard, and until when it wants to be left alone."""
        until_s = error.details.get("until_s")
        until_ms = int(until_s * 1000) if isinstance(until_s, float) else 0
        self.note(error=error.message, until_ms=until_ms)

    def seen(self, number: int) -> tuple[str, int]:
        """Returns the state of a pull request in words, and when it was seen; empty and 0 if it was
        not.
        """
        from queenbee.core.reviews.pull_requests import STATES  # noqa: PLC0415 - start-up

        said = self.states.get(str(number), {})
        words, at_ms = STATES.get(str(said.get("state"))), said.get("at_ms")
        return (words, at_ms) if words is not None and type(at_ms) is int else ("", 0)

    def forget(self, number: int) -> None:
        """Forgets the state of a pull request, which was that of an earlier push. Never fails."""
        if self.states.pop(str(number), None) is not None:
            self.note()

    def note(self, **said: object) -> None:
        """Notes more of it. Never fails."""
        self._said = {**self._said, **said, "states": self.states, "issues": self.issues}
        keep(self._path, self._said)
