"""Ledgers that are rotated under real writers, readers, kills and git: nothing lost or doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from extent import quick_or
from hives import Queen, QuickQueen, git
from raw_files import remembered, tracked

from queenbee import Hive

pytestmark = pytest.mark.slow

SETTINGS = 'rotate_at = "2KiB"\narchive_after = "0s"\n'
"""Every few writes rotate, and all that is closed moves at once."""

WRITER = """
import sys
from queenbee import Hive
hive = Hive.open(droid=sys.argv[1], env={"QUEEN_DURABILITY": "buffered"})
for number in range(int(sys.argv[2])):
    sent = hive.messages.send("reviewer", f"{sys.argv[1]} {number}", new=True)[0].id
    lease = hive.reservations.reserve([f"src/{sys.argv[1]}/{number}.py"])[0].id
    hive.reservations.release([f"src/{sys.argv[1]}/{number}.py"])
    print(sent, lease, flush=True)
"""


@pytest.fixture
def rotating(repo: Path) -> Path:
    """A repository whose hive rotates all the time."""
    (repo / ".beads" / "queen.toml").write_text(SETTINGS)
    (repo / ".beads" / ".gitattributes").write_text("queen_*.jsonl text eol=lf merge=union\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a hive")
    return repo


def writer(repo: Path, droid: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, droid, str(count)],
        cwd=repo,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> list[list[str]]:
    """Returns what a writer was acknowledged, whole lines only."""
    out, _ = process.communicate(timeout=120)
    return [line.split() for line in out.split("\n")[:-1]]


def opened(repo: Path) -> Hive:
    return Hive.open(repo, droid="reviewer", env={"QUEEN_DURABILITY": "buffered"})


def assert_whole(repo: Path, sent: set[str], leases: set[str]) -> None:
    """Asserts that the hive has exactly these records, each line of them once, in every place."""
    hive = opened(repo)
    with hive.transaction() as tx:
        tx.touch("messages")
        tx.touch("reservations")
    assert {each.id for each in hive.messages.inbox()} == sent
    found = hive.reservations.find(ended=True)
    assert {each.id for each in found} == leases
    for kind in ("messages", "reservations"):
        recorded = remembered(repo / ".git" / "queenbee", kind)
        assert len(recorded) == len(set(recorded))
        assert set(tracked(repo / ".beads", kind)) == set(recorded)


EACH = quick_or(40, quick=15)


def test_four_writers_and_a_reader_lose_and_double_nothing(rotating: Path) -> None:
    writers = [writer(rotating, f"droid-{number}", EACH) for number in range(4)]
    seen: set[str] = set()
    while any(process.poll() is None for process in writers):
        listed = [each.id for each in opened(rotating).messages.inbox()]
        assert len(listed) == len(set(listed))
        assert seen <= set(listed)
        seen |= set(listed)
    acknowledged = [pair for process in writers for pair in said(process)]
    assert len(acknowledged) == 4 * EACH
    assert_whole(rotating, {pair[0] for pair in acknowledged}, {pair[1] for pair in acknowledged})
    assert len(list((rotating / ".beads" / "archive").iterdir())) > 4
    assert len(tracked(rotating / ".beads", "messages")) == 4 * EACH


def test_writers_that_are_killed_leave_what_they_acknowledged(rotating: Path) -> None:
    rng = random.Random(3)
    acknowledged: list[list[str]] = []
    for number in range(quick_or(12, quick=4)):
        process = writer(rotating, f"droid-{number}", 1000)
        assert process.stdout is not None
        acknowledged.append(process.stdout.readline().split())
        time.sleep(rng.random() / 10)
        os.kill(process.pid, signal.SIGKILL)
        acknowledged += said(process)
    hive = opened(rotating)
    found = {each.id for each in hive.messages.inbox()}
    assert {pair[0] for pair in acknowledged} <= found
    leases = {each.id for each in hive.reservations.find(ended=True)}
    assert {pair[1] for pair in acknowledged} <= leases
    assert_whole(rotating, found, leases)


def send(quick: QuickQueen, tree: Path, droid: str, count: int) -> set[str]:
    return {
        quick(
            "msg", "send", "reviewer", "--new", f"{droid} {n}", "--json", as_=droid, cwd=tree
        ).json[0]["id"]
        for n in range(count)
    }


def inbox(quick: QuickQueen, tree: Path) -> str:
    return quick("msg", "inbox", "--for", "reviewer", "--limit", "999", "--json", cwd=tree).out


def commit(tree: Path) -> None:
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "work")


def test_clones_that_rotate_apart_come_together(
    quick: QuickQueen, rotating: Path, tmp_path: Path
) -> None:
    clones = [tmp_path / "ours", tmp_path / "theirs"]
    sent = send(quick, rotating, "queen", 4)
    commit(rotating)
    for clone in clones:
        git(tmp_path, "clone", "-q", str(rotating), str(clone))
    for _ in range(3):
        for clone, other in (clones, clones[::-1]):
            sent |= send(quick, clone, clone.name, 9)
            commit(clone)
            git(clone, "pull", "-q", "--no-rebase", "--no-edit", str(other), "main")
    git(clones[0], "pull", "-q", "--no-rebase", "--no-edit", str(clones[1]), "main")
    ours, theirs = (inbox(quick, clone) for clone in clones)
    assert ours == theirs
    third = tmp_path / "third"
    git(tmp_path, "clone", "-q", str(clones[0]), str(third))
    assert inbox(quick, third) == ours
    for clone in (*clones, third):
        assert_whole(clone, sent, set())


@pytest.mark.parametrize(
    "take_away",
    [
        ["clean", "-fdq"],
        ["stash", "-uq"],
        ["reset", "-q", "--hard"],
        ["checkout", "-q", "--detach", "HEAD~1"],
    ],
    ids=" ".join,
)
def test_what_git_takes_away_from_the_archive_is_there_again(
    quick: QuickQueen, rotating: Path, take_away: list[str]
) -> None:
    sent = send(quick, rotating, "ui", 9)
    commit(rotating)
    sent |= send(quick, rotating, "api", 9)
    if take_away[0] == "checkout":
        commit(rotating)
    before = inbox(quick, rotating)
    git(rotating, *take_away)
    assert inbox(quick, rotating) == before
    sent |= send(quick, rotating, "docs", 9)
    assert_whole(rotating, sent, set())


def test_the_command_says_what_it_moved(queen: Queen, repo: Path) -> None:
    queen("init")
    queen("msg", "send", "reviewer", "hello", "--new", as_="ui")
    done = queen("hive", "rotate", "--older-than", "0s")
    assert done.code == 0
    moved = done.out.splitlines()[1].split()
    assert moved[:3] == ["messages", "1", "1"]
    assert moved[-1] == "queen_messages.1.jsonl"
    assert (repo / ".beads" / "archive" / moved[-1]).exists()
    assert queen("hive", "rotate", "--older-than", "0s", "--json").json[0]["records"] == 0
    assert queen("doctor").code == 0


def test_a_duration_that_is_none_is_refused(quick: QuickQueen) -> None:
    refused = quick("hive", "rotate", "--older-than", "soon", "--json")
    assert refused.code == 2
    assert "soon" in refused.error["message"]
