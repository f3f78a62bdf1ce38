"""What is set up brings each agent its news: at a prompt, after a tool and at its stop.

The files are what `queen setup` writes, and the events what `tests/hook/shapes` records.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_inputs import SHAPES, shaped
from pages import ROOT

from queenbee import Hive
from queenbee.agents import claude, codex, cursor, gemini, launch, qwen
from queenbee.agents import setup as setups
from queenbee.agents.setup import AGENTS, Setup
from queenbee.hook import answers, events

Configure = Callable[..., Setup]
Recorded = tuple[str, events.Event, dict[str, Any], dict[str, Any]]

OPPORTUNITIES = (events.PROMPT, events.AFTER_EDIT, events.STOP)
WITH_SETTINGS = [name for name in AGENTS if name not in ("opencode", "kilo")]
SUBJECT = "About the parser"
BARRED = {"cursor/after-file-edit"}
"""Events that are set up though they carry nothing: they report edits that no other one does."""
OTHER_TOOLS = {
    "claude": (claude.NEWS, ["Bash", "Task", "Agent"], ["Read", "Grep"]),
    "codex": (codex.NEWS, ["Bash"], ["update_plan"]),
    "gemini": (gemini.NEWS, ["run_shell_command"], ["read_file"]),
    "cursor": (cursor.NEWS, ["Shell", "Task"], ["Read", "Grep"]),
    "qwen": (qwen.NEWS, ["run_shell_command", "agent"], ["read_file", "grep_search"]),
}


def recorded_opportunities(agent: str) -> Iterator[Recorded]:
    """Yields the shapes of an agent's opportunities, spelled as its settings spell the events."""
    for path in sorted((SHAPES / agent).glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8").replace("@TREE@", "/tree"))
        event = events.Event(document["input"], "/tree")
        ours = agent != "copilot" or "hook_event_name" in document["input"]
        if event.kind in OPPORTUNITIES and ours:
            yield f"{agent}/{path.stem}", event, document["input"], document["answers"]


def groups_of(agent: str, configure: Configure) -> dict[str, list[dict[str, Any]]]:
    """Returns the groups of hooks by event, as `queen setup` writes them."""
    settings = json.loads(Path(configure(agent).edits[0].path).read_text(encoding="utf-8"))
    found: dict[str, list[dict[str, Any]]] = settings["hooks"]
    return found


def commands_for(groups: dict[str, list[dict[str, Any]]], given: dict[str, Any]) -> list[str]:
    """Returns the commands that an agent runs for an event, as far as the matchers match."""
    found = []
    for group in groups.get(given["hook_event_name"], []):
        if re.fullmatch(group.get("matcher", ".*"), given.get("tool_name", "")):
            handlers = group.get("hooks", [group])
            found += [each.get("command") or each["bash"] for each in handlers]
    return found


@pytest.mark.parametrize("agent", WITH_SETTINGS)
def test_an_event_is_set_up_exactly_if_its_answer_reaches_the_model(
    agent: str, configure: Configure
) -> None:
    groups = groups_of(agent, configure)
    kinds = set()
    for name, event, given, answer in recorded_opportunities(agent):
        carries = answer["context"] is not None or answer["hold"] is not None
        assert bool(commands_for(groups, given)) is (carries or name in BARRED), name
        kinds |= {event.kind} if carries else set()
    assert kinds >= {events.AFTER_EDIT, events.STOP}


@pytest.mark.parametrize("agent", OTHER_TOOLS)
def test_news_comes_after_long_tools_and_not_after_short_ones(
    agent: str, configure: Configure
) -> None:
    matcher, long, short = OTHER_TOOLS[agent]
    groups = groups_of(agent, configure)
    assert [name for name in long + short if re.fullmatch(matcher, name)] == long
    assert matcher in [group.get("matcher") for each in groups.values() for group in each]


def rows() -> dict[str, list[str]]:
    """Returns the cells of the page's table of what agents report and read, by agent."""
    text = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| agent | a session's end |")
    lines = table.partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: rest for name, *rest in cells}


WORDS = {
    "session start": events.SESSION_START,
    "prompt": events.PROMPT,
    "tools": events.AFTER_EDIT,
    "after a tool": events.AFTER_EDIT,
    "subagent start": events.SUBAGENT_START,
}


@pytest.mark.parametrize("agent", WITH_SETTINGS)
def test_the_page_says_when_the_model_can_be_told_something(
    agent: str, configure: Configure
) -> None:
    end, subagents, told, kept, _ = rows()[AGENTS[agent].title]
    known = {
        events.Event({"hook_event_name": name}, "/").kind for name in groups_of(agent, configure)
    }
    read = set()
    for path in (SHAPES / agent).glob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["answers"]["context"] is not None:
            read.add(document["reads"]["kind"])
    assert {WORDS[each] for each in told.split(", ")} == read & known - {events.BEFORE_EDIT}
    assert kept.startswith("yes") is (events.STOP in known)
    assert (events.SESSION_END in known) is (end != "no")
    assert (events.SUBAGENT_START in known) is subagents.startswith("each")


