"""A landing is judged by the check of the commit under it, and by what the branch makes of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from extent import examples
from hives import Queen, QuickQueen, Ran, commit_file, git
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queenbee import Hive
from queenbee.core.command_lines import shell_line
from queenbee.git.landing import Rules, land
from queenbee.git.landing.judged.judging import whole_check
from queenbee.git.landing.refusals import TargetFails

SETTINGS = ".beads/queen.toml"


def check_of(command: str) -> str:
    return f"[land]\ncheck = '{command}'\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the checks of these tests write their names."""
    return tmp_path / "log"


def named(log: Path, name: str, status: int = 0) -> str:
    """Returns a check that writes its name."""
    return f"echo {name} >> {log}; exit {status}"


def begin(repo: Path, tmp_path: Path, name: str = "one") -> Path:
    """Returns a new linked worktree with a commit."""
    tree = tmp_path / name
    git(repo, "worktree", "add", "-q", str(tree), "-b", name)
    commit_file(tree, f"{name}.txt", "x\n")
    return tree


def landing(queen: QuickQueen | Queen, tree: Path, *more: str) -> Ran:
    return queen("land", *more, as_=tree.name, cwd=tree)


def test_no_edit_of_a_file_takes_the_check_of_main_away(
    queen: Queen, repo: Path, tmp_path: Path
) -> None:
    commit_file(repo, SETTINGS, check_of("false"))
    tree, other = (begin(repo, tmp_path, name) for name in ("one", "two"))
    before = git(repo, "rev-parse", "main")
    assert landing(queen, tree).code in (1, 3)  # Main itself may fail.
    for each in (repo, tree, other):
        (each / SETTINGS).write_text(check_of("true"))
    assert landing(queen, tree).code in (1, 3)
    (repo / SETTINGS).write_text("")
    assert landing(queen, tree).code in (1, 3)
    (repo / SETTINGS).unlink()
    assert landing(queen, tree).code in (1, 3)
    assert git(repo, "rev-parse", "main") == before


class TestABranchThatChangesTheCheck:
    def test_lands_if_both_pass_and_then_its_own_counts(
        self, quick: QuickQueen, repo: Path, tmp_path: Path, log: Path
    ) -> None:
        commit_file(repo, SETTINGS, check_of(named(log, "old")))
        tree = begin(repo, tmp_path)
        commit_file(tree, SETTINGS, check_of(named(log, "new")))
        assert landing(quick, tree).code == 0
        assert log.read_text() == "old\nnew\n"
        commit_file(tree, "more.txt", "x")
        assert landing(quick, tree).code == 0
        assert log.read_text() == "old\nnew\nnew\n"

    @pytest.mark.parametrize(("old", "new"), [(1, 0), (0, 1)])
    def test_lands_nothing_if_one_of_them_fails(
        self, quick: QuickQueen, repo: Path, tmp_path: Path, log: Path, old: int, new: int
    ) -> None:
        commit_file(repo, SETTINGS, check_of(named(log, "old", old)))
        tree = begin(repo, tmp_path)
        commit_file(tree, SETTINGS, check_of(named(log, "new", new)))
        assert landing(quick, tree).code in (1, 3)  # Main itself may fail.

    @pytest.mark.parametrize("text", ["", "ttl = '1h'\n", None])
    def test_to_none_lands_under_the_old_one(
        self, quick: QuickQueen, repo: Path, tmp_path: Path, log: Path, text: str | None
    ) -> None:
        commit_file(repo, ".beads/README.md", "Of the hive.\n")
        commit_file(repo, SETTINGS, check_of(named(log, "old", 1)))
        tree = begin(repo, tmp_path)
        if text is None:
            git(tree, "rm", "-q", SETTINGS)
            git(tree, "commit", "-q", "-m", "none")
        else:
            commit_file(tree, SETTINGS, text)
        assert landing(quick, tree).code in (1, 3)  # Main itself may fail.
        assert landing(quick, tree, "--unchecked").code == 2
        assert {*log.read_text().split()} == {"old"}

    def test_for_the_first_time_lands_under_that(
        self, quick: QuickQueen, repo: Path, tmp_path: Path, log: Path
    ) -> None:
        commit_file(repo, SETTINGS, "ttl = '1h'\n")
        tree = begin(repo, tmp_path)
        (tree / SETTINGS).write_text(check_of(named(log, "new")))
        refused = landing(quick, tree)
        assert (refused.code, "no check is set" in refused.err) == (2, True)
        assert landing(quick, tree, "-m", "A check").code == 0
        assert {*log.read_text().split()} == {"new"}


