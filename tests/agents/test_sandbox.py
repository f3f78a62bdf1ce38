"""An agent in a sandbox: with what `queen setup` writes, it can use the hive; without, it is told
which line to add.

The sandbox is a real one, of the kernel: the files are mounted read-only, except for the folders
that Codex's settings name. Its own program is not needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import COMMAND, Queen, commit_file, git

from queenbee.agents.setup import Setup
from queenbee.core.ids import ulid
from queenbee.store import creating as stores
from queenbee.store.layout import discover

SANDBOX = Path(__file__).parents[1] / "sandbox.sh"
_UNSHARE = ["unshare", "--user", "--map-root-user", "--mount"]
_AS_CODEX = {"CODEX_SANDBOX_NETWORK_DISABLED": "1"}

Configure = Callable[..., Setup]
Sandboxed = Callable[..., "subprocess.CompletedProcess[str]"]


def _can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    trial = "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp"
    done = subprocess.run([*_UNSHARE, "sh", "-c", trial], capture_output=True)
    return done.returncode == 0


pytestmark = [
    pytest.mark.linux,
    pytest.mark.skipif(not _can_mount(), reason="this system lets nobody mount read-only"),
]


@pytest.fixture
def worktree(repo: Path, tmp_path: Path) -> Path:
    """A linked worktree, beside the repository with the hive."""
    commit_file(repo, ".beads/queen.toml", "")
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    return tmp_path / "linked"


@pytest.fixture
def sandboxed(tmp_path: Path, home: Path) -> Sandboxed:
    """Runs a command where only its working tree and what Codex's settings name is writable."""

    def run(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
        config = home / ".codex" / "config.toml"
        said = tomllib.loads(config.read_text()) if config.exists() else {}
        roots = said.get("sandbox_workspace_write", {}).get("writable_roots", [])
        return subprocess.run(
            [*_UNSHARE, "sh", str(SANDBOX), str(tmp_path), str(tree), *roots, "--", *command],
            env={**os.environ, **_AS_CODEX, "QUEEN_DROID": "codex-1"},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def test_the_sandbox_keeps_everything_else_read_only(
    repo: Path, worktree: Path, sandboxed: Sandboxed
) -> None:
    assert sandboxed(worktree, "touch", "new").returncode == 0
    for path in (repo / "new", repo / ".git" / "new", repo / ".beads" / "new"):
        assert "Read-only file system" in sandboxed(worktree, "touch", str(path)).stderr


def test_without_the_setting_the_refusal_says_exactly_which_line_to_add(
    repo: Path, worktree: Path, home: Path, sandboxed: Sandboxed
) -> None:
    ran = sandboxed(worktree, *COMMAND, "reserve", "src/**")
    assert ran.returncode == 7
    assert "Read-only file system" in ran.stderr
    line = f'writable_roots = ["{repo}/.git/queenbee", "{repo}/.beads"]'
    assert line in ran.stderr

    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(f"[sandbox_workspace_write]\n{line}\n")
    (repo / ".git" / "queenbee").mkdir(exist_ok=True)
    assert sandboxed(worktree, *COMMAND, "reserve", "src/**").returncode == 0


def test_with_what_setup_writes_an_agent_in_the_sandbox_uses_the_hive(
    repo: Path, worktree: Path, configure: Configure, sandboxed: Sandboxed, queen: Queen
) -> None:
    configure("codex", cwd=worktree)
    for command in (
        ("issue", "new", "Totals", "--id", "qb-1"),
        ("claim", "qb-1"),
        ("reserve", "src/**", "--issue", "qb-1"),
        ("msg", "send", "reviewer", "hello"),
        ("complete", "qb-1"),
    ):
        ran = sandboxed(worktree, *COMMAND, *command)
        assert ran.returncode == 0, ran.stderr
    assert "codex-1" in queen("issue", "assignments", "--status", "all").out
    assert "hello" in queen("msg", "read", as_="reviewer").out


def test_the_sandbox_cannot_write_what_decides_about_files_branches_and_processes(
    repo: Path, worktree: Path, configure: Configure, sandboxed: Sandboxed
) -> None:
    configure("codex", cwd=worktree)
    private = Path(discover(str(repo), {}).private_dir)
    left = private / "landing" / "main" / ulid(1_000, bytes(10))
    left.parent.mkdir(parents=True)
    left.write_text("{}")  # Of a landing that was killed.
    for path in (private / "new", left):
        assert "Read-only file system" in sandboxed(worktree, "touch", str(path)).stderr
    new = ("issue", "new", "Totals", "--id", "qb-1")
    for command in (new, ("status",), ("next",), ("worktree", "list")):
        ran = sandboxed(worktree, *COMMAND, *command)
        assert ran.returncode == 0, ran.stderr


def test_the_hook_reserves_in_the_sandbox(
    repo: Path, worktree: Path, configure: Configure, sandboxed: Sandboxed, queen: Queen
) -> None:
    configure("codex", cwd=worktree)
    event = (
        '{"hook_event_name": "PreToolUse", "session_id": "1", "tool_name": "Edit", '
        f'"cwd": "{worktree}", "tool_input": {{"file_path": "a.py"}}}}'
    )
    script = f"echo '{event}' | {sys.executable} -P -m queenbee.hook.main"
    ran = sandboxed(worktree, "sh", "-c", script)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [lease["pattern"] for lease in queen("reserve", "list", "--json").json] == ["a.py"]


def test_in_the_main_worktree_the_state_can_be_beside_the_ledgers(
    repo: Path, home: Path, configure: Configure, sandboxed: Sandboxed
) -> None:
    configure("codex")
    ran = sandboxed(repo, *COMMAND, "reserve", "src/**")
    assert ran.returncode == 7
    assert "Codex keeps .git read-only: use a linked worktree, or" in ran.stderr
    assert "git config queenbee.state beads" in ran.stderr
    git(repo, "config", "queenbee.state", "beads")
    assert sandboxed(repo, *COMMAND, "reserve", "src/**").returncode == 0


def test_outside_codex_the_refusal_names_the_folders(repo: Path) -> None:
    layout = discover(str(repo), {})
    hint = stores.what_to_grant(layout, layout.state_dir, {})
    assert hint.startswith(f"let this process write to {layout.state_dir} and {layout.beads_dir}")
