"""`queen config`: what it writes counts at once, and whoever set it already is named."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, git


def test_a_list_keeps_what_it_has_with_add(quick: QuickQueen, repo: Path, toml: Path) -> None:
    for name in ("CHANGELOG.md", "NEWS.md", "NEWS.md"):
        last = quick("config", "set", "--add", "land.union", name, "--json", cwd=repo).json
    assert (last["value"], last["changed"]) == (["CHANGELOG.md", "NEWS.md"], False)
    assert quick("config", "set", "--add", "ttl", "2h", cwd=repo).code == 2


def test_alone_it_lists_the_settings(quick: QuickQueen, repo: Path, toml: Path) -> None:
    assert quick("config", cwd=repo).out == quick("config", "list", cwd=repo).out
    assert quick("config", "--json", cwd=repo).json == quick("config", "list", "--json").json
    assert "Commands:" in quick("config", "--help", cwd=repo).out


def test_what_is_set_says_how_it_is_committed(quick: QuickQueen, repo: Path, toml: Path) -> None:
    git(repo, "add", ".beads/queen.toml")
    git(repo, "commit", "-qm", "settings")
    (repo / "own.txt").write_text("x\n")
    git(repo, "add", "own.txt")
    shown, said = quick("config", "set", "ttl", "2h", cwd=repo).out.splitlines()
    before, _, command = said.partition(": ")
    assert (shown, before) == ('ttl = "2h"', "other clones get it once it is committed")
    subprocess.run(command, shell=True, check=True, capture_output=True)
    assert git(repo, "status", "--porcelain", "--", ".beads/queen.toml") == ""
    assert git(repo, "diff", "--cached", "--name-only") == "own.txt\n"


def test_taking_back_what_was_committed_says_how_that_is_committed(
    quick: QuickQueen, repo: Path, toml: Path
) -> None:
    git(repo, "add", ".beads/queen.toml")
    git(repo, "commit", "-qm", "settings")
    quick("config", "set", "ttl", "2h", as_="ui")
    assert "committed" not in quick("undo", "--yes", as_="ui").out
    quick("config", "set", "ttl", "2h", as_="ui")
    git(repo, "commit", "-qam", "two hours")
    assert "committed" not in quick("undo", "--dry-run", as_="ui").out
    *_, said = quick("undo", "--yes", as_="ui").out.splitlines()
    before, _, command = said.partition(": ")
    assert before == "which is not as it is committed now"
    subprocess.run(command, shell=True, check=True, capture_output=True)
    assert git(repo, "status", "--porcelain", "--", ".beads/queen.toml") == ""
    assert quick("undo", "--json", as_="ui").json["to_commit"] == command


def test_a_commit_by_hand_has_the_form_that_is_set(
    quick: QuickQueen, repo: Path, toml: Path
) -> None:
    git(repo, "add", ".beads/queen.toml")
    git(repo, "commit", "-qm", "settings")
    said = quick("config", "set", "land.message", "chore({id}): {title}", cwd=repo).out
    assert "commit -m 'chore: settings' -- .beads/queen.toml" in said
    assert "chore: settings' -s" in quick("config", "set", "land.signoff", "true", cwd=repo).out


def test_what_is_set_already_says_so_and_by_whom(quick: QuickQueen, repo: Path, toml: Path) -> None:
    git(repo, "add", ".beads/queen.toml")
    git(repo, "commit", "-qm", "settings", "--author", "fern <fern@example.com>")
    before = toml.stat().st_mtime_ns
    commit = git(repo, "rev-parse", "HEAD")[:10]
    said = quick("config", "set", "ttl", "1h", cwd=repo).out
    assert said == f'ttl = "1h" already (fern in {commit})\n'
    assert toml.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("set", "ttl", "soon"), "a duration"),
        (("set", "gate_results", "-1"), "a number"),
        (("set", "close_on_complete", "yes"), "true or false"),
        (("set", "lnd.check", "x"), "did you mean 'land.check'"),
        (("set", "land.check"), "queen config set land.check VALUE"),
        (("set", "engine.kind", "postgres"), "queen hive engine use"),
    ],
)
def test_a_wrong_call_changes_nothing_and_names_the_way(
    quick: QuickQueen, repo: Path, toml: Path, words: tuple[str, ...], named: str
) -> None:
    before = toml.read_bytes()
    ran = quick("config", words[0], "--", *words[1:], cwd=repo)
    assert (ran.code, toml.read_bytes()) == (2, before)
    assert named in " ".join(ran.err.split())


class TestWhatLandingIsJudgedBy:
    """A setting of `land` counts once the main branch has it."""

    @pytest.fixture
    def tree(self, repo: Path, toml: Path, tmp_path: Path) -> Path:
        """A linked worktree of a repository that has a check in git."""
        toml.write_text("[land]\ncheck = 'exit 1'  # strict\n")
        git(repo, "add", ".beads/queen.toml")
        git(repo, "commit", "-qm", "settings")
        git(repo, "worktree", "add", "-q", str(tmp_path / "one"), "-b", "one")
        return tmp_path / "one"

    def test_in_a_worktree_it_changes_the_branch_and_counts_once_it_landed(
        self, queen: Queen, repo: Path, toml: Path, tree: Path
    ) -> None:
        before = toml.read_bytes()
        done = queen("config", "set", "land.check", "true", cwd=tree)
        assert done.out.splitlines() == [
            'land.check = "true"',
            "it counts once it has landed: queen land -m settings",
        ]
        assert toml.read_bytes() == before
        assert (tree / ".beads/queen.toml").read_text() == '[land]\ncheck = "true"  # strict\n'
        assert queen("land", "-m", "settings", as_="one", cwd=tree).code == 3
        git(repo, "config", "queenbee.check", "exit 0")
        assert queen("land", as_="one", cwd=tree).code == 0
        assert 'check = "true"' in toml.read_text()

    def test_nor_does_a_worktree_change_what_sets_up_those_of_others(
        self, quick: QuickQueen, toml: Path, tree: Path
    ) -> None:
        """Nobody has seen it, and so it would keep all of a team from beginning."""
        before = toml.read_bytes()
        done = quick("config", "set", "worktree.setup", "make deps", cwd=tree)
        assert (done.code, "once it has landed" in done.out) == (0, True), done
        assert toml.read_bytes() == before
        assert "make deps" in (tree / ".beads/queen.toml").read_text()

    def test_other_settings_change_in_the_main_worktree_as_before(
        self, quick: QuickQueen, toml: Path, tree: Path
    ) -> None:
        assert quick("config", "set", "ttl", "3h", cwd=tree).code == 0
        assert 'ttl = "3h"' in toml.read_text()

    def test_a_branch_without_the_file_is_refused_with_the_way(
        self, quick: QuickQueen, repo: Path, toml: Path, tree: Path
    ) -> None:
        git(tree, "rm", "-q", ".beads/queen.toml")
        before = toml.read_bytes()
        refused = quick("config", "set", "land.check", "true", cwd=tree)
        assert (refused.code, f"cd {repo}" in refused.err) == (2, True)
        assert toml.read_bytes() == before

    def test_in_the_main_worktree_it_counts_once_it_is_committed(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        said = quick("config", "set", "land.check", "exit 0", cwd=repo).out
        assert "it counts once it is committed: git -C " in said
        shown = quick("config", "get", "land.check", cwd=repo)
        assert shown.out == "exit 1\n"
        assert 'says "exit 0", which counts once the main branch has it' in shown.err
        subprocess.run(said.split(": ", 1)[1], shell=True, check=True, capture_output=True)
        shown = quick("config", "get", "land.check", cwd=repo)
        assert (shown.out, shown.err) == ("exit 0\n", "")

    def test_a_first_check_counts_at_once_and_says_so(
        self, quick: QuickQueen, repo: Path, toml: Path
    ) -> None:
        toml.write_text("ttl = '2h'\n")
        git(repo, "add", ".beads/queen.toml")
        git(repo, "commit", "-qm", "settings")
        said = quick("config", "set", "land.check", "true", cwd=repo).out
        assert "other clones get it once it is committed: git -C " in said
        assert "it counts" not in said
        assert quick("config", "get", "land.check", cwd=repo).out == "true\n"

    def test_the_list_says_which_file_says_something_else(
        self, quick: QuickQueen, tree: Path
    ) -> None:
        quick("config", "set", "land.check", "true", cwd=tree)
        rows = quick("config", "list", "--json", cwd=tree).json
        found = {each["name"]: each["elsewhere"] for each in rows if each["elsewhere"]}
        path = str(tree / ".beads" / "queen.toml")
        assert found == {"land.check": [{"path": path, "value": "true"}]}
        assert "not as in the file" in quick("config", "list", cwd=tree).out
