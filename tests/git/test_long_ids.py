"""A repository whose ids are longer (SHA-256): "no such object" is not forty zeros there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hives import QuickQueen, Ran, commit_file, git, write_lines
from made_worktrees import add, opened, remove
from teams import WORKS, Team

from queenbee.git.contents.record_blobs import Records


@pytest.fixture(autouse=True)
def long_ids(repo: Path) -> None:
    shutil.rmtree(repo / ".git")
    git(repo, "init", "-q", "--object-format=sha256", "-b", "main")
    (repo / "a.txt").write_text("a\n")
    git(repo, "add", "a.txt")
    git(repo, "commit", "-qm", "begin")


def landing(quick: QuickQueen, tree: Path, *more: str, as_: str = "ui") -> Ran:
    return quick("land", "--check", "true", *more, as_=as_, cwd=tree)


def test_what_is_removed_is_kept(repo: Path) -> None:
    path = Path(add(opened(repo), "ui").path)
    (path / "draft.txt").write_text("draft\n")
    assert remove(opened(repo), "ui", force=True).kept == "unfinished/repo-ui"
    assert git(repo, "show", "unfinished/repo-ui:draft.txt") == "draft\n"


@pytest.mark.some(2)
@pytest.mark.parametrize("strategy", ["merge", "rebase", "squash"])
@pytest.mark.parametrize("logs", ["true", "false"])
def test_work_lands_with_records(
    quick: QuickQueen, repo: Path, beads: Path, strategy: str, logs: str
) -> None:
    git(repo, "config", "core.logAllRefUpdates", logs)
    quick("init")
    quick("config", "set", "land.strategy", strategy)
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "a hive")
    trees = [Path(add(opened(repo), name).path) for name in ("ui", "api")]
    quick("claim", "qb-1", as_="ui", cwd=trees[0])
    for tree in trees:
        commit_file(tree, f"{tree.name}.txt", "x\n")
        done = landing(quick, tree, as_=tree.name.removeprefix("repo-"))
        assert done.code == 0, done
    assert (repo / "repo-ui.txt").exists()
    assert "qb-1" in git(repo, "show", "main:.beads/queen_assignments.jsonl")


@pytest.mark.thorough
def test_what_an_agent_leaves_is_kept_and_its_worktree_cleared(repo: Path, tmp_path: Path) -> None:
    team = Team(repo, tmp_path)
    team.issues(2)
    fails = 'if [ "$QUEEN_ISSUE" = x-1 ]; then\necho draft > draft; exit 3; fi\n'
    ran = team.start("ui", "--agent", team.agent(fails + WORKS))
    assert team.done() == {"x-2": ["ui"]}, ran
    assert "could not be cleared" not in ran.out
    assert git(repo, "show", "unfinished/x-1-ui:draft") == "draft\n"


def test_a_record_that_is_gone_goes_from_the_index(repo: Path) -> None:
    commit_file(repo, ".beads/active/x.json", "{}")
    Records({".beads/active/x.json": None}, []).tree_in(str(repo), {})
    assert ".beads/active/x.json" not in git(repo, "ls-files")
