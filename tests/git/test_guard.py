"""The guard, end to end: real commits, merges, rebases and pushes in real worktrees."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import QuickQueen, add_submodule, commit_file, git, write_lines

from queenbee import Hive, Reservation
from queenbee.store.droids.liveness import described

pytestmark = pytest.mark.slow

Git = Callable[..., "subprocess.CompletedProcess[str]"]
Hold = Callable[..., Reservation]


def stage(tree: Path, name: str, text: str = "changed\n") -> None:
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text(text)
    git(tree, "add", "--", name)


def subjects(tree: Path) -> list[str]:
    return git(tree, "log", "--format=%s").splitlines()


# Commits


def test_a_commit_of_what_another_holds_is_refused_and_says_who_why_and_what_to_do(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    hold("src/**", issue_id="qb-7", reason="splitting the module")
    stage(guarded, "src/app.py")

    done = try_git("commit", "-m", "mine", as_="ui-engineer")

    assert done.returncode == 1
    assert "src/app.py: held by reviewer, src/** for qb-7 (splitting the module), " in done.stderr
    assert " left" in done.stderr
    assert "queen msg send reviewer" in done.stderr
    assert "QUEEN_GUARD=warn" in done.stderr
    assert "git commit --no-verify" in done.stderr
    assert subjects(guarded) == ["add README.md"]


def test_the_holder_commits_what_it_holds(guarded: Path, try_git: Git, hold: Hold) -> None:
    hold("src/**")
    stage(guarded, "src/app.py")
    assert try_git("commit", "-m", "mine", as_="reviewer").returncode == 0


def test_what_was_taken_over_is_committed_and_no_longer_held_by_whoever_lost_it(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    hold("src/**")
    env = {"QUEEN_DURABILITY": "buffered"}
    with Hive.open(str(guarded), droid="ui-engineer", env=env) as hive:
        hive.reservations.reserve(["src/app.py"], force=True, reason="urgent")
    stage(guarded, "src/app.py")
    assert try_git("commit", "-m", "mine", as_="ui-engineer").returncode == 0
    stage(guarded, "src/other.py")
    assert try_git("commit", "-m", "the rest", as_="ui-engineer").returncode == 0


def test_a_held_file_is_refused_among_very_many_leases_and_files(
    guarded: Path, quick: QuickQueen
) -> None:
    rows = [
        {
            "id": f"qr-{n}",
            "pattern": "work/7/*.py" if n == 500 else f"src/app{n}/**",
            "droid": "reviewer",
            "status": "active",
            "exclusive": True,
            "expires_at": "2999-01-01T00:00:00.000Z",
            "rev": 1,
        }
        for n in range(1_000)
    ]
    write_lines(guarded / ".beads" / "queen_reservations.jsonl", *rows)
    files = [f"work/{n % 40}/f{n}.py" for n in range(400)]
    held = quick("guard", "check", *files, "--json", as_="ui-engineer").json["held"]
    assert [each["path"] for each in held] == [each for each in files if each[:7] == "work/7/"]
    assert {each["id"] for each in held} == {"qr-500"}


def test_what_nobody_holds_is_committed(guarded: Path, try_git: Git, hold: Hold) -> None:
    hold("docs/**")
    stage(guarded, "src/app.py")
    assert try_git("commit", "-m", "mine").returncode == 0


def test_what_another_announced_in_its_own_tree_blocks_no_commit_and_no_push_here(
    guarded: Path, try_git: Git, hold: Hold, tmp_path: Path
) -> None:
    linked, remote = tmp_path / "linked", tmp_path / "remote.git"
    git(guarded, "worktree", "add", "-q", str(linked), "-b", "topic")
    git(guarded, "init", "-q", "--bare", str(remote))
    hold("src/**", cwd=linked, exclusive=False)
    hold("docs/**", cwd=linked, exclusive=False, session="s1")
    stage(guarded, "src/app.py")
    stage(guarded, "docs/a.md")
    assert try_git("commit", "-m", "mine").returncode == 0
    assert try_git("push", str(remote), "main").returncode == 0


def test_what_another_announced_in_this_tree_blocks_a_commit(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    hold("src/app.py", exclusive=False)
    stage(guarded, "src/app.py")
    done = try_git("commit", "-m", "mine")
    assert done.returncode == 1
    assert "src/app.py: held by reviewer" in done.stderr


def test_an_exclusive_lease_blocks_a_commit_in_every_tree(
    guarded: Path, try_git: Git, hold: Hold, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    git(guarded, "worktree", "add", "-q", str(linked), "-b", "topic")
    hold("src/**", cwd=linked)
    stage(guarded, "src/app.py")
    assert try_git("commit", "-m", "mine").returncode == 1


def test_a_released_lease_blocks_no_commit(guarded: Path, try_git: Git, hold: Hold) -> None:
    lease = hold("src/**")
    Hive.open(guarded, droid="reviewer", env={}).reservations.release(ids=[lease.id])
    stage(guarded, "src/app.py")
    assert try_git("commit", "-m", "mine").returncode == 0


def test_a_person_without_a_name_is_human(guarded: Path, try_git: Git, hold: Hold) -> None:
    hold("src/**", droid="human")
    stage(guarded, "src/app.py")
    assert try_git("commit", "-m", "mine", as_="ui-engineer").returncode == 1
    assert try_git("commit", "-m", "mine").returncode == 0


def test_both_names_of_a_rename_and_the_name_of_a_deletion_count(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    for name in ("a.py", "b.py", "gone.py"):
        commit_file(guarded, name, name * 40)
    (guarded / "in").mkdir()
    hold("a.py")
    hold("in/**")
    hold("gone.py")
    git(guarded, "mv", "a.py", "out.py")
    assert "a.py: held by" in try_git("commit", "-m", "out").stderr
    git(guarded, "reset", "-q", "--hard")
    git(guarded, "mv", "b.py", "in/b.py")
    assert "in/b.py: held by" in try_git("commit", "-m", "in").stderr
    git(guarded, "reset", "-q", "--hard")
    git(guarded, "rm", "-q", "gone.py")
    assert "gone.py: held by" in try_git("commit", "-m", "gone").stderr
    assert subjects(guarded)[0] == "add gone.py"


def test_the_first_commit_of_a_repository_is_guarded(
    tmp_path: Path, try_git: Git, hold: Hold, quick: QuickQueen
) -> None:
    tree = tmp_path / "fresh"
    (tree / ".beads").mkdir(parents=True)
    git(tree, "init", "-q")
    assert quick("guard", "install", cwd=tree).code == 0
    hold("a.py", cwd=tree)
    stage(tree, "a.py")
    assert try_git("commit", "-m", "first", cwd=tree).returncode == 1
    stage(tree, "b.py")
    git(tree, "rm", "-q", "--cached", "a.py")
    assert try_git("commit", "-m", "first", cwd=tree).returncode == 0


def test_commit_all_and_commit_of_a_path_are_guarded(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    commit_file(guarded, "a.py")
    commit_file(guarded, "b.py")
    hold("a.py")
    (guarded / "a.py").write_text("changed\n")
    (guarded / "b.py").write_text("changed\n")
    assert try_git("commit", "-am", "all").returncode == 1
    assert try_git("commit", "-m", "a", "a.py").returncode == 1
    assert try_git("commit", "-m", "b", "b.py").returncode == 0


def test_amending_is_guarded_for_what_it_adds(guarded: Path, try_git: Git, hold: Hold) -> None:
    commit_file(guarded, "a.py")
    hold("a.py")
    assert try_git("commit", "--amend", "-m", "another subject").returncode == 0
    stage(guarded, "a.py")
    assert try_git("commit", "--amend", "--no-edit").returncode == 1


def test_a_commit_from_a_folder_below_is_guarded_by_paths_from_the_root(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    hold("app.py")
    stage(guarded, "src/app.py")
    assert try_git("commit", "-m", "mine", cwd=guarded / "src").returncode == 0
    stage(guarded, "app.py")
    assert try_git("commit", "-m", "mine", cwd=guarded / "src").returncode == 1


def test_a_linked_worktree_is_guarded_by_the_same_hive(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    linked = guarded.parent / "linked"
    git(guarded, "worktree", "add", "-q", str(linked), "-b", "topic")
    hold("src/**")
    stage(linked, "src/app.py")
    done = try_git("commit", "-m", "mine", cwd=linked)
    assert done.returncode == 1
    assert "held by reviewer" in done.stderr


def test_the_hives_own_files_are_never_held(guarded: Path, try_git: Git, hold: Hold) -> None:
    hold("**")
    git(guarded, "add", ".beads")
    assert try_git("commit", "-m", "ledgers").returncode == 0
    linked = guarded.parent / "linked"
    git(guarded, "worktree", "add", "-q", str(linked), "-b", "topic")
    write_lines(linked / ".beads" / "queen_messages.jsonl", {"id": "qm-1"})
    git(linked, "add", ".beads")
    assert try_git("commit", "-m", "ledgers", cwd=linked).returncode == 0


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "name", [b"new\nline", b'quo"te\\', "ä🐝".encode(), b"latin\xe9", b"\x1b[2J"]
)
def test_a_held_name_of_any_bytes_is_refused_without_harm(
    guarded: Path, try_git: Git, hold: Hold, name: bytes
) -> None:
    os.mkdir(guarded / "src")
    with open(os.path.join(os.fsencode(guarded), b"src", name), "wb"):
        pass
    git(guarded, "add", "src")
    hold("src/**")
    done = try_git("commit", "-m", "odd")
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "held by reviewer" in line]
    assert "\x1b" not in line
    assert "Traceback" not in done.stderr


def test_a_symbolic_link_and_a_submodule_are_guarded_as_paths(
    guarded: Path, try_git: Git, hold: Hold, tmp_path: Path
) -> None:
    hold("link")
    hold("vendor/lib/**")
    (guarded / "link").symlink_to("README.md")
    git(guarded, "add", "link")
    assert "link: held by" in try_git("commit", "-m", "link").stderr
    git(guarded, "rm", "-q", "--cached", "link")
    add_submodule(guarded, tmp_path / "other", "vendor/lib", "a")
    assert "vendor/lib: held by" in try_git("commit", "-m", "module").stderr


def test_a_person_commits_what_a_session_edited_in_the_same_worktree(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    hold("a.py", droid="claude-1b4e28ba", session="1b4e28ba-2fa1")
    stage(guarded, "a.py")
    assert try_git("commit", "-m", "as another droid", as_="ui-engineer").returncode == 1
    assert try_git("commit", "-m", "the session's work").returncode == 0


def test_a_person_does_not_commit_over_a_session_of_another_worktree(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    linked = guarded.parent / "linked"
    git(guarded, "worktree", "add", "-q", str(linked), "-b", "topic")
    hold("a.py", droid="claude-1b4e28ba", session="1b4e28ba-2fa1", cwd=linked)
    stage(guarded, "a.py")
    assert try_git("commit", "-m", "mine").returncode == 1


def test_a_person_does_not_commit_over_a_session_of_another_clone(
    repo: Path, hold: Hold, quick: QuickQueen
) -> None:
    assert hold("a.py", droid="claude-1b4e28ba", session="1b4e28ba-2fa1").tree_id
    assert quick("guard", "check", "a.py", "--json", as_=None).json["held"] == []
    (repo / ".git" / "queenbee-tree").unlink()  # As it is in a clone of this one.
    (held,) = quick("guard", "check", "a.py", "--json", as_=None).json["held"]
    assert held["path"] == "a.py"


# Merges and rebases


def diverged(tree: Path) -> None:
    """Leaves `topic` with a change of `held.py` and `main` with one of `free.py`."""
    commit_file(tree, "held.py", "1\n2\n3\n")
    commit_file(tree, "free.py", "1\n")
    git(tree, "checkout", "-qb", "topic")
    commit_file(tree, "held.py", "1\n2\ntopic\n")
    git(tree, "checkout", "-q", "main")
    commit_file(tree, "free.py", "2\n")


def test_merging_what_the_holder_committed_is_no_change_of_ours(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    diverged(guarded)
    hold("held.py")
    assert try_git("merge", "--no-edit", "topic").returncode == 0
    git(guarded, "reset", "-q", "--hard", "HEAD~1")
    assert try_git("merge", "--no-commit", "topic").returncode == 0
    assert try_git("commit", "-m", "merged by hand").returncode == 0


def test_resolving_a_conflict_in_what_another_holds_is_refused(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    diverged(guarded)
    commit_file(guarded, "held.py", "1\n2\nmain\n")
    hold("held.py")
    assert try_git("merge", "--no-edit", "topic").returncode == 1
    stage(guarded, "held.py", "1\n2\nresolved\n")
    done = try_git("commit", "--no-edit")
    assert done.returncode == 1
    assert "held.py: held by reviewer" in done.stderr
    assert try_git("commit", "--no-edit", as_="reviewer").returncode == 0


def test_a_rebase_goes_through_and_leaves_no_trace_of_trouble(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    diverged(guarded)
    hold("other.py")
    git(guarded, "checkout", "-q", "topic")
    done = try_git("rebase", "main")
    assert done.returncode == 0, done.stderr
    assert subjects(guarded)[:2] == ["add held.py", "add free.py"]


def replayable(tree: Path) -> None:
    """Leaves `topic` with a change of `held.py`, which `main` has as its last commit."""
    commit_file(tree, "held.py", "1\n2\n3\n")
    git(tree, "checkout", "-qb", "topic")
    commit_file(tree, "held.py", "1\n2\ntopic\n")
    git(tree, "format-patch", "-q", "-1", "-o", str(tree.parent / "patches"))
    git(tree, "checkout", "-q", "main")


REPLAYS = {
    "cherry-pick": ("cherry-pick", "topic"),
    "cherry-pick with an editor": ("cherry-pick", "--edit", "topic"),
    "cherry-pick of a range": ("cherry-pick", "main..topic"),
    "signed cherry-pick": ("cherry-pick", "-x", "-s", "topic"),
    "revert": ("revert", "--no-edit", "HEAD"),
    "revert with an editor": ("revert", "--edit", "HEAD"),
    "revert of a range": ("revert", "--no-edit", "HEAD~1..HEAD"),
    "am": ("am", "../patches/0001-add-held.py.patch"),
}


@pytest.mark.some(2)
@pytest.mark.parametrize("how", REPLAYS)
def test_what_another_holds_is_not_replayed(
    guarded: Path, try_git: Git, hold: Hold, how: str
) -> None:
    replayable(guarded)
    hold("held.py")
    head = git(guarded, "rev-parse", "HEAD")
    done = try_git(*REPLAYS[how], GIT_EDITOR="true")
    assert done.returncode != 0
    assert "held.py: held by reviewer" in done.stderr
    assert git(guarded, "rev-parse", "HEAD") == head
    if how != "revert" and "revert with" not in how:
        assert try_git(REPLAYS[how][0], "--abort").returncode == 0
        assert git(guarded, "status", "--porcelain", "--untracked-files=no") == ""


@pytest.mark.some(2)
@pytest.mark.parametrize("how", REPLAYS)
def test_the_holder_replays_and_so_does_whoever_says_so(
    guarded: Path, try_git: Git, hold: Hold, how: str
) -> None:
    replayable(guarded)
    hold("held.py")
    start = git(guarded, "rev-parse", "HEAD")
    done = try_git(*REPLAYS[how], as_="reviewer", GIT_EDITOR="true")
    assert done.returncode == 0, done.stderr
    git(guarded, "reset", "-q", "--hard", start.strip())
    assert try_git(*REPLAYS[how], QUEEN_GUARD="warn", GIT_EDITOR="true").returncode == 0
    assert "allowed, QUEEN_GUARD=warn: held.py" in log_of(guarded)


@pytest.mark.some(2)
@pytest.mark.parametrize("how", ["cherry-pick", "revert", "revert with an editor"])
@pytest.mark.parametrize("said", [("--no-edit",), ("-m", "mine"), ("-e",)])
def test_a_refused_replay_is_committed_with_no_verify(
    guarded: Path, try_git: Git, hold: Hold, how: str, said: tuple[str, ...]
) -> None:
    replayable(guarded)
    hold("held.py")
    assert try_git(*REPLAYS[how], GIT_EDITOR="true").returncode != 0
    assert try_git("commit", *said, GIT_EDITOR="true").returncode == 1
    done = try_git("commit", "--no-verify", *said, GIT_EDITOR="true")
    assert done.returncode == 0, done.stderr


def test_a_resolved_conflict_of_a_replay_is_refused_and_told_once(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    replayable(guarded)
    commit_file(guarded, "held.py", "1\n2\nmain\n")
    assert try_git("cherry-pick", "topic").returncode == 1
    hold("held.py")
    stage(guarded, "held.py", "1\n2\nresolved\n")
    done = try_git("cherry-pick", "--continue", GIT_EDITOR="true")
    assert done.returncode != 0
    assert done.stderr.count("held.py: held by reviewer") == 1


def test_a_refused_patch_says_how_to_apply_it_anyway(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    replayable(guarded)
    hold("held.py")
    done = try_git(*REPLAYS["am"])
    assert "QUEEN_GUARD=warn (it is logged) for git am --continue\n" in done.stderr
    assert try_git("am", "--continue", QUEEN_GUARD="warn").returncode == 0


@pytest.mark.parametrize("backend", ["--merge", "--apply"])
def test_a_rebase_of_what_was_committed_before_goes_through(
    guarded: Path, try_git: Git, hold: Hold, backend: str
) -> None:
    diverged(guarded)
    hold("held.py")
    git(guarded, "checkout", "-q", "topic")
    done = try_git("rebase", backend, "main")
    assert done.returncode == 0, done.stderr
    assert subjects(guarded)[:2] == ["add held.py", "add free.py"]


def test_a_cherry_pick_without_a_commit_leaves_no_verify_as_it_is(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    replayable(guarded)
    hold("held.py")
    assert try_git("cherry-pick", "--no-commit", "topic").returncode == 0
    assert try_git("commit", "-m", "mine").returncode == 1
    assert try_git("commit", "--no-verify", "-m", "mine").returncode == 0


# Pushes


@pytest.fixture
def remote(repo: Path) -> Path:
    bare = repo.parent / "remote.git"
    git(repo, "clone", "-q", "--bare", str(repo), str(bare))
    git(repo, "remote", "add", "origin", str(bare))
    git(repo, "fetch", "-q", "origin")
    return bare


def refs(bare: Path) -> set[str]:
    return set(git(bare, "for-each-ref", "--format=%(refname:short)").split())


def test_a_push_of_what_another_holds_is_refused(
    guarded: Path, try_git: Git, hold: Hold, remote: Path
) -> None:
    commit_file(guarded, "src/app.py")
    hold("src/**")
    done = try_git("push", "origin", "main", as_="ui-engineer")
    assert done.returncode == 1
    assert "push refused" in done.stderr
    assert "src/app.py: held by reviewer" in done.stderr
    assert "git push --no-verify" in done.stderr
    assert git(remote, "log", "--format=%s", "main").split("\n")[0] == "add README.md"


def test_the_holder_pushes_what_it_holds(
    guarded: Path, try_git: Git, hold: Hold, remote: Path
) -> None:
    commit_file(guarded, "src/app.py")
    hold("src/**")
    assert try_git("push", "origin", "main", as_="reviewer").returncode == 0


def test_new_deleted_and_forced_branches_are_pushed_by_what_they_bring(
    guarded: Path, try_git: Git, hold: Hold, remote: Path
) -> None:
    hold("src/**")
    commit_file(guarded, "free.py")
    git(guarded, "checkout", "-qb", "topic")
    assert try_git("push", "origin", "main", "topic").returncode == 0
    git(guarded, "commit", "-q", "--no-verify", "--amend", "-m", "amended")
    assert try_git("push", "--force", "origin", "topic").returncode == 0
    (guarded / "src").mkdir()
    (guarded / "src" / "app.py").touch()
    git(guarded, "add", ".")
    git(guarded, "commit", "-q", "--no-verify", "--amend", "--no-edit")
    assert try_git("push", "--force", "origin", "topic").returncode == 1
    assert try_git("push", "origin", ":topic").returncode == 0
    assert refs(remote) == {"main"}
    assert try_git("push", "origin", "topic:another").returncode == 1


def test_merging_and_pushing_what_others_pushed_is_no_change_of_ours(
    guarded: Path, try_git: Git, hold: Hold, remote: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    git(tmp_path, "clone", "-q", str(remote), str(theirs))
    commit_file(theirs, "src/app.py")
    git(theirs, "push", "-q", "origin", "main")
    hold("src/**")
    commit_file(guarded, "free.py")
    assert try_git("pull", "--no-rebase", "--no-edit", "origin", "main").returncode == 0
    assert try_git("push", "origin", "main").returncode == 0


def test_a_push_with_nothing_to_say_goes_through(
    guarded: Path, try_git: Git, hold: Hold, remote: Path
) -> None:
    hold("**")
    assert try_git("push", "origin", "main").returncode == 0


# Ways past, and faults


def log_of(tree: Path) -> str:
    return (tree / ".git" / "queenbee" / "guard.log").read_text()


def test_a_warning_lets_a_commit_pass_and_is_logged(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    hold("src/**")
    stage(guarded, "src/app.py")
    done = try_git("commit", "-m", "anyway", as_="ui-engineer", QUEEN_GUARD="warn")
    assert done.returncode == 0
    assert "held by reviewer" in done.stderr
    assert "commit by ui-engineer: allowed, QUEEN_GUARD=warn: src/app.py (reviewer)" in log_of(
        guarded
    )


def test_the_guard_turned_off_checks_nothing_and_is_logged(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    hold("src/**")
    stage(guarded, "src/app.py")
    done = try_git("commit", "-m", "anyway", QUEEN_GUARD="off")
    assert (done.returncode, "held by" in done.stderr) == (0, False)
    assert "commit by human: not checked, QUEEN_GUARD=off" in log_of(guarded)


def test_a_mode_that_there_is_not_is_refused(guarded: Path, try_git: Git) -> None:
    stage(guarded, "a.py")
    done = try_git("commit", "-m", "x", QUEEN_GUARD="maybe")
    assert done.returncode == 1
    assert "set it to warn or off" in done.stderr


def test_a_repository_without_a_hive_is_not_guarded(guarded: Path, try_git: Git) -> None:
    (guarded / ".beads").rmdir()
    stage(guarded, "a.py")
    done = try_git("commit", "-m", "x")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_hive_that_cannot_be_read_blocks_and_names_the_way_past(
    guarded: Path, try_git: Git, quick: QuickQueen
) -> None:
    (guarded / ".git" / "queenbee").mkdir(exist_ok=True)
    (guarded / ".beads" / "queen_reservations.jsonl").mkdir()
    stage(guarded, "a.py")
    done = try_git("commit", "-m", "x")
    assert done.returncode == 1
    assert "is not a regular file" in done.stderr
    assert "to proceed anyway: QUEEN_GUARD=warn" in done.stderr
    assert quick("guard", "check", "--staged").code == 7
    for mode in ("warn", "off"):
        stage(guarded, f"{mode}.py")
        assert try_git("commit", "-m", mode, QUEEN_GUARD=mode).returncode == 0
        assert f"QUEEN_GUARD={mode}" in log_of(guarded)


def test_settings_that_were_never_readable_block_too(guarded: Path, try_git: Git) -> None:
    (guarded / ".beads" / "queen.toml").write_text("state = [")
    (guarded / ".git" / "queenbee" / "last-good.toml").unlink(missing_ok=True)
    stage(guarded, "a.py")
    refused = try_git("commit", "-m", "x")
    assert refused.returncode == 1
    assert "commit refused" in refused.stderr
    assert try_git("commit", "-m", "x", QUEEN_GUARD="warn").returncode == 0


def test_while_settings_cannot_be_read_leases_hold(guarded: Path, try_git: Git, hold: Hold) -> None:
    hold("a.py")
    stage(guarded, "b.py")
    assert try_git("commit", "-m", "x").returncode == 0
    (guarded / ".beads" / "queen.toml").write_text("state = [")
    stage(guarded, "a.py")
    assert try_git("commit", "-m", "x").returncode == 1
    assert try_git("commit", "-m", "y", "--allow-empty", "--only").returncode == 0


def test_a_torn_ledger_still_guards(guarded: Path, try_git: Git, hold: Hold) -> None:
    hold("a.py")
    write_lines(guarded / ".beads" / "queen_reservations.jsonl", "{torn", b"\xff", "<<<<<<< x")
    stage(guarded, "a.py")
    assert try_git("commit", "-m", "x").returncode == 1


def test_a_foreign_pattern_that_cannot_be_used_guards_nothing(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    lease = hold("b.py")
    broken = {**lease.to_dict(), "id": "qr-foreign", "pattern": "a[", "rev": 1}
    write_lines(guarded / ".beads" / "queen_reservations.jsonl", broken)
    stage(guarded, "a[")
    assert try_git("commit", "-m", "x").returncode == 0
    stage(guarded, "b.py")
    assert try_git("commit", "-m", "x").returncode == 1


# The command


def test_a_range_and_paths_can_be_asked_about(guarded: Path, quick: QuickQueen, hold: Hold) -> None:
    commit_file(guarded, "src/app.py")
    hold("src/**", issue_id="qb-7")
    ran = quick("guard", "check", "--range", "HEAD~1..HEAD", "--json")
    assert ran.code == 1
    (held,) = ran.json["held"]
    assert (held["path"], held["droid"], held["pattern"]) == ("src/app.py", "reviewer", "src/**")
    assert held["issue_id"] == "qb-7"
    assert 0 < held["seconds_left"] <= 7200
    assert quick("guard", "check", "src/app.py", "README.md").code == 1
    assert quick("guard", "check", "README.md").code == 0
    assert quick("guard", "check", "src/app.py", as_="reviewer").code == 0
    assert quick("guard", "check", "app.py", cwd=guarded / "src").code == 1
    assert quick("guard", "check").code == 0


def test_commits_that_are_made_already_get_no_advice_on_how_to_commit(
    guarded: Path, quick: QuickQueen, hold: Hold
) -> None:
    """As in CI, where nobody commits."""
    commit_file(guarded, "src/app.py")
    hold("src/**")
    ran = quick("guard", "check", "--range", "HEAD~1..HEAD")
    assert "commits refused: another droid holds files that they change" in ran.out
    assert "QUEEN_GUARD=warn" in ran.out
    assert "--no-verify" not in ran.out
    assert "--no-verify" in quick("guard", "check", "src/app.py").out


def test_a_name_that_is_no_text_is_spelled_out_in_json(
    guarded: Path, quick: QuickQueen, hold: Hold
) -> None:
    with open(os.path.join(os.fsencode(guarded), b"latin\xe9"), "wb"):
        pass
    git(guarded, "add", ".")
    hold("latin*")
    (held,) = quick("guard", "check", "--json").json["held"]
    assert held["path"] == "latin\\xe9"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--staged", "--range", "a..b"),
        ("--range", "HEAD"),
        ("--staged", "README.md"),
        ("../outside",),
    ],
)
def test_a_wrong_question_leaves_with_2(quick: QuickQueen, arguments: tuple[str, ...]) -> None:
    assert quick("guard", "check", *arguments).code == 2


def test_the_pre_commit_framework_is_asked_by_its_variables(
    guarded: Path, quick: QuickQueen, hold: Hold, remote: Path
) -> None:
    before = git(guarded, "rev-parse", "HEAD").strip()
    commit_file(guarded, "src/app.py")
    hold("src/**")
    env = {
        "PRE_COMMIT_FROM_REF": before,
        "PRE_COMMIT_TO_REF": git(guarded, "rev-parse", "HEAD").strip(),
        "PRE_COMMIT_REMOTE_NAME": "origin",
    }
    assert quick("guard", "check", "--pre-push", env=env).code == 1
    assert quick("guard", "check", "--pre-push", env={**env, "PRE_COMMIT_TO_REF": before}).code == 0


def test_many_refusals_are_shown_in_part_and_counted(
    guarded: Path, quick: QuickQueen, hold: Hold
) -> None:
    for number in range(30):
        (guarded / f"f{number}.py").touch()
    git(guarded, "add", ".")
    hold("*.py")
    ran = quick("guard", "check")
    assert ran.out.count("held by reviewer") == 20
    assert "and 10 more" in ran.out
    assert len(quick("guard", "check", "--json").json["held"]) == 30


# Broken on purpose


def test_only_what_stands_against_the_commit_is_refused(
    repo: Path, hold: Hold, quick: QuickQueen
) -> None:
    git(repo, "worktree", "add", "-q", str(repo.parent / "linked"), "-b", "topic")
    hold("beside/**", exclusive=False, cwd=repo.parent / "linked")
    hold("here/**", exclusive=False)
    hold("mine/**", droid="ui-engineer")
    hold("session.py", droid="claude-1", session="1")
    hold("held/**")
    hold(".beads/**")
    paths = ["beside/a", "here/a", "mine/a", "held/a", "session.py", ".beads/queen.toml", "free"]
    checked = quick("guard", "check", *paths, "--json", as_="ui-engineer").json
    assert [each["path"] for each in checked["held"]] == ["here/a", "held/a", "session.py"]


def test_the_answer_as_json_is_one_document(guarded: Path, quick: QuickQueen) -> None:
    assert json.loads(quick("guard", "check", "--json").out) == {
        "checked": "commit",
        "mode": "on",
        "paths": 0,
        "held": [],
    }


# Commits of an agent in the main worktree


def test_an_agent_with_a_worktree_of_its_own_commits_nothing_straight_onto_main(
    guarded: Path, try_git: Git, quick: QuickQueen
) -> None:
    assert quick("worktree", "add", "api").code == 0
    stage(guarded, "new.py")
    done = try_git("commit", "-m", "x", as_="api")
    assert done.returncode == 1
    assert "api has a worktree of its own" in done.stderr
    assert "queen land -m TEXT" in done.stderr
    assert json.loads(quick("guard", "check", "--json", as_="api").out)["own_worktree"]
    assert quick("guard", "check", as_="api").code == 1
    for who in (None, "ui"):
        assert quick("guard", "check", as_=who).code == 0
    assert try_git("commit", "-m", "x", as_="api", QUEEN_GUARD="warn").returncode == 0
    assert (
        "api in the main worktree: allowed"
        in (guarded / ".git" / "queenbee" / "guard.log").read_text()
    )


def test_it_commits_records_there_and_work_on_another_branch(
    guarded: Path, quick: QuickQueen
) -> None:
    assert quick("worktree", "add", "api").code == 0
    stage(guarded, ".beads/notes.txt")
    assert quick("guard", "check", as_="api").code == 0
    stage(guarded, "new.py")
    assert quick("guard", "check", as_="api").code == 1
    quick("config", "set", "land.target", "main")
    git(guarded, "switch", "-qc", "topic")
    assert quick("guard", "check", as_="api").code == 0


@pytest.mark.parametrize(
    ("update", "who", "code"),
    [
        ("api api main newer-main", "api", 1),
        ("api api main main", "api", 0),
        ("(delete) none main main", "api", 1),
        ("api api main unknown", "api", 1),
        ("api api ui newer-ui", "api", 1),
        ("api api ui none", "api", 0),
        ("api api api newer-ui", "api", 0),
        ("api api theirs newer-ui", "api", 0),
        ("main main main newer-main", "ui", 1),
        ("main main main newer-main", "reviewer", 0),
        ("api api main newer-main", None, 0),
    ],
)
def test_it_removes_no_commits_from_main_or_from_anothers_branch(
    guarded: Path, quick: QuickQueen, update: str, who: str | None, code: int
) -> None:
    for name in ("api", "ui"):
        assert quick("worktree", "add", name).code == 0
        git(guarded, "branch", f"newer-{name}", empty_commit(guarded, name))
    git(guarded, "branch", "newer-main", empty_commit(guarded, "main"))
    zeros, ones = "0" * 40, "1" * 40
    local, ours, ref, there = update.split()
    ids = [
        {"none": zeros, "unknown": ones}.get(each) or git(guarded, "rev-parse", each).strip()
        for each in (ours, there)
    ]
    line = f"refs/heads/{local} {ids[0]} refs/heads/{ref} {ids[1]}\n"
    ask = ("guard", "check", "--pre-push", "origin")
    said = quick(*ask, "--json", as_=who, stdin=line)
    assert (said.code, said.json.get("overwritten")) == (code, [ref] if code else None)
    told = quick(*ask, as_=who, stdin=line, env={"QUEEN_GUARD": "warn"})
    assert told.code == 0
    assert ("allowed anyway" in told.out + told.err) == bool(code)
    if code:
        assert f"push by {who} over {ref}: allowed" in log_of(guarded)


@pytest.mark.parametrize("char", ["\u2028", "\x85", "\u00e9"])
def test_a_branch_may_have_any_character_that_git_allows(
    guarded: Path, quick: QuickQueen, char: str
) -> None:
    head = git(guarded, "rev-parse", "HEAD").strip()
    line = f"refs/heads/a{char}b {head} refs/heads/a{char}b {'0' * 40}\n"
    assert quick("guard", "check", "--pre-push", "origin", stdin=line).code == 0


def empty_commit(repo: Path, branch: str) -> str:
    return git(repo, "commit-tree", "-m", "x", "-p", branch, f"{branch}^{{tree}}").strip()


def test_a_forced_push_of_an_agent_is_refused(
    guarded: Path, try_git: Git, quick: QuickQueen, remote: Path
) -> None:
    assert quick("worktree", "add", "api").code == 0
    tree = guarded.parent / f"{guarded.name}-api"
    git(guarded, "push", "-q", "origin", f"{empty_commit(guarded, 'main')}:refs/heads/main")
    before = git(remote, "for-each-ref")
    for words in (["+api:main"], ["--delete", "main"], [":main", "api:api"]):
        done = try_git("push", "origin", *words, cwd=tree, as_="api")
        assert done.returncode == 1, words
        assert "removes commits from, what is not api's own: main" in done.stderr
        assert "git fetch && queen land" in done.stderr
    assert git(remote, "for-each-ref") == before
    assert try_git("push", "origin", "+api:api", cwd=tree, as_="api").returncode == 0
    git(remote, "symbolic-ref", "HEAD", "refs/heads/api")
    assert try_git("push", "origin", ":main").returncode == 0  # A person.


@pytest.mark.linux
def test_its_client_is_known_without_a_name(guarded: Path, quick: QuickQueen) -> None:
    assert quick("worktree", "add", "api").code == 0
    stage(guarded, "new.py")
    noted = guarded / ".git" / "queenbee" / "clients" / "api"
    noted.parent.mkdir(parents=True, exist_ok=True)
    for pid, code in ((os.getpid(), 0), (os.getppid(), 1)):
        noted.write_text(f"{described(pid)} again")
        assert quick("guard", "check").code == code
