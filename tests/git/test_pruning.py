"""`queen worktree prune`: what has done its work goes, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git

from queenbee.git import ownership
from queenbee.git.worktrees.worktree_making import add
from queenbee.git.worktrees.worktree_mending import WorktreeMender
from queenbee.services.hive import Services
from queenbee.store.creating import make_state_dir
from queenbee.store.droids import presence, roster
from queenbee.store.droids.liveness import described
from queenbee.store.layout import discover

pytestmark = pytest.mark.slow


@pytest.fixture
def made(repo: Path, quick: QuickQueen) -> dict[str, Path]:
    """Five worktrees, of which nobody was in for a day."""
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "begin", "--allow-empty")
    names = ("landed", "squashed", "ahead", "dirty", "fresh")
    for name in names:
        assert quick("worktree", "add", name).code == 0
    found = {name: repo.parent / f"{repo.name}-{name}" for name in names}
    for name in names[:3]:
        commit_file(found[name], f"{name}.txt", "x\n")
    (found["dirty"] / "new.txt").touch()
    git(repo, "merge", "-q", "--no-ff", "-m", "merged", "landed")
    git(repo, "merge", "-q", "--squash", "squashed")
    git(repo, "commit", "-qm", "squashed")
    layout = discover(str(repo), {})
    make_state_dir(layout)
    for name in names:
        presence.note(layout, name, 1_000_000)
    return found


def kept(quick: QuickQueen) -> dict[str, str]:
    return {
        os.path.basename(each["path"]).rpartition("-")[2]: each["why"]
        for each in quick("worktree", "prune", "--json").json["kept"]
    }


def test_what_has_landed_by_whatever_commit_goes_and_the_rest_is_named(
    repo: Path, quick: QuickQueen, made: dict[str, Path]
) -> None:
    git(repo, "worktree", "add", "-q", "../by-hand")
    said = kept(quick)
    assert not made["landed"].exists()
    assert not made["squashed"].exists()
    assert git(repo, "branch", "--list", "landed", "squashed").split() == ["squashed"]
    assert said.keys() == {"ahead", "dirty", "fresh"}
    assert "not on the main branch yet" in said["ahead"]
    assert "not committed in" in said["dirty"]
    assert said["fresh"] == "nothing was done in it yet"
    assert all(made[name].exists() for name in said)
    assert (repo.parent / "by-hand").exists()
    assert "queen land" in quick("worktree", "prune").out


def test_commits_on_no_branch_are_named_and_kept(
    repo: Path, quick: QuickQueen, made: dict[str, Path]
) -> None:
    git(made["fresh"], "checkout", "-q", "--detach")
    commit_file(made["fresh"], "lost.txt", "x\n")
    assert quick("worktree", "prune").code == 0
    assert "not on the main branch yet" in kept(quick)["fresh"]


def test_whose_droid_is_there_or_has_an_issue_stays(
    repo: Path, quick: QuickQueen, made: dict[str, Path]
) -> None:
    presence.note(discover(str(repo), {}), "landed", (made["ahead"].stat().st_mtime_ns) // 10**6)
    quick("issue", "new", "one", "--id", "x-1", as_="human")
    assert quick("claim", "x-1", as_="squashed").code == 0
    presence.note(discover(str(repo), {}), "squashed", 1_000_000)
    said = kept(quick)
    assert said["landed"].startswith("landed was there lately, ")
    assert "squashed" in said
    assert made["landed"].exists()
    assert made["squashed"].exists()


def test_whose_agent_has_ended_with_its_team_goes_unless_somebody_was_there_since(
    repo: Path, quick: QuickQueen, made: dict[str, Path]
) -> None:
    layout, now_ms = discover(str(repo), {}), made["ahead"].stat().st_mtime_ns // 10**6
    presence.note(layout, "landed", now_ms)
    roster.note_end(layout, now_ms - 1, [], {"landed": "claude"})
    assert kept(quick)["landed"].endswith(" ago: it can go 15m after that")
    roster.note_end(layout, now_ms + 1, [], {"landed": "claude"})
    assert "landed" not in kept(quick)
    assert not made["landed"].exists()


def test_whose_agent_still_runs_after_its_team_stays(
    repo: Path, quick: QuickQueen, made: dict[str, Path]
) -> None:
    layout, now_ms = discover(str(repo), {}), made["ahead"].stat().st_mtime_ns // 10**6
    presence.note(layout, "landed", now_ms)
    roster.note_end(layout, now_ms + 1, [], {"landed": "claude"})
    roster.write(layout, roster.Entry("landed", {"process": described(os.getpid())}))
    assert kept(quick)["landed"].startswith("landed was there lately, ")


def test_who_has_an_issue_there_is_named_before_the_time(
    repo: Path, quick: QuickQueen, made: dict[str, Path]
) -> None:
    quick("issue", "new", "one", "--id", "x-1", as_="human")
    assert quick("claim", "x-1", as_="landed", cwd=made["landed"]).code == 0
    assert kept(quick)["landed"].startswith("landed works on x-1 in ")


def test_a_note_that_an_agent_wrote_removes_nothing(
    repo: Path, quick: QuickQueen, made: dict[str, Path]
) -> None:
    """In a worktree's own git directory, where an agent that commits has to write."""
    git(repo, "worktree", "add", "-q", "-b", "mine", "../mine")
    commit_file(repo.parent / "mine", "a.txt", "x\n")
    git(repo, "merge", "-q", "mine")
    dirs = repo / ".git" / "worktrees"
    said = {"branch": "mine", "path": str(repo.parent / "mine"), "base": "", "droid": "mine"}
    other = (dirs / made["fresh"].name / "queenbee-made").read_bytes()
    for note in (json.dumps(said).encode(), other, other + b"\n" + json.dumps(said).encode()):
        (dirs / "mine" / "queenbee-made").write_bytes(note)
        assert "mine" not in kept(quick)
        assert (repo.parent / "mine").exists()


