"""Several branches land with one check; each step of the target is a tree that passed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from bead_files import put_bead, ralph_bead
from hives import Queen, commit_file, git, write_lines

from queenbee import Hive
from queenbee.git.landing.landed_issue import Landed
from queenbee.git.landing.refusals import PushRefused
from queenbee.git.landing.together.pace import Pace
from queenbee.git.landing.work import ASKED
from queenbee.services.waiting.landing_steps import Promises
from queenbee.services.waiting.landing_turn import folder_of
from queenbee.store import waiting_line

Started = subprocess.Popen[str]


def opened(tree: Path, droid: str = "ui") -> Hive:
    return Hive.open(tree, droid=droid, env={})


def head(tree: Path, name: str = "HEAD") -> str:
    return git(tree, "rev-parse", name).strip()


@pytest.fixture(autouse=True)
def _in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed here is whoever lands."""
    monkeypatch.setenv("QUEEN_LAND_ATTACHED", "1")


@pytest.fixture
def trees(repo: Path, tmp_path: Path) -> list[Path]:
    """Five worktrees, each with a commit of a file of its own and a line in a common one."""
    commit_file(repo, "CHANGELOG.md", "# Changes\n\nend\n")
    made = []
    for number in range(5):
        tree = tmp_path / f"w{number}"
        git(repo, "worktree", "add", "-q", str(tree), "-b", tree.name)
        commit_file(tree, f"{tree.name}.txt", "x\n")
        made.append(tree)
    return made


class Team:
    """Droids who land at the same time: the first one lands, and the others wait behind it."""

    def __init__(self, queen: Queen, repo: Path, tmp_path: Path) -> None:
        self.queen, self.repo = queen, repo
        self.go, self.log = tmp_path / "go", tmp_path / "checked"
        self.folder = folder_of(opened(repo), "main")
        waits = f"while [ ! -e {self.go} ]; do sleep 0.05; done"
        self.check = f"git rev-parse HEAD^{{tree}} >> {self.log}; {waits}"
        self.lasted(0.1)  # A check that is over soon gives way to nobody.

    def lasted(self, check_s: float) -> None:
        """Says how long the last check took."""
        os.makedirs(self.folder, exist_ok=True)
        Pace(self.folder, 16, self.folder).note([], passed=True, check_s=check_s)

    def start(self, trees: Sequence[Path], check: str = "true", *more: str) -> list[Started]:
        """Starts one after the other, each when the one before is in the line."""
        started = []
        for number, tree in enumerate(trees, 1):
            text = f"{self.check}; {check}"
            started.append(
                self.queen.start("land", "--check", text, *more, cwd=tree, as_=tree.name)
            )
            self.until(lambda number=number: len(list(waiting_line.live(self.folder))) >= number)
            if number == 1:
                self.until(self.log.exists)
        return started

    def until(self, true: Callable[[], bool]) -> None:
        until_s = time.monotonic() + 60
        while not true():
            assert time.monotonic() < until_s
            time.sleep(0.02)

    def finish(self, started: Sequence[Started]) -> list[tuple[int, str]]:
        self.go.touch()
        return [
            (each.returncode, out + err)
            for each in started
            for out, err in [each.communicate(timeout=120)]
        ]

    def steps(self, since: str) -> list[str]:
        """Returns the steps of the target; each must be a tree that was checked."""
        steps = git(self.repo, "rev-list", "--first-parent", f"{since}..main").split()
        checked = set(self.log.read_text().split())
        assert {
            git(self.repo, "rev-parse", f"{each}^{{tree}}").strip() for each in steps
        } <= checked
        return steps


@pytest.fixture
def team(queen: Queen, repo: Path, tmp_path: Path) -> Team:
    return Team(queen, repo, tmp_path)


