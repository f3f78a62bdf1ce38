"""The cells of a table, and what the sittings that fill them share.

A sitting runs the client once or a few times in a repository of its own. It asserts nothing: it
says of each row whether it held, and if not, what was there instead.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from bench.clients.model import Play, Script
from bench.clients.wires import Call, Request, Said
from bench.clients.world import Run, World

MAIN, PART = "ORCHARD", "MEADOW"
"""The words by which the model knows the session, and its subagent."""
PROMPT = f"The task {MAIN}: change what you are told to change."

Turn = Generator[Said, Request, Request]
Playing = Generator[Said, Request, None]

_EVENTS = {
    "SessionStart": "at the start",
    **dict.fromkeys(("UserPromptSubmit", "BeforeAgent"), "at a prompt"),
    **dict.fromkeys(("PreToolUse", "BeforeTool"), "before a tool"),
    **dict.fromkeys(("PostToolUse", "AfterTool"), "after a tool"),
    **dict.fromkeys(("Stop", "AfterAgent"), "at a stop"),
    "SessionEnd": "at the end",
}
"""Rows of the table by events, as the clients name these."""


class Cell(NamedTuple):
    """One cell: whether it held, None if the client does not offer it, and a remark."""

    held: bool | None
    remark: str = ""


class Findings(dict[str, Cell]):
    """The cells of one client, by rows."""

    def __init__(self) -> None:
        super().__init__()
        self._hook_ms: dict[str, list[float]] = {}

    def say(self, row: str, held: bool, otherwise: str, remark: str = "") -> None:
        """Adds a finding to a row. A row holds if everything that is said of it does."""
        before = self.get(row, Cell(True))
        remarks = [before.remark, remark if held else otherwise]
        self[row] = Cell(bool(before.held) and held, "; ".join(each for each in remarks if each))

    def showed(self, run: Run, rows: Iterable[str]) -> bool:
        """Returns whether a run was one that shows something; else it says of its rows why not."""
        for row in rows if run.failure else ():
            self.say(row, False, run.failure or "")
        return not run.failure

    def note_times(self, world: World) -> None:
        """Keeps how long the hook took at each event, with the stand-in's few milliseconds."""
        for each in world.hooked():
            kind = _EVENTS.get(str(each.event.get("hook_event_name")))
            if kind:
                self._hook_ms.setdefault(kind, []).append(each.ms)

    def tell_times(self, seconds: float) -> None:
        """Adds rows for the times of the hook, and of everything."""
        for kind in dict.fromkeys(_EVENTS.values()):
            taken = self._hook_ms.get(kind)
            if taken:
                self[f"median ms {kind}"] = Cell(True, f"{statistics.median(taken):.0f}")
        self["seconds in all"] = Cell(True, f"{seconds:.0f}")


def change(world: World, request: Request, name: str, new: str, at: Path | None = None) -> Turn:
    """Edits a file of a working tree as the client does."""
    path = (at or world.repo) / "src" / f"{name}.py"
    for call in world.client.edit(path, path.read_text().strip(), f"{name} = {new}"):
        request = yield call
    return request


def text_of(world: World, name: str, at: Path | None = None) -> str:
    """Returns what a file of a working tree holds."""
    return ((at or world.repo) / "src" / f"{name}.py").read_text().strip()


def played(world: World, script: Script, **more: Any) -> Run:
    """Runs the client once with a script, to its end."""
    return world.start(Play(**{MAIN: script}), PROMPT, **more).wait()


def just(*said: Call | str) -> Script:
    """Returns a script that says these things, whatever it hears."""

    def script(request: Request) -> Playing:
        yield from said

    return script