def test_what_is_made_anew_by_hand_under_the_same_name_stays(
    repo: Path, quick: QuickQueen, made: dict[str, Path]
) -> None:
    git(repo, "worktree", "remove", str(made["landed"]))
    git(repo, "worktree", "add", "-q", str(made["landed"]), "landed")
    (repo / ".git" / "worktrees" / made["landed"].name / "queenbee-made").touch()
    assert "landed" not in kept(quick)
    assert made["landed"].exists()


def test_what_goes_leaves_no_note(repo: Path, quick: QuickQueen, made: dict[str, Path]) -> None:
    notes = repo / ".git" / "queenbee-made"
    before = {each.name for each in notes.iterdir()}
    kept(quick)
    gone = before - {each.name for each in notes.iterdir()}
    assert gone == {made["landed"].name, made["squashed"].name}


def test_what_a_person_handed_over_stays(repo: Path, quick: QuickQueen) -> None:
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "begin", "--allow-empty")
    git(repo, "worktree", "add", "-q", "-b", "mine", "../mine")
    commit_file(repo.parent / "mine", "a.txt", "x\n")
    git(repo, "merge", "-q", "mine")
    adopted = quick("worktree", "add", "mine", "--path", "../mine", "--adopt", "mine")
    assert adopted.code == 0, adopted
    assert kept(quick) == {"mine": "it was handed over by a person"}


def test_what_a_person_handed_over_stays_also_once_it_was_worked_in(
    repo: Path, quick: QuickQueen
) -> None:
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "begin", "--allow-empty")
    mine = repo.parent / "mine"
    git(repo, "worktree", "add", "-q", "-b", "mine", str(mine))
    ownership.adopt(discover(str(repo), {}), "mine")
    for _ in range(2):
        hive = Services(discover(str(repo), {}), actor="lead")
        assert add(hive, "mine").path == str(mine)
        list(WorktreeMender(hive, str(mine), "mine", lambda: None).clear("mine"))
    commit_file(mine, "a.txt", "x\n")
    git(repo, "merge", "-q", "mine")
    assert kept(quick) == {"mine": "it was handed over by a person"}
    refused = quick("worktree", "remove", "mine")
    assert (refused.code, mine.exists()) == (5, True), refused
    assert f"try: if nothing in it is needed: git worktree remove {mine}" in refused.err
    assert quick("worktree", "remove", "mine", "--force").code == 0
    assert git(repo, "branch", "--list", "mine").split() == ["mine"]
