"""What 0.1.0 wrote works, and its user is told once what to run again.

`as_0_1_0/` is what that version wrote: the hive, the settings of Claude Code, git's hooks.
"""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hives import COMMAND, Queen, QuickQueen, git

from queenbee import __version__

THEN = Path(__file__).with_name("as_0_1_0")
TOLD = f"QueenBee is {__version__} now; to renew hooks and guard: queen setup"


@pytest.fixture
def old(tmp_path: Path, repo: Path) -> Path:
    """A repository as 0.1.0 left it; its lease ends in an hour."""
    tree = tmp_path / "old"
    git(tmp_path, "init", "-q", "-b", "main", str(tree))
    shutil.copytree(THEN / "beads", tree / ".beads")
    (tree / ".beads" / "gitattributes").rename(tree / ".beads" / ".gitattributes")
    leases = tree / ".beads" / "queen_reservations.jsonl"
    soon = datetime.now(UTC) + timedelta(hours=1)
    ends = f"{soon:%Y-%m-%dT%H:%M:%S}.023Z"
    leases.write_text(leases.read_text().replace("2026-11-24T06:47:10.023Z", ends))
    journal = tree / ".git" / "queenbee" / "journal"
    journal.mkdir(parents=True)
    for ledger in (tree / ".beads").glob("queen_*.jsonl"):
        shutil.copy(ledger, journal / ledger.name.removeprefix("queen_"))
    shutil.copy(THEN / "git" / "guard.sh", tree / ".git" / "queenbee")
    (tree / ".git" / "hooks").mkdir(exist_ok=True)
    for hook in ("pre-commit", "pre-push"):
        shutil.copy(THEN / "git" / hook, tree / ".git" / "hooks")
    for script in (
        tree / ".git" / "queenbee" / "guard.sh",
        *(tree / ".git" / "hooks").glob("pre-*"),
    ):
        script.chmod(0o755)
    (tree / ".claude").mkdir()
    shutil.copy(THEN / "claude.json", tree / ".claude" / "settings.json")
    (tree / "src").mkdir()
    (tree / "src" / "a.py").write_text("a\n")
    return tree


def at_a_terminal(queen: Queen, *words: str, cwd: Path) -> str:
    """Returns what a person sees on standard error."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "wb") as end:
        env = queen.environment("ann", None)
        subprocess.run(
            [*COMMAND, *words], cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=end, check=True
        )
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
    except OSError:  # Linux says so at the end.
        pass
    os.close(ours)
    return seen.decode()


def test_its_records_and_settings_are_read(quick: QuickQueen, old: Path) -> None:
    assert [each["issue_id"] for each in quick("issue", "assignments", "--json", cwd=old).json] == [
        "shop-1"
    ]
    (lease,) = quick("reserve", "list", "--json", cwd=old).json
    assert (lease["pattern"], lease["droid"]) == ("src/**", "ann")
    unread = quick("msg", "inbox", "--unread", "--json", cwd=old, as_="ann").json
    assert [each["body"] for each in unread] == ["to all"]
    assert quick("config", "get", "ttl", cwd=old).out == "3h\n"
    assert quick("doctor", cwd=old).code == 0


def test_work_goes_on_in_it(quick: QuickQueen, old: Path) -> None:
    assert quick("complete", "shop-1", cwd=old, as_="ann").code == 0
    assert quick("next", "--json", cwd=old, as_="bob").json["issue"]["id"] == "shop-2"
    assert quick("reserve", "src/**", cwd=old, as_="bob").code == 0


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """`queen` and `queen-hook` are where what 0.1.0 wrote looks for them."""
    programs = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")


def test_its_guard_refuses_what_others_hold(
    old: Path, on_path: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(old, "add", "src")
    monkeypatch.setenv("QUEEN_DROID", "bob")
    refused = subprocess.run(["git", "commit", "-m", "x"], cwd=old, capture_output=True, text=True)
    assert refused.returncode == 1
    assert "src/a.py: held by ann" in refused.stderr
    monkeypatch.setenv("QUEEN_DROID", "ann")
    git(old, "commit", "-q", "-m", "x")


def test_its_edit_hook_refuses_what_others_hold(
    old: Path, on_path: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = json.loads((old / ".claude" / "settings.json").read_text())
    command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    edit = {"file_path": str(old / "src" / "a.py")}
    event = {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": str(old)}
    asked = json.dumps({**event, "tool_name": "Edit", "tool_input": edit})
    monkeypatch.setenv("QUEEN_DROID", "bob")
    ran = subprocess.run(
        ["sh", "-c", command], cwd=old, input=asked, capture_output=True, text=True
    )
    decided = json.loads(ran.stdout)["hookSpecificOutput"]
    assert decided["permissionDecision"] == "deny"
    assert "src/a.py is reserved by ann" in decided["permissionDecisionReason"]


def test_a_person_is_told_once_what_to_run_again(queen: Queen, old: Path) -> None:
    first = at_a_terminal(queen, "status", cwd=old)
    assert first.count(TOLD) == 1
    assert TOLD not in at_a_terminal(queen, "status", cwd=old)


def test_setup_renews_it_all(quick: QuickQueen, old: Path) -> None:
    def outdated() -> list[str]:
        found = quick("doctor", "--json", cwd=old).json
        return [Path(each["file"]).name for each in found if each["code"] == "outdated"]

    hooks = ["pre-commit", "prepare-commit-msg", "pre-applypatch", "pre-push"]
    assert outdated() == ["settings.json", *hooks]
    assert quick("setup", "claude", cwd=old).code == 0
    assert outdated() == []


def test_git_runs_nothing_from_the_state_folder_any_more(quick: QuickQueen, old: Path) -> None:
    """Agents in a sandbox may write there."""
    assert quick("guard", "install", cwd=old).code == 0
    assert not (old / ".git" / "queenbee" / "guard.sh").exists()
    assert "queenbee/guard.sh" not in (old / ".git" / "hooks" / "pre-commit").read_text()
    assert quick("guard", "uninstall", cwd=old).code == 0
    assert [*(old / ".git").glob("**/*guard.sh")] == []


def test_what_is_up_to_date_is_told_nothing(queen: Queen, repo: Path) -> None:
    queen("init")
    queen("setup", "claude")
    assert "QueenBee is" not in at_a_terminal(queen, "status", cwd=repo)
