"""What the documentation tells agents' users to write: it is what the hook needs, and it works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT, fences

from queenbee import Hive
from queenbee.agents import claude
from queenbee.hook import events

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "enforcement.md"


def blocks(language: str) -> list[str]:
    return ["\n".join(lines) for kind, lines, _ in fences(PAGE) if kind == language]


def commands(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["command"]] if "command" in value else []
        return own + [each for inner in value.values() for each in commands(inner)]
    return [each for inner in value for each in commands(inner)] if isinstance(value, list) else []


def test_the_settings_of_every_agent_are_json_and_run_the_hook() -> None:
    documents = [json.loads(block) for block in blocks("json")]
    assert len(documents) == 4
    for document in documents:
        assert commands(document)
        assert all("queen-hook" in each for each in commands(document))


def test_what_is_shown_for_claude_code_is_what_is_installed() -> None:
    (shown, *_) = (json.loads(block) for block in blocks("json"))
    assert shown["PreToolUse"] == [claude.groups("queen-hook")["PreToolUse"]]


def test_every_event_that_is_set_up_is_one_that_the_hook_knows() -> None:
    for document in map(json.loads, blocks("json")):
        for name in document.get("hooks", document):
            event = events.Event({"hook_event_name": name}, "/")
            assert event.kind != events.OTHER, name


@pytest.fixture
def hook_on_path(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "queen-hook"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -P -m queenbee.hook.main\n")
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.skipif(shutil.which("node") is None, reason="the plugin is JavaScript")
def test_the_plugin_for_opencode_reserves_denies_and_releases(
    tree: Path, tmp_path: Path, hook_on_path: dict[str, str]
) -> None:
    (plugin,) = blocks("js")
    (tmp_path / "queenbee.mjs").write_text(plugin)
    (tmp_path / "run.mjs").write_text(
        """
        import { QueenBee } from "./queenbee.mjs"
        const tree = process.argv[2]
        const hooks = await QueenBee({ directory: tree })
        const edit = (sessionID, filePath) =>
          hooks["tool.execute.before"]({ tool: "edit", sessionID }, { args: { filePath } })
        await edit("ses_first", tree + "/src/app.py")
        await hooks["tool.execute.before"]({ tool: "bash", sessionID: "ses_x" }, { args: {} })
        const second = () => edit("ses_second", tree + "/src/app.py")
        try { await second() } catch (error) { console.log(error.message) }
        const info = { id: "ses_first" }
        await hooks.event({ event: { type: "session.deleted", properties: { info } } })
        await second()
        """
    )
    done = subprocess.run(
        ["node", str(tmp_path / "run.mjs"), str(tree)],
        cwd=tree,
        env=hook_on_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    (denial,) = done.stdout.splitlines()
    assert denial.startswith("src/app.py is reserved by opencode-sesfirst")
    (lease,) = Hive.open(tree, env={}).reservations.find()
    assert lease.droid == "opencode-essecond"
