"""The protocol's own inspector, a program that nobody here wrote, finds and calls the tools."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hives import COMMAND

pytestmark = pytest.mark.slow

INSPECTOR = "@modelcontextprotocol/inspector"


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """`queen`, as a program of one word."""
    path = tmp_path / "queen"
    path.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    path.chmod(0o755)
    return path


def inspect(repo: Path, server: Path, *arguments: str) -> Any:
    """Returns what the inspector prints."""
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("there is no node here, so the inspector was not run")
    ran = subprocess.run(
        [npx, "--yes", INSPECTOR, "--cli", str(server), "mcp", "--as", "ui", *arguments],
        cwd=repo,
        env={**os.environ, "QUEEN_DURABILITY": "buffered"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if "npm error" in ran.stderr:
        pytest.skip("npm cannot fetch the inspector here, so it was not run")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.thorough
def test_the_inspector_lists_and_calls_the_tools(repo: Path, server: Path) -> None:
    listed = inspect(repo, server, "--method", "tools/list")["tools"]
    snapshot = json.loads((Path(__file__).parent / "tools.json").read_text())
    assert [each["name"] for each in listed] == [each["name"] for each in snapshot]
    call = ("--method", "tools/call", "--tool-name")
    sent = inspect(repo, server, *call, "send", "--tool-arg", "to=human", "--tool-arg", "body=hi")
    assert sent["structuredContent"]["result"]["from"] == "ui"
    issue = inspect(repo, server, "--method", "resources/read", "--uri", "queen://inbox")
    assert json.loads(issue["contents"][0]["text"]) == []
    refused = inspect(repo, server, *call, "claim")
    assert refused["structuredContent"]["error"]["code"] == "invalid_input"
