"""Credentials in what documents and the tracker get: refused before a lock, or left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hives import QuickQueen, snapshot, write_lines
from trackers import NewIssue, Tracker

from queenbee import Hive
from queenbee.services.writing import secrets
from queenbee.services.writing.secrets import LooksLikeSecret
from queenbee.store.lock import KernelLock
from queenbee.workflows.completing import complete
from queenbee.workflows.gating import gates

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3

WRITES: dict[str, Callable[[Hive], object]] = {
    "claim": lambda hive: hive.assignments.claim("qb-2", reason=TOKEN),
    "claim of": lambda hive: hive.assignments.claim(TOKEN),
    "assign": lambda hive: hive.assignments.assign("qb-2", "reviewer", reason=TOKEN),
    "release": lambda hive: hive.assignments.release("qb-1", reason=TOKEN),
    "complete": lambda hive: hive.assignments.complete("qb-1", reason=TOKEN),
    "complete, with checks": lambda hive: complete(hive, "qb-1", env={}, reason=TOKEN),
    "new title": lambda hive: Tracker(hive).new(NewIssue(f"use {TOKEN}")),
    "new description": lambda hive: Tracker(hive).new(NewIssue("x", description=f"use {TOKEN}")),
    "new acceptance": lambda hive: Tracker(hive).new(NewIssue("x", acceptance=TOKEN)),
    "new label": lambda hive: Tracker(hive).new(NewIssue("x", labels=[TOKEN])),
    "new id": lambda hive: Tracker(hive).new(NewIssue("x", issue_id=TOKEN)),
    "edit": lambda hive: Tracker(hive).edit("qb-2", description=TOKEN),
    "close": lambda hive: Tracker(hive).close("qb-2", reason=TOKEN),
    "gate": lambda hive: gates.new_hive_gate(hive, "shop", "1", TOKEN),
    "rule": lambda hive: gates.add_hive_rule(
        hive,
        "shop",
        "0",
        {
            "rule_type": "test_pass",
            "rule_name": "x",
            "rule_config": {"test_command": f"curl -H {TOKEN}"},
        },
    ),
}


@pytest.fixture
def working(hive: Hive, beads: Path) -> Hive:
    """A hive with an issue at work, a free one, and a gate."""
    rows = [{"id": f"qb-{number}", "title": "x", "status": "open"} for number in (1, 2)]
    write_lines(beads / "issues.jsonl", *rows)
    hive.assignments.claim("qb-1")
    gates.new_hive_gate(hive, "shop", "0", None)
    return hive


@pytest.mark.parametrize("what", WRITES)
def test_a_text_is_looked_at_before_the_lock_is_taken(working: Hive, repo: Path, what: str) -> None:
    working.layout.settings.lock_timeout_s = 0.05
    before = snapshot(repo)
    held = KernelLock(working.layout.lock_path, holder="another", timeout_s=1)
    with held, pytest.raises(LooksLikeSecret):
        WRITES[what](working)
    after = snapshot(repo)
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    assert not {name for name in changed if "lock" not in str(name)}


@pytest.mark.parametrize("known", [0, 4_090])
def test_under_the_lock_a_reason_is_not_looked_at_again(
    working: Hive, monkeypatch: pytest.MonkeyPatch, known: int
) -> None:
    monkeypatch.setattr(secrets, "_passed", dict.fromkeys(range(known)))
    looked: list[str] = []
    found = secrets._found
    entered = KernelLock.__enter__

    def under_the_lock(lock: KernelLock) -> KernelLock:
        monkeypatch.setattr(secrets, "_found", noting)
        return entered(lock)

    def noting(text: str) -> object:
        looked.append(text)
        return found(text)

    monkeypatch.setattr(KernelLock, "__enter__", under_the_lock)
    reason = "a reason that nobody has given before " * 100
    working.assignments.assign("qb-2", "reviewer", reason=reason)
    assert not [text for text in looked if len(text) > 1_000]
    monkeypatch.setattr(secrets, "_found", found)
    working.assignments.complete("qb-1", reason=reason + "again")
    assert not [text for text in looked if len(text) > 1_000]


def test_a_gate_leaves_out_a_credential_that_a_rule_prints(
    working: Hive, repo: Path, quick: QuickQueen
) -> None:
    script = repo / "check.sh"
    script.write_text(f"#!/bin/sh\necho 'the token {TOKEN} is wrong'\nexit 1\n")
    script.chmod(0o755)
    named = ("--workflow", "shop", "--phase", "0")
    quick("gate", "add-rule", *named, "--script", "check.sh")
    ran = quick("gate", "run", *named)
    assert ran.code == 1
    tracked = [*(repo / ".claude").rglob("*.json"), *(repo / ".beads").glob("*.jsonl")]
    assert any(b'"failed"' in path.read_bytes() for path in tracked)
    assert not [path for path in tracked if TOKEN.encode() in path.read_bytes()]
