"""`queen sync setup`: the ledgers leave the branches of the code, and nothing is lost."""

from __future__ import annotations

import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from hives import QuickQueen, git, records
from sync_worlds import BRANCH, World

from queenbee.errors import Unreachable
from queenbee.git.left_out import left_out
from queenbee.git.remote.relocating import set_up, undo
from queenbee.git.remote.syncing import sync
from queenbee.services.care.doctor import examine
from queenbee.services.care.exporting import export_issues
from queenbee.workflows.tracking.tracker import NewIssue, Tracker


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ada's ledgers are committed with the code, and Bob has cloned them."""
    world = World(tmp_path)
    ada = world.clone("ada")
    queen = QuickQueen(ada)
    assert queen("init").code == 0
    world.hive("ada").assignments.claim("shop-1")
    commit(world, "ada", "records")
    git(ada, "push", "-q", "origin", "HEAD:main")
    world.git("symbolic-ref", "HEAD", "refs/heads/main")
    world.clone("bob")
    world.hive("bob").assignments.claim("shop-2")
    return world


def commit(world: World, name: str, message: str) -> None:
    git(world.folder / name, "add", "-A", ".beads")
    git(world.folder / name, "commit", "-q", "-m", message)


def issues(world: World, name: str) -> set[str]:
    return {each.issue_id for each in world.hive(name).assignments.find()}


def tracked(world: World, name: str) -> list[str]:
    return git(world.folder / name, "ls-files", ".beads").split()


def test_the_ledgers_leave_the_index_and_stay_where_they_are(world: World) -> None:
    moved = set_up(world.hive("ada"))
    assert moved.untracked == [".beads/queen_assignments.jsonl"]
    assert tracked(world, "ada") == [
        ".beads/.gitattributes",
        ".beads/.gitignore",
        ".beads/queen.toml",
    ]
    assert issues(world, "ada") == {"shop-1"}
    commit(world, "ada", "moved")
    world.hive("ada").assignments.claim("shop-3")
    assert git(world.folder / "ada", "status", "--porcelain") == ""
    assert {line["issue_id"] for line in world.lines()} == {"shop-1"}


def test_the_commit_that_it_suggests_is_complete(world: World) -> None:
    """`git commit -- .beads` leaves out a new `.gitignore`, and another clone would add ledgers."""
    ada, queen = world.folder / "ada", QuickQueen(world.folder / "ada")
    for setup in [("sync", "setup"), ("sync", "setup", "--undo")]:
        said = queen(*setup).out.splitlines()[-1]
        assert said.startswith("next: git ")
        git(ada, *shlex.split(said.removeprefix("next: git ")))
        assert git(ada, "status", "--porcelain") == ""
        assert (".beads/.gitignore" in tracked(world, "ada")) == (len(setup) == 2)


def test_undone_before_the_commit_it_leaves_nothing_to_commit(world: World) -> None:
    before = git(world.folder / "ada", "status", "--porcelain")
    set_up(world.hive("ada"))
    undo(world.hive("ada"))
    assert git(world.folder / "ada", "status", "--porcelain") == before


def test_an_ignored_folder_stays_out_of_the_index(world: World) -> None:
    """A hive that is kept out of the code's branches altogether, as by `.git/info/exclude`."""
    ada = world.folder / "ada"
    git(ada, "rm", "-rq", "--cached", ".beads")
    (ada / ".git/info/exclude").write_text("/.beads/\n")
    set_up(world.hive("ada"))
    assert tracked(world, "ada") == []
    assert undo(world.hive("ada")).tracked == []
    assert tracked(world, "ada") == []


def test_twice_changes_nothing(world: World) -> None:
    set_up(world.hive("ada"))
    again = set_up(world.hive("ada"))
    assert not (again.files or again.untracked)


@pytest.mark.parametrize(
    "before",
    [
        "",
        'ttl = "1h"',
        "# nothing\n",
        '[sync]\nremote = "origin"\n\n[land]\nunion = []\n',
        '[sync]\nledgers = "code"\n',
        "[sync] # ours\n",
    ],
)
def test_undo_brings_everything_back(world: World, before: str) -> None:
    world.settings("ada", before)
    set_up(world.hive("ada"))
    said = tomllib.loads((world.folder / "ada/.beads/queen.toml").read_text())
    assert said["sync"]["ledgers"] == "branch"
    commit(world, "ada", "moved")
    moved = undo(world.hive("ada"))
    assert moved.tracked == [".beads/queen_assignments.jsonl"]
    after = tomllib.loads((world.folder / "ada/.beads/queen.toml").read_text())
    wanted = tomllib.loads(before)
    wanted.get("sync", {}).pop("ledgers", None)
    after.get("sync", {}) or after.pop("sync", None)
    wanted.get("sync", {}) or wanted.pop("sync", None)
    assert after == wanted
    assert not (world.folder / "ada/.beads/.gitignore").exists()
    assert ".beads/queen_assignments.jsonl" in tracked(world, "ada")
    assert not undo(world.hive("ada")).files


