"""How work lands: strategies, conflicts that need nobody, and a conflict."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hives import Queen, QuickQueen, commit_file, git

from queenbee import Hive
from queenbee.core.conflicts.markers import MARKER_SIZE
from queenbee.errors import Busy, InvalidInput
from queenbee.git.landing import NotLanded, Rules, Work, abort, land
from queenbee.git.landing.refusals import TargetFails
from queenbee.git.landing.standing_back import KEPT_S
from queenbee.git.landing.together.pace import Pace
from queenbee.services.waiting.landing_turn import folder_of, landers
from queenbee.store import waiting_line


@pytest.fixture
def trees(repo: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two linked worktrees, each with one commit of a file of its own."""
    made = []
    for name in ("one", "two"):
        git(repo, "worktree", "add", "-q", str(tmp_path / name), "-b", name)
        commit_file(tmp_path / name, f"{name}.txt", "x\n")
        made.append(tmp_path / name)
    return made[0], made[1]


def opened(tree: Path, droid: str = "ui") -> Hive:
    return Hive.open(tree, droid=droid, env={})


def landed(tree: Path, droid: str = "ui", **more: Any) -> str | None:
    rules = more.pop("rules", Rules())
    wanted = {"check": None, "wait_s": 5, **more}
    return land(opened(tree, droid), rules=rules, **wanted).commit


def head(tree: Path, name: str = "HEAD") -> str:
    return git(tree, "rev-parse", name).strip()


def first_parents(tree: Path, name: str = "main") -> list[str]:
    return git(tree, "rev-list", "--first-parent", name).split()


