"""What a process of an agent is given: its environment, files, and what went wrong before."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.text import suggested
from queenbee.starting.clients import path_of
from queenbee.store import safe_open
from queenbee.store.droids import roster
from queenbee.store.droids.identity import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.store.layout import Layout

MOST_ENDS = 3
"""So many ends on one issue without a landing or a commit, and it goes back."""
_AGAIN = (
    "You ended with {issue} in hand, and it has not landed: {why}. Run `queen next` and `git "
    "status`, and go on: land it, or say with `{release}` why it cannot be done.{failures}"
)


class Handover:
    """Hands things over to the processes of one agent."""

    def __init__(self, layout: Layout, name: str, env: Mapping[str, str], *, loops: bool) -> None:
        self._layout = layout
        self._name = name
        self._env = env
        self._loops = loops
        """Whether it is a client, which reads a prompt and takes issues by itself."""

    def environment(self, issue_id: str, ends: int, failures: str) -> dict[str, str]:
        """Returns what a process gets, as `queen bead run` gives it: `ends` are those before it on
        this issue, `failures` the end of what the last one printed.
        """
        named = {
            "QUEEN_ISSUE": issue_id, "QUEEN_BEAD": issue_id,
            "QUEEN_ATTEMPT": str(ends + 1), "QUEEN_MAX_ATTEMPTS": str(MOST_ENDS),
            "QUEEN_FAILURES": failures, "QUEEN_FAILURES_FILE": self.written("failures", failures),
            "PATH": path_of(self._env),
        }  # fmt: skip
        others = {key: value for key, value in self._env.items() if key not in VARIABLES}
        # A client acts under the name of its worktree, as a session that can be resumed.
        own = {} if self._loops else {"QUEEN_DROID": self._name}
        return {**others, **named, **own}

    def written(self, name: str, text: str) -> str:
        """Returns a new file for a process."""
        path = os.path.join(roster.folder(self._layout), f"{self._name}.{name}")
        with suppress(FileNotFoundError):  # It may be a link by now.
            safe_open.unlink(path)
        safe_open.write(path, text.encode())
        return path


def again(issue_id: str, why: str, failures: str) -> str:
    """Returns what a client is told that begins again on its issue."""
    return _AGAIN.format(
        issue=issue_id,
        release=suggested("queen release", issue_id, reason="TEXT"),
        why=why,
        failures=f"\n\nThe end of the last output:\n{failures}" if failures else "",
    )
