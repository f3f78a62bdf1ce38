"""What is tried with each client: sittings, each of which fills some cells of the table.

A sitting runs the client once or a few times in a repository of its own. It asserts nothing: it
says of each row whether it held, and if not, what was there instead.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from bench.clients.model import Play, Script
from bench.clients.wires import Call, Request, Said
from bench.clients.world import Run, World

MAIN, PART = "ORCHARD", "MEADOW"
"""The words by which the model knows the session, and its subagent."""
PROMPT = f"The task {MAIN}: change what you are told to change."
_BEGINNING = "QueenBee"
"""What every briefing of ours has in its first line."""

Turn = Generator[Said, Request, Request]


class Cell(NamedTuple):
    """One cell: whether it held, None if it was not run, and a remark."""

    held: bool | None
    remark: str = ""


class Findings(dict[str, Cell]):
    """The cells of one client, by rows."""

    def __init__(self) -> None:
        super().__init__()
        self.hook_ms: list[float] = []

    def say(self, row: str, held: bool, otherwise: str, remark: str = "") -> None:
        """Adds a finding to a row. A row holds if everything that is said of it does."""
        before = self.get(row, Cell(True))
        remarks = [before.remark, remark if held else otherwise]
        self[row] = Cell(bool(before.held) and held, "; ".join(each for each in remarks if each))

    def lost(self, rows: tuple[str, ...], why: str) -> None:
        """Says of rows that their run showed nothing."""
        for row in rows:
            self.say(row, False, why)


def act(request: Request, calls: list[Call]) -> Turn:
    """Makes calls one after the other; returns the request that has the last result."""
    for call in calls:
        request = yield call
    return request


def change(world: World, request: Request, name: str, old: str, new: str) -> Turn:
    """Edits a file of the repository as the client does, from one text to another."""
    path = world.repo / "src" / f"{name}.py"
    calls = world.client.edit(path, f"{name} = {old}", f"{name} = {new}")
    return (yield from act(request, calls))


def text_of(world: World, name: str) -> str:
    """Returns what a file of the repository holds."""
    return (world.repo / "src" / f"{name}.py").read_text().strip()


def played(world: World, script: Script, prompt: str = PROMPT, **more: Any) -> Run:
    """Runs the client once with a script, to its end."""
    return world.start(Play(**{MAIN: script}), prompt, **more).wait()


def at_work(world: World, found: Findings) -> None:
    """One session: its briefing, an edit, a refusal, mail, its name in all places, its stop."""
    rows = ("edit", "refusal", "mail after a tool", "one name", "stop held once", "leases end")
    client = world.furnish().client
    names: dict[str, str] = {}

    def script(request: Request) -> Generator[Said, Request, None]:
        request = yield from change(world, request, "a", "1", "2")
        me = names["hook"] = world.leases().get("src/a.py", "")
        found.say("edit", bool(me) and text_of(world, "a") == "a = 2", "no lease after an edit")
        world.queen("reserve", "src/b.py", droid="other")
        mail = ("msg", "send", me, "Lunch is at noon", "--importance", "urgent")
        if me:
            world.queen(*mail, droid="other")
        request = yield client.shell("queen whoami --json || env | sort")
        names["shell"] = me if me and me in request.last else request.last[-300:]
        request = yield from change(world, request, "b", "1", "2")
        refused = text_of(world, "b") == "b = 1" and "other" in request.last
        found.say("refusal", refused, f"was told {request.last[-200:]!r}")
        times = request.talk.count("Lunch is at noon")
        found.say("mail after a tool", times == 1, f"{times} times in the conversation")
        request = yield client.mcp("reserve", {"patterns": ["src/c.py"]})
        names["mcp"] = world.leases().get("src/c.py", request.last[-200:])
        request = yield from change(world, request, "c", "1", "2")
        found.say("one name", text_of(world, "c") == "c = 2", "refused what it reserved by MCP")
        yield client.mcp("next", {})
        request = yield "I stop."
        names["held"] = request.last
        yield "I stop again."

    run = played(world, script)
    if run.failure:
        found.lost(("briefing once", *rows), run.failure)
        return
    briefed(run, found)
    for place in ("mcp", "shell"):
        said = names.get(place, "never got there")
        found.say("one name", said == names.get("hook"), f"{place}: {said}")
    held = names.get("held", "the model was not asked again")
    found.say("stop held once", "shop-1" in held, f"not held: {held[-150:]}")
    found.say("stop held once", run.status == 0, f"exit status {run.status}")
    found.say("leases end", "src/a.py" not in world.leases(), "that of an edit was left")


def briefed(run: Run, found: Findings) -> None:
    """Says whether the briefing is once in each request, and in none for titles."""
    first = run.play.requests[0]
    times = first.talk.count("<queenbee") or first.talk.count(_BEGINNING)
    found.say("briefing once", times == 1, f"{times} times")


def note_times(world: World, found: Findings) -> None:
    """Adds how long the hook took, with the stand-in's few milliseconds."""
    found.hook_ms += [each.ms for each in world.hooked()]
    if found.hook_ms:
        median, most = statistics.median(found.hook_ms), max(found.hook_ms)
        found["hook, ms: median, most"] = Cell(True, f"{median:.0f}, {most:.0f}")


SITTINGS: tuple[Callable[[World, Findings], None], ...] = (at_work,)
