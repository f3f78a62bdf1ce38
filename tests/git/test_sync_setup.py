"""`queen sync setup`: the ledgers leave the branches of the code, and nothing is lost."""

from __future__ import annotations

import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, Ran, git, records
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


def follow(said: Ran, at: Path) -> None:
    """Runs the git command that was printed, as it was printed."""
    assert said.code == 0, said
    (command,) = [each for each in said.out.splitlines() if each.startswith("next: ")]
    git(at, *shlex.split(command.removeprefix("next: git ")))


def test_the_commit_that_it_suggests_is_complete(world: World) -> None:
    """`git commit -- .beads` leaves out a new `.gitignore`, and adds the ledgers again."""
    ada, queen = world.folder / "ada", QuickQueen(world.folder / "ada")
    for setup in [("sync", "setup"), ("sync", "setup", "--undo")]:
        follow(queen(*setup), ada)
        assert git(ada, "status", "--porcelain") == ""
        assert (".beads/.gitignore" in tracked(world, "ada")) == (len(setup) == 2)
        ledger = ".beads/queen_assignments.jsonl"
        assert (ledger in tracked(world, "ada")) == (len(setup) == 3)


def test_what_it_prints_lets_two_clones_pull_from_then_on(world: World) -> None:
    ada, bob = (world.folder / name for name in ("ada", "bob"))
    follow(QuickQueen(ada)("sync", "setup"), ada)
    git(ada, "push", "-q", "origin", "HEAD:main")
    git(bob, "commit", "-qam", "records, as git pull asks for it")
    assert git_exit(bob, "pull", "--no-rebase", "--no-edit", "origin", "main") != 0
    told = QuickQueen(bob)("doctor", "--json")
    (found,) = [each for each in told.json if each["code"] == "tracked"]
    assert (told.code, found["hint"].partition(",")[0]) == (1, "queen sync setup")
    follow(QuickQueen(bob)("sync", "setup"), bob)
    assert [each for each in tracked(world, "bob") if each.endswith("jsonl")] == []
    for one, other in ((bob, ada), (ada, bob), (bob, ada)):
        for each in (one, other):
            assert QuickQueen(each)("msg", "send", "human", "Hi", as_=each.name).code == 0
        (one / f"of-{one.name}").write_text(git(one, "rev-parse", "HEAD"))
        git(one, "add", "-A")
        git(one, "commit", "-qam", "work")
        git(one, "push", "-q", "origin", "HEAD:main")
        git(other, "pull", "-q", "--no-rebase", "origin", "main")
    sync(world.hive("bob"))
    sync(world.hive("ada"))
    assert issues(world, "ada") == issues(world, "bob") == {"shop-1", "shop-2"}
    for name in ("ada", "bob"):
        found = QuickQueen(world.folder / name)("doctor", "--json").json
        assert [each for each in found if each["code"] == "tracked"] == []


@pytest.mark.parametrize("by_force", [False, True])
def test_the_guard_refuses_a_commit_that_would_undo_it(world: World, by_force: bool) -> None:
    ada = world.folder / "ada"
    queen = Queen(ada)
    assert queen("guard", "install").code == 0
    setup = queen("sync", "setup")
    if by_force:
        follow(setup, ada)
        git(ada, "add", "--force", ".beads")
        assert QuickQueen(ada)("guard", "check").code == 2
    how = () if by_force else ("--", ".beads")
    said = subprocess.run(
        ["git", "commit", "-m", "all", *how], cwd=ada, capture_output=True, text=True, check=False
    )
    assert said.returncode != 0
    assert "only the branch of the remote is to have" in said.stderr
    again = queen("sync", "setup")
    if not by_force:
        follow(again, ada)
    assert git(ada, "status", "--porcelain") == ""
    assert ".beads/queen_assignments.jsonl" not in tracked(world, "ada")
    (ada / "f").write_text("1")
    git(ada, "add", "-A")
    git(ada, "commit", "-qm", "code passes")


def git_exit(at: Path, *words: str) -> int:
    return subprocess.run(["git", *words], cwd=at, capture_output=True, check=False).returncode


@pytest.mark.parametrize("setup", [("sync", "setup"), ("sync", "setup", "--undo")])
def test_what_else_is_staged_is_not_committed_with_it(world: World, setup: list[str]) -> None:
    ada, queen = world.folder / "ada", QuickQueen(world.folder / "ada")
    if "--undo" in setup:
        follow(queen("sync", "setup"), ada)
    (ada / "mine.py").write_text("mine\n")
    git(ada, "add", "mine.py")
    before = git(ada, "status", "--porcelain")
    said = queen(*setup)
    assert said.code == 5, said
    assert "mine.py" in said.err
    assert "git reset" in said.err
    assert git(ada, "status", "--porcelain") == before


