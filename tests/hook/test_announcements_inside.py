"""Announced edits: the parts inside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from agent_inputs import OTHER_SESSION, SESSION, edit_of
from hives import git

from queenbee import Hive
from queenbee.core.leases import stand_against

pytestmark = pytest.mark.slow


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


def test_a_merge_of_two_clones_takes_no_announcement_from_anybody(tree: Path) -> None:
    """Both work in their main worktrees: by path and by name, the two trees are alike."""
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "the beginning")
    other = tree.parent / "machine" / "repo"
    git(tree, "clone", "-q", str(tree), str(other))
    (other / ".beads").mkdir(exist_ok=True)
    assert edits(tree, SESSION) == edits(other, OTHER_SESSION) == ""
    ledger = ".beads/queen_reservations.jsonl"
    lines = (tree / ledger).read_bytes(), (other / ledger).read_bytes()
    for each in (tree, other):
        (each / ledger).write_bytes(b"".join(lines))
        hive = Hive.open(each, env={})
        assert hive.reservations.conflicts() == []
        assert [lease.superseded_by for lease in hive.reservations.find()] == [None, None]
        assert not stand_against(*hive.reservations.find())
    assert edits(tree, SESSION) == edits(other, OTHER_SESSION) == ""
