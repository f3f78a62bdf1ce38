"""The commands that are written into hooks run isolated too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hives import git

from queenbee.agents import launch
from queenbee.core.text import shell_quoted
from queenbee.git import hook_scripts

SHADOWS = (
    "json", "re", "click", "queenbee", "orjson", "filelock", "ulid", "time", "errno", "threading",
    "subprocess", "importlib", "dataclasses", "typing", "shutil", "random", "tomllib", "datetime",
)  # fmt: skip

EVENT = {
    "hook_event_name": "PreToolUse",
    "session_id": "s",
    "tool_name": "Write",
    "tool_input": {"file_path": "src/app.py"},
}


@pytest.fixture
def trapped(repo: Path) -> Path:
    """A repository whose files are called like modules, and say so when they are imported."""
    for name in SHADOWS:
        for folder in (repo, repo / "src"):
            folder.mkdir(exist_ok=True)
            trap = "import sys; sys.stderr.write('TRAPPED %s' % __name__)\nraise SystemExit(99)\n"
            (folder / f"{name}.py").write_text(trap)
    return repo


def test_the_commands_that_are_written_into_hooks_ignore_the_environments_path(
    trapped: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not even what Python imports before a program starts, such as `sitecustomize`."""
    (trapped / "sitecustomize.py").write_text("import os; os._exit(99)\n")
    monkeypatch.setenv("PYTHONPATH", f".:{trapped}")
    monkeypatch.setattr(launch.shutil, "which", lambda name: None)
    monkeypatch.setattr(launch.os, "access", lambda *rest: False)
    hook = launch.hook_command()
    assert hook == f"{shell_quoted(sys.executable)} -E -P -X utf8 -m queenbee.hook.main"
    event = json.dumps({**EVENT, "cwd": str(trapped)})
    ran = subprocess.run(hook, shell=True, cwd=trapped, input=event, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    runner = tmp_path / "guard.sh"
    runner.write_text(hook_scripts.runner(sys.executable))
    git(trapped, "add", "-A")
    guard = ["sh", str(runner), "pre-commit"]
    ran = subprocess.run(guard, cwd=trapped, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
