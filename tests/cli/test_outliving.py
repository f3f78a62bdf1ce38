"""A landing goes on if its command is ended, and its answer comes later."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from agent_inputs import recorded
from entry_points import run_hook
from hives import COMMAND, Queen, commit_file, git, write_lines

from queenbee.services.waiting.landing_record import LandingRecord


@pytest.fixture
def tree(repo: Path, tmp_path: Path) -> Path:
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    commit_file(tmp_path / "ui", "a", "x\n")
    return tmp_path / "ui"


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "go"


def slow(gate: Path) -> str:
    """Returns a check that says that it has begun, and waits."""
    ends = f"[ -d {gate.parent} ] || exit 1"  # Whoever waits has gone.
    waits = f"while [ ! -e {gate} ]; do {ends}; sleep 0.05; done"
    return f"touch {gate}.on; {waits}; echo was slow"


def until(true: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def begun(queen: Queen, tree: Path, gate: Path, *more: str, **how: object) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [*COMMAND, "land", "--check", slow(gate), *more],
        cwd=tree,
        env=queen.environment("ui", None),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,  # type: ignore[call-overload]
    )
    until(Path(f"{gate}.on").exists)
    return started


def cut_off(started: subprocess.Popen[str]) -> None:
    started.kill()
    started.communicate(timeout=60)


def has_landed(repo: Path, path: str = "a") -> bool:
    return path in git(repo, "ls-tree", "--name-only", "main").split()


def result(queen: Queen, tree: Path) -> tuple[int, str]:
    done = queen("land", "--result", as_="ui", cwd=tree)
    return done.code, done.out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_it_goes_on_if_its_whole_group_is_ended(
    queen: Queen, repo: Path, tree: Path, gate: Path, number: signal.Signals
) -> None:
    started = begun(queen, tree, gate, start_new_session=True)
    os.killpg(started.pid, number)
    _, err = started.communicate(timeout=60)
    assert started.returncode in (-number, 128 + number)
    assert number == signal.SIGKILL or "goes on by itself" in err
    assert not has_landed(repo)
    gate.touch()
    until(lambda: has_landed(repo))
    until(lambda: "landed on main" in result(queen, tree)[1])
    assert result(queen, tree)[0] == 0
    assert (tree / "a").exists()


def test_it_is_below_nobody_who_ends_all_that_they_started(
    queen: Queen, repo: Path, tree: Path, gate: Path
) -> None:
    started = begun(queen, tree, gate)
    listed = subprocess.run(["ps", "-eo", "ppid=,stat="], capture_output=True, text=True)
    children = [each.split() for each in listed.stdout.splitlines()]
    assert not [stat for ppid, stat in children if int(ppid) == started.pid and stat[0] != "Z"]
    gate.touch()
    started.communicate(timeout=60)
    assert started.returncode == 0


def test_called_again_it_shows_the_same_landing(
    queen: Queen, repo: Path, tree: Path, gate: Path
) -> None:
    cut_off(begun(queen, tree, gate))
    again = queen.start("land", "--check", "false", cwd=tree, as_="ui")
    assert again.stdout is not None
    assert "check: touch" in again.stdout.readline()
    gate.touch()
    out, err = again.communicate(timeout=60)
    assert (again.returncode, "was slow" in out, has_landed(repo)) == (0, True, True), err
    assert "your landing" not in queen("status", as_="ui", cwd=tree).err


@pytest.mark.parametrize("fails", [False, True])
def test_called_again_it_shows_an_answer_that_nobody_saw(
    queen: Queen, repo: Path, tree: Path, gate: Path, fails: bool
) -> None:
    check = f"{slow(gate)}; exit {int(fails)}"
    queen("land", "--no-wait", "--check", check, as_="ui", cwd=tree)
    gate.touch()
    record = LandingRecord(git(tree, "rev-parse", "--absolute-git-dir").strip())
    until(lambda: not record.is_under_way)
    again = queen("land", "--check", "true", as_="ui", cwd=tree)
    assert (again.code, "was slow" in again.out) == (int(fails), True), again
    assert has_landed(repo) is not fails
    assert queen("land", "--check", "true", as_="ui", cwd=tree).code == (0 if fails else 5)


@pytest.mark.parametrize("has_records", [False, True])
def test_called_again_once_it_has_ended_it_shows_that_once(
    queen: Queen, repo: Path, beads: Path, tree: Path, gate: Path, has_records: bool
) -> None:
    if has_records:  # They are committed after the landing, and the worktree follows.
        write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
        queen("claim", "qb-1", as_="ui", cwd=tree)
        git(repo, "add", ".beads")
        git(repo, "commit", "-qm", "a hive")
    cut_off(begun(queen, tree, gate))
    gate.touch()
    until(lambda: has_landed(repo))
    time.sleep(1)  # Most often it has ended then.
    again = queen("land", "--check", "false", as_="ui", cwd=tree)
    assert (again.code, "was slow" in again.out, has_landed(repo)) == (0, True, True), again.err
    assert queen("land", "--check", "false", as_="ui", cwd=tree).code == 5  # There is nothing new.


def test_another_commit_waits_for_it(queen: Queen, repo: Path, tree: Path, gate: Path) -> None:
    cut_off(begun(queen, tree, gate))
    commit_file(tree, "b", "x\n")
    again = queen.start("land", "--check", "true", cwd=tree, as_="ui")
    assert again.stdout is not None
    assert "under way" in again.stdout.readline()
    gate.touch()
    _, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert has_landed(repo)
    assert has_landed(repo, "b")


def test_whoever_types_ctrl_c_takes_it_back(
    queen: Queen, repo: Path, tree: Path, gate: Path
) -> None:
    started = begun(queen, tree, gate)
    started.send_signal(signal.SIGINT)
    out, _ = started.communicate(timeout=60)
    assert started.returncode == 130
    head = git(tree, "rev-parse", "HEAD")[:10]
    assert f"nothing was landed; {head} stays on ui: queen land\n" in out
    gate.touch()
    assert not has_landed(repo)
    assert git(tree, "status", "--porcelain") == ""


def test_abort_takes_it_back(queen: Queen, repo: Path, tree: Path, gate: Path) -> None:
    cut_off(begun(queen, tree, gate))
    done = queen("land", "--abort", as_="ui", cwd=tree)
    assert (done.code, "taken back" in done.out) == (0, True), done
    code, said = result(queen, tree)
    assert (code, "under way" in said) == (130, False)
    gate.touch()
    assert not has_landed(repo)
    refused = queen("land", "--abort", as_="ui", cwd=tree)
    assert (refused.code, "no unfinished landing" in refused.err) == (2, True)
    assert queen("land", "--check", "true", as_="ui", cwd=tree).code == 0


def test_it_need_not_be_waited_for(queen: Queen, repo: Path, tree: Path, gate: Path) -> None:
    done = queen("land", "--no-wait", "--check", slow(gate), as_="ui", cwd=tree)
    assert (done.code, "queen land --result" in done.err) == (9, True)
    code, said = result(queen, tree)
    assert (code, "under way" in said) == (9, True)
    gate.touch()
    until(lambda: has_landed(repo))
    until(lambda: result(queen, tree)[0] == 0)


def test_it_returns_by_itself_after_some_time(
    queen: Queen, repo: Path, tree: Path, gate: Path
) -> None:
    queen("config", "set", "land.patience", "1s")
    done = queen("land", "--check", slow(gate), as_="ui", cwd=tree)
    assert (done.code, "you need not wait" in done.err) == (9, True)
    gate.touch()
    until(lambda: has_landed(repo))


def test_nobody_gets_an_issue_after_the_caller_has_left(
    queen: Queen, beads: Path, tree: Path
) -> None:
    queen("config", "set", "land.patience", "4s")
    rows = [{"id": f"qb-{n}", "title": "x", "status": "open"} for n in (1, 2)]
    write_lines(beads / "issues.jsonl", *rows)
    for issue_id, droid in (("qb-1", "ui"), ("qb-2", "api")):
        assert queen("claim", issue_id, as_=droid).code == 0
    done = queen("land", "--check", "true", "--next", as_="ui", cwd=tree)
    assert (done.code, "Nothing is ready for you" in done.out) == (0, True), done
    assert "goes on by itself" not in done.err


@pytest.mark.parametrize("fails", [False, True])
def test_the_answer_comes_once_with_a_later_command(
    queen: Queen, repo: Path, beads: Path, tree: Path, gate: Path, fails: bool
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    queen("claim", "qb-1", as_="ui", cwd=tree)
    check = f"{slow(gate)}; exit {int(fails)}"
    queen("land", "--no-wait", "--next", "--check", check, as_="ui", cwd=tree)
    gate.touch()
    told = "your landing did not pass" if fails else "your landing has ended"
    until(lambda: told in queen("status", as_="ui", cwd=tree).err)
    assert told not in queen("status", as_="ui", cwd=tree).err
    assert result(queen, tree)[0] == int(fails)
    done = queen("issue", "assignments", "--status", "completed", "--json").json
    assert [each["issue_id"] for each in done] == ([] if fails else ["qb-1"])


@pytest.mark.parametrize("fails", [False, True])
def test_the_answer_comes_once_with_the_next_tool_or_prompt(
    queen: Queen, repo: Path, tree: Path, gate: Path, fails: bool
) -> None:
    check = f"{slow(gate)}; exit {int(fails)}"
    queen("land", "--no-wait", "--check", check, as_="ui", cwd=tree)
    assert "your landing" not in heard(queen, tree)
    gate.touch()
    told = "your landing did not pass" if fails else "your landing has ended"
    until(lambda: told in heard(queen, tree))
    assert heard(queen, tree) == ""


def test_a_prompt_while_it_goes_on_hides_no_kill(queen: Queen, tree: Path, gate: Path) -> None:
    check = f"{slow(gate)}; kill -9 $PPID; sleep 1"
    queen("land", "--no-wait", "--check", check, as_="ui", cwd=tree)
    until(Path(f"{gate}.on").exists)
    assert heard(queen, tree) == ""
    gate.touch()
    until(lambda: "your landing was killed" in heard(queen, tree))


def heard(queen: Queen, tree: Path) -> str:
    """Returns what the hook says with a prompt."""
    said = run_hook(recorded("claude/prompt", tree), queen.environment("ui", None), str(tree))
    return str(said["hookSpecificOutput"]["additionalContext"]) if said else ""


def test_status_says_what_is_checked(queen: Queen, repo: Path, tree: Path, gate: Path) -> None:
    git(repo, "worktree", "add", "-q", f"{tree}-2", "-b", "api")
    commit_file(Path(f"{tree}-2"), "b", "x\n")
    done = queen("land", "--check", "sleep 0.6", as_="api", cwd=Path(f"{tree}-2"))
    assert done.code == 0
    started = begun(queen, tree, gate)
    try:
        (lander,) = queen("status", "--json").json["landing"]
        assert (lander["droid"], lander["check_s"] > 0.5) == ("ui", True)
        assert lander["doing"].startswith("queen: check: touch")
        assert "the last check took 1 s" in queen("status").out
    finally:
        gate.touch()
        started.communicate(timeout=60)


def test_one_that_is_killed_is_no_answer(queen: Queen, repo: Path, tree: Path, gate: Path) -> None:
    check = f"touch {gate}.on; kill -9 $PPID; sleep 1"
    done = queen("land", "--no-wait", "--check", check, as_="ui", cwd=tree)
    assert done.code == 9
    until(lambda: "your landing was killed" in queen("status", as_="ui", cwd=tree).err)
    assert "your landing" not in queen("status", as_="ui", cwd=tree).err
    assert not has_landed(repo)
    assert queen("land", "--check", "true", as_="ui", cwd=tree).code == 0


def test_without_a_worker_it_ends_with_its_caller(
    queen: Queen, repo: Path, tree: Path, gate: Path
) -> None:
    queen.env["QUEEN_LAND_ATTACHED"] = "1"
    started = begun(queen, tree, gate)
    started.terminate()
    started.communicate(timeout=60)
    gate.touch()
    assert (started.returncode, has_landed(repo)) == (130, False)


def test_what_is_planted_as_its_output_moves_no_cursor(
    queen: Queen, repo: Path, tree: Path, gate: Path
) -> None:
    gate.touch()
    assert queen("land", "--check", slow(gate), as_="ui", cwd=tree).code == 0
    git_dir = Path(git(tree, "rev-parse", "--absolute-git-dir").strip())
    for each in LandingRecord(str(git_dir)).outputs:
        Path(each).write_bytes(b"\x1b]0;title\x07\x1b[2Jlanded\n")
    shown = queen("land", "--result", as_="ui", cwd=tree)
    assert "landed" in shown.out
    assert "\x1b" not in shown.out + shown.err


def test_a_terminal_shows_how_long_it_takes_in_a_line_that_goes(
    queen: Queen, repo: Path, tree: Path, gate: Path
) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "wb") as end:
        started = subprocess.Popen(
            [*COMMAND, "land", "--check", slow(gate)],
            cwd=tree,
            env=queen.environment("ui", None),
            stdin=subprocess.DEVNULL,
            stdout=end,
            stderr=end,
        )
    seen = b""
    with suppress(OSError):  # Linux says so at the end.
        while chunk := os.read(ours, 65536):
            seen += chunk
            if b"working 2 s" in seen:
                gate.touch()
    os.close(ours)
    assert started.wait(60) == 0
    left = [line.split("\r")[-1] for line in seen.decode().split("\r\n")]
    assert left[0].removeprefix("\x1b[K").startswith("queen: check: touch")
    assert [line for line in left if "working" in line or "?" in line] == []
    assert left[1].startswith("\x1b[Kqueen: check passed in ")


class TestTheNextIssue:
    """An agent whose issue is landing goes on with another one."""

    @pytest.fixture
    def work(self, queen: Queen, repo: Path, beads: Path, tree: Path) -> Path:
        """Returns a worktree with work on the first of three issues, in a file of the second."""
        about = {"qb-1": "1", "qb-2": "2 in a.py", "qb-3": "3"}
        rows = [{"id": key, "title": text, "status": "open"} for key, text in about.items()]
        write_lines(beads / "issues.jsonl", *rows)
        queen("claim", "qb-1", as_="ui", cwd=tree)
        commit_file(tree, "a.py", "x = 1\n")
        return tree

    def mine(self, queen: Queen) -> list[str]:
        held = queen("issue", "assignments", "--json", as_="ui").json
        return sorted(each["issue_id"] for each in held)

    @pytest.mark.parametrize("patience", ["1s", None])
    def test_is_taken_once_the_landing_goes_on_by_itself(
        self, queen: Queen, repo: Path, work: Path, gate: Path, patience: str | None
    ) -> None:
        more = () if patience else ("--no-wait",)
        if patience:
            queen("config", "set", "land.patience", patience)
        done = queen("land", "--next", *more, "--check", slow(gate), as_="ui", cwd=work)
        assert (done.code, "you need not wait" in done.err) == (9, True)
        assert "qb-3 is yours" in done.out
        assert "queen land -m" in done.out  # Without the issue that is landing.
        assert self.mine(queen) == ["qb-1", "qb-3"]
        gate.touch()
        until(lambda: "has ended" in queen("status", as_="ui", cwd=work).err)
        assert self.mine(queen) == ["qb-3"]

    def test_comes_in_the_same_document(self, queen: Queen, work: Path, gate: Path) -> None:
        check = ("--check", slow(gate))
        done = queen("land", "--no-wait", "--next", "--json", *check, as_="ui", cwd=work)
        assert (done.code, done.json["landing"]) == (9, None)
        assert done.json["next"]["issue_id"] == "qb-3"
        gate.touch()

    def test_is_taken_by_queen_next_alone(self, queen: Queen, work: Path, gate: Path) -> None:
        queen("land", "--no-wait", "--check", slow(gate), as_="ui", cwd=work)
        taken = [queen("next", "--json", as_="ui", cwd=work).json for _ in range(2)]
        assert [(each["issue_id"], each["again"]) for each in taken] == [
            ("qb-3", False),
            ("qb-3", True),
        ]
        gate.touch()
        until(lambda: self.mine(queen) == ["qb-3"])

    def test_is_not_about_files_that_the_landing_one_names(
        self, queen: Queen, beads: Path, work: Path, gate: Path
    ) -> None:
        commit_file(work, "b.py", "x = 1\n")
        git(work, "rm", "-q", "a.py")
        git(work, "commit", "-qm", "moved")
        about = {"qb-1": "1 in b.py", "qb-2": "2 in b.py", "qb-3": "3"}
        rows = [{"id": key, "title": text, "status": "open"} for key, text in about.items()]
        write_lines(beads / "issues.jsonl", *rows)
        queen("land", "--no-wait", "--check", slow(gate), as_="ui", cwd=work)
        assert queen("next", "--json", as_="ui", cwd=work).json["issue_id"] == "qb-3"
        gate.touch()

    def test_is_the_landing_one_again_if_that_failed(
        self, queen: Queen, work: Path, gate: Path
    ) -> None:
        queen("land", "--no-wait", "--check", f"{slow(gate)}; false", as_="ui", cwd=work)
        gate.touch()
        until(lambda: "did not pass" in queen("status", as_="ui", cwd=work).err)
        assert queen("next", "--json", as_="ui", cwd=work).json["issue_id"] == "qb-1"

    def test_lands_after_the_one_on_which_it_stands(
        self, queen: Queen, repo: Path, work: Path, gate: Path
    ) -> None:
        queen("land", "--no-wait", "--next", "--check", slow(gate), as_="ui", cwd=work)
        (work / "b").write_text("x\n")
        second = queen.start("land", "--no-wait", "-m", "b", "--check", "true", cwd=work, as_="ui")
        assert second.stdout is not None
        assert "under way" in second.stdout.readline()
        gate.touch()
        out, err = second.communicate(timeout=60)
        assert (second.returncode, "it has ended: qb-1 was completed" in out) == (9, True), err
        until(lambda: has_landed(repo, "b") and self.mine(queen) == [])

    def test_keeps_its_worktree_when_the_landing_meets_a_conflict(
        self, queen: Queen, repo: Path, work: Path, gate: Path
    ) -> None:
        commit_file(work, "c", "ours\n")
        queen("land", "--no-wait", "--next", "--check", slow(gate), as_="ui", cwd=work)
        (work / "b").write_text("the next one\n")
        commit_file(repo, "c", "theirs\n")
        # The landing brings the main branch along: nobody is to merge it before.
        assert "your branch lacks" not in queen("next", as_="ui", cwd=work).out
        gate.touch()
        until(lambda: "conflict: c; nothing was landed, and your" in result(queen, work)[1])
        assert git(work, "status", "--porcelain").split() == ["??", "b"]
        again = queen("land", "qb-1", "--check", "true", as_="ui", cwd=work)
        assert "resolve them" in again.err
        assert (work / "c").read_text().startswith("<<<<<<<")

    def test_falls_with_the_one_on_which_it_stands(
        self, queen: Queen, repo: Path, work: Path, gate: Path
    ) -> None:
        failing = f"{slow(gate)}; echo no price; false"
        queen("land", "--no-wait", "--next", "--check", failing, as_="ui", cwd=work)
        commit_file(work, "b", "x\n")
        second = queen.start("land", "--check", "true", cwd=work, as_="ui")
        assert second.stdout is not None
        second.stdout.readline()
        gate.touch()
        _, err = second.communicate(timeout=60)
        assert second.returncode == 5
        assert "qb-1, which did not land: “no price”" in err
        assert "queen land qb-1 qb-3" in err
        refused = queen("land", "qb-3", "--check", "true", as_="ui", cwd=work)
        assert (refused.code, self.mine(queen)) == (5, ["qb-1", "qb-3"])
        assert "several issues" in queen("land", "--check", "true", as_="ui", cwd=work).err
        assert not has_landed(repo, "b")
        both = queen("land", "qb-1", "qb-3", "--check", "true", as_="ui", cwd=work)
        assert (both.code, self.mine(queen), has_landed(repo, "b")) == (0, [], True), both