def test_all_who_wait_land_in_one_step_with_one_check(
    team: Team, repo: Path, beads: Path, trees: list[Path], queen: Queen
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    queen("claim", "qb-1", as_="w3", cwd=trees[3])
    since, own = head(repo, "main"), head(trees[3])
    done = team.finish(team.start(trees))
    assert [code for code, _ in done] == [0] * 5, done
    first, *_ = steps = team.steps(since)[::-1]
    assert len(steps) == 2
    assert len(team.log.read_text().split()) == 2
    assert f"landed on main as {first[:10]}" in done[0][1]
    for tree, (_, said) in zip(trees[1:], done[1:], strict=True):
        assert f"landed on main as {steps[1][:10]}, together with " in said
        assert ", with one check of all" in said
        assert head(tree) == steps[1] == head(repo, "main")
        assert git(tree, "symbolic-ref", "HEAD").strip() == f"refs/heads/{tree.name}"
        assert git(tree, "status", "--porcelain") == ""
    assert {*os.listdir(team.folder)} == {"pace", "target"}
    (issue,) = queen("issue", "assignments", "--status", "completed", "--json").json
    assert issue["reason"] == f"landed as {steps[1][:10]}"
    merges = git(repo, "rev-list", "--merges", "--parents", f"{steps[1]}^2", f"^{since}")
    assert any(line.split()[2:] == [own] for line in merges.splitlines())


def test_mail_about_a_further_issue_leaves_a_branch_to_its_own_turn(
    team: Team, beads: Path, trees: list[Path], queen: Queen
) -> None:
    rows = [{"id": f"qb-{n}", "title": "x", "status": "open"} for n in (1, 2)]
    write_lines(beads / "issues.jsonl", *rows)
    queen("claim", "qb-1", "qb-2", as_="w2", cwd=trees[2])
    started = team.start(trees[:2])
    several = ("land", "qb-1", "qb-2", "--check", f"{team.check}; true")
    started.append(queen.start(*several, cwd=trees[2], as_="w2"))
    team.until(lambda: len(list(waiting_line.live(team.folder))) == 3)
    queen("msg", "send", "w2", "Not yet", "--issue", "qb-2", as_="boss")
    done = team.finish(started)
    assert [code for code, _ in done] == [0, 0, 5]
    assert "“Not yet”" in done[2][1]


def test_whoever_lands_next_is_told_of_each_issue_of_the_step(
    team: Team, repo: Path, beads: Path, trees: list[Path], queen: Queen, tmp_path: Path
) -> None:
    rows = [{"id": f"qb-{n}", "title": "x", "status": "open"} for n in (1, 2)]
    write_lines(beads / "issues.jsonl", *rows)
    for number in (1, 2):
        queen("claim", f"qb-{number}", as_=f"w{number}", cwd=trees[number])
    last = tmp_path / "last"
    git(repo, "worktree", "add", "-q", str(last), "-b", "last")
    commit_file(last, "last.txt", "x\n")
    assert [code for code, _ in team.finish(team.start(trees[:3]))] == [0] * 3
    said = queen("land", "--unchecked", as_="ui", cwd=last).out
    both = ("came in: qb-1 by w1, qb-2 by w2 (", "came in: qb-2 by w2, qb-1 by w1 (")
    assert any(each in said for each in both), said


def test_a_branch_that_fails_is_the_only_one_that_is_told_so(
    team: Team, repo: Path, trees: list[Path]
) -> None:
    since = head(repo, "main")
    done = team.finish(team.start(trees, "test ! -e w2.txt"))
    assert [code for code, _ in done] == [0, 0, 1, 0, 0], done
    assert len(team.steps(since)) >= 2
    assert not (repo / "w2.txt").exists()
    assert git(trees[2], "symbolic-ref", "HEAD").strip() == "refs/heads/w2"
    assert not (trees[2] / "w4.txt").exists()
    assert all((repo / f"w{each}.txt").exists() for each in (0, 1, 3, 4))


def test_each_is_told_what_was_joined_of_its_branch(
    team: Team, repo: Path, trees: list[Path]
) -> None:
    for tree in trees[1:3]:
        text = f"# Changes\n\n- {tree.name}, in\n  tools\nend\n"
        commit_file(tree, "CHANGELOG.md", text)
    done = team.finish(team.start(trees[:3]))
    assert [code for code, _ in done] == [0] * 3, done
    assert "joined CHANGELOG.md lines 3-6: both kept" in done[2][1]
    assert "joined CHANGELOG.md" not in done[1][1]
    text = git(repo, "show", "main:CHANGELOG.md")
    assert text.count("- w1, in\n  tools\n") == text.count("- w2, in\n  tools\n") == 1


@pytest.mark.thorough
def test_halves_of_a_batch_that_fails_are_checked_side_by_side(
    team: Team, repo: Path, beads: Path, trees: list[Path]
) -> None:
    (beads / "queen.toml").write_text("[land]\njobs = 2\n")
    since = head(repo, "main")
    done = team.finish(team.start(trees, "test ! -e w3.txt"))
    assert [code for code, _ in done] == [0, 0, 0, 1, 0], done
    steps = team.steps(since)
    # Of w1 to w4, one and two were checked at once, and the two that passed landed without another.
    assert "trying fewer" in done[1][1]
    assert "together with w2" in done[1][1]
    assert len(steps) == 3
    assert all(not git(tree, "status", "--porcelain") for tree in trees)


def test_a_branch_that_changes_the_check_lands_alone(
    team: Team, repo: Path, trees: list[Path]
) -> None:
    commit_file(repo, "t.sh", "true\n")
    for tree in trees[:4]:
        git(tree, "merge", "-q", "--no-edit", "main")
    commit_file(trees[2], ".github/workflows/ci.yml", "on: push\n")
    done = team.finish(team.start(trees[:4]))
    assert [code for code, _ in done] == [0] * 4, done
    assert "together with w3" in done[1][1]
    assert "together with" not in done[2][1]
    assert "changes the check: .github/workflows/ci.yml" in done[2][1]


class TestACheckThatChangesFiles:
    """It is the trouble of whoever brings it, never of those who land with it."""

    @pytest.fixture
    def junk(self, repo: Path, trees: list[Path]) -> Callable[[str], list[Path]]:
        """Makes the third branch change what the check runs; returns the first three."""
        commit_file(repo, "f.txt", "x\n")
        commit_file(repo, "t.sh", "true\n")

        def made(text: str) -> list[Path]:
            for tree in trees[:3]:
                git(tree, "merge", "-q", "--no-edit", "main")
            commit_file(trees[2], "t.sh", text)
            (trees[1] / "own.txt").write_text("not tracked\n")
            return trees[:3]

        return made

    @pytest.mark.thorough
    def test_only_its_own_landing_is_refused(
        self, team: Team, repo: Path, junk: Callable[[str], list[Path]]
    ) -> None:
        trees = junk("echo junk >> f.txt\n")
        done = team.finish(team.start(trees, "sh t.sh", "--json"))
        assert [code for code, _ in done] == [0, 0, 5], done
        error = json.loads(done[2][1].splitlines()[-1])["error"]
        assert (error["code"], error["files"]) == ("left_by_check", ["f.txt"])
        for tree in trees[:2]:
            assert git(tree, "symbolic-ref", "HEAD").strip() == f"refs/heads/{tree.name}"
            assert git(tree, "status", "--porcelain", "--untracked-files=no") == ""
        assert (trees[1] / "own.txt").read_text() == "not tracked\n"
        assert git(repo, "show", "main:f.txt") == "x\n"
        assert git(repo, "show", "unfinished/left-by-check:f.txt") == "x\njunk\n"
        assert "kept on unfinished/left-by-check" in done[1][1]

    @pytest.mark.parametrize("fails", ["", "; exit 1"])
    def test_nor_does_a_commit_of_it_leave_the_leader_without_its_branch(
        self, team: Team, repo: Path, junk: Callable[[str], list[Path]], fails: str
    ) -> None:
        trees = junk(f"echo junk >> f.txt; git commit -qam junk{fails}\n")
        done = team.finish(team.start(trees, "sh t.sh"))
        assert [code for code, _ in done] == [0, 0, 1 if fails else 5], done
        assert git(trees[1], "symbolic-ref", "HEAD").strip() == "refs/heads/w1"
        assert head(trees[1]) == git(repo, "rev-parse", "main").strip()
        assert git(repo, "log", "-1", "--format=%s", "unfinished/left-by-check") == "junk\n"
        assert "junk" not in git(repo, "log", "--format=%s", "main")


class TestTheChecksOfBeads:
    @pytest.fixture
    def claimed(self, team: Team, repo: Path, beads: Path, trees: list[Path]) -> Path:
        """Two of them have a bead with a check; returns where these are logged."""
        log = beads.parent.parent / "bead-checks"
        rows = [{"id": f"gt-{each}", "title": "x", "status": "open"} for each in (1, 2)]
        write_lines(beads / "issues.jsonl", *rows)
        for number in (1, 2):
            passes = f"git rev-parse HEAD >> {log}; test ! -e bad-{number}"
            put_bead(repo, ralph_bead(f"gt-{number}", passes))
            team.queen("claim", f"gt-{number}", as_=f"w{number}", cwd=trees[number])
        return log

    @pytest.mark.thorough
    def test_run_on_what_lands_and_complete_each(
        self, team: Team, repo: Path, trees: list[Path], claimed: Path
    ) -> None:
        since = head(repo, "main")
        done = team.finish(team.start(trees[:4]))
        assert [code for code, _ in done] == [0] * 4, done
        assert len(team.steps(since)) == 2
        assert claimed.read_text().split() == [head(repo, "main")] * 2
        closed = team.queen("issue", "assignments", "--status", "completed", "--json").json
        assert {each["issue_id"] for each in closed} == {"gt-1", "gt-2"}
        assert all(f"landed as {head(repo, 'main')[:10]}" in each["reason"] for each in closed)

    def test_that_fail_keep_nobody_else_from_landing(
        self, team: Team, repo: Path, trees: list[Path], claimed: Path
    ) -> None:
        commit_file(trees[2], "bad-2", "x\n")
        since = head(repo, "main")
        done = team.finish(team.start(trees[:4]))
        assert [code for code, _ in done] == [0, 0, 1, 0], done
        assert "the checks of gt-2 failed" in done[2][1]
        assert "together with w3" in done[1][1]
        team.steps(since)


@pytest.mark.thorough
def test_a_check_that_has_just_begun_begins_again_with_those_who_come(
    team: Team, repo: Path, trees: list[Path]
) -> None:
    team.lasted(60.0)
    since = head(repo, "main")
    started = team.start(trees)
    team.until(lambda: len(team.log.read_text().split()) > 1)
    done = team.finish(started)
    assert [code for code, _ in done] == [0] * 5, done
    assert "more came: checking with them" in done[0][1]
    assert len(team.steps(since)) < 5
    assert "together with" in done[0][1]


@pytest.mark.thorough
def test_the_last_of_a_batch_that_failed_is_not_checked_on_the_same_files_again(
    team: Team, repo: Path, trees: list[Path]
) -> None:
    since = head(repo, "main")
    done = team.finish(team.start(trees[:3], "test ! -e w2.txt"))
    assert [code for code, _ in done] == [0, 0, 1], done
    assert "failed on just these files before" in done[2][1]
    assert len(team.log.read_text().split()) == 3  # w0; w1 with w2; w1.
    team.steps(since)
    again = team.queen("land", "--check", "true", cwd=trees[2], as_="w2")
    assert again.code == 0, again


@pytest.mark.thorough
def test_a_branch_that_conflicts_waits_for_its_own_turn(
    team: Team, repo: Path, trees: list[Path]
) -> None:
    for tree in trees[1:3]:
        commit_file(tree, "README.md", f"{tree.name}\n")
    since = head(repo, "main")
    done = team.finish(team.start(trees))
    assert [code for code, _ in done] == [0, 0, 5, 0, 0], done
    assert "conflict: README.md" in done[2][1]
    team.steps(since)
    assert (repo / "README.md").read_text() == "w1\n"


def test_a_branch_with_markers_of_a_conflict_is_told_in_its_own_turn(
    team: Team, trees: list[Path]
) -> None:
    commit_file(trees[2], "code.py", "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> main\n")
    first, second, third = team.finish(team.start(trees[:3]))
    assert (first[0], second[0], third[0]) == (0, 0, 5)
    assert "this branch has markers of conflicts: code.py" in third[1]


def test_a_branch_with_a_repository_of_its_own_is_told_in_its_own_turn(
    team: Team, trees: list[Path]
) -> None:
    git(trees[2], "clone", "-q", str(team.repo), "vendor")
    git(trees[2], "add", "vendor")
    git(trees[2], "commit", "-qm", "mine")
    first, second, third = team.finish(team.start(trees[:3]))
    assert (first[0], second[0], third[0]) == (0, 0, 5)
    assert "a repository of its own" in third[1]


def test_a_branch_that_takes_back_what_others_landed_is_told_in_its_own_turn(
    team: Team, trees: list[Path]
) -> None:
    for text in "old\n", "better\n":
        commit_file(team.repo, "code.py", text)
    git(trees[2], "merge", "-q", "main")
    commit_file(trees[2], "code.py", "old\n")
    first, second, third = team.finish(team.start(trees[:3]))
    assert (first[0], second[0], third[0]) == (0, 0, 5)
    assert "this branch takes back what others landed" in third[1]
    assert git(team.repo, "show", "main:code.py") == "better\n"


def test_a_branch_that_brings_back_what_was_taken_off_is_told_in_its_own_turn(
    team: Team, trees: list[Path]
) -> None:
    commit_file(team.repo, "secret")
    git(trees[2], "merge", "-q", "main")
    git(team.repo, "reset", "-q", "--hard", "HEAD~1")
    first, second, third = team.finish(team.start(trees[:3]))
    assert (first[0], second[0], third[0]) == (0, 0, 5)
    assert "this branch brings back commits that were taken off main" in third[1]


def test_a_conflict_with_what_landed_is_told_at_once_and_not_after_the_wait(
    team: Team, repo: Path, trees: list[Path]
) -> None:
    commit_file(trees[1], "README.md", "w1\n")
    started = team.start(trees[:3])
    commit_file(repo, "README.md", "main\n")
    out, err = started[1].communicate(timeout=60)
    assert (started[1].returncode, "conflict: README.md" in err) == (5, True), out + err
    assert started[0].poll() is None
    assert [code for code, _ in team.finish([started[0], started[2]])] == [0, 0]


@pytest.mark.some(1)
@pytest.mark.parametrize("how", ["option", "setting", "another check"])
def test_who_wants_to_land_alone_does(
    team: Team, repo: Path, beads: Path, trees: list[Path], how: str
) -> None:
    if how == "setting":
        (beads / "queen.toml").write_text("[land]\nbatch = 1\n")
    since = head(repo, "main")
    more = ("--alone",) if how == "option" else ()
    started = team.start(trees[:1], "true", *more)
    for number, tree in enumerate(trees[1:3], 2):
        check = f"true {number}" if how == "another check" else "true"
        started += team.start([tree], check, *more)
        team.until(lambda number=number: len(list(waiting_line.live(team.folder))) >= number)
    assert [code for code, _ in team.finish(started)] == [0, 0, 0]
    assert len(team.steps(since)) == 3


def test_squash_makes_one_commit_of_each(
    team: Team, repo: Path, beads: Path, trees: list[Path]
) -> None:
    (beads / "queen.toml").write_text('[land]\nstrategy = "squash"\n')
    for tree in trees[:3]:
        commit_file(tree, f"{tree.name}-more.txt", "x\n")
    since = head(repo, "main")
    assert [code for code, _ in team.finish(team.start(trees[:3]))] == [0] * 3
    first, batch = team.steps(since)[::-1]
    row = git(repo, "rev-list", "--parents", f"{batch}^2", f"^{first}").splitlines()
    assert [len(each.split()) for each in row] == [2, 2]
    for tree in trees[1:3]:
        assert head(tree) == batch
        assert git(tree, "status", "--porcelain") == ""


@pytest.mark.parametrize("strategy", ["merge", "squash"])
def test_what_git_merged_and_then_failed_does_not_ride_along_with_another(
    team: Team, repo: Path, beads: Path, trees: list[Path], tmp_path: Path, strategy: str
) -> None:
    (beads / "queen.toml").write_text(f'[land]\nstrategy = "{strategy}"\n')
    real, once = shutil.which("git"), tmp_path / "once"
    fails = f'*--no-ff*) [ -e {once} ] || {{ touch {once}; {real} "$@"; exit 128; }} ;;'
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "git"
    script.write_text(f'#!/bin/sh\ncase "$*" in {fails} esac\nexec {real} "$@"\n')
    script.chmod(0o755)
    team.queen.env["PATH"] = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
    since = head(repo, "main")
    done = team.finish(team.start(trees[:4]))
    assert [code for code, _ in done] == [0] * 4, done
    assert "together with w3" in done[1][1]
    team.steps(since)
    listed = git(repo, "log", "--no-merges", "--format=%x00", "--name-only", f"{since}..main")
    assert sorted(each.split() for each in listed.split("\0") if each.strip()) == [
        [f"w{number}.txt"] for number in range(4)
    ]


def test_who_leaves_the_line_during_the_check_lands_nothing(
    team: Team, repo: Path, trees: list[Path]
) -> None:
    since = head(repo, "main")
    entry = f"{team.folder}/$(ls {team.folder} | grep ^0 | sed -n 2p)"
    once = (
        f"[ -e w1.txt ] && [ -e w0.txt ] && [ ! -e {team.go}2 ] && touch {team.go}2 && rm {entry}"
    )
    done = team.finish(team.start(trees[:4], f"{once}; true"))
    assert [code for code, _ in done] == [0] * 4
    assert "merging it again" in done[1][1]
    team.steps(since)


@pytest.mark.thorough
def test_who_leaves_the_line_before_the_end_lands_nothing(
    team: Team, repo: Path, trees: list[Path]
) -> None:
    started = team.start(trees[:3])
    started[1].send_signal(signal.SIGINT)
    started[1].communicate(timeout=60)
    assert started[1].returncode == 130
    done = team.finish([started[0], started[2]])
    assert [code for code, _ in done] == [0, 0]
    assert not (repo / "w1.txt").exists()


@pytest.mark.parametrize("is_busy", [False, True])
def test_who_gives_up_after_the_promise_lands_and_completes(
    team: Team, repo: Path, trees: list[Path], tmp_path: Path, *, is_busy: bool
) -> None:
    moves, given_up, landed = tmp_path / "moves", threading.Event(), list[Landed]()
    waits = f"touch {moves}; while [ ! -e {moves}2 ]; do sleep 0.05; done"
    ours = f"case $(git log -1 --format=%s $new) in 'Merge branches'*) {waits} ;; esac"
    hook = repo / ".git" / "hooks" / "reference-transaction"
    hook.write_text(
        "#!/bin/sh\nwhile [ $1 = prepared ] && read old new ref; do\n"
        f"case $ref in refs/heads/main) {ours} ;; esac; done\n"
    )
    hook.chmod(0o755)
    lead = opened(repo, "lead")
    issue = lead.issues.new("x", issue_id="qb-9")
    others = team.start(trees[:2])
    with opened(trees[2], "w2") as follower:
        follower.assignments.claim(issue)
        land = partial(follower.land, check=f"{team.check}; true", cancel=given_up)
        thread = threading.Thread(target=lambda: landed.append(land()))
        thread.start()
        team.until(lambda: len(list(waiting_line.live(team.folder))) == 3)
        team.go.touch()
        team.until(moves.exists)
        given_up.set()
        thread.join(0.5)
        if is_busy:  # Then it is told to end while its worktree would follow.
            Path(git(trees[2], "rev-parse", "--absolute-git-dir").strip(), "index.lock").touch()
        moves.with_name("moves2").touch()
        thread.join(60)
    assert [code for code, _ in team.finish(others)] == [0, 0]
    assert [each.done for each in landed] == [True]
    assert lead.issues.get(issue).done


@pytest.mark.some(1)
@pytest.mark.parametrize("when", ["it checks", "the target has moved"])
def test_a_leader_that_is_killed_leaves_a_batch_that_the_others_finish(
    team: Team, repo: Path, trees: list[Path], when: str
) -> None:
    since = head(repo, "main")
    hold = team.go.with_name("hold")
    kill = f"[ -e w1.txt ] && [ ! -e {hold} ] && touch {hold} && kill -9 $PPID; true"
    if when == "it checks":
        started = team.start(trees, kill)
    else:
        started = team.start(trees)
        hook = repo / ".git" / "hooks" / "post-merge"
        once = f"[ -e {hold} ] || {{ touch {hold}; kill -9 $(ps -o ppid= -p $PPID); }}"
        hook.write_text(
            f'#!/bin/sh\ncase $(git log -1 --format=%s) in "Merge branches"*) {once} ;; esac\n'
        )
        hook.chmod(0o755)
    done = team.finish(started)
    assert sorted(code for code, _ in done) == [-9, 0, 0, 0, 0], done
    (killed,) = (tree for tree, (code, _) in zip(trees, done, strict=True) if code)
    again = team.queen("land", "--check", team.check, cwd=killed, as_=killed.name)
    assert again.code == 0, again
    team.steps(since)
    for tree in trees:
        assert (repo / f"{tree.name}.txt").exists()
        assert git(tree, "symbolic-ref", "HEAD").strip() == f"refs/heads/{tree.name}"
        assert git(tree, "status", "--porcelain") == ""


def test_a_remote_that_refuses_one_branch_gets_the_others(
    team: Team, repo: Path, trees: list[Path], tmp_path: Path
) -> None:
    hub = tmp_path / "hub"
    git(repo, "clone", "-q", "--bare", str(repo), str(hub))
    git(repo, "remote", "add", "origin", str(hub))
    git(repo, "fetch", "-q", "origin")
    team.queen("config", "set", "land.target", "origin/main")
    team.folder = folder_of(opened(repo), "origin/main")
    team.lasted(0.1)
    hook = hub / "hooks" / "pre-receive"
    refuses = "git cat-file -e $new:w2.txt 2>/dev/null && echo no w2 here && exit 1"
    hook.write_text(f"#!/bin/sh\nwhile read old new ref; do {refuses}; done\nexit 0\n")
    hook.chmod(0o755)
    done = team.finish(team.start(trees))
    assert [code for code, _ in done] == [0, 0, 5, 0, 0], done
    assert "pre-receive hook declined" in done[2][1]
    assert any("origin/main refuses" in said for _, said in done)
    listed = git(hub, "ls-tree", "--name-only", "main").split()
    assert {each for each in listed if each[0] == "w"} == {f"w{n}.txt" for n in (0, 1, 3, 4)}


@pytest.mark.parametrize("reason", ["protected branch hook declined", "hook declined"])
def test_a_refused_push_is_told_by_what_git_says_of_it(reason: str) -> None:
    line = f"remote: (protected branch)\nTo x\n!\tc:refs/heads/main\t[remote rejected] ({reason})\n"
    refused = PushRefused("origin/main", line)
    is_protected = reason.startswith("protected")
    assert refused.is_of_content is not is_protected
    assert ("land.target" in str(refused.hint)) is is_protected


@pytest.mark.thorough
def test_a_hook_that_amends_the_commit_of_all_takes_it_from_nobody(
    team: Team, repo: Path, trees: list[Path]
) -> None:
    since = head(repo, "main")
    hook = repo / ".git" / "hooks" / "post-merge"
    amends = "echo x >> made; git add made; git commit -q --amend --no-edit"
    hook.write_text(f'#!/bin/sh\n[ "$PWD" = {repo} ] || exit 0\n{amends}\n')
    hook.chmod(0o755)
    done = team.finish(team.start(trees))
    assert [code for code, _ in done] == [0] * 5, done
    last, _ = git(repo, "rev-list", "--first-parent", f"{since}..main").split()
    assert all(f"landed on main as {last[:10]}" in said for _, said in done[1:]), done


def test_who_has_landed_and_has_not_seen_it_yet_lands_with_nobody_else(
    team: Team, repo: Path, trees: list[Path]
) -> None:
    """A squashed branch has nothing by which git knows that it has landed."""
    team.queen("config", "set", "land.strategy", "squash")
    for tree in trees:
        commit_file(tree, "CHANGELOG.md", f"# Changes\n- {tree.name}\n\nend\n")
    zero, one, slow, odd, _ = trees
    commit_file(odd, "odd.txt", "<<<<<<< a\n=======\n>>>>>>> b\n")
    assert team.queen("land", "--check", "true", cwd=odd, as_="w3").code == 5  # It leads alone.
    started = team.start([zero, one, odd, slow])
    os.kill(started[3].pid, signal.SIGSTOP)
    team.go.touch()
    team.until(lambda: "odd.txt" in git(repo, "ls-tree", "--name-only", "main"))
    os.kill(started[3].pid, signal.SIGCONT)
    done = team.finish(started)
    assert [code for code, _ in done] == [0] * 4, done
    lines = git(repo, "show", "main:CHANGELOG.md").splitlines()
    assert sorted(lines[1:-2]) == ["- w0", "- w1", "- w2", "- w3"]


def test_who_leads_while_the_git_of_a_killed_leader_moves_the_target_lands_nothing_twice(
    team: Team, repo: Path, trees: list[Path]
) -> None:
    team.queen("config", "set", "land.strategy", "squash")
    team.queen("config", "set", "land.target", "main")
    git(repo, "checkout", "-q", "-b", "elsewhere")
    started = team.start(trees[:3])
    hook = repo / ".git" / "hooks" / "reference-transaction"
    hook.write_text(
        '#!/bin/sh\ngrep -q refs/heads/main && [ "$1" = prepared ] || exit 0\n'
        f'[ "$(ps -o ppid= -p $PPID | tr -d " ")" != {started[1].pid} ] ||\n'
        f"    {{ kill -9 {started[1].pid}; sleep 2; }}\n"
    )
    hook.chmod(0o755)
    done = team.finish(started)
    assert [code for code, _ in done] == [0, -9, 0], done
    subjects = git(repo, "log", "--format=%s", "main").splitlines()
    assert subjects.count("add w2.txt") == 1, subjects


@pytest.mark.thorough
def test_a_leader_that_is_killed_between_two_squashed_branches_lands_again(
    team: Team, repo: Path, trees: list[Path]
) -> None:
    team.queen("config", "set", "land.strategy", "squash")
    hold = team.go.with_name("hold")
    hook = repo / ".git" / "hooks" / "commit-msg"
    hook.write_text(
        '#!/bin/sh\ncase $(git log -1 --format=%s) in "add ${PWD##*/}.txt") ;; "add w"*)\n'
        f"    git symbolic-ref -q HEAD || [ -e {hold} ] ||\n"
        f"        {{ touch {hold}; kill -9 $(ps -o ppid= -p $PPID); }} ;;\nesac\nexit 0\n"
    )
    hook.chmod(0o755)
    done = team.finish(team.start(trees))
    assert sorted(code for code, _ in done) == [-9, 0, 0, 0, 0], done
    (killed,) = (tree for tree, (code, _) in zip(trees, done, strict=True) if code)
    again = team.queen("land", "--check", "true", cwd=killed, as_=killed.name)
    assert again.code == 0, again
    assert (repo / f"{killed.name}.txt").exists()


class TestThePace:
    NAMES = tuple(str(each) for each in range(16))

    def pace(self, folder: Path) -> Pace:
        return Pace(str(folder), 16, str(folder))

    def test_is_slower_the_more_fail_and_one_by_one_while_many_do(self, tmp_path: Path) -> None:
        def most() -> int:
            return self.pace(tmp_path).most(self.NAMES)

        assert most() == 16
        self.pace(tmp_path).note(["a"], passed=False, check_s=None)
        assert most() == 10
        for _ in range(9):
            self.pace(tmp_path).note(["a"], passed=False, check_s=None)
        assert most() == 1
        self.pace(tmp_path).note(self.NAMES, passed=True, check_s=1.0)
        assert 1 < most() < 5
        for _ in range(3):
            self.pace(tmp_path).note(self.NAMES, passed=True, check_s=1.0)
        assert most() == 16

    def test_halves_those_among_whom_one_is_bad_until_it_is_found(self, tmp_path: Path) -> None:
        self.pace(tmp_path).suspect(self.NAMES[:8], "commit", "check", "said")
        self.pace(tmp_path).note(self.NAMES[:4], passed=True, check_s=1.0)
        assert self.pace(tmp_path).most(self.NAMES[4:]) == 2
        self.pace(tmp_path).note(self.NAMES[4:6], passed=True, check_s=1.0)
        assert self.pace(tmp_path).most(self.NAMES[6:]) == 1
        self.pace(tmp_path).note(self.NAMES[6:7], passed=False, check_s=None)
        assert self.pace(tmp_path).most(self.NAMES[7:]) > 1

    def test_knows_a_failure_only_of_the_one_that_is_left_and_only_once(
        self, tmp_path: Path
    ) -> None:
        def known(check: str = "check", *, same: bool = True) -> str | None:
            return self.pace(tmp_path).failed_before("1", check, lambda _: same)

        self.pace(tmp_path).suspect(self.NAMES[:2], "commit", "check", "said")
        assert known() is None
        self.pace(tmp_path).note(self.NAMES[:1], passed=True, check_s=1.0)
        assert (known(), known("another"), known(same=False)) == ("said", None, None)
        self.pace(tmp_path).note(["1"], passed=False, check_s=None)
        assert known() is None

    def test_gives_way_only_to_those_who_come_when_little_is_lost(self, tmp_path: Path) -> None:
        self.pace(tmp_path).note(["a"], passed=True, check_s=100.0)
        assert not self.pace(tmp_path).gives_way(1.0, 1, 0)
        assert self.pace(tmp_path).gives_way(15.0, 1, 1)
        assert not self.pace(tmp_path).gives_way(15.0, 8, 1)
        assert not self.pace(tmp_path).gives_way(45.0, 1, 8)
        pace = self.pace(tmp_path)
        assert [pace.gives_way(30.0, 1, 1) for _ in range(2)] == [True, False]

    @pytest.mark.parametrize(("check_s", "look_s"), [(1.0, 0.1), (10.0, 0.2), (600.0, 1.0)])
    def test_looks_often_who_came_while_a_check_is_young(
        self, tmp_path: Path, check_s: float, look_s: float
    ) -> None:
        self.pace(tmp_path).note(["a"], passed=True, check_s=check_s)
        pace = self.pace(tmp_path)
        assert pace.look_s == pytest.approx(look_s)
        assert (pace.may_lose(0.3 * check_s), pace.may_lose(0.5 * check_s)) == (True, False)


class TestHooks:
    """Hooks that git tracks, and what they run, are of whichever branch is checked out."""

    @pytest.fixture(autouse=True)
    def _tracked(self, team: Team, repo: Path, trees: list[Path]) -> None:
        commit_file(repo, ".githooks/post-merge", "#!/bin/sh\n. ./on-merge\n")
        (repo / ".githooks" / "post-merge").chmod(0o755)
        commit_file(repo, "on-merge", ":\n")
        git(repo, "commit", "-qam", "hooks")
        for tree in trees:
            git(tree, "merge", "-q", "main")
        git(repo, "config", "core.hooksPath", ".githooks")
        team.queen.env |= {"GH_TOKEN": "secret", "SSH_AUTH_SOCK": "secret"}

    def ran_in(self, tree: Path, log: Path) -> list[str]:
        """Returns what a hook said that ran in a worktree."""
        said = log.read_text().splitlines() if log.exists() else []
        return [each for each in said if each.startswith(f"{tree} ")]

    def says(self, log: Path) -> str:
        return f'echo "$PWD ${{GH_TOKEN-}}${{SSH_AUTH_SOCK-}}" >> {log}\n'

    def test_of_another_branch_get_no_tokens(
        self, team: Team, repo: Path, trees: list[Path], tmp_path: Path
    ) -> None:
        log, signer = tmp_path / "hooks", tmp_path / "signer"
        text = 'for each; do :; done\necho "-----BEGIN SIGNATURE-----" > "$each.sig"'
        signer.write_text(f"#!/bin/sh\n{text}\n")
        signer.chmod(0o755)
        for name, value in (("format", "ssh"), ("ssh.program", str(signer))):
            git(repo, "config", f"gpg.{name}", value)
        git(repo, "config", "user.signingKey", "/key")
        git(repo, "config", "commit.gpgSign", "true")
        commit_file(trees[2], "on-merge", self.says(log))
        done = team.finish(team.start(trees[:3]))
        assert [code for code, _ in done] == [0, 0, 0], done
        checkout = repo.with_name("repo-landing-main")
        assert self.ran_in(checkout, log) == [f"{checkout} "]
        assert self.ran_in(repo, log) == [f"{repo} "]

    @pytest.mark.thorough
    def test_that_a_branch_changes_land_in_a_step_of_their_own(
        self, team: Team, repo: Path, trees: list[Path], tmp_path: Path
    ) -> None:
        log = tmp_path / "hooks"
        commit_file(trees[2], ".githooks/post-merge", f"#!/bin/sh\n{self.says(log)}")
        done = team.finish(team.start(trees[:3]))
        assert [code for code, _ in done] == [0, 0, 0], done
        assert "together with" not in done[2][1]
        assert "changes the check: .githooks/post-merge" in done[2][1]


def test_a_place_in_the_line_lands_nothing_that_its_worktree_has_not_asked_for(
    team: Team, trees: Sequence[Path]
) -> None:
    """The line is in the state folder, where an agent in a sandbox may write."""
    precious, fields = trees[1], {"droid": "ui", "target": "main"}
    first = waiting_line.enter(team.folder, fields, 1)
    started = team.queen.start("land", "--check", "true", cwd=trees[0], as_="w0")
    team.until(lambda: len(list(waiting_line.live(team.folder))) == 2)
    asked = json.loads((team.repo / ".git" / "worktrees" / "w0" / ASKED).read_text())
    own = {"tree": str(precious), "branch": precious.name, "head": head(precious)}
    fields |= {"tree": str(precious), "offer": asked | own}
    planted = waiting_line.enter(team.folder, fields, 1)
    first.leave()
    ((code, said),) = team.finish([started])
    planted.leave()
    assert code == 0, said
    assert not (team.repo / f"{precious.name}.txt").exists()


def test_a_promise_moves_no_branch_that_has_not_asked_for_it(
    team: Team, trees: Sequence[Path]
) -> None:
    before = head(trees[0])
    commit_file(team.repo, "main.txt", "main\n")
    promise = {"commit": head(team.repo), "before": "", "head": before, "issue_id": None}
    for _ in ("never asked", "asked, and not landed"):
        Promises(team.folder, str(trees[0])).add(**promise)
        done = team.queen("land", "--check", "false", cwd=trees[0], as_="w0")
        assert (done.code, head(trees[0])) == (1, before), done


class TestAnOfferThatItsWorktreeHasForged:
    """Its own git directory is where an agent in a sandbox may write."""

    def lands(self, team: Team, trees: Sequence[Path], **forged: object) -> bool:
        """Returns whether the second worktree's work lands in the turn of the first."""
        first = waiting_line.enter(team.folder, {"droid": "ui", "target": "main"}, 1)
        started = [team.queen.start("land", "--check", "true", cwd=trees[0], as_="w0")]
        team.until(lambda: len(list(waiting_line.live(team.folder))) == 2)
        started.append(team.queen.start("land", "--check", "true", cwd=trees[1], as_="w1"))
        team.until(lambda: len(list(waiting_line.live(team.folder))) == 3)
        path = team.repo / ".git" / "worktrees" / "w1" / ASKED
        path.write_text(json.dumps({**json.loads(path.read_text()), **forged}))
        os.kill(started[1].pid, signal.SIGSTOP)
        first.leave()
        (_, said), *_ = team.finish(started[:1])
        os.kill(started[1].pid, signal.SIGKILL)
        started[1].communicate()
        return "together with w1" in said

    def test_lands_no_work_that_the_checks_of_its_issue_refuse(
        self, team: Team, trees: Sequence[Path]
    ) -> None:
        put_bead(team.repo, ralph_bead("gt-1", "false"))
        assert team.queen("config", "trust", "--yes").code == 0
        assert team.queen("claim", "gt-1", as_="w1", cwd=trees[1]).code == 0
        assert not self.lands(team, trees, issue_id=None)

    def test_lands_nothing_but_the_tip_of_its_branch(
        self, team: Team, trees: Sequence[Path]
    ) -> None:
        commit_file(trees[1], "more.txt", "x\n")
        assert not self.lands(team, trees, head=head(trees[1], "HEAD~"))

    def test_lands_nothing_in_the_name_of_another(self, team: Team, trees: Sequence[Path]) -> None:
        made = team.queen("worktree", "add", "w9", as_="w9")
        assert made.code == 0, made
        git_dir = next((team.repo / ".git" / "worktrees").glob("*w9"))
        (team.repo / ".git" / "queenbee-made" / "w1").write_bytes(
            (team.repo / ".git" / "queenbee-made" / git_dir.name).read_bytes()
        )
        (team.repo / ".git" / "worktrees" / "w1" / "queenbee-made").write_bytes(
            (git_dir / "queenbee-made").read_bytes()
        )
        assert not self.lands(team, trees)

    def test_lands_as_it_is_if_it_is_not(self, team: Team, trees: Sequence[Path]) -> None:
        assert self.lands(team, trees)
