"""`queen land` killed, stopped or disturbed: the target is old or new, and the next one heals."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hives import COMMAND, Queen, commit_file, git, write_lines

from queenbee import Hive
from queenbee.errors import Busy, QueenError
from queenbee.git.landing import NotLanded, Rules, land
from queenbee.git.landing.work import Work
from queenbee.git.worktrees.left_locks import Where, remove_locks
from queenbee.services.waiting import landing_turn
from queenbee.store import waiting_line


@pytest.fixture(autouse=True)
def _in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed here is whoever lands."""
    monkeypatch.setenv("QUEEN_LAND_ATTACHED", "1")


@pytest.fixture
def trees(repo: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two linked worktrees, each with one commit that adds, changes and removes files."""
    commit_file(repo, "old.txt", "old\n")
    (repo / ".gitignore").write_text("*.log\n")
    git(repo, "add", ".gitignore")
    git(repo, "commit", "-qm", "ignore")
    made = []
    for name in ("one", "two"):
        tree = tmp_path / name
        git(repo, "worktree", "add", "-q", str(tree), "-b", name)
        for number in range(20):
            (tree / name).mkdir(exist_ok=True)
            (tree / name / f"{number}.txt").write_text(f"{number}\n" * 1000)
        git(tree, "add", ".")
        commit_file(tree, f"{name}.txt", "x\n")
        made.append(tree)
    return made[0], made[1]


def opened(tree: Path, droid: str = "ui") -> Hive:
    return Hive.open(tree, droid=droid, env={})


def landed(tree: Path, **more: Any) -> str | None:
    return land(opened(tree), **{"check": None, "wait_s": 20, "rules": Rules(), **more}).commit


def head(tree: Path, name: str = "HEAD") -> str:
    return git(tree, "rev-parse", name).strip()


def is_clean(tree: Path) -> bool:
    return git(tree, "status", "--porcelain") == ""


KILL_BOTH = "kill -9 $(ps -o ppid= -p $PPID) $PPID"
"""In a script that git runs: kills git and the command that called it."""


def kill_in(name: str) -> str:
    """Returns a filter that does so in one worktree."""
    return f"case $PWD in */{name}) {KILL_BOTH} ;; esac; cat"


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def killed(queen: Queen, tree: Path, *more: str) -> None:
    """Runs `queen land`, which something kills."""
    more = more if "--check" in more else ("--unchecked", *more)
    started = queen.start("land", *more, cwd=tree, as_="ui")
    started.communicate(timeout=60)
    assert started.returncode == -signal.SIGKILL


class TestGitKilledWithItsCaller:
    """In the middle of its work, by a program that git itself calls there."""

    @pytest.fixture
    def filtered(self, repo: Path, trees: tuple[Path, Path], tmp_path: Path) -> Path:
        """A worktree to be landed, whose file `one/7.txt` goes through a filter."""
        script(tmp_path / "smudge", "cat")
        git(repo, "config", "filter.deadly.smudge", str(tmp_path / "smudge"))
        git(repo, "config", "filter.deadly.clean", "cat")
        (repo / ".git" / "info").mkdir(exist_ok=True)
        (repo / ".git" / "info" / "attributes").write_text("one/7.txt filter=deadly\n")
        git(trees[0], "rm", "-q", "old.txt")
        commit_file(trees[0], "README.md", "changed\n")
        return trees[0]

    def test_while_it_changes_files_of_the_main_worktree(
        self, repo: Path, filtered: Path, queen: Queen, tmp_path: Path
    ) -> None:
        before = head(repo, "main")
        script(tmp_path / "smudge", kill_in("repo"))
        killed(queen, filtered)
        assert head(repo, "main") == before
        assert (repo / ".git" / "index.lock").exists()
        assert not is_clean(repo)
        script(tmp_path / "smudge", "cat")
        assert landed(filtered) == head(repo, "main")
        assert is_clean(repo)
        assert is_clean(filtered)

    def test_another_worktree_heals_the_main_one_and_lands(
        self, repo: Path, trees: tuple[Path, Path], filtered: Path, queen: Queen, tmp_path: Path
    ) -> None:
        script(tmp_path / "smudge", kill_in("repo"))
        killed(queen, filtered)
        script(tmp_path / "smudge", "cat")
        assert landed(trees[1]) == head(repo, "main")
        assert is_clean(repo)
        assert (repo / "old.txt").exists()
        assert not (repo / "one").exists()

    def test_work_since_then_is_left_alone(
        self, repo: Path, trees: tuple[Path, Path], filtered: Path, queen: Queen, tmp_path: Path
    ) -> None:
        script(tmp_path / "smudge", kill_in("repo"))
        killed(queen, filtered)
        script(tmp_path / "smudge", "cat")
        (repo / "README.md").write_text("my work\n")
        assert landed(trees[1]) == head(repo, "main")
        assert git(repo, "status", "--porcelain") == " M README.md\n"
        assert (repo / "README.md").read_text() == "my work\n"

    @pytest.mark.parametrize("time", [1, 2], ids=["tries to move", "moves"])
    def test_what_somebody_empties_since_then_stays_empty(
        self,
        repo: Path,
        trees: tuple[Path, Path],
        filtered: Path,
        queen: Queen,
        tmp_path: Path,
        time: int,
    ) -> None:
        self.kill_at(repo, tmp_path, time)
        killed(queen, filtered)
        (repo / ".git" / "hooks" / "reference-transaction").unlink()
        (repo / "README.md").write_text("")
        (repo / "one.txt").write_text("")
        if time == 1:  # Git had not begun with files.
            (repo / "old.txt").unlink()
        assert landed(trees[1]) == head(repo, "main")
        assert (repo / "README.md").read_text() == (repo / "one.txt").read_text() == ""
        assert (repo / "old.txt").exists() == (time == 2)

    @pytest.mark.some(1)
    @pytest.mark.parametrize("time", [1, 2], ids=["tries to move", "moves"])
    def test_while_it_moves_the_branch(
        self, repo: Path, filtered: Path, queen: Queen, tmp_path: Path, time: int
    ) -> None:
        before = head(repo, "main")
        hook = self.kill_at(repo, tmp_path, time)
        killed(queen, filtered)
        assert is_clean(repo) == (time == 1)
        hook.unlink()
        assert head(repo, "main") == before
        assert landed(filtered) == head(repo, "main")
        assert is_clean(repo)

    def kill_at(self, repo: Path, tmp_path: Path, time: int) -> Path:
        """Has a hook kill git when the main branch is to move, the first time or later."""
        hook = repo / ".git" / "hooks" / "reference-transaction"
        wanted = "grep -q refs/heads/main && [ $1 = prepared ] || exit 0"
        times = f"echo >> {tmp_path}/times; [ $(wc -l < {tmp_path}/times) = {time} ] || exit 0"
        script(hook, f"{wanted}\n{times}\n{KILL_BOTH}")
        return hook

    def test_while_it_merges_into_the_branch(
        self, repo: Path, trees: tuple[Path, Path], filtered: Path, queen: Queen, tmp_path: Path
    ) -> None:
        landed(filtered)
        (repo / ".git" / "info" / "attributes").write_text("two/7.txt filter=deadly\n")
        before, own = head(repo, "main"), head(trees[1])
        script(tmp_path / "smudge", KILL_BOTH)
        killed(queen, trees[1])
        assert is_clean(trees[1])
        script(tmp_path / "smudge", "cat")
        assert (head(repo, "main"), head(trees[1])) == (before, own)
        assert landed(trees[1]) == head(repo, "main")
        assert is_clean(repo)
        assert is_clean(trees[1])

    def test_while_it_marks_a_conflict(
        self, repo: Path, trees: tuple[Path, Path], filtered: Path, queen: Queen, tmp_path: Path
    ) -> None:
        landed(filtered)
        commit_file(trees[1], "README.md", "changed otherwise\n")
        script(tmp_path / "smudge", kill_in("two"))
        killed(queen, trees[1])
        assert "<<<<<<< HEAD" in (trees[1] / "README.md").read_text()
        script(tmp_path / "smudge", "cat")
        with pytest.raises(NotLanded, match=r"conflict: README\.md"):
            landed(trees[1])

    @pytest.mark.parametrize("name", ["pre-merge-commit", "commit-msg"])
    def test_in_a_hook_of_the_merge(
        self, repo: Path, trees: tuple[Path, Path], filtered: Path, queen: Queen, name: str
    ) -> None:
        landed(filtered)
        hook = repo / ".git" / "hooks" / name
        script(hook, KILL_BOTH)
        killed(queen, trees[1])
        hook.unlink()
        assert landed(trees[1]) == head(repo, "main")
        assert is_clean(trees[1])

    @pytest.mark.some(1)
    @pytest.mark.parametrize("strategy", ["rebase", "squash"])
    def test_in_the_other_strategies(
        self,
        repo: Path,
        beads: Path,
        trees: tuple[Path, Path],
        filtered: Path,
        queen: Queen,
        tmp_path: Path,
        strategy: str,
    ) -> None:
        (beads / "queen.toml").write_text(f'[land]\nstrategy = "{strategy}"\n')
        landed(filtered)
        script(tmp_path / "smudge", KILL_BOTH)
        killed(queen, trees[1])
        script(tmp_path / "smudge", "cat")
        assert landed(trees[1], rules=Rules(strategy=strategy)) == head(repo, "main")
        assert is_clean(trees[1])


def test_an_issue_is_completed_by_the_next_call_if_it_was_killed_after_landing(
    repo: Path, beads: Path, trees: tuple[Path, Path], queen: Queen
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    queen("claim", "qb-1", as_="ui", cwd=trees[0])
    hook = repo / ".git" / "hooks" / "post-merge"
    script(hook, KILL_BOTH)
    killed(queen, trees[0])
    hook.unlink()
    assert head(repo, "main") == head(trees[0])
    again = queen("land", "--check", "exit 1", as_="ui", cwd=trees[0])
    assert again.code == 0, again
    (done,) = queen("issue", "assignments", "--status", "completed", "--json").json
    assert done["reason"] == f"landed as {head(repo, 'main')[:10]}"


def main(repo: Path) -> Where:
    return Where(str(repo), str(repo / ".git"), str(repo / ".git"), "main")


class TestALock:
    def test_that_somebody_has_for_a_moment_is_waited_for(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        locks = [repo / ".git" / "index.lock", repo / ".git/worktrees/two/index.lock"]
        landed(trees[0])
        for lock in locks:
            lock.touch()
        remove = subprocess.Popen(["sh", "-c", f"sleep 1; rm {locks[0]} {locks[1]}"])
        assert landed(trees[1]) == head(repo, "main")
        assert remove.wait() == 0

    def test_that_another_process_has_open_is_never_removed(
        self, repo: Path, tmp_path: Path
    ) -> None:
        lock = repo / ".git" / "index.lock"
        with open(lock, "wb"):
            assert remove_locks(main(repo), 0) == [str(lock)]
        later_ns = time.time_ns() + 10**12
        assert remove_locks(main(repo), later_ns)
        assert remove_locks(main(repo), 0) == []
        assert not lock.exists()

    def test_of_a_commit_that_is_being_written_is_never_removed(self, repo: Path) -> None:
        lock = repo / ".git" / "index.lock"
        lock.write_bytes((repo / ".git" / "index").read_bytes())
        assert remove_locks(main(repo), 0) == [str(lock)]


class TestTheMainWorktree:
    @pytest.mark.parametrize("name", ["debug.log", "notes.txt"])
    def test_loses_no_file_that_git_does_not_have(
        self, repo: Path, trees: tuple[Path, Path], name: str
    ) -> None:
        (trees[0] / name).write_text("from the branch\n")
        git(trees[0], "add", "-f", name)
        git(trees[0], "commit", "-qm", name)
        (repo / name).write_text("mine\n")
        before = head(repo, "main")
        with pytest.raises(NotLanded, match="cannot be moved"):
            landed(trees[0])
        assert head(repo, "main") == before
        assert (repo / name).read_text() == "mine\n"

    def test_nor_does_the_worktree_that_lands(self, repo: Path, trees: tuple[Path, Path]) -> None:
        (trees[0] / "debug.log").write_text("from the branch\n")
        git(trees[0], "add", "-f", "debug.log")
        git(trees[0], "commit", "-qm", "log")
        landed(trees[0])
        (trees[1] / "debug.log").write_text("mine\n")
        told: list[str] = []
        assert landed(trees[1], tell=told.append) == head(repo, "main")
        assert any("stays as it was" in each and "debug.log" in each for each in told)
        assert (trees[1] / "debug.log").read_text() == "mine\n"

    @pytest.mark.parametrize("how", ["removed", "a file", "a link in it", "a folder in it"])
    def test_keeps_its_hive(
        self, repo: Path, beads: Path, trees: tuple[Path, Path], how: str
    ) -> None:
        git(repo, "add", ".beads")
        git(repo, "commit", "-qm", "hive", "--allow-empty")
        (beads / "note.txt").write_text("x\n")
        git(repo, "add", "-f", ".beads/note.txt")
        git(repo, "commit", "-qm", "hive")
        tree = trees[0]
        git(tree, "merge", "-q", "--no-edit", "main")
        if how == "a link in it":
            (tree / ".beads" / "queen_messages.jsonl").symlink_to("/etc/passwd")
        elif how == "a folder in it":
            (tree / ".beads" / "queen_messages.jsonl").mkdir()
            (tree / ".beads" / "queen_messages.jsonl" / "x").touch()
        else:
            git(tree, "rm", "-rq", ".beads")
        if how == "a file":
            (tree / ".beads").write_text("x\n")
        git(tree, "add", "-A", "-f", ".")
        git(tree, "commit", "-qm", "replaced")
        before = head(repo, "main")
        with pytest.raises(NotLanded, match=r"replaces \.beads") as refused:
            landed(tree)
        assert head(repo, "main") == before
        command = str(refused.value.hint).partition(", ")[0]
        subprocess.run(command, shell=True, cwd=tree, check=True)
        commit_file(tree, "work.txt", "x\n")
        assert landed(tree) == head(repo, "main")


class TestALander:
    def test_that_is_stopped_is_passed_over_and_lands_nothing_stale(
        self,
        repo: Path,
        trees: tuple[Path, Path],
        queen: Queen,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(landing_turn, "STALLED_S", 2.5)
        go = tmp_path / "go"
        check = f"touch {tmp_path / 'begun'}; while [ ! -e {go} ]; do sleep 0.05; done"
        slow = queen.start("land", "--check", check, cwd=trees[0], as_="slow")
        while not (tmp_path / "begun").exists():
            time.sleep(0.02)
        os.kill(slow.pid, signal.SIGSTOP)
        told: list[str] = []
        assert landed(trees[1], tell=told.append) == head(repo, "main")
        assert "passing over slow, whose process is not responding" in told
        go.touch()
        os.kill(slow.pid, signal.SIGCONT)
        _, err = slow.communicate(timeout=60)
        assert (slow.returncode, "was given on" in err) == (6, True)
        assert head(repo, "main") == head(trees[1])
        assert queen("land", "--unchecked", cwd=trees[0], as_="slow").code == 0

    @pytest.mark.some(1)
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_that_is_asked_to_end_ends_its_check(
        self, repo: Path, trees: tuple[Path, Path], queen: Queen, tmp_path: Path, number: int
    ) -> None:
        pid = tmp_path / "pid"
        check = f"sleep 300 & echo $! > {pid}.new; mv {pid}.new {pid}; wait"
        slow = queen.start("land", "--check", check, cwd=trees[0], as_="slow")
        while not pid.exists():
            time.sleep(0.02)
        slow.send_signal(number)
        slow.communicate(timeout=60)
        assert slow.returncode == 130
        child = int(pid.read_text())
        alive = Path(f"/proc/{child}/stat")
        assert not alive.exists() or " Z " in alive.read_text()
        assert landed(trees[0]) == head(repo, "main")

    def test_that_shows_signs_of_life_is_never_passed_over(
        self, trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        beaten, now_s = [0], [1000.0]
        monkeypatch.setattr(waiting_line, "beaten_ns", lambda folder, name: beaten[0])
        monkeypatch.setattr(landing_turn.time, "monotonic", lambda: now_s[0])
        turn = landing_turn.LandingTurn(opened(trees[0]), "main", 0, print)
        stalled = []
        for beats in (1, 1, 1, 0, 0):
            beaten[0] += beats
            stalled.append(turn._is_stalled("slow"))
            now_s[0] += landing_turn.STALLED_S - 1
        assert stalled == [False, False, False, False, True]

    def test_in_a_container_is_not_taken_for_dead(
        self, repo: Path, trees: tuple[Path, Path], queen: Queen, tmp_path: Path
    ) -> None:
        apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*apart, "true"], capture_output=True).returncode:
            pytest.skip("no other set of processes may be made here")
        go, begun = tmp_path / "go", tmp_path / "begun"
        check = f"touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done"
        env = {**os.environ, "QUEEN_DROID": "inside"}
        slow = subprocess.Popen(
            [*apart, *COMMAND, "land", "--check", check], cwd=trees[0], env=env,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        while not begun.exists():
            assert slow.poll() is None, slow.communicate()[0]
            time.sleep(0.02)
        before = head(repo, "main")
        busy = queen("land", "--unchecked", "--wait", "1s", cwd=trees[1], as_="outside")
        assert (busy.code, head(repo, "main")) == (6, before)
        assert "waiting for inside" in busy.out
        go.touch()
        said, _ = slow.communicate(timeout=60)
        assert slow.returncode == 0, said
        assert head(repo, "main") == head(trees[0])

    def test_that_has_just_left_is_not_stalled(self, trees: tuple[Path, Path]) -> None:
        turn = landing_turn.LandingTurn(opened(trees[0]), "main", 0, print)
        assert not turn._is_stalled("01HF0000000000000000000000")

    def test_that_lost_its_turn_moves_nothing(self, repo: Path, trees: tuple[Path, Path]) -> None:
        hive = opened(trees[0])
        folder = landing_turn.folder_of(hive, "main")
        before = head(repo, "main")
        with pytest.raises(Busy, match="was given on"):
            landed(trees[0], check=f"rm {folder}/0*")
        assert head(repo, "main") == before

    def test_that_was_interrupted_after_it_landed_does_not_end_a_merge_begun_since(
        self, trees: tuple[Path, Path]
    ) -> None:
        class Fails(Work):
            def landed(self, landing: object, issue_id: object) -> None:
                raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"):
            landed(trees[0], work=Fails())
        git(trees[0], "merge", "-q", "--no-commit", "--no-ff", "two")
        with pytest.raises(QueenError, match="not committed"):
            landed(trees[0])

    def test_that_waits_is_named(self, repo: Path, trees: tuple[Path, Path]) -> None:
        hive = opened(repo)
        with hive.transaction():
            pass
        folder = landing_turn.folder_of(hive, "main")
        entries = [
            waiting_line.enter(folder, {"droid": each, "target": "main"}, hive.now_ms())
            for each in ("api", "ui")
        ]
        found = [(each.droid, each.state) for each in landing_turn.landers(hive)]
        assert found == [("api", "landing"), ("ui", "waiting")]
        for each in entries:
            each.leave()