def spoken(agent: str) -> list[str]:
    names = []
    for name, event, _, answer in recorded_opportunities(agent):
        of_subagent = event.subagent is not None and event.kind == events.STOP
        if not (event.was_kept or of_subagent) and (
            answer["context"] is not None or answer["hold"] is not None
        ):
            names.append(name)
    # Copilot CLI's stop is recorded when it was kept already.
    return [*names, "copilot/claude-names-stop"] if agent == "copilot" else names


@pytest.mark.some(5)
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for agent in WITH_SETTINGS for name in spoken(agent)])
def test_as_set_up_an_unread_message_reaches_the_model_once(
    name: str, tree: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setups, "hook_command", launch.hook_command)
    reviewer = Hive.open(tree, droid="reviewer", env={"QUEEN_DURABILITY": "buffered"})
    reviewer.messages.send("tester", "The body.", subject=SUBJECT, ack_within_s=600)
    again = {"stop_hook_active": False} if name.startswith("copilot/") else {}
    data = shaped(name, tree, **again)
    (command,) = commands_for(groups_of(name.partition("/")[0], configure), json.loads(data))

    def said() -> str:
        done = subprocess.run(
            ["sh", "-c", command],
            input=data,
            cwd=tree,
            env={**os.environ, "QUEEN_DROID": "tester", "QUEEN_DURABILITY": "buffered"},
            capture_output=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()

    answer = json.loads(said())
    event = events.read_event(data, str(tree))
    make = answers.hold if event.kind == events.STOP else answers.context
    shape = make(event, "TEXT")
    text = next(value for value in _texts(answer) if SUBJECT in value)
    assert f"message from reviewer: “{SUBJECT}”" in text
    assert answer == json.loads(json.dumps(shape).replace('"TEXT"', json.dumps(text)))
    assert said() == ""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="the plugin needs node")
def test_as_set_up_the_plugin_brings_each_message_once(
    tree: Path, tmp_path: Path, configure: Configure
) -> None:
    """In OpenCode 1: after a tool, with a prompt and at a stop, each time one message."""
    plugin = Path(configure("opencode").edits[0].path)
    assert plugin.name == "queenbee.js"
    # Without a package.json, node 20 takes a file ending in .js for an older kind of module.
    (tmp_path / "queenbee.mjs").write_bytes(plugin.read_bytes())
    send = tmp_path / "send.py"
    send.write_text(
        "import sys\n"
        "from queenbee import Hive\n"
        "hive = Hive.open(sys.argv[1], droid='reviewer', env={'QUEEN_DURABILITY': 'buffered'})\n"
        "hive.messages.send('tester', 'The body.', subject=sys.argv[2], ack_within_s=600)\n"
    )
    (tmp_path / "run.mjs").write_text(
        """
        import { execFileSync } from "node:child_process"
        import plugin from "./queenbee.mjs"
        const [tree, python, script] = process.argv.slice(2)
        const kept = []
        let asked = 0
        const client = { session: { prompt: async (what) => { kept.push(what) } } }
        const hooks = await plugin.server({ directory: tree, client })
        const send = (subject) => execFileSync(python, ["-P", script, tree, subject])
        const sessionID = "ses_first"
        const after = async (tool, args) => {
          const output = { output: "done" }
          await hooks["tool.execute.after"]({ tool, sessionID, callID: "c", args }, output)
          return output.output
        }
        const prompt = async () => {
          const output = { message: {}, parts: [{ type: "text", text: "Go on" }] }
          await hooks["chat.message"]({ sessionID }, output)
          const messages = [{ info: { id: `${++asked}`, role: "user", sessionID }, ...output }]
          await hooks["experimental.chat.messages.transform"]({}, { messages })
          return output.parts.map((part) => part.text).join(" ")
        }
        const stop = async () => {
          await hooks.event({ event: { type: "session.idle", properties: { sessionID } } })
          return kept.length ? kept.pop().body.parts[0].text : ""
        }
        const edit = () => after("edit", { filePath: tree + "/src/app.py" })
        await prompt()
        const told = []
        send("the first")
        told.push(await after("read", { filePath: "x" }), await edit(), await edit())
        send("the second")
        told.push(await after("bash", { command: "ls" }), await after("bash", { command: "ls" }))
        send("the third")
        told.push(await prompt(), await prompt())
        send("the fourth")
        told.push(await stop(), await stop())
        console.log(JSON.stringify(told))
        process.exit(0)
        """
    )
    folder = tmp_path / "bin"
    folder.mkdir()
    hook = folder / "queen-hook"
    hook.write_text(f"#!/bin/sh\nexec {sys.executable} -P -m queenbee.hook.main\n")
    hook.chmod(0o755)
    node = shutil.which("node")
    assert node is not None
    done = subprocess.run(
        [node, str(tmp_path / "run.mjs"), str(tree), sys.executable, str(send)],
        cwd=tree,
        env={
            **os.environ,
            "PATH": f"{folder}:{os.environ['PATH']}",
            "QUEEN_DROID": "tester",
            "QUEEN_DURABILITY": "buffered",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    short, first, quiet, second, still, third, silent, kept, free = json.loads(done.stdout)
    assert short == quiet == still == "done"
    assert "message from reviewer: “the first”" in first
    assert "message from reviewer: “the second”" in second
    assert "message from reviewer: “the third”" in third
    assert silent == "Go on"
    assert "message from reviewer: “the fourth”" in kept
    assert free == ""