PARTS = (
    *("true", "false", "exit 0", ")", "(", "||", "&&", ";", "|", "\n", "#", "'", '"', "`", "$("),
    *("{", "}", "<<E", "E", "\\", "-c", "if", "fi", "then", "!", "exec", "case", "esac", "x()"),
)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(text=st.lists(st.sampled_from(PARTS), max_size=7).map(" ".join), is_first=st.booleans())
@example(text="true) || (true", is_first=False)
@example(text="true # ", is_first=True)
@example(text="exit 0", is_first=True)
@example(text="cat <<E", is_first=True)
def test_no_text_of_one_check_lets_another_pass_that_fails(text: str, is_first: bool) -> None:
    both = whole_check([text, "exit 1"] if is_first else ["exit 1", text])
    assert both is not None
    ran = subprocess.run(shell_line(both), stdin=subprocess.DEVNULL, capture_output=True)
    assert ran.returncode != 0


def test_an_agent_talks_no_check_of_main_into_passing(
    quick: QuickQueen, repo: Path, tmp_path: Path
) -> None:
    commit_file(repo, SETTINGS, check_of("test ! -e broken"))
    tree = begin(repo, tmp_path)
    commit_file(tree, "broken", "x\n")
    before = git(repo, "rev-parse", "main")
    for text in ("true) || (true", "true || true", "true; } || { true", "true' || 'true"):
        assert landing(quick, tree, "--check", text).code == 1
        assert git(repo, "rev-parse", "main") == before
    commit_file(tree, SETTINGS, check_of("true) || (true"))
    assert landing(quick, tree).code == 1
    assert git(repo, "rev-parse", "main") == before


def test_while_main_has_no_settings_the_files_of_its_worktree_count(
    quick: QuickQueen, repo: Path, beads: Path, tmp_path: Path, log: Path
) -> None:
    tree = begin(repo, tmp_path)
    (beads / "queen.toml").write_text(check_of(named(log, "file", 1)))
    assert landing(quick, tree).code in (1, 3)  # Main itself may fail.
    assert {*log.read_text().split()} == {"file"}


def test_a_first_check_in_the_main_worktree_counts_before_it_is_committed(
    quick: QuickQueen, repo: Path, beads: Path, tmp_path: Path, log: Path
) -> None:
    commit_file(repo, SETTINGS, "ttl = '1h'\n")
    tree = begin(repo, tmp_path)
    (beads / "queen.toml").write_text(check_of(named(log, "file", 1)))
    assert landing(quick, tree).code in (1, 3)  # Main itself may fail.
    assert {*log.read_text().split()} == {"file"}


def test_a_check_that_lands_while_one_waits_judges_it(
    repo: Path, beads: Path, tmp_path: Path
) -> None:
    commit_file(repo, SETTINGS, check_of("true"))
    tree = begin(repo, tmp_path)
    hive = Hive.open(tree, droid="one", env={})
    rules = Rules.of(hive)
    commit_file(repo, SETTINGS, check_of("exit 1"))
    with pytest.raises(TargetFails):
        land(hive, check=None, rules=rules, wait_s=10)


def test_how_conflicts_are_joined_is_not_taken_from_a_file_either(
    quick: QuickQueen, repo: Path, beads: Path, tmp_path: Path
) -> None:
    commit_file(repo, SETTINGS, "[land]\njoin = 'off'\n")
    one, two = (begin(repo, tmp_path, name) for name in ("one", "two"))
    for tree in (one, two):
        commit_file(tree, "CHANGELOG.md", f"- {tree.name}\n")
    (beads / "queen.toml").write_text("[land]\njoin = 'all'\n")
    assert landing(quick, one, "--check", "true").code == 0
    refused = landing(quick, two, "--check", "true")
    assert (refused.code, "conflict: CHANGELOG.md" in refused.err) == (5, True)


