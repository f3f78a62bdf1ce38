"""The demo: it tells its story on any machine, and fails where a promise does not hold."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import Names

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PARTS = (
    "Three agents and Ann",
    "Who does what?",
    "Who edits where?",
    "They talk:",
    "They land at once",
    "Nothing is lost.",
    "A team does the rest.",
    "In a repository of yours:",
)


def run(*program: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *program],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_demo_tells_its_story_whoever_runs_it_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    hostile = tmp_path / "gitconfig"
    hostile.write_text("[commit]\n\tgpgsign = true\n[core]\n\thooksPath = /nowhere\n")
    (tmp_path / "tmp").mkdir()
    told = run(
        "-m",
        "bench.demo",
        TMPDIR=str(tmp_path / "tmp"),
        QUEEN_DROID="somebody else",
        BEADS_DIR="/nowhere",
        GIT_CONFIG_GLOBAL=str(hostile),
    )
    assert (told.returncode, told.stderr) == (0, "")
    places = [told.stdout.index(part) for part in PARTS]
    assert places == sorted(places)
    for said in ("is yours: Cart shows", "held by ui", "ended by SIGKILL"):
        assert said in told.stdout
    assert "for 3 branches; the conflict was joined" in told.stdout
    assert len(told.stdout.splitlines()) < 160
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.thorough
def test_a_promise_that_does_not_hold_ends_the_demo_with_an_error(tmp_path: Path) -> None:
    thief = (
        "from queenbee.services.assignments import Assignments\n"
        "Assignments.active = lambda self, issue_id: None\n"
        "Assignments.find = lambda self, **equals: []\n"
        "from queenbee.cli.main import main\n"
        "main()"
    )
    broken = (
        "import sys, bench.demo as demo\n"
        f"demo.QUEEN = (sys.executable, '-c', {thief!r})\n"
        "raise SystemExit(demo.main())"
    )
    told = run("-c", broken, TMPDIR=str(tmp_path))
    assert told.returncode == 1
    assert re.search(r"This should not have happened: 3 agents got [012] issues\.", told.stderr)


def machines(tmp_path: Path, *program: str) -> subprocess.CompletedProcess[str]:
    hostile = tmp_path / "gitconfig"
    hostile.write_text("[commit]\n\tgpgsign = true\n[core]\n\thooksPath = /nowhere\n")
    (tmp_path / "tmp").mkdir()
    return run(
        *program, TMPDIR=str(tmp_path / "tmp"), QUEEN_DROID="x", GIT_CONFIG_GLOBAL=str(hostile)
    )


STORY = """\
Two machines, one git remote, no server. The clock of the desktop is an hour behind.

...
Laptop and desktop claim one issue at the same moment, 4 times.

    4 times one of them was told yes, and the other no (exit 5)

What the remote has seen, commit by commit:

    8 confirmed grants; in no commit do two of them exclude each other
"""


@pytest.mark.thorough
def test_the_story_of_the_machines_is_told_to_its_end(tmp_path: Path) -> None:
    told = machines(tmp_path, "-m", "bench.demo_machines")
    assert (told.returncode, told.stderr) == (0, "")
    assert Names().agree(STORY.splitlines(), told.stdout.splitlines()), told.stdout
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_machine_that_asks_nobody_ends_the_story_with_an_error(tmp_path: Path) -> None:
    alone = (
        "from queenbee.git.remote import confirmed_grants\n"
        "confirmed_grants.confirmed = lambda hive, grant, **_: grant()\n"
        "from queenbee.cli.main import main\n"
        "main()"
    )
    broken = (
        "import bench.demo as demo, bench.demo_machines as machines\n"
        f"machines._BEHIND = {alone!r}\n"
        "raise SystemExit(machines.main())"
    )
    told = machines(tmp_path, "-c", broken)
    assert told.returncode == 1
    assert "This should not have happened: queen claim shop-1 --confirm exits with 0" in told.stderr