def test_it_prints_the_commit_again_until_it_is_made(world: World) -> None:
    ada, queen = world.folder / "ada", QuickQueen(world.folder / "ada")
    assert "next: git commit" in queen("sync", "setup").out
    follow(queen("sync", "setup"), ada)
    assert queen("sync", "setup").out == "nothing was changed\n"


def test_from_a_linked_worktree_it_prints_the_commit_of_the_main_one(world: World) -> None:
    ada, linked = world.folder / "ada", world.folder / "ada-ui"
    git(ada, "worktree", "add", "-q", str(linked))
    said = QuickQueen(linked)("sync", "setup")
    assert f"git -C {ada} commit" in said.out
    follow(said, linked)
    assert git(ada, "status", "--porcelain") == ""


def test_undone_before_the_commit_it_leaves_nothing_to_commit(world: World) -> None:
    before = git(world.folder / "ada", "status", "--porcelain")
    set_up(world.hive("ada"))
    undo(world.hive("ada"))
    assert git(world.folder / "ada", "status", "--porcelain") == before


def test_an_ignored_folder_stays_out_of_the_index(world: World) -> None:
    """A hive that is kept out of the code's branches altogether, as by `.git/info/exclude`."""
    ada = world.folder / "ada"
    git(ada, "rm", "-rq", "--cached", ".beads")
    git(ada, "commit", "-qm", "no hive")
    (ada / ".git/info/exclude").write_text("/.beads/\n")
    set_up(world.hive("ada"))
    assert tracked(world, "ada") == []
    assert undo(world.hive("ada")).tracked == []
    assert tracked(world, "ada") == []


def test_twice_changes_nothing(world: World) -> None:
    set_up(world.hive("ada"))
    again = set_up(world.hive("ada"))
    assert not (again.files or again.untracked)


@pytest.mark.some(2)
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


@pytest.mark.parametrize("command", ["init", "setup"])
def test_where_work_lands_by_pull_request_the_records_move_in_one_step_and_back_in_one(
    world: World, command: str
) -> None:
    ada, queen = world.folder / "ada", QuickQueen(world.folder / "ada")
    git(ada, "commit", "-qm", "begin", "--allow-empty")
    for name, value in (("target", "origin/main"), ("by", "pr")):
        queen("config", "set", f"land.{name}", value)
    before = {each: (ada / ".beads" / each).read_bytes() for each in ("queen.toml",)}
    done = queen(command)
    assert done.code in (0, 1), done
    assert "a branch of their own now; next: git commit -m" in done.err + done.out
    assert tracked(world, "ada") == [
        ".beads/.gitattributes",
        ".beads/.gitignore",
        ".beads/queen.toml",
    ]
    assert world.git("rev-parse", f"refs/heads/{BRANCH}")
    assert "a branch of their own" not in queen(command).err
    assert queen("sync", "setup", "--undo").code == 0
    assert {each: (ada / ".beads" / each).read_bytes() for each in before} == before
    assert ".beads/queen_assignments.jsonl" in tracked(world, "ada")


def test_nothing_is_pushed_by_init_where_nobody_here_has_agreed(asking: Path, world: World) -> None:
    ada, queen = world.folder / "ada", QuickQueen(world.folder / "ada")
    settings = '[land]\ntarget = "origin/main"\nby = "pr"\n'
    (ada / ".beads" / "queen.toml").write_text(settings)  # As it comes with a clone.
    done = queen("init")
    assert "nobody here has agreed to push): queen sync setup" in done.err + done.out
    assert not world.git("for-each-ref", f"refs/heads/{BRANCH}")


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("command", ["init", "setup"])
def test_a_remote_that_a_pull_names_gets_no_records_to_move_them(
    world: World, command: str
) -> None:
    """Who agreed to propose work at one remote has agreed to nothing about another one."""
    ada, queen = world.folder / "ada", QuickQueen(world.folder / "ada")
    git(ada, "push", "-q", "origin", "HEAD:main")
    git(world.folder, "init", "-q", "--bare", "public.git")
    git(ada, "remote", "add", "public", str(world.folder / "public.git"))
    for name, value in (("target", "origin/main"), ("by", "pr")):
        assert queen("config", "set", f"land.{name}", value).code == 0
    settings = ada / ".beads" / "queen.toml"
    settings.write_text(settings.read_text() + '[sync]\nremote = "public"\n')
    done = queen(command)
    assert "nobody on this machine has agreed to exchange records" in done.err
    assert git(world.folder / "public.git", "for-each-ref") == ""
