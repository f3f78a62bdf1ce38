"""Where a sprint bead is worked on: as it says, unless that is elsewhere or git cannot have it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hives import QuickQueen, commit_file, git, write_lines

from queenbee import Hive
from queenbee.errors import Conflict, InvalidInput, NotFound
from queenbee.git.ownership import bead_branches
from queenbee.git.worktrees.bead_place import BeadPlace, bead_place, sprint_worktree
from queenbee.store.droids import roster
from queenbee.store.droids.liveness import described

FIXTURES = Path(__file__).parents[1] / "documents" / "fixtures" / "sprint"


def row(repo: Path, **metadata: Any) -> dict[str, Any]:
    """Returns the work bead of the document, with the worktree of its rule here."""
    found: dict[str, Any] = json.loads((FIXTURES / "work-bead.json").read_text())
    found |= {"id": "bd-1", "dependencies": []}
    where = f"{repo.parent}/repo-worktrees/sprint/1-2-auth-api"
    found["metadata"] |= {"branch": "sprint/1-2-auth-api", "worktree_path": where, **metadata}
    return found


def beads(repo: Path, *rows: dict[str, Any]) -> Hive:
    git(repo, "commit", "-q", "--allow-empty", "-m", "begin")
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    return Hive.open(repo, droid="ui", env={})


def place(repo: Path, **metadata: Any) -> BeadPlace:
    hive = beads(repo, row(repo, **metadata))
    return bead_place(hive, hive.issues.get("bd-1"))


def test_its_worktree_and_branch_are_made_as_written_from_the_source_branch(repo: Path) -> None:
    hive = beads(repo, row(repo, source_branch="develop"))
    git(repo, "branch", "develop")
    git(repo, "commit", "-q", "--allow-empty", "-m", "later")
    made = sprint_worktree(hive, "bd-1", "ui")
    assert made.path == f"{repo.parent}/repo-worktrees/sprint/1-2-auth-api"
    where = Path(made.path)
    assert git(where, "branch", "--show-current").strip() == "sprint/1-2-auth-api"
    assert git(where, "rev-parse", "HEAD") == git(repo, "rev-parse", "develop")
    assert Hive.open(where, env={}).actor == "ui"
    assert made.assignment is not None
    assert made.assignment.worktree == "1-2-auth-api"
    assert sprint_worktree(hive, "bd-1", "ui").path == made.path


def test_it_begins_with_no_branch_that_somebody_pushed_and_that_has_not_landed(
    repo: Path, tmp_path: Path
) -> None:
    """The row and the branch may be of one who pushed both."""
    git(tmp_path, "clone", "-q", str(repo), "eve")
    git(tmp_path / "eve", "switch", "-q", "-c", "develop")
    commit_file(tmp_path / "eve", "evil.txt")
    git(repo, "remote", "add", "origin", str(tmp_path / "eve"))
    git(repo, "fetch", "-q", "origin")
    hive = beads(repo, row(repo, source_branch="develop"))
    with pytest.raises(Conflict, match="with which bd-1 begins, is refs/remotes/origin/develop"):
        sprint_worktree(hive, "bd-1", "ui")
    git(repo, "branch", "-q", "develop", "origin/develop")  # That is no word about the bead.
    queen = QuickQueen(repo)
    refused = queen("worktree", "add", "--bead", "bd-1", as_="ui")
    assert (refused.code, "the same with --adopt develop" in refused.err) == (5, True)
    made = queen("worktree", "add", "--bead", "bd-1", "--adopt", "develop", as_="ui")
    assert made.code == 0, made
    assert (repo.parent / "repo-worktrees/sprint/1-2-auth-api/evil.txt").exists()


@pytest.mark.parametrize("how", ["-m", "-c"])
def test_its_branch_is_a_persons_who_took_it_over_under_another_name(repo: Path, how: str) -> None:
    """Git moves and copies our note with it, and a row may name any branch."""
    hive = beads(repo, row(repo))
    commit_file(Path(sprint_worktree(hive, "bd-1", "ui").path), "half.txt")
    git(repo, "worktree", "remove", f"{repo.parent}/repo-worktrees/sprint/1-2-auth-api")
    git(repo, "branch", how, "sprint/1-2-auth-api", "my-own")
    own = row(repo, branch="my-own", worktree_path=f"{repo.parent}/repo-my-own")
    write_lines(repo / ".beads" / "issues.jsonl", own | {"updated_at": "2096-01-01T00:00:00Z"})
    with pytest.raises(Conflict, match="needs the branch my-own, which QueenBee did not make"):
        sprint_worktree(hive, "bd-1", "ui")
    names = {"my-own": "bd-1", "sprint/1-2-auth-api": "bd-1"}
    assert bead_branches(hive.layout) == names  # What is there has still to be judged.
    made = QuickQueen(repo)("worktree", "add", "--bead", "bd-1", "--adopt", "my-own", as_="ui")
    assert made.code == 0, made


def test_it_begins_with_no_work_of_a_person_that_has_not_landed(repo: Path) -> None:
    """The row may be of one who wants it published."""
    hive = beads(repo, row(repo, source_branch="wip"))
    git(repo, "switch", "-q", "-c", "wip")
    commit_file(repo, "private.txt")
    git(repo, "switch", "-q", "main")
    with pytest.raises(Conflict, match="bd-1 begins, is refs/heads/wip, which QueenBee did not"):
        sprint_worktree(hive, "bd-1", "ui")
    assert hive.assignments.active("bd-1") is None


def test_it_begins_with_the_target_and_not_with_what_nobody_has_pushed(
    repo: Path, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "--bare", "origin.git")
    hive = beads(repo, row(repo, source_branch="main"))
    git(repo, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(repo, "push", "-q", "origin", "main")
    assert QuickQueen(repo)("config", "set", "land.target", "origin/main").code == 0
    commit_file(repo, "private.txt")
    hive = Hive.open(repo, droid="ui", env={})
    made = Path(sprint_worktree(hive, "bd-1", "ui").path)
    assert git(made, "rev-parse", "HEAD") == git(repo, "rev-parse", "origin/main")


def test_it_begins_with_the_branch_of_another_bead(repo: Path) -> None:
    first = row(repo, branch="sprint/a", worktree_path=f"{repo.parent}/repo-a") | {"id": "bd-2"}
    hive = beads(repo, row(repo, source_branch="sprint/a"), first)
    commit_file(Path(sprint_worktree(hive, "bd-2", "api").path), "a.txt", "x\n")
    assert (Path(sprint_worktree(hive, "bd-1", "ui").path) / "a.txt").exists()


def test_the_command_makes_it_for_whoever_asks(repo: Path) -> None:
    beads(repo, row(repo))
    queen = QuickQueen(repo)
    ran = queen("worktree", "add", "--bead", "bd-1", as_="ui")
    assert ran.code == 0, ran
    assert "on branch sprint/1-2-auth-api" in ran.out
    assert queen("worktree", "add", as_="ui").code == 2
    assert queen("worktree", "add", "--bead", "bd-1", as_="api").code == 5


def test_one_that_has_a_home_works_on_its_bead_elsewhere(repo: Path) -> None:
    hive = beads(repo, row(repo))
    assert QuickQueen(repo)("worktree", "add", "ui", "bd-1", as_="lead").code == 0
    made = sprint_worktree(hive, "bd-1", "ui")
    assert made.assignment is not None
    assert made.assignment.worktree == "1-2-auth-api"


def test_a_branch_that_was_made_for_it_is_gone_on_with(repo: Path) -> None:
    hive = beads(repo, row(repo))
    path = Path(sprint_worktree(hive, "bd-1", "ui").path)
    commit_file(path, "a.txt", "x\n")
    head = git(path, "rev-parse", "HEAD")
    git(repo, "worktree", "remove", str(path))
    assert git(Path(sprint_worktree(hive, "bd-1", "ui").path), "rev-parse", "HEAD") == head


def test_a_branch_of_somebody_is_refused_until_it_is_handed_over(repo: Path) -> None:
    hive = beads(repo, row(repo, branch="precious"))
    git(repo, "branch", "precious")
    with pytest.raises(
        Conflict, match="branch precious, which QueenBee did not make; it has nothing"
    ):
        sprint_worktree(hive, "bd-1", "ui")
    assert hive.assignments.active("bd-1") is None
    done = QuickQueen(repo)("worktree", "add", "--bead", "bd-1", "--adopt", "precious", as_="ui")
    assert done.code == 0, done
    assert git(repo, "worktree", "list").count("[precious]") == 1


def test_an_agent_hands_over_nothing(repo: Path) -> None:
    beads(repo, row(repo, branch="precious"))
    git(repo, "branch", "precious")
    queen = QuickQueen(repo)
    queen.env["CLAUDECODE"] = "1"
    refused = queen("worktree", "add", "--bead", "bd-1", "--adopt", "precious", as_="ui")
    assert (refused.code, "only a person hands over a branch" in refused.err) == (2, True)


def test_a_worktree_of_somebody_is_refused(repo: Path) -> None:
    hive = beads(repo, row(repo))
    where = f"{repo.parent}/repo-worktrees/sprint/1-2-auth-api"
    git(repo, "worktree", "add", "-q", "-b", "sprint/1-2-auth-api", where)
    with pytest.raises(Conflict, match=r"1-2-auth-api in .*, which QueenBee did not make"):
        sprint_worktree(hive, "bd-1", "ui")


def test_the_branch_of_a_droid_or_of_another_bead_is_refused(repo: Path) -> None:
    other = row(repo, branch="web") | {"id": "bd-2"}
    hive = beads(repo, row(repo, branch="web"), other)
    QuickQueen(repo)("worktree", "add", "web", as_="lead")
    git(repo, "worktree", "remove", f"{repo.parent}/repo-web")
    with pytest.raises(Conflict, match="branch web, made for web"):
        sprint_worktree(hive, "bd-1", "ui")
    git(repo, "branch", "-D", "web")
    sprint_worktree(hive, "bd-1", "ui")
    with pytest.raises(Conflict, match="made for bd-1"):
        sprint_worktree(hive, "bd-2", "ui", path=f"{repo.parent}/elsewhere")


@pytest.mark.parametrize(
    "written",
    [
        "/etc/cron.d/x", "{parent}/.config/autostart", "{repo}/.git/hooks", "{repo}/x", "C:\\x",
        "{parent}/bin", "{parent}/other/src/plugin", "{parent}/repo-a/src/plugin", "{parent}/repo",
        "{parent}/repo-worktrees", "{parent}/repo-worktrees/sprint/other", "{parent}",
        "{parent}/repo-a/../bin", "{parent}/Repo-a",
    ],
)  # fmt: skip
def test_a_worktree_that_is_not_beside_the_repository_is_made_by_the_rule(
    repo: Path, written: str
) -> None:
    where = written.format(parent=repo.parent, repo=repo)
    expected = f"{repo.parent}/repo-worktrees/sprint/1-2-auth-api"
    assert place(repo, worktree_path=where).path == expected


@pytest.mark.parametrize("name", ["repo-api", "repo-worktrees/sprint/1-2-auth-api"])
def test_a_worktree_is_made_beside_the_repository_under_its_name(repo: Path, name: str) -> None:
    where = f"{repo.parent}/{name}"
    assert place(repo, worktree_path=where).path == where


@pytest.mark.parametrize("above", ["repo-worktrees", "repo-worktrees/sprint"])
def test_nothing_is_made_within_another_repository(repo: Path, above: str) -> None:
    other = repo.parent / above
    other.mkdir(parents=True)
    git(other, "init", "-q")
    with pytest.raises(Conflict, match="is a link, or a repository"):
        place(repo)
    made = place(repo, worktree_path=f"{repo.parent}/repo-api")
    assert made.path == f"{repo.parent}/repo-api"


def test_nothing_is_made_through_a_link(repo: Path) -> None:
    (repo.parent / "elsewhere").mkdir()
    (repo.parent / "repo-worktrees").symlink_to("elsewhere")
    with pytest.raises(Conflict, match="is a link, or a repository"):
        place(repo)


def test_a_row_gets_no_folder_that_was_there_before(repo: Path) -> None:
    (repo.parent / "repo-api").mkdir()
    hive = beads(repo, row(repo, worktree_path=f"{repo.parent}/repo-api"))
    with pytest.raises(Conflict, match="repo-api exists already"):
        sprint_worktree(hive, "bd-1", "ui")
    assert not list((repo.parent / "repo-api").iterdir())


def test_a_link_to_elsewhere_is_not_beside_the_repository(repo: Path, tmp_path: Path) -> None:
    (repo.parent / "other").symlink_to("/etc")
    where = f"{repo.parent}/other/x"
    assert place(repo, worktree_path=where).path.endswith("repo-worktrees/sprint/1-2-auth-api")


def test_a_branch_below_another_one_begins_with_sprint(repo: Path) -> None:
    assert place(repo, branch="main/1-2-auth-api").branch == "sprint/1-2-auth-api"


def test_the_branches_to_merge_are_found_if_they_have_not_landed(repo: Path) -> None:
    names = ["main/1-2a-api", "sprint/1-2b-page"]
    merge = row(repo, branches_to_merge=names) | {"issue_type": "beads-ralph-merge"}
    done = row(repo, branch="sprint/1-2b-page") | {"id": "bd-2", "status": "closed"}
    hive = beads(repo, merge, done)
    git(repo, "branch", "sprint/1-2a-api")
    assert bead_place(hive, hive.issues.get("bd-1")).merges == ["sprint/1-2a-api"]
    git(repo, "branch", "-D", "sprint/1-2a-api")
    with pytest.raises(NotFound, match="main/1-2a-api"):
        bead_place(hive, hive.issues.get("bd-1"))


def test_without_its_source_branch_it_is_refused(repo: Path) -> None:
    with pytest.raises(NotFound, match="begins with the branch elsewhere"):
        place(repo, source_branch="elsewhere")


@pytest.mark.parametrize("field", [{"source_branch": "--all"}, {"branch": "a b"}])
def test_one_that_is_not_valid_is_refused(repo: Path, field: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="is not a valid sprint bead"):
        place(repo, **field)


@pytest.mark.parametrize(
    "branch",
    [
        "unfinished", "unfinished/foo", "queenbee/hive", "origin/main", "refs/heads/main", "MAIN",
        "v1", "heads/main", "ORIG_HEAD", "up/x",
    ],
)  # fmt: skip
def test_a_branch_that_is_ambiguous_or_kept_is_refused(repo: Path, branch: str) -> None:
    hive = beads(repo, row(repo, branch=branch))
    git(repo, "tag", "v1")
    git(repo, "remote", "add", "up", "/nowhere")
    with pytest.raises(Conflict, match="cannot have the branch"):
        bead_place(hive, hive.issues.get("bd-1"))


def test_a_branch_of_somebody_is_not_merged(repo: Path) -> None:
    merge = row(repo, branches_to_merge=["precious"]) | {"issue_type": "beads-ralph-merge"}
    hive = beads(repo, merge)
    git(repo, "checkout", "-q", "-b", "precious")
    commit_file(repo, "draft.txt", "x\n")
    git(repo, "checkout", "-q", "main")
    with pytest.raises(Conflict, match=r"precious, which is to be merged, .* did not make"):
        bead_place(hive, hive.issues.get("bd-1"))


def test_a_branch_that_was_made_for_a_bead_that_names_it_is_merged(repo: Path) -> None:
    merge = row(repo, branches_to_merge=["sprint/a"]) | {"issue_type": "beads-ralph-merge"}
    other = row(repo, branch="sprint/a", worktree_path=f"{repo.parent}/repo-a") | {"id": "bd-2"}
    hive = beads(repo, merge, other)
    commit_file(Path(sprint_worktree(hive, "bd-2", "ui").path), "a.txt", "x\n")
    assert bead_place(hive, hive.issues.get("bd-1")).merges == ["sprint/a"]


def test_no_client_takes_the_name_of_a_live_agent_for_a_bead(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hive = beads(repo, row(repo))
    team = {"path": str(repo), "supervisor": described(os.getpid())}
    roster.write(hive.layout, roster.Entry("ui", team))
    monkeypatch.setenv("CLAUDECODE", "1")
    queen = QuickQueen(repo)
    for words in (("ui",), ("ui", "--bead", "bd-1")):
        refused = queen("worktree", "add", *words)
        assert (refused.code, "which queen start looks after" in refused.err) == (5, True), refused
    assert queen("worktree", "add", "api", "--bead", "bd-1").code == 0
