"""Sittings of sessions that go as they should: alone, resumed, two at once, with a subagent."""

from __future__ import annotations

import threading

from bench.clients.cells import MAIN, PART, PROMPT, Findings, Playing, change, played, text_of
from bench.clients.model import Play
from bench.clients.wires import Request
from bench.clients.world import Run, World
from tests.tokens import tokens

_WAIT_S = 60
_LONG_LINE = 40
"""Characters: a line of a briefing that is as long as this is nowhere else by chance."""
_MOST_TOKENS = 350


def at_work(world: World, found: Findings) -> None:
    """One session: its briefing, an edit, a refusal, mail, its name in all places, its stop."""
    rows = ("edit → lease", "refusal read", "mail after a tool", "one name", "stop held once")
    client = world.furnish().client
    names: dict[str, str] = {}

    def script(request: Request) -> Playing:
        request = yield from change(world, request, "a", "2")
        me = names["hook"] = world.leases().get("src/a.py", "")
        found.say(rows[0], bool(me) and text_of(world, "a") == "a = 2", "no lease after an edit")
        world.queen("reserve", "src/b.py", droid="other")
        if me:
            mail = ("msg", "send", me, "Lunch is at noon", "--importance", "urgent")
            world.queen(*mail, droid="other")
        request = yield client.shell("queen hive whoami")
        names["shell"] = me if me and me in request.last else request.last
        request = yield from change(world, request, "b", "2")
        refused = text_of(world, "b") == "b = 1" and "reserved by other" in request.last
        found.say(rows[1], refused, f"was told {request.last[-200:]!r}")
        times = request.talk.count("Lunch is at noon")
        found.say(rows[2], times == 1, f"{times} times in the conversation")
        request = yield client.mcp("reserve", {"patterns": ["src/c.py"]})
        names["MCP"] = world.leases().get("src/c.py", request.last)
        request = yield from change(world, request, "c", "2")
        found.say(rows[3], text_of(world, "c") == "c = 2", "refused what it reserved by MCP")
        yield client.mcp("next", {})
        request = yield "I stop."
        names["held"] = request.last
        yield "I stop again."

    run = played(world, script)
    if not found.showed(run, ("briefing once", *rows, "leases end")):
        return
    _briefed(world, run, found)
    for place in ("MCP", "shell"):
        said = names.get(place, "never got there")
        found.say(rows[3], said == names.get("hook"), f"{place} said {said[-120:]!r}")
    held = names.get("held")
    found.say(rows[4], bool(held), "the model was not asked again")
    found.say(rows[4], not held or "shop-1" in held, "not for an issue taken by MCP")
    found.say(rows[4], run.status == 0, f"exit status {run.status}")
    found.say("leases end", "src/a.py" not in world.leases(), "that of an edit was left")


def _briefed(world: World, run: Run, found: Findings) -> None:
    """Says whether what a session is told at its start is there once, and how long it is."""
    first = run.play.requests[0]
    answer = next((each.context for each in world.hooked() if each.context), "")
    known = [line for line in first.talk.splitlines() if len(line) >= _LONG_LINE]
    sources = [answer, *(p.read_text() for p in world.repo.glob("*.md"))]
    lines = {line for text in sources for line in text.splitlines() if len(line) >= _LONG_LINE}
    told = [line for line in known if line in lines]
    most = max((told.count(line) for line in told), default=0)
    size = tokens("\n".join(told))
    found.say("briefing once", most == 1, f"{most} times", f"{size} tokens")
    found.say("briefing once", size <= _MOST_TOKENS, f"{size} tokens")
    aside = any(line in each.talk for each in run.play.aside for line in told)
    found.say("briefing nowhere else", not aside, "also in a request for a title or the like")


def resumed(world: World, found: Findings) -> None:
    """A session, mail while nobody is there, and the session again."""
    rows = ("mail at resume, prompt", "same name at resume")
    world.furnish()
    names: list[str] = []

    def script(request: Request) -> Playing:
        request = yield from change(world, request, "a", str(len(names) + 2))
        names.append(world.leases().get("src/a.py", "no lease"))
        yield "Done."

    if not found.showed(played(world, script), rows):
        return
    mail = ("msg", "send", names[0], "Dinner is at eight", "--importance", "urgent")
    world.queen(*mail, droid="other")
    run = played(world, script, resume=True)
    if found.showed(run, rows):
        times = run.play.requests[0].talk.count("Dinner is at eight")
        found.say(rows[0], times == 1, f"{times} times at the prompt")
        found.say(rows[1], names[0] == names[-1], f"{names[0]}, then {names[-1]}")


