"""A droid that stops for good: it is asked, loses its issue to whoever waits, and what it has left
is kept. With real processes, real git and short settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Queen, git, records, snapshot, write_settings

pytestmark = pytest.mark.slow

PATIENCE_S = 60
CLIENT = """
import subprocess, sys, time
for name in ("SessionStart", "PostToolUse", "PostToolUse"):
    event = '{"session_id": "1b4e28ba", "cwd": ".", "hook_event_name": "%s", "tool_name": "Bash"}'
    hook = [sys.executable, "-c", "from queenbee.hook.main import main; main()"]
    subprocess.run(hook, input=(event % name).encode(), check=True, stdout=subprocess.DEVNULL)
print("ready", flush=True)
time.sleep(600)
"""
"""An agent: its hook is called at some events, and then it works."""


@pytest.fixture
def team(repo: Path, beads: Path, tmp_path: Path) -> Callable[[str], Path]:
    """One issue, and a worktree for each droid that is asked for."""
    text = 'close_on_complete = true\nask_after = "1s"\nanswer_within = "1s"\nquiet_after = "1h"\n'
    write_settings(beads, text)
    rows = [{"id": "qb-1", "title": "one", "status": "open"}]
    (beads / "issues.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def worktree(name: str) -> Path:
        path = tmp_path / name
        if not path.exists():
            assert Queen(repo)("worktree", "add", name, "--path", str(path)).code == 0
        return path

    return worktree


def next_of(tree: Path, wait: str = "60s") -> subprocess.Popen[str]:
    return Queen(tree).start("next", "--wait", wait, "--json")


def answer_of(waiting: subprocess.Popen[str]) -> tuple[int, dict[str, object], str]:
    out, err = waiting.communicate(timeout=PATIENCE_S)
    return waiting.returncode, json.loads(out) if out else {}, err


def work_in(tree: Path) -> None:
    """Leaves a change, a new file and something staged, none of it committed."""
    (tree / "README.md").write_text("half of a sentence that\n")
    (tree / "new.py").write_text("def unfinished(:\n")
    (tree / "staged.txt").write_text("staged\n")
    git(tree, "add", "staged.txt")


def test_whoever_waits_gets_the_issue_and_what_was_left(team: Callable[[str], Path]) -> None:
    fern, amber = team("fern"), team("amber")
    assert Queen(fern)("next").code == 0
    work_in(fern)
    index = Path(git(fern, "rev-parse", "--git-path", "index").strip()).read_bytes()
    before = snapshot(fern), git(fern, "status", "--porcelain"), git(fern, "rev-parse", "HEAD")
    code, begin, _ = answer_of(next_of(amber))
    assert code == 0
    assert begin["issue_id"] == "qb-1" and begin["again"] is False
    relief = begin["relief"]
    assert isinstance(relief, dict) and relief["droid"] == "fern"
    left = relief["unfinished"]
    assert left["branch"] == "unfinished/qb-1-fern"
    assert left["worktree"] == str(fern) and left["files"] == ["README.md", "new.py", "staged.txt"]
    git(amber, "merge", "-q", "unfinished/qb-1-fern")
    assert (amber / "new.py").read_text() == "def unfinished(:\n"
    assert (amber / "README.md").read_text() == "half of a sentence that\n"
    after = snapshot(fern), git(fern, "status", "--porcelain"), git(fern, "rev-parse", "HEAD")
    assert after == before
    assert Path(git(fern, "rev-parse", "--git-path", "index").strip()).read_bytes() == index


def test_whoever_comes_back_is_told_and_cannot_land(team: Callable[[str], Path]) -> None:
    fern, amber = team("fern"), team("amber")
    Queen(fern)("next")
    assert answer_of(next_of(amber))[0] == 0
    said = Queen(fern)("issues").err
    assert "qb-1 is no longer yours: given to somebody else by amber" in said
    assert "no longer yours" not in Queen(fern)("issues").err
    (fern / "a.py").write_text("a = 1\n")
    git(fern, "add", "a.py")
    git(fern, "commit", "-qm", "a")
    refused = Queen(fern)("land", "--check", "true")
    assert refused.code == 5
    assert "qb-1 is no longer yours: amber has it now" in refused.err
    assert Queen(amber)("next", "--json").json["issue_id"] == "qb-1"
    Queen(amber)("complete", "qb-1")
    refused = Queen(fern)("land", "--check", "true")
    assert "qb-1 is no longer yours: amber has completed it" in refused.err


def test_git_that_others_run_in_its_worktree_is_no_sign_of_life(
    team: Callable[[str], Path],
) -> None:
    fern, amber = team("fern"), team("amber")
    assert Queen(fern)("next").code == 0
    waiting = next_of(amber, "15s")
    while waiting.poll() is None:  # As `git status` does that somebody runs to see what is there.
        git(fern, "update-index", "--force-write-index")
        time.sleep(0.2)
    assert answer_of(waiting)[0] == 0


def test_whoever_gave_an_issue_back_lands_other_work(team: Callable[[str], Path]) -> None:
    fern, amber = team("fern"), team("amber")
    Queen(fern)("next")
    Queen(fern)("release", "qb-1")
    assert Queen(amber)("next", "--json").json["issue_id"] == "qb-1"
    (fern / "a.py").write_text("a = 1\n")
    git(fern, "add", "a.py")
    git(fern, "commit", "-qm", "a")
    landed = Queen(fern)("land", "--check", "true")
    assert landed.code == 0, landed


@pytest.mark.thorough
def test_one_of_several_who_wait_gets_it(team: Callable[[str], Path], beads: Path) -> None:
    Queen(team("fern"))("next")
    waiting = [next_of(team(name), "15s") for name in ("amber", "jade", "onyx")]
    assert 0 in [answer_of(each)[0] for each in waiting]
    # Whoever got it may have lost it in turn: it did nothing either.
    rows = records(beads / "queen_assignments.jsonl")
    before = [row.get("previous_droid") for row in rows if row["rev"] == 1]
    assert before[:2] == [None, "fern"]
    assert len(set(before)) == len(before)


def test_a_droid_whose_files_change_keeps_its_issue(team: Callable[[str], Path]) -> None:
    fern = team("fern")
    Queen(fern)("next")
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(0.3):
            (fern / "new.py").write_text(f"at = {time.time()}\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert answer_of(next_of(team("amber"), "12s"))[0] == 6
    finally:
        ended.set()
        writer.join()


def test_a_droid_whose_command_runs_keeps_its_issue(
    team: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs a check that takes minutes: the command itself is the sign of life."""
    fern = team("fern")
    Queen(fern)("next")
    program = (
        "from queenbee.store.droids import presence; presence._BEAT_S = 0.2;"
        "from queenbee.cli.main import main; main()"
    )
    runs = subprocess.Popen(
        [sys.executable, "-c", program, "issue", "wait", "qb-1", "--timeout", "40s"],
        cwd=fern,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert answer_of(next_of(team("amber"), "12s"))[0] == 6
        runs.kill()
        runs.wait()
        assert answer_of(next_of(team("amber")))[0] == 0
    finally:
        runs.kill()
        runs.wait()


@pytest.mark.linux
@pytest.mark.parametrize("began_before", [False, True])
def test_a_command_that_its_agent_runs_is_a_sign_of_life(
    team: Callable[[str], Path], *, began_before: bool
) -> None:
    """As long as it runs; a server that the agent began before its last event is none."""
    fern, amber = team("fern"), team("amber")
    Queen(fern)("next")
    env = {**os.environ, "QUEEN_DURABILITY": "buffered"}
    runs = 'child = subprocess.Popen(["sleep", "600"])\n'
    begin, end = CLIENT.split("for name in")
    text = f"{begin}{runs * began_before}for name in{end}".replace(
        "time.sleep(600)", f"{'' if began_before else runs}sys.stdin.readline()\nchild.kill()\n"
        "child.wait()\nprint('done', flush=True)\ntime.sleep(600)"
    )  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", text],
        cwd=fern, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as client:  # fmt: skip
        assert client.stdin is not None
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        try:
            assert answer_of(next_of(amber, "12s"))[0] == (0 if began_before else 6)
            client.stdin.write("\n")
            client.stdin.flush()
            assert client.stdout.readline() == "done\n"
            if not began_before:
                assert answer_of(next_of(amber))[0] == 0
        finally:
            client.kill()


@pytest.mark.linux
def test_the_end_of_its_agent_is_a_sign_of_death(team: Callable[[str], Path], beads: Path) -> None:
    """However long it may be silent otherwise."""
    write_settings(beads, "")
    text = (beads / "queen.toml").read_text().replace('ask_after = "1s"', 'ask_after = "1h"')
    (beads / "queen.toml").write_text(text)
    fern, amber = team("fern"), team("amber")
    Queen(fern)("next")
    env = {**os.environ, "QUEEN_DURABILITY": "buffered"}
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT], cwd=fern, env=env, stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        try:
            assert answer_of(next_of(amber, "3s"))[0] == 6
        finally:
            client.kill()
    assert "last seen " in Queen(amber)("status").out
    assert answer_of(next_of(amber))[0] == 0