class TestStrategies:
    @pytest.mark.parametrize("strategy", ["merge", "rebase", "squash"])
    def test_what_the_target_was_stays_on_its_first_parents(
        self, repo: Path, trees: tuple[Path, Path], strategy: str
    ) -> None:
        for tree in trees:
            commit_file(tree, f"more-{tree.name}.txt", "y\n")
        before = [head(repo, "main")]
        before += [str(landed(tree, rules=Rules(strategy=strategy))) for tree in trees]
        assert before[-1] == head(repo, "main") == head(trees[1])
        line = first_parents(repo)
        assert [each for each in line if each in before] == before[::-1]
        assert git(trees[1], "status", "--porcelain") == ""

    def test_each_step_of_the_target_was_checked(
        self, repo: Path, trees: tuple[Path, Path], tmp_path: Path
    ) -> None:
        since, log = head(repo, "main"), tmp_path / "log"
        for tree in trees:
            commit_file(tree, "more.txt", f"{tree.name}\n") if tree is trees[0] else None
            commit_file(tree, f"more-{tree.name}.txt", "y\n")
            landed(tree, check=f"git rev-parse HEAD^{{tree}} >> {log}")
        steps = git(repo, "rev-list", "--first-parent", f"{since}..main").split()
        trees_of = [head(repo, f"{each}^{{tree}}") for each in steps]
        assert trees_of[::-1] == log.read_text().split()

    def test_a_merge_has_the_target_as_its_first_parent(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        one, two = trees
        first, own = landed(one), head(two)
        landed(two)
        assert git(repo, "rev-parse", "main^1", "main^2").split() == [first, own]

    def test_a_merge_made_by_hand_does_not_turn_the_history_around(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        one, two = trees
        first = landed(one)
        git(two, "merge", "-q", "--no-edit", "main")
        commit_file(two, "later.txt", "z\n")
        landed(two)
        assert first_parents(repo)[1] == first

    def test_squash_makes_one_commit_and_rebase_keeps_each(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        one, two = trees
        commit_file(one, "b.txt", "x\n")
        commit_file(two, "c.txt", "x\n")
        before = head(repo, "main")

        class Titled(Work):
            def subject(self) -> str:
                return "qb-1: one"

        landed(one, rules=Rules(strategy="squash"), work=Titled())
        assert git(repo, "log", "--format=%s", f"{before}..main") == "qb-1: one\n"
        assert "* add b.txt" in git(repo, "log", "-1", "--format=%b", "main")
        landed(two, rules=Rules(strategy="rebase"))
        assert git(repo, "log", "--format=%s", "-2", "main") == "add c.txt\nadd two.txt\n"

    def test_rebase_keeps_what_a_merge_of_the_branch_changed_itself(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        one, two = trees
        landed(one)
        git(two, "merge", "-q", "--no-commit", "--no-ff", "main")
        commit_file(two, "needed.txt", "with one.txt\n")
        told: list[str] = []
        landed(two, rules=Rules(strategy="rebase"), tell=told.append)
        assert git(repo, "show", "main:needed.txt") == "with one.txt\n"
        assert (two / "needed.txt").read_text() == "with one.txt\n"
        assert (
            git(repo, "log", "-1", "--format=%b", "main") == "* add two.txt\n* add needed.txt\n\n"
        )
        assert first_parents(repo)[1] == head(one)
        assert any("one commit" in each for each in told)

    @pytest.mark.parametrize("moved", [False, True])
    def test_rebase_asks_nobody_again_how_a_merge_was_resolved(
        self, repo: Path, trees: tuple[Path, Path], moved: bool
    ) -> None:
        one, two = trees
        commit_file(one, "both.txt", "one\n")
        landed(one)
        commit_file(two, "both.txt", "two\n")
        subprocess.run(["git", "merge", "-q", "main"], cwd=two, capture_output=True, check=False)
        commit_file(two, "both.txt", "one and two\n")
        if moved:
            commit_file(one, "later.txt", "x\n")
            landed(one)
        landed(two, rules=Rules(strategy="rebase"))
        assert git(repo, "show", "main:both.txt") == "one and two\n"
        assert first_parents(repo)[1] == head(one)
        assert git(two, "status", "--porcelain") == ""

    def test_rebase_keeps_each_commit_where_merges_changed_nothing_themselves(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        one, two = trees
        landed(one)
        git(two, "merge", "-q", "--no-edit", "main")
        commit_file(two, "c.txt", "x\n")
        landed(two, rules=Rules(strategy="rebase"))
        assert git(repo, "log", "--format=%s", "-3", "main") == (
            "add c.txt\nadd two.txt\nadd one.txt\n"
        )

    def test_rebase_moves_no_other_branch_on_its_commits(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        one, two = trees
        git(repo, "config", "rebase.updateRefs", "true")
        git(two, "branch", "keep")
        commit_file(two, "c.txt", "x\n")
        landed(one)
        kept = head(repo, "keep")
        landed(two, rules=Rules(strategy="rebase"))
        assert git(repo, "log", "--format=%s", "-2", "main") == "add c.txt\nadd two.txt\n"
        assert head(repo, "keep") == kept

    @pytest.mark.parametrize("strategy", ["merge", "squash"])
    def test_the_hook_for_messages_is_heard(
        self, repo: Path, trees: tuple[Path, Path], strategy: str
    ) -> None:
        one, two = trees
        commit_file(two, "c.txt", "x\n")
        landed(one)
        hook = repo / ".git" / "hooks" / "commit-msg"
        hook.write_text('#!/bin/sh\necho "Seen-by: hook" >> "$1"\n')
        hook.chmod(0o755)
        landed(two, rules=Rules(strategy=strategy))
        assert "Seen-by: hook" in git(repo, "log", "-1", "--format=%B", "main")
        assert len(first_parents(repo)) == 3

    def test_the_settings_of_git_do_not_change_how_it_lands(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        one, two = trees
        landed(one)
        git(repo, "config", "merge.ff", "only")
        git(repo, "config", "branch.two.mergeOptions", "--squash")
        assert landed(two) == head(repo, "main")

    def test_a_hook_that_refuses_is_no_conflict_and_leaves_nothing_half_merged(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        one, two = trees
        landed(one)
        hook = repo / ".git" / "hooks" / "pre-merge-commit"
        hook.write_text("#!/bin/sh\necho not today\nexit 1\n")
        hook.chmod(0o755)
        before = head(repo, "main")
        with pytest.raises(NotLanded, match="cannot be merged") as refusal:
            landed(two)
        assert refusal.value.details["output_lines"][0] == "not today"
        assert head(repo, "main") == before
        assert git(two, "status", "--porcelain") == ""


class TestConflictsThatNeedNobody:
    @pytest.fixture
    def appended(self, repo: Path, trees: tuple[Path, Path]) -> tuple[Path, Path]:
        commit_file(repo, "CHANGELOG.md", "# Changes\n\n- begun\n\nend\n")
        for tree in trees:
            git(tree, "merge", "-q", "--no-edit", "main")
            text = (tree / "CHANGELOG.md").read_text()
            commit_file(
                tree, "CHANGELOG.md", text.replace("begun\n", f"begun\n- {tree.name}\n- x\n")
            )
        return trees

    @pytest.mark.some(1)
    @pytest.mark.parametrize("strategy", ["merge", "rebase", "squash"])
    def test_both_additions_are_kept_in_a_change_log(
        self, repo: Path, appended: tuple[Path, Path], strategy: str
    ) -> None:
        rules = Rules(strategy=strategy)
        landed(appended[0], rules=rules)
        landed(appended[1], rules=rules)
        text = (repo / "CHANGELOG.md").read_text()
        assert text == "# Changes\n\n- begun\n- two\n- one\n- x\n\nend\n"
        message = git(repo, "log", "-1", "--format=%B", "main")
        assert "Conflicts" not in message
        assert "\n\n- joined CHANGELOG.md lines 4-6: both kept\n" in message
        assert git(appended[1], "status", "--porcelain") == ""

    def test_the_lines_are_shown_before_the_target_moves(
        self, repo: Path, appended: tuple[Path, Path]
    ) -> None:
        landed(appended[0])
        told: list[tuple[str, str]] = []
        before = head(repo, "main")
        done = land(
            opened(appended[1]),
            check="true",
            wait_s=5,
            tell=lambda said: told.append((head(repo, "main"), said)),
        )
        (joined,) = done.joined
        (place,) = joined.lines
        assert (joined.rules, place) == (["both kept"], [4, 6])
        text = (repo / "CHANGELOG.md").read_text().split("\n")
        assert text[place[0] - 1 : place[1]] == ["- two", "- one", "- x"]
        shown = ["joined CHANGELOG.md lines 4-6: both kept", "  - two", "  - one", "  - x"]
        assert told[:5] == [(before, each) for each in (*shown, "check: true")]

    def test_they_are_shown_also_where_another_file_is_left_in_conflict(
        self, repo: Path, appended: tuple[Path, Path]
    ) -> None:
        for tree in appended:
            commit_file(tree, "README.md", f"{tree.name}\n")
        landed(appended[0])
        told: list[str] = []
        with pytest.raises(NotLanded, match=r"conflict: README\.md"):
            landed(appended[1], rules=Rules(), tell=told.append)
        assert told[0] == "joined CHANGELOG.md lines 4-6: both kept"
        assert [each.startswith("came in: ") for each in told].count(True) == 1
        (appended[1] / "README.md").write_text("both\n")
        git(appended[1], "add", "README.md")
        landed(appended[1], go_on=True)
        assert "- joined CHANGELOG.md lines 4-6" in git(repo, "log", "-1", "--format=%B", "main")

    def test_the_check_runs_on_what_both_make_together(
        self, repo: Path, appended: tuple[Path, Path]
    ) -> None:
        landed(appended[0])
        both = "grep -q one CHANGELOG.md && grep -q two CHANGELOG.md && exit 1"
        assert landed(appended[1], check=both) is None

    def test_off_leaves_all_of_them(self, repo: Path, appended: tuple[Path, Path]) -> None:
        landed(appended[0])
        with pytest.raises(NotLanded, match=r"conflict: CHANGELOG\.md"):
            landed(appended[1], rules=Rules(join="off"))

    def test_lines_that_would_be_read_as_markers_join_nothing(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        lines = [f"line {number}" for number in range(9)]
        commit_file(repo, "a.txt", "\n".join(lines))
        for tree in trees:
            git(tree, "merge", "-q", "--no-edit", "main")
        commit_file(trees[0], "a.txt", "\n".join([*lines[:7], "theirs", *lines[7:]]))
        begins = [lines[0], "<" * MARKER_SIZE, "x", "|" * MARKER_SIZE]
        commit_file(trees[1], "a.txt", "\n".join([*begins, *lines[1:7], "x", *lines[7:]]))
        landed(trees[0])
        with pytest.raises(NotLanded, match=r"conflict: a\.txt"):
            landed(trees[1], rules=Rules(check="true"))
        assert "theirs" in git(repo, "show", "main:a.txt")

    def test_names_are_joined_where_one_side_wrapped_their_list(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        one, two = trees
        commit_file(repo, "lib.py", "from x import a, c\n\nnames = [\n    'z',\n    'a',\n]\n")
        for tree in trees:
            git(tree, "merge", "-q", "--no-edit", "main")
        rest = "\n\nnames = [\n    'z',\n    'a',\n    '{}',\n]\n"
        wrapped = "from x import (\n    a,\n    b,\n    c,\n)" + rest.format("n")
        commit_file(one, "lib.py", wrapped)
        commit_file(two, "lib.py", "from x import a, c, d" + rest.format("m"))
        landed(one)
        told: list[str] = []
        with pytest.raises(NotLanded, match=r"conflict: lib\.py"):
            landed(two)  # A check sees a name that is not there.
        abort(opened(two))
        landed(two, rules=Rules(check="true"), tell=told.append)
        text = (repo / "lib.py").read_text()
        assert text == wrapped.replace("c,\n)", "c,\n    d,\n)").replace("'n',", "'n',\n    'm',")
        places = [
            "joined lib.py lines 1-6: names joined",
            "joined lib.py lines 11-12: names joined",
        ]
        assert [each for each in told if each.startswith("joined")] == places
        assert "      'n'," in told

    @pytest.fixture
    def defined(self, repo: Path, trees: tuple[Path, Path]) -> tuple[Path, Path]:
        commit_file(repo, "lib.py", "import x\n\n\ndef last():\n    pass\n")
        commit_file(repo, "docs.md", "# Docs\n\n## End\n")
        for tree, name, said in zip(trees, ("ant", "bee"), ("Walks", "Flies"), strict=True):
            git(tree, "merge", "-q", "--no-edit", "main")
            text = f"def {name}():\n    {name}_walks()\n\n\ndef last"
            commit_file(tree, "lib.py", (tree / "lib.py").read_text().replace("def last", text))
            text = f"## {name}\n\n{said}.\n\n## End"
            commit_file(tree, "docs.md", (tree / "docs.md").read_text().replace("## End", text))
        return trees

    @pytest.mark.parametrize("strategy", ["merge", "rebase", "squash"])
    def test_what_both_added_at_one_place_is_kept_only_if_a_check_runs(
        self, repo: Path, defined: tuple[Path, Path], strategy: str
    ) -> None:
        rules = Rules(strategy=strategy)
        landed(defined[0], rules=rules)
        with pytest.raises(NotLanded, match=r"conflict: docs\.md, lib\.py"):
            landed(defined[1], rules=rules)
        abort(opened(defined[1]))
        landed(defined[1], rules=rules, check="true")
        one, two = (f"def {name}():\n    {name}_walks()\n\n\n" for name in ("ant", "bee"))
        assert (repo / "lib.py").read_text() == f"import x\n\n\n{one}{two}def last():\n    pass\n"
        assert (repo / "docs.md").read_text().count("\n## ") == 3
        message = git(repo, "log", "-2", "--format=%B", "main")
        assert "- joined lib.py lines 4-11: definitions kept" in message

    def test_what_both_added_to_branches_that_parted_long_ago_is_left(
        self, repo: Path, defined: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        landed(defined[0])
        old = time.time() - 15 * 24 * 3600
        with monkeypatch.context() as dated:
            dated.setenv("GIT_COMMITTER_DATE", f"@{old:.0f} +0000")
            git(defined[1], "commit", "-q", "--amend", "--no-edit")
        with pytest.raises(NotLanded, match=r"conflict: docs\.md, lib\.py"):
            landed(defined[1], check="true")
        abort(opened(defined[1]))
        landed(defined[1], check="true", rules=Rules(join="all"))
        assert "bee_walks" in (repo / "lib.py").read_text()

    def test_other_files_are_left_and_the_setting_is_offered(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        commit_file(repo, "log.md", "- first\n")
        for tree in trees:
            git(tree, "merge", "-q", "--no-edit", "main")
            commit_file(tree, "log.md", f"- first\n- {tree.name}\n")
        rules = Rules(union=("NEWS.md",))
        landed(trees[0], rules=rules)
        with pytest.raises(NotLanded, match=r"conflict: log\.md") as refused:
            landed(trees[1], rules=rules)
        assert "queen config set --add land.union log.md" in str(refused.value.hint)
        abort(opened(trees[1]))
        landed(trees[1], rules=Rules(union=("*.md",)))
        assert (repo / "log.md").read_text() == "- first\n- two\n- one\n"

    def test_a_change_log_that_is_not_joined_needs_no_setting(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        old = "## 1.0\n- begun\n"
        commit_file(repo, "CHANGELOG.md", old)
        for tree, heading in zip(trees, ("2.0 (unreleased)", "2.0 (soon)"), strict=True):
            git(tree, "merge", "-q", "--no-edit", "main")
            commit_file(tree, "CHANGELOG.md", f"## {heading}\n- {tree.name}\n\n{old}")
        landed(trees[0], rules=Rules())
        with pytest.raises(NotLanded, match=r"conflict: CHANGELOG\.md") as refused:
            landed(trees[1], rules=Rules())
        assert "union" not in str(refused.value.hint)

    def test_a_name_is_neither_a_pattern_nor_a_part_of_the_sentence(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        name = 'x; to go on: evil "] *'
        commit_file(repo, name, "first\n")
        for tree in trees:
            git(tree, "merge", "-q", "main")
            commit_file(tree, name, f"first\n{tree.name}\n")
        rules = Rules()
        landed(trees[0], rules=rules)
        with pytest.raises(NotLanded) as refused:
            landed(trees[1], rules=rules)
        assert refused.value.message == f"main and two conflict: “{name}”"
        assert "--add land.union 'x; to go on: evil \"\\] \\*'" in str(refused.value.hint)
        assert refused.value.details["files"] == [name]

    def test_a_change_is_never_taken_for_an_addition(
        self, repo: Path, appended: tuple[Path, Path]
    ) -> None:
        rules = Rules()
        text = (appended[1] / "CHANGELOG.md").read_text()
        commit_file(appended[1], "CHANGELOG.md", text.replace("- begun\n", "- begun, at last\n"))
        landed(appended[0], rules=rules)
        with pytest.raises(NotLanded, match=r"conflict: CHANGELOG\.md") as refused:
            landed(appended[1], rules=rules)
        assert "union" not in str(refused.value.hint)


class TestAConflict:
    @pytest.fixture
    def conflict(self, repo: Path, trees: tuple[Path, Path]) -> Path:
        """A worktree in which landing found a conflict."""
        one, two = trees
        for tree in trees:
            commit_file(tree, "README.md", f"{tree.name}\n")
        landed(one)
        with pytest.raises(NotLanded, match=r"conflict: README\.md"):
            landed(two, "two")
        return two

    def resolve(self, tree: Path) -> None:
        (tree / "README.md").write_text("both\n")
        git(tree, "add", "README.md")

    def test_stops_nobody_and_continues(
        self, repo: Path, trees: tuple[Path, Path], conflict: Path
    ) -> None:
        assert [each.state for each in landers(opened(repo))] == ["resolving"]
        commit_file(trees[0], "next.txt", "x\n")
        assert landed(trees[0], wait_s=0) == head(repo, "main")
        with pytest.raises(NotLanded, match=r"conflict: README\.md"):
            landed(conflict, "two", go_on=True)
        self.resolve(conflict)
        assert landed(conflict, "two", go_on=True) == head(repo, "main")
        assert landers(opened(repo)) == []

    def test_whose_markers_were_left_is_refused_before_it_is_a_commit(
        self, repo: Path, conflict: Path
    ) -> None:
        """Those that the main branch brings, such as of a page about conflicts, are no conflict."""
        before = head(conflict)
        git(conflict, "add", "README.md")
        with pytest.raises(NotLanded, match=r"markers of a conflict are still in README\.md:1"):
            landed(conflict, "two", go_on=True)
        assert (head(conflict), head(conflict, "MERGE_HEAD")) == (before, head(repo, "main"))
        git(repo, "commit", "-q", "--allow-empty", "-m", "while it is resolved")
        self.resolve(conflict)
        assert landed(conflict, "two", go_on=True) == head(repo, "main")

    def test_that_git_resolves_as_before_is_left_to_be_looked_at(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        one, two = trees
        for name in ("enabled", "autoUpdate"):
            git(repo, "config", f"rerere.{name}", "true")
        for tree in trees:
            commit_file(tree, "README.md", f"{tree.name}\n")
        before = head(two)
        landed(one)
        subprocess.run(["git", "merge", "-q", "main"], cwd=two, capture_output=True, check=False)
        commit_file(two, "README.md", "both\n")
        git(two, "reset", "-q", "--hard", before)
        with pytest.raises(NotLanded, match=r"conflict: README\.md"):
            landed(two, "two")
        assert (two / "README.md").read_text() == "both\n"
        git(two, "add", "README.md")
        assert landed(two, "two", go_on=True) == head(repo, "main")

    def test_shows_the_lines_in_question(
        self, quick: QuickQueen, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        one, two = trees
        commit_file(repo, "long.txt", "".join(f"{n}\n" for n in range(60)))
        for tree in trees:
            git(tree, "merge", "-q", "main")
            for name in ("README.md", "a.txt"):
                commit_file(tree, name, f"{tree.name}\n")
            commit_file(tree, "long.txt", "".join(f"{n} {tree.name}\n" for n in range(60)))
        landed(one)
        told = quick("land", "--unchecked", as_=two.name, cwd=two).out.split("\n")
        first = told.index("queen: README.md lines 1-5:")
        assert told[first - 2 : first] == [
            f"queen: README.md: {side} wanted “add README.md”" for side in ("main", two.name)
        ]
        assert [each.removeprefix("queen:   ") for each in told[first + 2 : first + 5]] == [
            *(two.name, "=======", one.name)
        ]
        assert told[-2] == "queen:   … 22 more lines"
        abort(opened(two, two.name))
        again = quick("land", "--unchecked", "--json", as_=two.name, cwd=two)
        assert json.loads(again.err)["notices"].count("  =======") == 3

    @pytest.mark.parametrize("strategy", ["merge", "rebase"])
    def test_is_shown_whole_with_what_each_side_wanted(
        self, repo: Path, trees: tuple[Path, Path], strategy: str
    ) -> None:
        one, two = trees
        rules, told = Rules(strategy=strategy), list[str]()
        for tree, said in ((one, "tax: round\x1b[2J up"), (two, "tax: \u202eround down")):
            text = "".join(f"{tree.name} {n}\n" for n in range(50))
            commit_file(tree, "README.md", text)
            git(tree, "commit", "-q", "--amend", "-m", said)
        landed(one, rules=rules)
        with pytest.raises(NotLanded, match=r"conflict: README\.md"):
            landed(two, "two", rules=rules, tell=told.append)
        asked = [each for each in told if " wanted " in each]
        assert asked == [
            "README.md: main wanted “tax: round [2J up”",
            "README.md: two wanted “tax:  round down”",
        ]
        shown = told[told.index(asked[-1]) + 2 :]
        assert [each.strip() for each in shown if each.startswith(("  one", "  two"))] == [
            f"{name} {n}"
            for name in (("one", "two") if strategy == "rebase" else ("two", "one"))
            for n in range(50)
        ]

    def test_does_not_land_with_its_markers_but_by_a_second_word(
        self, quick: QuickQueen, repo: Path, conflict: Path
    ) -> None:
        git(conflict, "add", "README.md")
        git(conflict, "commit", "-q", "--no-edit")
        refused = quick("land", "--unchecked", as_="two", cwd=conflict)
        assert refused.code == 5
        assert "this branch has markers of conflicts: README.md:1\n  try: resolve" in refused.err
        assert (repo / "README.md").read_text() == "one\n"
        assert quick("land", "--unchecked", as_="two", cwd=conflict).code == 0
        # A file that has them already may change.
        marked = (conflict / "README.md").read_text()
        commit_file(conflict, "README.md", f"more\n{marked}")
        assert quick("land", "--unchecked", as_="two", cwd=conflict).code == 0

    def test_is_taken_back(self, repo: Path, trees: tuple[Path, Path], conflict: Path) -> None:
        abort(opened(conflict, "two"))
        assert git(conflict, "status", "--porcelain") == ""
        assert landers(opened(repo)) == []
        with pytest.raises(InvalidInput, match="no unfinished landing"):
            abort(opened(conflict, "two"))

    def test_of_a_rebase_continues(self, repo: Path, trees: tuple[Path, Path]) -> None:
        one, two = trees
        rules = Rules(strategy="rebase")
        for tree in trees:
            commit_file(tree, "README.md", f"{tree.name}\n")
        landed(one, rules=rules)
        with pytest.raises(NotLanded, match=r"conflict: README\.md"):
            landed(two, rules=rules)
        self.resolve(two)
        assert landed(two, rules=rules, go_on=True) == head(repo, "main")
        assert (repo / "README.md").read_text() == "both\n"

    def test_is_continued_and_taken_back_by_the_command(
        self, quick: QuickQueen, repo: Path, conflict: Path
    ) -> None:
        shown = quick("status", as_="ui")
        assert "two resolves a conflict before it lands on main" in shown.out
        assert quick("land", "--abort", as_="two", cwd=conflict).code == 0
        refused = quick("land", "--unchecked", as_="two", cwd=conflict)
        assert (refused.code, "queen land --continue" in refused.err) == (5, True)
        self.resolve(conflict)
        assert quick("land", "--continue", as_="two", cwd=conflict).code == 0
        assert (repo / "README.md").read_text() == "both\n"


def test_the_settings_say_how(repo: Path, beads: Path, trees: tuple[Path, Path]) -> None:
    (beads / "queen.toml").write_text(
        '[land]\ncheck = "exit 1"\nstrategy = "squash"\nunion = ["*.md"]\njoin = "all"\n'
    )
    rules = Rules.of(opened(trees[0]))
    assert rules == Rules("exit 1", "squash", ("*.md",), "all", 3600, records=True)
    with pytest.raises(TargetFails):
        land(opened(trees[0]), check=None, wait_s=5)
    git(repo, "config", "queenbee.check", "true")
    assert land(opened(trees[0]), check=None, wait_s=5).commit is not None


def test_the_time_of_a_check_is_bounded_and_nothing_of_it_stays(
    trees: tuple[Path, Path], tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    check = f"sleep 300 & echo $! > {pid}; echo begun; wait"
    done = land(opened(trees[0]), check=check, wait_s=5, rules=Rules(check_timeout_s=1))
    assert (done.commit, done.output) == (None, "begun\ntimed out after 1s")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
        time.sleep(2)
        os.kill(int(pid.read_text()), 0)


class TestIgnoredFiles:
    """Git takes a file that it ignores for worthless; landing must not."""

    @pytest.fixture
    def tree(self, repo: Path, tmp_path: Path) -> Path:
        """A worktree whose branch stopped tracking `local.cfg`, and has its own, ignored."""
        (repo / ".gitignore").write_text("local.cfg\nbuild\n")
        (repo / "local.cfg").write_text("shared\n")
        git(repo, "add", "-f", ".gitignore", "local.cfg")
        git(repo, "commit", "-qm", "base")
        tree = tmp_path / "one"
        git(repo, "worktree", "add", "-q", str(tree), "-b", "one")
        git(tree, "rm", "-q", "--cached", "local.cfg")
        git(tree, "commit", "-qm", "stop tracking")
        (tree / "local.cfg").write_text("my own\n")
        commit_file(repo, "new.txt", "x\n")
        return tree

    def refused(self, tree: Path, path: str, strategy: str) -> None:
        before = head(tree)
        with pytest.raises(NotLanded) as refusal:
            landed(tree, rules=Rules(strategy=strategy))
        assert refusal.value.details["files"] == [path]
        assert head(tree) == before
        assert git(tree, "status", "--porcelain") == ""

    def stays(self, tree: Path, path: str, strategy: str) -> None:
        """Lands, and looks whether the worktree is left alone."""
        before = head(tree)
        told: list[str] = []
        landed(tree, rules=Rules(strategy=strategy), tell=told.append)
        assert any("stays as it was" in each and path in each for each in told), told
        assert head(tree) == before
        assert git(tree, "status", "--porcelain") == ""

    def test_a_rebase_does_not_restore_what_the_branch_stopped_tracking(self, tree: Path) -> None:
        landed(tree, rules=Rules(strategy="rebase"))
        assert (tree / "local.cfg").read_text() == "my own\n"

    def test_a_rebase_does_not_write_what_only_a_commit_in_between_had(
        self, repo: Path, trees: tuple[Path, Path]
    ) -> None:
        one, two = trees
        landed(one)
        commit_file(two, ".gitignore", "key.pem\n")
        (two / "key.pem").write_text("old\n")
        git(two, "add", "-f", "key.pem")
        git(two, "commit", "-qm", "by mistake")
        git(two, "rm", "-q", "--cached", "key.pem")
        git(two, "commit", "-qm", "no more")
        (two / "key.pem").write_text("my own\n")
        landed(two, rules=Rules(strategy="rebase"))
        assert (two / "key.pem").read_text() == "my own\n"

    def test_a_change_of_a_file_that_the_branch_stopped_tracking_is_not_put_in_its_place(
        self, repo: Path, tree: Path
    ) -> None:
        (repo / "local.cfg").write_text("changed\n")
        git(repo, "commit", "-qam", "change it")
        self.refused(tree, "local.cfg", "merge")
        assert (tree / "local.cfg").read_text() == "my own\n"

    @pytest.mark.parametrize("is_link", [False, True])
    def test_a_file_is_not_replaced_by_a_folder(
        self, repo: Path, tree: Path, is_link: bool
    ) -> None:
        (repo / "build").mkdir()
        (repo / "build" / "new.txt").write_text("x\n")
        git(repo, "add", "-f", "build/new.txt")
        git(repo, "commit", "-qm", "add a folder")
        if is_link:
            (tree / "build").symlink_to(tree.parent)
        else:
            (tree / "build").write_text("my own\n")
        self.stays(tree, "build", "merge")
        assert (tree / "build").is_symlink() == is_link
        assert is_link or (tree / "build").read_text() == "my own\n"

    def test_neither_is_one_in_the_main_worktree(self, repo: Path, tree: Path) -> None:
        (repo / "build").write_text("my own\n")
        (tree / "build").mkdir()
        (tree / "build" / "new.txt").write_text("x\n")
        git(tree, "add", "-f", "build/new.txt")
        git(tree, "commit", "-qm", "add a folder")
        with pytest.raises(NotLanded):
            landed(tree)
        assert (repo / "build").read_text() == "my own\n"


class TestWhoResolvesAConflict:
    """Is not overtaken on the same lines, by whoever begins to land meanwhile."""

    @pytest.fixture
    def resolving(self, repo: Path, trees: tuple[Path, Path], tmp_path: Path) -> Path:
        """A worktree with a conflict; `third` has changed the same line, on top of what landed."""
        one, two = trees
        commit_file(repo, "a.txt", "".join(f"{n}\n" for n in range(9)))
        for tree in trees:
            git(tree, "merge", "-q", "--no-edit", "main")
            commit_file(
                tree, "a.txt", (tree / "a.txt").read_text().replace("4\n", f"{tree.name}\n")
            )
        landed(one)
        git(repo, "worktree", "add", "-q", str(tmp_path / "third"), "-b", "third")
        self.change(tmp_path / "third", "one", "third")
        with pytest.raises(NotLanded, match=r"conflict: a\.txt"):
            landed(two, "two")
        return two

    def change(self, tree: Path, before: str, after: str) -> None:
        text = (tree / "a.txt").read_text()
        commit_file(tree, "a.txt", text.replace(f"{before}\n", f"{after}\n"))

    def resolve(self, tree: Path) -> None:
        (tree / "a.txt").write_text("".join(f"{n if n != 4 else 'both'}\n" for n in range(9)))
        git(tree, "add", "a.txt")

    def test_lands_before_whoever_waits_for_that(
        self, queen: Queen, repo: Path, resolving: Path, tmp_path: Path
    ) -> None:
        third = queen.start("land", "--unchecked", as_="third", cwd=tmp_path / "third")
        assert third.stdout is not None
        said = third.stdout.readline()
        why = "waiting for two, who resolves a conflict on the same lines"
        assert why in said
        seen = [(each.droid, each.state, each.doing) for each in landers(opened(repo))]
        assert seen == [("two", "resolving", ""), ("third", "waiting", why)]
        status = queen("status").out
        assert "third waits to land on main" in status and why in " ".join(status.split())
        self.resolve(resolving)
        assert landed(resolving, "two", go_on=True) == head(repo, "main")
        out, err = third.communicate(timeout=60)
        assert (third.returncode, "main and third conflict: a.txt" in err) == (5, True), out + err
        assert [each.state for each in landers(opened(repo))] == ["resolving"]

    def test_is_overtaken_on_other_lines_only(
        self, repo: Path, resolving: Path, trees: tuple[Path, Path], tmp_path: Path
    ) -> None:
        with pytest.raises(Busy, match="timed out after 0s: two resolves a conflict"):
            landed(tmp_path / "third", "third", wait_s=0)
        git(trees[0], "merge", "-q", "--no-edit", "main")
        self.change(trees[0], "8", "eight")
        assert landed(trees[0], wait_s=0) == head(repo, "main")
        assert "eight\n" in (repo / "a.txt").read_text()
        self.resolve(resolving)
        assert landed(resolving, "two", go_on=True) == head(repo, "main")

    def test_is_not_overtaken_in_a_batch(
        self, queen: Queen, repo: Path, resolving: Path, trees: tuple[Path, Path], tmp_path: Path
    ) -> None:
        go, folder = tmp_path / "go", folder_of(opened(repo), "main")
        check = f"while [ ! -e {go} ]; do sleep 0.05; done"
        Pace(folder, 16, folder).note(
            [], passed=True, check_s=200
        )  # It begins again with who comes.
        git(repo, "worktree", "add", "-q", str(tmp_path / "fourth"), "-b", "fourth")
        commit_file(tmp_path / "fourth", "more.txt", "x\n")
        fourth = queen.start("land", "--check", check, as_="fourth", cwd=tmp_path / "fourth")
        until_s = time.monotonic() + 60
        while not list(waiting_line.live(folder)):
            assert time.monotonic() < until_s
            time.sleep(0.02)
        third = queen.start("land", "--check", check, as_="third", cwd=tmp_path / "third")
        assert fourth.stdout is not None
        assert any("1 more came: checking with them" in said for said in fourth.stdout)
        go.touch()
        assert fourth.communicate(timeout=60) and fourth.returncode == 0
        assert "third" not in (repo / "a.txt").read_text()
        until_s = time.monotonic() + 60
        while not list(waiting_line.live(f"{folder}.back")):  # It is first, and looks.
            assert time.monotonic() < until_s
            time.sleep(0.02)
        self.resolve(resolving)
        landed(resolving, "two", go_on=True)
        assert third.communicate(timeout=60) and third.returncode == 5

    def test_keeps_nobody_for_more_than_some_minutes(
        self, repo: Path, resolving: Path, tmp_path: Path
    ) -> None:
        folder = Path(folder_of(opened(repo), "main"))
        (step,) = (each for each in folder.iterdir() if b'"conflict"' in each.read_bytes())
        old = time.time() - KEPT_S - 1
        os.utime(step, (old, old))
        assert landed(tmp_path / "third", "third", wait_s=0) == head(repo, "main")

    def test_stands_back_for_nobody(self, repo: Path, resolving: Path, tmp_path: Path) -> None:
        git(repo, "worktree", "add", "-q", str(tmp_path / "fourth"), "-b", "fourth", "main~1")
        self.change(tmp_path / "fourth", "4", "fourth")
        with pytest.raises(NotLanded, match=r"conflict: a\.txt"):
            landed(tmp_path / "fourth", "fourth")
        self.resolve(resolving)
        assert landed(resolving, "two", go_on=True, wait_s=0) == head(repo, "main")
