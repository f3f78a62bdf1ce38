"""The guard's check of a commit, with and without the command line around it: the same answers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import git, write_lines
from start_up import QUEEN, QUICK, loaded

from queenbee import Hive
from queenbee.cli import quick_guard

pytestmark = pytest.mark.slow


def stage(repo: Path, name: str) -> None:
    (repo / name).parent.mkdir(parents=True, exist_ok=True)
    (repo / name).write_text("changed\n")
    git(repo, "add", "--", name)


def opened(repo: Path, droid: str) -> Hive:
    return Hive.open(str(repo), droid=droid, env={"QUEEN_DURABILITY": "buffered"})


def free(repo: Path) -> None:
    stage(repo, "src/a.py")


def nothing_staged(repo: Path) -> None:
    pass


def held(repo: Path) -> None:
    stage(repo, "docs/a.md")


def announced_by_another_session(repo: Path) -> None:
    stage(repo, "src/a.py")
    with opened(repo, "amber") as hive:
        hive.reservations.reserve([str(repo / "src/a.py")], exclusive=False, session="s1")


def ended(repo: Path) -> None:
    """Somebody took over a lease of the droid that commits, which is told of that once."""
    stage(repo, "src/a.py")
    with opened(repo, "ui-engineer") as hive:
        hive.reservations.reserve([str(repo / "lib")])
    with opened(repo, "amber") as hive:
        hive.reservations.reserve([str(repo / "lib")], force=True, reason="urgent\x1b[31m")


def torn(repo: Path) -> None:
    stage(repo, "src/a.py")
    with open(repo / ".beads" / "queen_reservations.jsonl", "a") as file:
        file.write("{torn\n")


def unreadable(repo: Path) -> None:
    stage(repo, "src/a.py")
    (repo / ".beads" / "queen.toml").write_text("[[[")
    (repo / ".git" / "queenbee" / "last-good.toml").unlink(missing_ok=True)


def no_hive(repo: Path) -> None:
    stage(repo, "src/a.py")
    shutil.rmtree(repo / ".beads")


def no_git(repo: Path) -> None:
    shutil.rmtree(repo / ".git")


def merging(repo: Path) -> None:
    stage(repo, "src/a.py")
    (repo / ".git" / "MERGE_HEAD").write_text("0" * 40 + "\n")


STATES = (
    free, nothing_staged, held, announced_by_another_session, ended, torn, unreadable, no_hive,
    no_git, merging,
)  # fmt: skip


def asked(repo: Path, program: str, *arguments: str, **env: str) -> tuple[object, ...]:
    """Returns the answer of a program, and what it left in the state of the hive."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, "guard", "check", *arguments],
        cwd=repo,
        env={"PATH": os.environ["PATH"], "QUEEN_DURABILITY": "buffered", **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    state = repo / ".git" / "queenbee"
    files = (each for each in state.rglob("*") if not each.name.startswith("hive.sqlite3"))
    left = {str(each.relative_to(state)) for each in files}
    log = state / "guard.log"
    said = log.read_text().partition("Z ")[2] if log.exists() else ""
    out, err = (
        re.sub(r"\d[\dhms ]* left|left\":\d+", "LEFT", each) for each in (done.stdout, done.stderr)
    )
    return done.returncode, out, err, left, said


@pytest.fixture
def both(small: Path, tmp_path: Path) -> Callable[..., tuple[object, object]]:
    """Asks both programs in copies of the same repository."""

    def ask(make: Callable[[Path], None], *arguments: str, **env: str) -> tuple[object, object]:
        copy = tmp_path / "copy"
        answers = []
        for program in (QUEEN, QUICK):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(small, copy, symlinks=True)
            make(copy)
            answers.append(asked(copy, program, *arguments, **env))
        return answers[0], answers[1]

    return ask


@pytest.mark.parametrize("droid", ["ui-engineer", "reviewer", ""])
@pytest.mark.parametrize("make", STATES)
def test_a_commit_gets_the_same_answer(both, make, droid):
    env = {"QUEEN_DROID": droid} if droid else {}
    whole, short = both(make, "--staged", **env)
    assert short == whole


@pytest.mark.parametrize("mode", ["warn", "off", "maybe"])
@pytest.mark.parametrize("make", [free, held, unreadable])
def test_what_passes_because_of_the_environment_is_logged_once(both, make, mode):
    whole, short = both(make, "--staged", QUEEN_DROID="ui-engineer", QUEEN_GUARD=mode)
    assert short == whole


@pytest.mark.parametrize(
    "arguments", [(), ("--json",), ("--staged", "--as", "reviewer"), ("docs/a.md",), ("--nope",)]
)
def test_other_options_get_the_same_answer(both, arguments):
    whole, short = both(held, *arguments, QUEEN_DROID="ui-engineer")
    assert short == whole


def test_the_states_differ_in_what_is_said(both):
    """Otherwise the comparison would compare nothing."""
    told = {make: both(make, "--staged", QUEEN_DROID="ui-engineer")[1] for make in STATES}
    assert told[free][:3] == (0, "", "")
    assert told[held][0] == 1 and "held by reviewer" in told[held][1]
    assert told[ended][0] == 0 and "lib" in told[ended][2] and "\x1b" not in told[ended][2]
    assert told[torn][0] == 0 and "cannot be used" in told[torn][2]
    assert told[unreadable][0] == 7


def test_a_commit_that_may_pass_loads_no_command_line(small: Path) -> None:
    stage(small, "src/a.py")
    modules = loaded(small, QUICK, "guard", "check", "--staged")
    assert "queenbee.git.guard" in modules
    assert modules.isdisjoint({"click", "typing", "json", "queenbee.cli.app", "queenbee.cli.main"})


def test_a_fault_of_the_short_way_is_no_refusal(small: Path) -> None:
    """Git takes exit 1 for a refusal: the whole command line is asked instead."""
    stage(small, "src/a.py")
    program = f"import sys; sys.modules['queenbee.git.changes'] = None; {QUICK}"
    assert asked(small, program, "--staged")[0] == 70
    program = f"import sys; sys.modules['queenbee.cli.quick_guard'] = None; {QUICK}"
    assert asked(small, program, "--staged")[0] == 0


def test_an_interrupted_check_does_not_begin_anew(small: Path) -> None:
    program = (
        "from queenbee.git import guard\n"
        "def interrupted(*_, **__): raise KeyboardInterrupt\n"
        f"guard.check = interrupted\n{QUICK}"
    )
    assert asked(small, program, "--staged")[:3] == (130, "", "queen: interrupted\n")


def test_a_held_file_is_never_passed_by_the_short_way(small: Path, monkeypatch) -> None:
    stage(small, "docs/a.md")
    monkeypatch.chdir(small)
    ask = ["guard", "check", "--staged"]
    assert quick_guard.answer(ask, {"QUEEN_DROID": "ui-engineer"}) is None
    assert quick_guard.answer(ask, {"QUEEN_DROID": "reviewer"}) == 0


def test_a_long_history_that_is_read_on_a_terminal_shows_its_progress(small: Path) -> None:
    stage(small, "src/a.py")
    rows = [
        {"id": f"qr-{n}", "droid": "reviewer", "pattern": f"lib/{n}.py", "rev": 1}
        for n in range(1000)
    ]
    write_lines(small / ".beads" / "queen_reservations.jsonl", *rows)
    program = (
        "import sys, queenbee.cli.terminal as terminal\n"
        "sys.stderr.isatty = lambda: True\n"
        "terminal.BAR_AFTER_S = terminal._BAR_EVERY_S = 0\n"
        f"{QUICK}"
    )
    answer = asked(small, program, "--staged")
    assert answer[0] == 0 and "working" in str(answer[2])
    assert (small / ".git/queenbee/hive.sqlite3").stat().st_size > 0
