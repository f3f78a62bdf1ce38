"""The commands of other tools, which the file that `QUEEN_BENCH_PEERS` names holds.

Each line is a name, a tab, a work, a tab, and a command without a shell around it:

    mail	setup	mail init
    mail	send	mail send {agent} message-{number}
    mail	inbox	mail list {agent}
    mail	reserve	mail hold {agent} work/file{number}.py
    mail	claim	mail take {agent} issue-{number}
    mail	seed	mail fill {count}

`setup` runs once in an empty folder, `seed` makes so many live reservations. A line of a name and a
command lists an inbox. Lines without a tab are comments.
"""

from __future__ import annotations

import os
import shlex
from typing import NamedTuple

INBOX = "inbox"
_WORKS = frozenset({"setup", "seed", "send", INBOX, "reserve", "claim"})


class Tool(NamedTuple):
    """A tool, with the command of each work that it can do."""

    name: str
    commands: dict[str, str]

    @property
    def works(self) -> frozenset[str]:
        """The works that are measured."""
        return frozenset(self.commands) - {"setup", "seed"}

    def command(self, work: str, *, number: int, agent: str, count: int) -> list[str]:
        """Returns the command of a work, as a list of arguments."""
        values = {"{number}": str(number), "{agent}": agent, "{count}": str(count)}
        arguments = shlex.split(self.commands[work])
        for mark, value in values.items():
            arguments = [argument.replace(mark, value) for argument in arguments]
        return arguments


def tools() -> list[Tool]:
    """Returns the tools that the file names. Raises `ValueError` for a work that nobody knows."""
    path = os.environ.get("QUEEN_BENCH_PEERS")
    if not path:
        return []
    found: dict[str, dict[str, str]] = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            parts = line.rstrip("\n").split("\t", 2)
            if len(parts) == 1:
                continue
            name, work, command = parts if len(parts) == 3 else (parts[0], INBOX, parts[1])
            if work not in _WORKS:
                raise ValueError(f"{path}: {work!r} is none of {', '.join(sorted(_WORKS))}")
            found.setdefault(name, {})[work] = command
    return [Tool(name, commands) for name, commands in found.items()]


def inboxes() -> dict[str, list[str]]:
    """Returns the commands that list an inbox in a folder with ledgers."""
    return {
        tool.name: tool.command(INBOX, number=0, agent="droid-1", count=0)
        for tool in tools()
        if set(tool.commands) == {INBOX}
    }
