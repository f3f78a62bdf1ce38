"""Edits that are asked for by processes of the hook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from agent_inputs import SESSION, edit_of


def start(data: bytes, cwd: Path, **env: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "queenbee.hook.main"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env={**os.environ, **env},
    )
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.close()
    process.stdin = None
    return process


def denied(process: subprocess.Popen[bytes]) -> str:
    """Returns the reason of a denial, or "" if the edit may go on."""
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    if not out or "additionalContext" in (said := json.loads(out)["hookSpecificOutput"]):
        return ""  # It is told who else has unmerged work in the file.
    assert said["permissionDecision"] == "deny"
    return str(said["permissionDecisionReason"])


def edits(tree: Path, session: str = SESSION, name: str = "src/app.py", **env: str) -> str:
    return denied(start(edit_of(tree / name, tree, session_id=session), tree, **env))
