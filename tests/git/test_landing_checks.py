"""Nothing lands unchecked by accident: a check is asked for, kept over a conflict, always run."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from hives import COMMAND, QuickQueen, Ran, commit_file, git, write_lines

from queenbee.store.settings import load


@pytest.fixture
def tree(repo: Path, tmp_path: Path) -> Path:
    """A linked worktree with a commit."""
    git(repo, "worktree", "add", "-q", str(tmp_path / "one"), "-b", "one")
    commit_file(tmp_path / "one", "new.txt", "one\n")
    return tmp_path / "one"


@pytest.fixture
def conflict(quick: QuickQueen, repo: Path, tree: Path) -> Path:
    """The same with an issue, and in conflict with main."""
    rows = [{"id": f"q-{n}", "title": f"t{n}", "status": "open"} for n in (1, 2)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    quick("claim", "q-1", as_="ui", cwd=tree)
    commit_file(repo, "new.txt", "main\n")
    return tree


def set_check(repo: Path, command: str) -> None:
    (repo / ".beads" / "queen.toml").write_text(f"[land]\ncheck = '{command}'\n")


def resolve(tree: Path) -> None:
    (tree / "new.txt").write_text("both\n")
    git(tree, "add", "new.txt")


def land(quick: QuickQueen, tree: Path, *more: str) -> Ran:
    return quick("land", *more, as_="ui", cwd=tree)


def test_without_a_check_it_refuses_and_names_what_the_files_say(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    commit_file(tree, "Makefile", "test:\n\ttrue\n")
    before = git(repo, "rev-parse", "main")
    refused = land(quick, tree)
    assert refused.code == 2
    assert "the files name make test" in refused.err
    assert "queen config set land.check 'make test'" in refused.err
    assert "queen land --unchecked" in refused.err
    assert git(repo, "rev-parse", "main") == before
    assert "unchecked" in land(quick, tree, "--unchecked").out


def test_the_check_that_is_set_always_runs_and_the_other_too(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    set_check(repo, f"echo set >> {log} # exit 0")
    assert land(quick, tree, "--check", f"echo given >> {log}").code == 0
    assert log.read_text() == "set\ngiven\n"


@pytest.mark.parametrize(("set_", "given"), [("exit 1", "true"), ("exit 0", "exit 1")])
def test_either_of_two_checks_stops_it(
    quick: QuickQueen, repo: Path, tree: Path, set_: str, given: str
) -> None:
    set_check(repo, set_)
    assert land(quick, tree, "--check", given).code in (1, 3)  # Main itself may fail.


def test_a_check_that_is_set_cannot_be_left_out(quick: QuickQueen, repo: Path, tree: Path) -> None:
    set_check(repo, "true")
    refused = land(quick, tree, "--unchecked")
    assert (refused.code, "queen config" in refused.err) == (2, False)


def test_a_conflict_keeps_what_was_asked(quick: QuickQueen, conflict: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    asked = ("--check", f"echo ran >> {log}", "--next", "--reason", "all in", "--wait", "7m")
    assert land(quick, conflict, *asked).code == 5
    resolve(conflict)
    done = land(quick, conflict, "--continue")
    assert done.code == 0
    assert "going on as asked before: --check" in done.out
    assert "--next" in done.out
    assert log.read_text() == "ran\n"
    assert "q-2 is yours" in done.out
    (record,) = quick("issue", "assignments", "--status", "completed", "--json").json
    assert record["reason"].startswith("all in")


def test_a_check_that_fails_then_is_still_asked_for(
    quick: QuickQueen, repo: Path, conflict: Path
) -> None:
    assert land(quick, conflict, "--check", "grep -q good new.txt").code == 5
    resolve(conflict)
    before = git(repo, "rev-parse", "main")
    assert [land(quick, conflict, "--continue").code for _ in range(2)] == [1, 1]
    assert git(repo, "rev-parse", "main") == before
    commit_file(conflict, "new.txt", "good\n")
    assert land(quick, conflict, "--continue").code == 0


AGENT = {"QUEEN_TEAM_LOG": "x"}


def test_what_an_agent_asked_is_not_a_persons_when_it_goes_on(
    asking: Path, quick: QuickQueen, repo: Path, conflict: Path
) -> None:
    assert quick("land", "--unchecked", as_="ui", cwd=conflict, env=AGENT).code == 5
    resolve(conflict)
    before = git(repo, "rev-parse", "main")
    refused = land(quick, conflict, "--continue", "--json")
    assert (refused.code, refused.error["code"]) == (5, "untrusted")
    assert "queen land --continue --check COMMAND" in refused.error["hint"]
    assert git(repo, "rev-parse", "main") == before
    assert quick("land", "--continue", as_="ui", cwd=conflict, env=AGENT).code == 0


@pytest.mark.parametrize("who", [{}, AGENT], ids=["a person", "an agent"])
def test_what_was_planted_runs_for_nobody_who_goes_on(
    asking: Path, quick: QuickQueen, conflict: Path, tmp_path: Path, who: dict[str, str]
) -> None:
    assert land(quick, conflict, "--check", "true").code == 5
    resolve(conflict)
    note = Path(git(conflict, "rev-parse", "--absolute-git-dir").strip()) / "queenbee-land"
    note.write_text(json.dumps({"check": f"touch {tmp_path}/ran"}))
    refused = quick("land", "--continue", "--json", as_="ui", cwd=conflict, env=who)
    assert (refused.code, refused.error["code"]) == (5, "untrusted")
    assert not (tmp_path / "ran").exists()


def test_what_a_person_asked_goes_on_without_a_question(
    asking: Path, quick: QuickQueen, conflict: Path, tmp_path: Path
) -> None:
    assert land(quick, conflict, "--check", f"touch {tmp_path}/ran").code == 5
    resolve(conflict)
    assert land(quick, conflict, "--continue").code == 0
    assert (tmp_path / "ran").exists()


def test_a_call_in_between_changes_nothing_of_it(quick: QuickQueen, conflict: Path) -> None:
    assert land(quick, conflict, "--check", "exit 1").code == 5
    assert land(quick, conflict, "--unchecked").code == 5
    resolve(conflict)
    assert land(quick, conflict, "--continue").code == 1


def test_what_is_asked_anew_counts(quick: QuickQueen, conflict: Path) -> None:
    assert land(quick, conflict, "--check", "exit 1").code == 5
    resolve(conflict)
    done = land(quick, conflict, "--continue", "--unchecked")
    assert (done.code, "unchecked" in done.out) == (0, True)


def test_going_on_without_any_check_is_refused_too(quick: QuickQueen, conflict: Path) -> None:
    assert land(quick, conflict, "--check", "true").code == 5
    (Path(git(conflict, "rev-parse", "--absolute-git-dir").strip()) / "queenbee-land").unlink()
    resolve(conflict)
    assert land(quick, conflict, "--continue").code == 2


def test_what_was_taken_back_or_landed_is_not_asked_again(
    quick: QuickQueen, repo: Path, conflict: Path
) -> None:
    assert land(quick, conflict, "--check", "exit 1", "--reason", "old").code == 5
    assert land(quick, conflict, "--abort").code == 0
    git(conflict, "merge", "-q", "-s", "ours", "main")
    assert land(quick, conflict, "--continue").code == 2
    assert land(quick, conflict, "--unchecked").code == 0
    commit_file(conflict, "more.txt", "x")
    assert land(quick, conflict, "--continue").code == 2


class TestProposing:
    def test_init_and_setup_print_the_command(self, quick: QuickQueen, tmp_path: Path) -> None:
        tree = tmp_path / "fresh"
        tree.mkdir()
        git(tree, "init", "-q")
        commit_file(tree, "Makefile", "test:\n\ttrue\n")
        way = "queen config set land.check 'make test'"
        assert way in quick("init", cwd=tree).out
        assert way in quick("setup", "claude", cwd=tree).err
        assert quick("config", "set", "land.check", "make test", cwd=tree).code == 0
        assert way not in quick("init", cwd=tree).out
        assert way not in quick("setup", "claude", cwd=tree).err

    @pytest.mark.parametrize(
        ("said", "check"),
        [
            ("\n", "make test"),
            ("./t.sh\n", "./t.sh"),
            ("-\n", ""),
            # The next lines of a text that was pasted.
            ("queen setup\nqueen issue new A\n./t.sh\n", "./t.sh"),
        ],
    )
    def test_at_a_terminal_it_is_asked_for_and_written(
        self, tmp_path: Path, said: str, check: str
    ) -> None:
        tree = tmp_path / "fresh"
        tree.mkdir()
        git(tree, "init", "-q")
        commit_file(tree, "Makefile", "test:\n\ttrue\n")
        ours, theirs = pty.openpty()
        os.write(ours, said.encode())
        done = subprocess.run([*COMMAND, "init"], cwd=tree, stdin=theirs, stdout=theirs,
                              stderr=theirs, timeout=60)  # fmt: skip
        os.close(theirs)
        os.close(ours)
        assert done.returncode == 0
        assert load(str(tree / ".beads"), {}).land_check == check
