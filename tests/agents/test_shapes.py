"""What is written has the shape that each agent documents, and works.

`shapes/` records the documented events and fields of each agent, with the date and the address of
what was read.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_inputs import recorded

from queenbee import Hive
from queenbee.agents import launch, opencode
from queenbee.agents import setup as setups
from queenbee.agents.setup import AGENTS, Setup
from queenbee.hook import events

Configure = Callable[..., Setup]

SHAPES = Path(__file__).parent / "shapes"
WITH_SETTINGS = [name for name in AGENTS if name not in ("opencode", "kilo")]
BEFORE_AN_EDIT = {
    "claude": ("PreToolUse", "claude/pre-edit"),
    "codex": ("PreToolUse", "codex/pre-apply-patch"),
    "gemini": ("BeforeTool", "gemini/before-replace"),
    "cursor": ("preToolUse", "cursor/pre-write"),
    "qwen": ("PreToolUse", "qwen/pre-edit"),
}


def documented(agent: str) -> Any:
    return json.loads((SHAPES / f"{agent}.json").read_text())["documented"]


def written(agent: str, configure: Configure) -> Any:
    """Returns the settings with the hooks of an agent, as they are set up."""
    return json.loads(Path(configure(agent).edits[0].path).read_text())


def handlers(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and ("command" in value or "bash" in value):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from handlers(inner)


@pytest.mark.parametrize("agent", AGENTS)
def test_every_shape_has_a_date_and_an_address(agent: str) -> None:
    shape = documented(agent)
    assert shape["read"] and shape["addresses"]


@pytest.mark.parametrize("agent", WITH_SETTINGS)
def test_only_documented_events_and_fields_are_written(agent: str, configure: Configure) -> None:
    shape, settings = documented(agent), written(agent, configure)
    assert set(settings["hooks"]) <= set(shape["events"])
    assert set(settings) - {"mcpServers"} == set(shape["settings"])
    (example,) = next(iter(shape["settings"]["hooks"].values()))
    known = {key for each in handlers(example) for key in each} | set(example)
    for groups in settings["hooks"].values():
        for group in groups:
            assert set(group) <= known
            for each in handlers(group):
                assert set(each) <= known


@pytest.mark.parametrize("agent", WITH_SETTINGS)
def test_every_event_that_is_set_up_is_one_that_the_hook_knows(
    agent: str, configure: Configure
) -> None:
    for name in written(agent, configure)["hooks"]:
        assert events.Event({"hook_event_name": name}, "/").kind != events.OTHER, name


@pytest.mark.parametrize("agent", [name for name in AGENTS if documented(name)["server"]])
def test_the_server_has_the_documented_fields(agent: str, configure: Configure) -> None:
    shape = documented(agent)["server"]
    ((parent, example),) = shape.items()
    for edit in configure(agent).edits:
        if edit.path.endswith(".json") and parent in (found := json.loads(_text(edit.real))):
            server = found[parent]["queenbee"]
            assert {key: type(value) for key, value in server.items()} == {
                key: type(value) for key, value in example["x"].items()
            }
            return
    pytest.fail("no file has the server")


def _text(path: str) -> str:
    return Path(path).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("agent", BEFORE_AN_EDIT)
def test_as_set_up_the_hook_refuses_the_edit_of_a_held_file(
    agent: str, tree: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setups, "hook_command", launch.hook_command)
    Hive.open(tree, droid="reviewer", env={}).reservations.reserve(["src/**"])
    event, example = BEFORE_AN_EDIT[agent]
    (command,) = [each["command"] for each in handlers(written(agent, configure)["hooks"][event])]
    done = subprocess.run(
        ["sh", "-c", command],
        input=recorded(example, tree),
        cwd=tree,
        env=dict(os.environ),
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"deny" in done.stdout
    assert b"reviewer" in done.stdout


@pytest.mark.parametrize("agent", WITH_SETTINGS)
def test_on_a_machine_without_the_hook_every_command_succeeds_and_stops_nothing(
    agent: str, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setups, "hook_command", lambda: "'/no such place/queen-hook'")
    for each in handlers(written(agent, configure)["hooks"]):
        run = each.get("command") or each["bash"]
        done = subprocess.run(["sh", "-c", run], input=b"{}", capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, b""), run
        assert b"deny" not in done.stdout


def test_the_plugin_comes_with_the_package_and_calls_the_hook() -> None:
    assert "queen-hook" in opencode.plugin("opencode")