def test_whether_the_check_runs_again_is_not_taken_from_a_file_either(
    queen: Queen, repo: Path, tmp_path: Path, log: Path
) -> None:
    commit_file(repo, SETTINGS, check_of(named(log, "run")))
    tree = begin(repo, tmp_path)
    assert landing(queen, tree).code == 0
    (repo / SETTINGS).write_text(f"{check_of(named(log, 'run'))}recheck = false\n")
    git(tree, "commit", "-q", "--allow-empty", "-m", "says more")
    assert landing(queen, tree).code == 0
    assert log.read_text() == "run\nrun\n"


def test_the_check_of_this_machine_counts_in_place_of_all(
    quick: QuickQueen, repo: Path, tmp_path: Path, log: Path
) -> None:
    commit_file(repo, SETTINGS, check_of(named(log, "old", 1)))
    tree = begin(repo, tmp_path)
    commit_file(tree, SETTINGS, check_of(named(log, "new", 1)))
    git(repo, "config", "queenbee.check", named(log, "machine"))
    assert landing(quick, tree).code == 0
    assert {*log.read_text().split()} == {"machine"}


class TestAnotherHive:
    """It moves no branch and no worktree of a repository that has a hive of its own."""

    @pytest.fixture
    def other(self, repo: Path, quick: QuickQueen, tmp_path: Path) -> Path:
        quick("config", "set", "land.check", "false")
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "a hive")
        beads = tmp_path / "other" / ".beads"
        beads.mkdir(parents=True)
        return beads

    @pytest.mark.parametrize("how", ["option", "variable", "nested", "link"])
    def test_lands_nothing(
        self, repo: Path, queen: Queen, tmp_path: Path, other: Path, how: str
    ) -> None:
        tree, more = begin(repo, tmp_path), list[str]()
        env = {"QUEEN_ALLOW_OUTSIDE": "1"}
        if how == "option":
            more = ["--beads-dir", str(other)]
        elif how == "variable":
            env["BEADS_DIR"] = str(other)
        elif how == "nested":
            (repo / "sub" / ".beads").mkdir(parents=True)
            more = ["--beads-dir", str(repo / "sub" / ".beads")]
        else:
            (repo / ".beads").rename(repo / "moved")
            (repo / ".beads").symlink_to(other)
        before = git(repo, "rev-parse", "main")
        refused = queen(*more, "land", "--unchecked", as_="one", cwd=tree, env=env)
        assert (refused.code, "is not the hive of this repository" in refused.err) == (5, True)
        assert git(repo, "rev-parse", "main") == before

    def test_a_link_to_a_folder_of_the_repository_is_undone(
        self, quick: QuickQueen, repo: Path, other: Path
    ) -> None:
        (repo / ".beads").rename(repo / "hive")
        (repo / ".beads").symlink_to("hive")
        refused = quick("worktree", "add", "two")
        way = f"rm {repo}/.beads && mv {repo}/hive {repo}/.beads"
        assert (refused.code, way in refused.err) == (5, True)
        (repo / ".beads").unlink()
        (repo / "hive").rename(repo / ".beads")
        assert quick("worktree", "add", "two").code == 0

    def test_makes_removes_and_moves_no_worktree(
        self, repo: Path, queen: Queen, tmp_path: Path, other: Path
    ) -> None:
        tree, more = begin(repo, tmp_path), ("--beads-dir", str(other), "--as", "two")
        for command in (["add", "two"], ["remove", "one", "--force"]):
            refused = queen(*more, "worktree", *command, cwd=repo)
            assert (refused.code, "is not the hive" in refused.err) == (5, True), refused
        git(tree, "reset", "-q", "--hard", "main")
        commit_file(repo, "late.txt", "x\n")
        (other / "issues.jsonl").write_text('{"id": "x-1", "title": "x", "status": "open"}\n')
        assert queen(*more, "next", cwd=tree).code == 0
        assert not (tree / "late.txt").exists()

    def test_lands_what_has_no_hive_of_its_own(
        self, repo: Path, queen: Queen, tmp_path: Path
    ) -> None:
        git(repo, "rm", "-q", "-r", "--cached", "--ignore-unmatch", ".beads")
        (repo / ".beads").rename(tmp_path / ".beads")
        tree = begin(repo, tmp_path)
        more = ("--beads-dir", str(tmp_path / ".beads"))
        landed = queen(*more, "land", "--unchecked", as_="one", cwd=tree)
        assert landed.code == 0, landed
