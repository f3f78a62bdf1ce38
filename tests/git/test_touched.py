"""Who else has unmerged work in a file, held against what git itself says of each worktree."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from acting import remember_name
from hives import Queen, QuickQueen, commit_file, git, write_lines

from queenbee import Hive
from queenbee.git import touched, unmerged
from queenbee.git.touched import Touch

Worktree = Callable[..., Path]

TEN = "".join(f"line {number}\n" for number in range(1, 11))


@pytest.fixture
def worktree(repo: Path, tmp_path: Path) -> Worktree:
    """Makes a linked worktree on a branch of its own, which remembers its droid."""

    def made(name: str, droid: str | None = None) -> Path:
        tree = tmp_path / name
        git(repo, "worktree", "add", "-q", str(tree), "-b", f"topic/{name}")
        if droid is not None:
            remember_name(tree, droid)
        return tree

    return made


@pytest.fixture
def mine(repo: Path, worktree: Worktree) -> Path:
    """The worktree of the droid that asks; the repository has a file of ten lines."""
    commit_file(repo, "ten.txt", TEN)
    return worktree("mine", "ui")


def seen(tree: Path, *paths: str, budget_s: float = 60) -> touched.Seen:
    return touched.by_others(Hive.open(tree, droid="ui", env={}), paths, budget_s=budget_s)


def one(tree: Path, path: str = "ten.txt") -> Touch:
    (found,) = seen(tree, path).touches
    return found


def edit(tree: Path, line: int, name: str = "ten.txt") -> None:
    lines = (tree / name).read_text().splitlines()
    lines[line - 1] += " changed"
    (tree / name).write_text("\n".join(lines) + "\n")


def test_a_droid_in_a_folder_of_that_name_elsewhere_has_no_work_here(
    repo: Path, mine: Path, worktree: Worktree
) -> None:
    other, elsewhere = worktree("other"), repo.parent / "elsewhere" / "other"
    git(repo, "worktree", "add", "-q", "-b", "elsewhere", str(elsewhere))
    Hive.open(elsewhere, droid="api", env={}).reservations.reserve(["x"], session="s")
    edit(other, 4)
    assert one(mine).droid is None


def test_an_uncommitted_edit_of_another_worktree_is_seen(mine: Path, worktree: Worktree) -> None:
    other = worktree("other", "api")
    assert not seen(mine, "ten.txt").touches
    edit(other, 4)
    assert one(mine).to_dict() == {
        "path": "ten.txt",
        "droid": "api",
        "branch": "topic/other",
        "worktree": "other",
        "issue_id": None,
        "how": "changed",
        "lines": [[4, 4]],
        "sections": [],
        "committed": False,
        "uncommitted": True,
    }
    assert not seen(mine, "README.md").touches


def test_a_commit_counts_until_it_is_on_the_main_branch(
    repo: Path, mine: Path, worktree: Worktree
) -> None:
    other = worktree("other", "api")
    edit(other, 4)
    git(other, "commit", "-qam", "four")
    found = one(mine)
    assert (found.committed, found.uncommitted, found.lines) == (True, False, [[4, 4]])
    edit(other, 9)
    found = one(mine)
    assert (found.committed, found.uncommitted, found.lines) == (True, True, [[4, 4], [9, 9]])
    git(other, "checkout", "-q", "ten.txt")
    git(repo, "merge", "-q", "--ff-only", "topic/other")
    assert not seen(mine, "ten.txt").touches


def test_what_landed_in_another_commit_counts_no_longer(
    repo: Path, mine: Path, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unmerged, "_RACE_NS", 0)  # Or git is asked again right after an edit.
    other = worktree("other", "api")
    edit(other, 4)
    git(other, "commit", "-qam", "four")
    assert seen(mine, "ten.txt").touches
    git(repo, "merge", "-q", "--squash", "topic/other")
    git(repo, "commit", "-qm", "squashed")
    assert not seen(mine, "ten.txt").touches


def test_what_the_main_branch_changed_is_nobodys_unmerged_work(
    repo: Path, mine: Path, worktree: Worktree
) -> None:
    other = worktree("other", "api")
    commit_file(other, "new.txt", "x\n")
    commit_file(repo, "ten.txt", TEN + "eleven\n")
    assert not seen(mine, "ten.txt").touches
    assert one(mine, "new.txt").how == "added"


def test_who_reserves_what_the_main_branch_has_changed_since_is_told(
    repo: Path, mine: Path, worktree: Worktree
) -> None:
    edit(repo, 2)
    git(repo, "commit", "-qam", "newer")
    hive, said = Hive.open(mine, droid="ada", env={}), list[str]()
    for exclusive in (False, True):
        leases = hive.reservations.reserve(["*.txt"], exclusive=exclusive)
        touched.leases(hive, leases, tell=said.append)
    [one] = said
    assert "changed ten.txt since your branch left it: git merge" in one


def test_an_edit_that_is_taken_back_counts_no_longer(mine: Path, worktree: Worktree) -> None:
    other = worktree("other", "api")
    edit(other, 4)
    assert seen(mine, "ten.txt").touches
    (other / "ten.txt").write_text(TEN)
    assert not seen(mine, "ten.txt").touches
    edit(other, 5)
    git(other, "commit", "-qam", "five")
    (other / "ten.txt").write_text(TEN)  # The commit is taken back, but not in a commit.
    assert not seen(mine, "ten.txt").touches


def test_new_and_deleted_files_are_seen(mine: Path, worktree: Worktree) -> None:
    other = worktree("other", "api")
    assert not seen(mine, "deep/new.txt", "ten.txt").touches  # From now on, git need not be asked.
    (other / "deep").mkdir()
    (other / "deep" / "new.txt").write_text("x")
    (other / "ten.txt").unlink()
    how = {each.path: each.how for each in seen(mine, "deep/new.txt", "ten.txt").touches}
    assert how == {"deep/new.txt": "added", "ten.txt": "deleted"}
    git(other, "add", "-A")
    how = {each.path: each.how for each in seen(mine, "deep/new.txt", "ten.txt").touches}
    assert how == {"deep/new.txt": "added", "ten.txt": "deleted"}


def test_the_main_worktree_is_one_of_the_others(repo: Path, mine: Path) -> None:
    edit(repo, 1)
    found = one(mine)
    assert (found.owner.branch, found.owner.worktree, found.committed) == ("main", "repo", False)
    assert found.name == "main"


def test_git_is_not_asked_again_unless_the_file_or_a_commit_changed(
    mine: Path, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = worktree("other", "api")
    edit(other, 4)
    time.sleep(0.2)  # After a moment, nothing can have changed without a trace.
    before = [each.to_dict() for each in seen(mine, "ten.txt", "README.md", "none").touches]
    assert before
    calls: list[tuple[str, ...]] = []
    real = unmerged.git

    def counted(*arguments: str, **more: object) -> bytes:
        calls.append(arguments)
        return real(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(unmerged, "git", counted)
    after = [each.to_dict() for each in seen(mine, "ten.txt", "README.md", "none").touches]
    assert (after, calls) == (before, [])
    (other / "none").write_text("x")
    assert one(mine, "none").how == "added"
    assert [each[0] for each in calls if each[0] == "status"] == ["status"]


def test_a_completed_issue_is_still_named(repo: Path, mine: Path, worktree: Worktree) -> None:
    write_lines(
        repo / ".beads" / "issues.jsonl",
        {"id": "qb-1", "title": "one", "status": "open"},
        {"id": "qb-2", "title": "two", "status": "open"},
    )
    other = worktree("other", "api")
    edit(other, 4)
    api = Hive.open(other, droid="api", env={})
    api.assignments.claim("qb-1")
    assert one(mine).owner.issue_id == "qb-1"
    api.assignments.complete("qb-1")
    assert one(mine).owner.issue_id == "qb-1"
    api.assignments.claim("qb-2")
    assert one(mine).owner.issue_id == "qb-2"


def test_without_a_remembered_name_the_last_droid_of_the_records_counts(
    repo: Path, mine: Path, worktree: Worktree
) -> None:
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    other = worktree("other")
    edit(other, 4)
    assert (one(mine).droid, one(mine).name) == (None, "topic/other")
    Hive.open(other, droid="api", env={}).assignments.claim("qb-1")
    assert (one(mine).droid, one(mine).owner.issue_id) == ("api", "qb-1")


def test_who_edits_on_a_branch_is_its_droid(mine: Path, repo: Path) -> None:
    edit(repo, 1)
    assert one(mine).droid is None
    Hive.open(repo, droid="lead", env={}).reservations.reserve(
        ["other.txt"], exclusive=False, session="s"
    )
    assert one(mine).droid == "lead"


def test_the_hives_own_files_are_nobodys(repo: Path, mine: Path, worktree: Worktree) -> None:
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    assert not seen(mine, ".beads/issues.jsonl").touches


def test_a_name_that_could_pass_for_our_words_is_in_quotes(
    mine: Path, worktree: Worktree, tmp_path: Path
) -> None:
    tree = worktree("other")
    git(tree, "checkout", "-q", "-b", "ignore(all)rules")
    odd = "a file\nfree for all"
    (tree / odd).write_text("x")
    sentence = one(mine, odd).sentence()
    assert "\n" not in sentence
    assert "“ignore(all)rules”" in sentence and "“a file free for all”" in sentence


@pytest.mark.parametrize("name", ["-n", "a\tb", "*", "\udcff", "ü"])
def test_odd_names_are_found_as_they_are(mine: Path, worktree: Worktree, name: str) -> None:
    other = worktree("other", "api")
    (other / name).write_text("1\n")
    (other / "other").write_text("1\n")
    assert one(mine, name).path == name
    git(other, "add", "-A")
    git(other, "commit", "-qm", "odd")
    assert (one(mine, name).how, one(mine, name).committed) == ("added", True)


def test_no_program_that_a_worktree_names_is_run(
    repo: Path, mine: Path, worktree: Worktree, tmp_path: Path
) -> None:
    traces = tmp_path / "traces"
    for key in ("filter.evil.clean", "filter.evil.process", "diff.evil.textconv",
                "diff.evil.command", "core.fsmonitor"):  # fmt: skip
        git(repo, "config", key, f"touch {traces}; cat")
    other = worktree("other", "api")
    traces.unlink(missing_ok=True)
    (other / ".gitattributes").write_text("* filter=evil diff=evil\n")
    edit(other, 4)
    assert one(mine).lines == [[4, 4]]
    assert not traces.exists()


def test_a_hook_of_another_worktree_does_not_confuse_it(
    mine: Path, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = worktree("other", "api")
    edit(other, 4)
    monkeypatch.setenv("GIT_DIR", str(mine / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(mine / "nowhere"))
    assert one(mine).lines == [[4, 4]]


def test_who_could_not_be_looked_at_is_named(mine: Path, worktree: Worktree) -> None:
    edit(worktree("other", "api"), 4)
    late = seen(mine, "ten.txt", budget_s=-1)
    assert not late.touches
    assert sorted(late.unlooked) == ["other", "repo"]
    told: list[str] = []
    late.report(told.append)
    assert told and "other" in told[0]
    assert seen(mine, "ten.txt").unlooked == []


def test_a_worktree_that_is_gone_is_left_out(mine: Path, worktree: Worktree) -> None:
    other = worktree("other", "api")
    edit(other, 4)
    other.rename(other.parent / "elsewhere")
    assert not seen(mine, "ten.txt").touches


def test_a_branch_without_common_history_counts_as_a_whole(mine: Path, worktree: Worktree) -> None:
    other = worktree("other", "api")
    git(other, "checkout", "-q", "--orphan", "fresh")
    git(other, "rm", "-qrf", ".")
    assert not seen(mine, "ten.txt").touches  # Without a commit, there is nothing to merge.
    commit_file(other, "ten.txt", "other\n")
    assert one(mine).committed


def test_a_detached_worktree_has_unmerged_work_too(mine: Path, worktree: Worktree) -> None:
    other = worktree("other", "api")
    git(other, "checkout", "-q", "--detach")
    edit(other, 4)
    git(other, "commit", "-qam", "four")
    assert (one(mine).owner.branch, one(mine).committed) == (None, True)


def test_a_damaged_cache_costs_nothing(repo: Path, mine: Path, worktree: Worktree) -> None:
    edit(worktree("other", "api"), 4)
    assert one(mine)
    path = repo / ".git" / "queenbee" / "index" / "unmerged.json"
    for text in ("", "[]", "{", '{"format": 2, "of": {"x": {}}}', '{"format": 2, "of": 3}'):
        path.write_text(text)
        assert one(mine).lines == [[4, 4]]


def expected(tree: Path) -> set[str]:
    """Returns what a worktree has in another form than the main branch, by plain git."""
    committed = git(tree, "diff", "--name-only", "-z", "--no-renames", "main...HEAD")
    changed = git(tree, "status", "-z", "--porcelain", "-uall", "--no-renames")
    return {
        *filter(None, committed.split("\0")),
        *(each[3:] for each in changed.split("\0") if each),
    }


@pytest.mark.some(3)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_after_any_edits_the_answer_is_that_of_git(
    repo: Path, mine: Path, worktree: Worktree, seed: int
) -> None:
    choose = random.Random(seed)
    names = [f"file{number}.txt" for number in range(8)]
    for name in names[:5]:
        commit_file(repo, name, TEN)
    trees = [worktree(name) for name in ("a", "b")]
    for _ in range(25):
        tree, name = choose.choice(trees), choose.choice(names)
        action = choose.randrange(6)
        if action == 0:
            (tree / name).unlink(missing_ok=True)
        elif action == 1:
            git(tree, "add", "-A")
        elif action == 2:
            git(tree, "add", "-A")
            git(tree, "commit", "-qm", "step", "--allow-empty")
        elif action == 3:
            git(tree, "stash", "-uq")
        else:
            (tree / name).write_text(f"{choose.random()}\n{TEN}")
        found = {(each.owner.worktree, each.path) for each in seen(mine, *names).touches}
        wanted = {(tree.name, path) for tree in trees for path in expected(tree)}
        # What a commit adds and the working tree takes back again is no work of anybody.
        assert found <= wanted
        for where, path in wanted - found:
            there, base = repo.parent / where / path, f"main:{path}"
            known = subprocess.run(["git", "show", base], cwd=repo, capture_output=True)
            assert there.exists() == (known.returncode == 0), (where, path)
            assert not there.exists() or there.read_bytes() == known.stdout


# The commands


def test_check_names_them_and_still_says_that_the_file_is_free(
    quick: QuickQueen, mine: Path, worktree: Worktree
) -> None:
    other = worktree("other", "api")
    edit(other, 4)
    edit(other, 5)
    ran = quick("reserve", "check", "ten.txt", "README.md", cwd=mine, as_="ui")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "free  ten.txt",
        "      not merged yet: api changed ten.txt lines 4-5 (branch topic/other, uncommitted)",
        "free  README.md",
    ]
    found = quick("reserve", "check", "ten.txt", "README.md", "--json", cwd=mine, as_="ui").json
    assert [len(each["touched_by"]) for each in found] == [1, 0]
    assert found[0]["touched_by"][0]["lines"] == [[4, 5]]


def test_reserve_names_them_for_each_pattern(
    quick: QuickQueen, mine: Path, worktree: Worktree
) -> None:
    other = worktree("other", "api")
    edit(other, 4)
    ran = quick("reserve", "*.txt", "*.md", cwd=mine, as_="ui")
    assert "not merged yet: api changed ten.txt line 4 (branch topic/other" in ran.out
    found = quick("reserve", "*.txt", "*.md", "--json", cwd=mine, as_="ui").json
    assert [[each["droid"] for each in one["touched_by"]] for one in found] == [["api"], []]


def test_next_names_those_in_the_files_of_the_issue(
    repo: Path, quick: QuickQueen, mine: Path, worktree: Worktree
) -> None:
    write_lines(
        repo / ".beads" / "issues.jsonl",
        {"id": "qb-1", "title": "x", "status": "open", "description": "In ten.txt."},
    )
    edit(worktree("other", "api"), 4)
    ran = quick("next", cwd=mine, as_="ui")
    assert "not merged yet: api changed ten.txt line 4" in ran.out
    (found,) = quick("next", "--json", cwd=mine, as_="ui").json["touched_by"]
    assert (found["path"], found["droid"]) == ("ten.txt", "api")


def test_the_functions_and_sections_are_named(repo: Path, mine: Path, worktree: Worktree) -> None:
    code = "class Shop:\n    def tax(self):\n        a = 1\n        b = 2\n        return a\n"
    page = "# Shop\n\n## Prices\n\nold\n\nThe end.\n"
    commit_file(repo, "shop.py", code)
    commit_file(repo, "page.md", page)
    tree = worktree("other", "api")
    (tree / "shop.py").write_text(code.replace("b = 2", "b = 3"))
    (tree / "page.md").write_text(page.replace("old", "new"))
    found = {each.path: each for each in seen(mine, "shop.py", "page.md").touches}
    assert {path: each.sections for path, each in found.items()} == {
        "shop.py": ["tax"],
        "page.md": ["Prices"],
    }
    assert "api changed shop.py line 4 in tax (" in found["shop.py"].sentence()


def test_a_change_below_a_function_is_not_in_it(repo: Path, mine: Path, worktree: Worktree) -> None:
    code = "export function total(n) {\n  return n;\n}\n\nexport function label(n) {\n}\n\nlet a;\n"
    commit_file(repo, "cart.js", code)
    commit_file(repo, "run.js", code)
    tree = worktree("other", "api")
    (tree / "cart.js").write_text(code.replace("label(n)", "title(n, tax)"))
    (tree / "run.js").write_text(code.replace("let a", "let b"))
    found = {each.path: each for each in seen(mine, "cart.js", "run.js").touches}
    assert found["cart.js"].sections == ["label"]
    assert found["run.js"].sections == []


def test_what_a_merge_under_way_brings_in_is_nobodys_work(
    repo: Path, mine: Path, worktree: Worktree
) -> None:
    tree, third = worktree("other", "api"), worktree("third", "db")
    edit(tree, 4)
    git(tree, "commit", "-qam", "ours")
    edit(repo, 4)
    (repo / "ten.txt").write_text((repo / "ten.txt").read_text().replace("4 changed", "four"))
    commit_file(repo, "theirs.txt")
    git(repo, "commit", "-qam", "theirs")
    subprocess.run(["git", "merge", "-q", "main"], cwd=tree, capture_output=True, check=False)
    commit_file(repo, "theirs.txt", "later\n")
    (tree / "own.txt").write_text("x\n")
    paths = ("theirs.txt", "own.txt", "ten.txt")
    assert [each.path for each in seen(mine, *paths).touches] == ["own.txt", "ten.txt"]
    git(tree, "merge", "--abort")
    commit_file(third, "third.txt")
    git(tree, "merge", "-q", "--no-commit", "--no-ff", "topic/third")
    assert {each.droid for each in seen(mine, "third.txt").touches} == {"api", "db"}


def test_a_change_log_concerns_nobody_else(repo: Path, mine: Path, worktree: Worktree) -> None:
    tree = worktree("other", "api")
    for name in ("CHANGELOG.md", "index.md"):
        (tree / name).write_text("x\n")
    assert [each.path for each in seen(mine, "CHANGELOG.md", "index.md").touches] == ["index.md"]


def test_next_says_what_others_really_work_in(
    repo: Path, quick: QuickQueen, mine: Path, worktree: Worktree
) -> None:
    rows = [{"id": f"qb-{n}", "title": "x", "status": "open"} for n in range(2)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    tree = worktree("other", "api")
    quick("claim", "qb-0", cwd=tree)
    edit(tree, 4)
    (tree / "CHANGELOG.md").write_text("x\n")
    shown = quick("next", cwd=mine).out
    assert "    works in ten.txt\n" in shown
    (other,) = quick("next", "--json", cwd=mine).json["others"]
    assert [each["path"] for each in other["changes"]] == ["ten.txt"]


def test_next_offers_the_check_that_the_files_name(
    quick: QuickQueen, beads: Path, mine: Path
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    assert "for all: queen config set land.check COMMAND\n" in quick("next", cwd=mine).out
    (mine / "Makefile").write_text("test:\n\ttrue\n")
    assert "for all: queen config set land.check 'make test'\n" in quick("next", cwd=mine).out


def test_next_says_to_land_what_was_assigned_from_the_main_worktree(
    quick: QuickQueen, repo: Path, beads: Path, mine: Path
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    assert quick("issue", "assign", "qb-1", "ui", "--new", as_="boss", cwd=repo).code == 0
    said = quick("next", cwd=mine).out
    assert "when it is done: queen land" in said
    assert "no check is set yet" in said


def test_next_says_what_the_branch_lacks(
    quick: QuickQueen, repo: Path, beads: Path, mine: Path
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    assert "your branch lacks" not in quick("next", cwd=mine).out
    for name in ("a.txt", "b.txt"):
        commit_file(repo, name)
    assert (
        "your branch lacks 2 commits of main; before you begin: git merge main"
        in quick("next", cwd=mine).out
    )
    git(mine, "merge", "-q", "main")
    assert quick("next", "--json", cwd=mine).json["behind"] == 0


def test_next_says_how_to_end_a_merge_that_is_open(
    quick: QuickQueen, repo: Path, beads: Path, mine: Path
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    assert quick("next", cwd=mine).code == 0
    for tree in (repo, mine):
        commit_file(tree, "a.txt", f"{tree}\n")
    subprocess.run(["git", "merge", "-q", "main"], cwd=mine, capture_output=True, check=False)
    said = quick("next", cwd=mine).out
    assert "in conflict: a.txt; resolve, git add, then queen land --continue" in said
    assert "your branch lacks" not in said
    git(mine, "add", "a.txt")
    said = quick("next", cwd=mine).out
    assert "a merge is open: queen land --continue" in said
    assert "your branch lacks" not in said


def test_when_all_is_done_the_worktree_stands_on_the_main_branch(
    quick: QuickQueen, repo: Path, beads: Path
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "closed"})
    place = quick("worktree", "add", "ui", "--json", cwd=repo).json["path"]
    commit_file(repo, "late.txt")
    assert "Everything is done" in quick("next", as_="ui", cwd=Path(place)).out
    assert git(Path(place), "rev-parse", "HEAD") == git(repo, "rev-parse", "HEAD")


def test_next_leaves_what_others_really_work_in_while_there_is_something_else(
    repo: Path, quick: QuickQueen, mine: Path, worktree: Worktree
) -> None:
    commit_file(repo, "eleven.txt", TEN)
    git(mine, "merge", "-q", "main")
    files = ("", "In ten.txt.", "In eleven.txt.")
    rows = [
        {"id": f"qb-{n}", "title": "x", "status": "open", "description": text}
        for n, text in enumerate(files)
    ]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    tree = worktree("other", "api")
    quick("claim", "qb-0", cwd=tree)
    edit(tree, 4)
    assert quick("next", "--json", cwd=mine).json["issue_id"] == "qb-2"
    assert quick("next", "--json", as_="late", cwd=repo).json["issue_id"] == "qb-1"


def test_next_says_what_those_who_have_the_same_files_really_changed(
    repo: Path, quick: QuickQueen, mine: Path, worktree: Worktree
) -> None:
    rows = [
        {"id": f"qb-{n}", "title": "x", "status": "open", "description": f"In {file}.txt."}
        for n, file in enumerate(("ten", "other", "ten", "ten"))
    ]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    for number, name in enumerate(("one", "two", "three")):
        tree = worktree(name, name)
        assert quick("claim", f"qb-{number}", cwd=tree).code == 0
        if number:
            edit(tree, 4)
        if number == 2:
            git(tree, "commit", "-qam", "x")
    quick("claim", "qb-3", cwd=mine)
    shown = quick("next", cwd=mine).out
    [line] = [each for each in shown.splitlines() if "the same files as you" in each]
    assert sorted(line.removeprefix("the same files as you: ").split("; ")) == [
        "one in ten.txt",
        "three in ten.txt (changed old line 4)",
    ]
    assert "not merged yet: two changed ten.txt line 4" in shown and "works in" not in shown


def test_next_does_not_say_who_else_is_in_a_file_that_half_of_the_issues_name(
    repo: Path, quick: QuickQueen, mine: Path, worktree: Worktree
) -> None:
    rows = [{"id": f"qb-{n}", "title": "in ten.txt", "status": "open"} for n in range(6)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    tree = worktree("other", "api")
    quick("claim", "qb-0", cwd=tree)
    edit(tree, 4)
    assert "ten.txt (" not in quick("next", cwd=mine).out
    assert "changed ten.txt" not in quick("next", cwd=mine).out
    (other,) = quick("next", "--json", cwd=mine).json["others"]
    assert [each["path"] for each in other["changes"]] == ["ten.txt"]


def test_a_repository_without_linked_worktrees_is_not_looked_at(
    repo: Path, quick: QuickQueen
) -> None:
    assert quick("reserve", "check", "README.md", "--json").json[0]["touched_by"] == []
    assert not (repo / ".git" / "queenbee" / "index" / "unmerged.json").exists()


def test_another_users_state_keeps_nothing_from_working(
    queen: Queen, repo: Path, mine: Path, worktree: Worktree
) -> None:
    edit(worktree("other", "api"), 4)
    assert queen("reserve", "x", as_="ui", cwd=mine).code == 0
    os.chmod(repo / ".git" / "queenbee" / "index", 0o500)
    try:
        ran = queen("reserve", "check", "ten.txt", as_="ui", cwd=mine, unprivileged=True)
    finally:
        os.chmod(repo / ".git" / "queenbee" / "index", 0o700)
    assert ran.code == 0 and "api changed ten.txt line 4" in ran.out


class TestAGitThatDoesNotAnswer:
    """Git waits for ever for a FIFO in place of an ignore file, in the tree of another agent."""

    @pytest.fixture
    def stuck(self, mine: Path, worktree: Worktree, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(unmerged, "_LIMIT_S", 0.3)
        tree = worktree("stuck", "slow")
        os.mkfifo(tree / ".gitignore")
        other = worktree("other", "docs")
        edit(other, 3)
        return tree

    def test_it_is_killed_and_the_others_are_looked_at(self, mine: Path, stuck: Path) -> None:
        found = seen(mine, "ten.txt", budget_s=0.06)
        assert [each.droid for each in found.touches] == ["docs"]
        assert list(found.unlooked) == ["stuck"]

    def test_it_is_not_asked_again_at_once_by_who_has_but_a_moment(
        self, mine: Path, stuck: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen(mine, "ten.txt", budget_s=0.06)
        asked: list[str] = []
        whole = unmerged.look
        monkeypatch.setattr(
            unmerged,
            "look",
            lambda other, *a, **k: asked.append(other.path) or whole(other, *a, **k),
        )
        assert list(seen(mine, "ten.txt", budget_s=0.06).unlooked) == ["stuck"]
        assert str(stuck) not in asked
        (stuck / ".gitignore").unlink()
        edit(stuck, 5)
        assert {each.droid for each in seen(mine, "ten.txt").touches} == {"docs", "slow"}
        assert not seen(mine, "ten.txt", budget_s=0.06).unlooked

    def test_nothing_of_it_stays(self, mine: Path, stuck: Path) -> None:
        seen(mine, "ten.txt", budget_s=0.06)
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
        assert str(stuck) not in listed.stdout

    def test_the_hook_answers(
        self, mine: Path, worktree: Worktree, queen: Queen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        os.mkfifo(worktree("stuck") / ".gitattributes")
        os.mkfifo(worktree("more") / ".gitignore")
        assert queen("reserve", "check", "ten.txt", as_="ui", cwd=mine).code == 0


def statuses(tree: Path, trace: Path, ask: Callable[[], object]) -> list[str]:
    """Returns the worktrees of whose files git was asked meanwhile."""
    trace.unlink(missing_ok=True)
    ask()
    started = (each for each in trace.read_text().splitlines() if "| start " in each)
    asked = (each.split() for each in started if " status --porcelain=v2 " in each)
    return [words[words.index("-C") + 1] for words in asked]


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_TRACE2_PERF", str(tmp_path / "trace"))
    return tmp_path / "trace"


def test_a_list_of_the_last_half_minute_is_good_after_a_commit(
    repo: Path, mine: Path, worktree: Worktree, trace: Path
) -> None:
    """A pattern, and the next issue, need no more: in a large tree, git reads for a second."""
    other = worktree("other", "api")
    edit(other, 4)

    def files() -> set[str]:
        found = unmerged.Neighbours(Hive.open(mine, droid="ui", env={}).layout, budget_s=60)
        listed = [found.files(each, most_age_s=30) for each in found.others]
        found.keep()
        return set[str]().union(*listed)

    assert len(statuses(mine, trace, files)) == 2
    commit_file(other, "more.txt", "x\n")
    commit_file(repo, "main.txt", "x\n")
    found = list[set[str]]()
    assert statuses(mine, trace, lambda: found.append(files())) == []
    assert found == [{"ten.txt", "more.txt"}]
    edit(other, 5)
    assert one(mine).lines == [[4, 5]]


def test_who_looks_at_the_same_time_loses_nothing_of_what_the_other_has_found(
    mine: Path, worktree: Worktree
) -> None:
    both = [worktree("one", "api"), worktree("two", "db")]
    layout = Hive.open(mine, droid="ui", env={}).layout
    found = [unmerged.Neighbours(layout, budget_s=60) for _ in both]
    for each, tree in zip(found, both, strict=True):
        edit(tree, 4)
        each.files(next(one for one in each.others if one.path == str(tree)))
    for each in found:
        each.keep()
    kept = unmerged.Cache(layout).snapshots.values()
    assert [each.changed for each in kept] == [{"ten.txt": "changed"}] * 2


@pytest.mark.slow
class TestALargeTree:
    @pytest.fixture
    def large(self, repo: Path) -> None:
        (repo / "f").mkdir()
        for number in range(4_500):
            (repo / "f" / f"{number:0>200}").touch()
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "many files")

    @pytest.mark.usefixtures("large")
    def test_is_not_read_again_after_a_landing(
        self, repo: Path, worktree: Worktree, trace: Path
    ) -> None:
        mine, other = worktree("mine", "ui"), worktree("other", "api")
        seen(mine, "ten.txt", "more.txt")
        commit_file(repo, "main.txt", "x\n")
        ask = statuses(mine, trace, lambda: seen(mine, "ten.txt", "more.txt"))
        assert str(other) not in ask

    @pytest.mark.usefixtures("large")
    def test_is_asked_for_the_one_file_after_a_commit(
        self, repo: Path, mine: Path, worktree: Worktree, trace: Path
    ) -> None:
        other = worktree("other", "api")
        assert not seen(mine, "ten.txt", "new.txt").touches
        commit_file(other, "more.txt", "x\n")
        edit(other, 4)
        (other / "new.txt").write_text("x\n")
        assert (one(mine).how, one(mine, "new.txt").how) == ("changed", "added")
        read = [each for each in trace.read_text().splitlines() if "| start " in each]
        asked = [each for each in read if " status " in each and f"-C {other} " in each]
        assert [each.split(" -- ")[1:] for each in asked[1:]] == [
            ["':(top,literal)ten.txt'"],
            ["':(top,literal)new.txt'"],
        ]
        git(other, "checkout", "-q", "ten.txt")
        assert not seen(mine, "ten.txt").touches
        assert one(mine, "more.txt").committed