def by_mcp(world: World, found: Findings) -> None:
    """Every tool of the server, each with what its result must have."""
    rows = ("MCP at the first request", "every MCP tool")
    client = world.furnish().client
    calls = (
        ("status", {}, "shop-"),
        ("next", {}, "shop-1"),
        ("check", {"paths": ["src/d.py"]}, "src/d.py"),
        ("reserve", {"patterns": ["src/d.py"]}, "src/d.py"),
        ("release", {"patterns": ["src/d.py"]}, "src/d.py"),
        ("send", {"to": "other", "body": "Are you there?"}, "Are you there?"),
        ("inbox", {}, ""),
        ("complete", {"issue": "shop-1", "reason": "done", "no_verify": True}, "shop-1"),
        ("claim", {"issue": "shop-2"}, "shop-2"),
        ("release", {"issue": "shop-2", "reason": "a trial"}, "shop-2"),
        ("wait", {"ready": True, "timeout": "1s"}, "shop-"),
    )

    def script(request: Request) -> Playing:
        name = client.mcp("next", {})
        listed = (name.namespace or name.tool) in request.text
        found.say(rows[0], listed, "not listed")
        for tool, arguments, expected in calls:
            request = yield client.mcp(tool, dict(arguments))
            said = request.last
            good = expected in said and not any(no in said.lower() for no in _REFUSED)
            found.say(rows[1], good, f"{tool} said {said[-120:]!r}")
        yield "Done."

    found.showed(played(world, script), rows)


_REFUSED = ("requires approval", "not found", "permission", "denied", "no such tool")


def with_a_subagent(world: World, found: Findings) -> None:
    """A subagent that edits a file of its session, and one of its own."""
    rows = ("subagent: files of its session", "subagent: name in its shell")
    client = world.furnish().client
    if client.spawn is None:
        return
    spawn = client.spawn(f"The part {PART}: do your part.")
    done = threading.Event()
    told: dict[str, str] = {}

    def script(request: Request) -> Playing:
        request = yield from change(world, request, "a", "2")
        told["me"] = world.leases().get("src/a.py", "")
        request = yield spawn
        if not done.wait(_WAIT_S):
            told["spawn"] = request.last
        yield "Done."
        yield "Done again."

    def part(request: Request) -> Playing:
        request = yield from change(world, request, "a", "3")
        told["refusal"] = "" if text_of(world, "a") == "a = 3" else request.last
        request = yield from change(world, request, "e", "2")
        told["part"] = world.leases().get("src/e.py", "no lease")
        request = yield client.shell("queen hive whoami")
        told["shell"] = request.last
        done.set()
        yield "My part is done."

    run = world.start(Play(**{MAIN: script, PART: part}), PROMPT).wait()
    if not found.showed(run, rows):
        return
    me, part_name = told["me"], told.get("part", "never got there")
    found.say(rows[0], "spawn" not in told, f"not started: {told.get('spawn', '')[-150:]}")
    found.say(rows[0], not told.get("refusal"), f"refused: {told.get('refusal', '')[-150:]}")
    found.say(rows[0], bool(me) and part_name.startswith(me), f"{part_name} is not of {me}")
    found.say(rows[0], "src/e.py" not in world.leases(), "its lease was left")
    shell = told.get("shell", "never got there")
    found.say(rows[1], bool(me) and me in shell, f"the shell said {shell[-120:]!r}")


def two_at_once(world: World, found: Findings) -> None:
    """Two sessions in one working tree: the second wants a file of the first, and stashes all."""
    row, stash = rows = ("second session", "stash in a shared tree")
    world.furnish()
    edited, tried = threading.Event(), threading.Event()
    names: list[str] = []

    def first(request: Request) -> Playing:
        yield from change(world, request, "a", "2")
        names.append(world.leases().get("src/a.py", "no lease"))
        edited.set()
        tried.wait(_WAIT_S)
        yield "Done."

    def second(request: Request) -> Playing:
        request = yield from change(world, request, "b", "2")
        names.append(world.leases().get("src/b.py", "no lease"))
        request = yield from change(world, request, "a", "3")
        found.say(row, text_of(world, "a") == "a = 2", "changed a file of the first")
        request = yield world.client.shell("git stash")
        kept = text_of(world, "a") == "a = 2" and names[0] in request.last
        found.say(stash, kept, f"was told {request.last[-200:]!r}")
        tried.set()
        yield "Done."

    one = world.start(Play(**{MAIN: first}), PROMPT)
    edited.wait(_WAIT_S)
    other = world.start(Play(**{MAIN: second}), PROMPT).wait()
    tried.set()
    if found.showed(one.wait(), rows) and found.showed(other, rows):
        found.say(row, len(set(names)) == 2, f"both are {', '.join(names)}")


def in_a_worktree(world: World, found: Findings) -> None:
    """A linked worktree: its edits are announced, and what others hold is refused there, too."""
    row = "linked worktree"
    world.furnish().git("worktree", "add", "-q", str(world.linked))
    world.queen("reserve", "src/b.py", droid="other")

    def script(request: Request) -> Playing:
        request = yield from change(world, request, "a", "2", world.linked)
        found.say(row, "src/a.py" in world.leases(), "no lease after an edit")
        request = yield from change(world, request, "b", "2", world.linked)
        found.say(row, text_of(world, "b", world.linked) == "b = 1", "a held file was changed")
        request = yield world.client.mcp("status", {})
        found.say(row, "src/a.py" in request.last, f"status said {request.last[-120:]!r}")
        yield "Done."

    found.showed(played(world, script, cwd=world.linked), (row,))