def test_an_unreachable_remote_changes_nothing(world: World) -> None:
    world.cut()
    with pytest.raises(Unreachable):
        set_up(world.hive("ada"))
    assert git(world.folder / "ada", "status", "--porcelain") == ""


def test_an_old_clone_pulls_the_move_and_loses_nothing(world: World) -> None:
    set_up(world.hive("ada"))
    commit(world, "ada", "moved")
    git(world.folder / "ada", "push", "-q", "origin", "HEAD:main")
    bob = world.folder / "bob"
    commit(world, "bob", "bob's records")
    git(bob, "fetch", "-q", "origin")
    merge = ["git", "merge", "-q", "--no-edit", "origin/main"]
    said = subprocess.run(merge, cwd=bob, capture_output=True, text=True, check=False)
    assert "modify/delete" in said.stdout  # As docs/machines.md says, with what to do then.
    git(bob, "rm", "-q", "--cached", ".beads/queen_assignments.jsonl")
    git(bob, "commit", "-q", "--no-edit")
    assert tracked(world, "bob") == [
        ".beads/.gitattributes",
        ".beads/.gitignore",
        ".beads/queen.toml",
    ]
    sync(world.hive("bob"))
    sync(world.hive("ada"))
    assert issues(world, "ada") == issues(world, "bob") == {"shop-1", "shop-2"}


def test_doctor_and_guard_find_nothing_wrong(world: World) -> None:
    before = {each.code for each in examine(world.hive("ada"))}
    set_up(world.hive("ada"))
    assert left_out(world.hive("ada")) == []
    assert {each.code for each in examine(world.hive("ada"))} <= before
    commit(world, "ada", "moved")
    assert {each.code for each in examine(world.hive("ada"))} <= before


def test_a_new_clone_has_everything_after_init(world: World) -> None:
    set_up(world.hive("ada"))
    commit(world, "ada", "moved")
    git(world.folder / "ada", "push", "-q", "origin", "HEAD:main")
    world.clone("new")
    queen = QuickQueen(world.folder / "new")
    assert "has not fetched the records yet" in queen("issue", "assignments").err
    assert queen("init").code == 0
    assert [each["issue_id"] for each in queen("issue", "assignments", "--json").json] == ["shop-1"]
    assert queen("issue", "assignments").err == ""
    before = world.git("rev-parse", BRANCH)
    assert sync(world.hive("new")).sent == 0
    assert world.git("rev-parse", BRANCH) == before


def test_init_without_the_remote_says_so_and_goes_on(world: World) -> None:
    set_up(world.hive("ada"))
    world.cut()
    told = QuickQueen(world.folder / "ada")("init")
    assert told.code == 0
    assert "cannot be reached" in told.err


def test_the_tracker_is_off_the_branch_of_the_code_and_kept_up_to_date(world: World) -> None:
    ada, bob = (world.folder / name / ".beads" / "issues.jsonl" for name in ("ada", "bob"))
    Tracker(world.hive("ada")).new(NewIssue("One", issue_id="qb-1"))
    export_issues(world.hive("ada"))
    commit(world, "ada", "the tracker")
    moved = set_up(world.hive("ada"))
    assert ".beads/issues.jsonl" in moved.untracked
    git(world.folder / "ada", "add", ".beads")
    git(world.folder / "ada", "commit", "-qm", "moved")
    git(world.folder / "ada", "push", "-q", "origin", "HEAD:main")
    git(world.folder / "bob", "checkout", "-q", "--", ".")
    git(world.folder / "bob", "pull", "-q", "--ff-only", "origin", "main")
    Tracker(world.hive("ada")).edit("qb-1", title="Two")
    for name in ("ada", "bob", "ada"):
        sync(world.hive(name))
    for file in (ada, bob):
        assert [row["title"] for row in records(file)] == ["Two"]
        assert git(file.parent, "status", "--porcelain") == ""
    moved = undo(world.hive("ada"))
    assert ".beads/issues.jsonl" in moved.tracked


def test_the_tracker_of_another_program_stays_on_the_branch_of_the_code(world: World) -> None:
    beads = world.folder / "ada" / ".beads"
    (beads / "issues.jsonl").write_text('{"id":"bd-1","title":"x","status":"open"}\n')
    (beads / "metadata.json").write_text("{}")
    commit(world, "ada", "a tracker")
    set_up(world.hive("ada"))
    assert ".beads/issues.jsonl" in tracked(world, "ada")
    assert "issues" not in (beads / ".gitignore").read_text()
