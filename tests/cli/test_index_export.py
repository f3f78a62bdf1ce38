"""`queen hive index export`: indexes for other tools, fresh on request, and never in git."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

from hives import Queen, QuickQueen, git


def test_git_ignores_what_is_exported(quick: QuickQueen, repo: Path, beads: Path) -> None:
    (beads / ".gitignore").write_text("*.db")
    quick("msg", "send", "reviewer", "hello", as_="ui-engineer")
    assert quick("hive", "index", "export").code == 0
    assert quick("hive", "index", "export").code == 0
    assert (beads / ".gitignore").read_text() == "*.db\nqueen_*.idx.json\n"
    git(repo, "add", "-A")
    assert "idx.json" not in git(repo, "ls-files")
    assert "queen_messages.jsonl" in git(repo, "ls-files")


def test_watching_exports_again_after_each_change(queen: Queen, beads: Path) -> None:
    queen("msg", "send", "reviewer", "first", as_="ui-engineer")
    exported = beads / "queen_messages.idx.json"
    watching = queen.start("hive", "index", "export", "--watch")
    try:
        assert watching.stderr is not None
        assert watching.stderr.readline().startswith("wrote ")
        assert len(json.loads(exported.read_text())["by_id"]) == 1
        queen("msg", "send", "reviewer", "second", as_="ui-engineer")
        deadline = time.monotonic() + 60
        while len(json.loads(exported.read_text())["by_id"]) < 2:
            assert watching.stderr.readline().startswith("wrote ")
            assert time.monotonic() < deadline
    finally:
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
    assert watching.returncode == 130


def test_without_a_ledger_it_says_so(quick: QuickQueen) -> None:
    assert quick("hive", "index", "export").out == "No ledgers.\n"
