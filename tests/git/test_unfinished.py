"""A worktree that is brought back to its branch: nothing that was there is lost."""

from __future__ import annotations

import os
import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hives import QuickQueen, commit_file, git

from queenbee import Hive
from queenbee.core.records import Assignment
from queenbee.errors import Conflict, ExternalFailure, Untrusted
from queenbee.git import unfinished
from queenbee.git.unfinished import OPEN, Unfinished, WorktreeKeeper
from queenbee.git.worktrees import worktree_care
from queenbee.git.worktrees.worktree_care import remove
from queenbee.git.worktrees.worktree_making import add
from queenbee.git.worktrees.worktree_mending import WorktreeMender
from queenbee.store.droids import presence
from queenbee.store.git_files.worktrees import worktrees


@pytest.fixture
def hive(repo: Path) -> Hive:
    commit_file(repo, "a.txt", "a\n")
    return Hive.open(repo, droid="lead", env={})


@pytest.fixture
def tree(hive: Hive) -> Path:
    return Path(add(hive, "ui").path)


def put_back(hive: Hive, tree: Path, to: str | None = None) -> Unfinished:
    place = next(each for each in worktrees(hive.layout) if each.path == str(tree))
    return WorktreeKeeper(hive).put_back(place, branch="ui", name="work", to=to)


def assert_back(tree: Path, to: str) -> None:
    assert git(tree, "branch", "--show-current").strip() == "ui"
    assert git(tree, "rev-parse", "HEAD") == git(tree, "rev-parse", to)
    assert git(tree, "status", "--porcelain") == ""
    git_dir = Path(git(tree, "rev-parse", "--absolute-git-dir").strip())
    assert unfinished.open_operations(str(git_dir)) == []


def kept(tree: Path, path: str, branch: str = "unfinished/work") -> str:
    return git(tree, "show", f"{branch}:{path}")


def test_a_worktree_in_which_nothing_changed_is_left_alone(hive: Hive, tree: Path) -> None:
    before = git(tree, "reflog")
    assert put_back(hive, tree).branch is None
    assert (git(tree, "reflog"), git(tree, "branch", "--list", "unfinished/*")) == (before, "")


def test_changes_and_commits_are_kept_and_gone(hive: Hive, tree: Path) -> None:
    begun = git(tree, "rev-parse", "HEAD").strip()
    commit_file(tree, "b.txt", "committed\n")
    (tree / "b.txt").write_text("staged\n")
    git(tree, "add", "b.txt")
    (tree / "b.txt").write_text("typed\n")
    (tree / "new.txt").write_text("new\n")
    (tree / "a.txt").unlink()
    found = put_back(hive, tree, begun)
    assert (found.branch, found.commits) == ("unfinished/work", 1)
    assert found.files == ["a.txt", "b.txt", "new.txt"]
    assert_back(tree, begun)
    assert (kept(tree, "b.txt"), kept(tree, "new.txt")) == ("typed\n", "new\n")
    assert kept(tree, "b.txt", "unfinished/work~1") == "staged\n"
    assert kept(tree, "b.txt", "unfinished/work~2") == "committed\n"


def test_commits_on_a_detached_head_and_on_the_branch_are_kept(hive: Hive, tree: Path) -> None:
    begun = git(tree, "rev-parse", "HEAD").strip()
    commit_file(tree, "b.txt", "on the branch\n")
    git(tree, "checkout", "-q", "--detach", begun)
    commit_file(tree, "c.txt", "detached\n")
    assert put_back(hive, tree, "refs/heads/main").commits == 2
    assert_back(tree, "main")
    assert kept(tree, "c.txt") == "detached\n"
    assert kept(tree, "b.txt", "unfinished/work^2") == "on the branch\n"


def test_without_a_commit_to_go_to_the_branch_stays(hive: Hive, tree: Path) -> None:
    commit_file(tree, "b.txt", "on the branch\n")
    git(tree, "checkout", "-q", "--detach", "main")
    assert put_back(hive, tree).branch is None
    assert_back(tree, "ui")
    assert (tree / "b.txt").exists()


def begin(tree: Path, operation: str) -> None:
    """Leaves a git command unfinished in a worktree, most of them at a conflict."""
    commit_file(tree, "a.txt", "ui\n")
    git(tree, "checkout", "-q", "-b", "other", "main")
    commit_file(tree, "a.txt", "other\n")
    (tree / "mail").write_text(git(tree, "format-patch", "-1", "--stdout"))
    git(tree, "checkout", "-q", "ui")
    commands = {
        "rebase-merge": ("rebase", "other"),
        "rebase-apply": ("rebase", "--apply", "other"),
        "rebase-apply/applying": ("am", "mail"),
        "MERGE_HEAD": ("merge", "other"),
        "CHERRY_PICK_HEAD": ("cherry-pick", "other"),
        "REVERT_HEAD": ("revert", "other"),
        "sequencer": ("cherry-pick", "other~1..other", "main~1"),
        "BISECT_LOG": ("bisect", "start", "HEAD", "main~1"),
        "NOTES_MERGE_PARTIAL": ("notes", "merge", "theirs"),
    }
    for ref in ("commits", "theirs"):
        git(tree, "notes", f"--ref={ref}", "add", "-m", ref)
    if operation == "BISECT_LOG":
        git(tree, *commands[operation])
        return
    with pytest.raises(AssertionError):  # Git stops at a conflict.
        git(tree, *commands[operation])


@pytest.mark.some(3)
@pytest.mark.parametrize("operation", sorted(OPEN))
def test_what_git_has_open_is_quit_and_kept(hive: Hive, tree: Path, operation: str) -> None:
    begin(tree, operation)
    (tree / "typed.txt").write_text("typed\n")
    put_back(hive, tree)
    assert_back(tree, "ui")
    assert (kept(tree, "typed.txt"), (tree / "a.txt").read_text()) == ("typed\n", "ui\n")


def put_aside(tree: Path, operation: str, text: str = "put aside\n") -> None:
    """Leaves a rebase or merge open, before which git put a change aside."""
    commit_file(tree, "a.txt", "mine\n")
    (tree / "b.txt").write_text("b\n")
    git(tree, "add", "b.txt")
    git(tree, "commit", "-q", "-m", "b")
    git(tree, "branch", "theirs", "HEAD~2")
    other = git(
        tree, "commit-tree", "-p", "theirs", "-m", "x", tree_with(tree, "a.txt", "theirs\n")
    )
    git(tree, "branch", "-f", "theirs", other.strip())
    (tree / "b.txt").write_text(text)
    ran = subprocess.run(
        ["git", operation, "--autostash", "theirs"], cwd=tree, capture_output=True, text=True
    )
    assert ran.returncode != 0 and text not in git(tree, "diff", "HEAD")


def tree_with(tree: Path, name: str, text: str) -> str:
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"],
        cwd=tree,
        input=text,
        capture_output=True,
        text=True,
    ).stdout.strip()
    entry = f"100644 blob {blob}\t{name}\n"
    return subprocess.run(
        ["git", "mktree"], cwd=tree, input=entry, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.parametrize("operation", ["rebase", "merge"])
def test_what_git_put_aside_is_kept_and_gets_into_nobodys_stash(
    hive: Hive, tree: Path, operation: str
) -> None:
    put_aside(tree, operation)
    put_back(hive, tree)
    assert "put aside" in git(tree, "log", "-p", "-m", "unfinished/work", "--not", "ui")
    assert git(tree, "stash", "list") == ""
    assert_back(tree, "ui")


@pytest.mark.parametrize("operation", ["rebase", "merge"])
def test_so_it_is_with_a_worktree_that_is_removed(
    quick: QuickQueen, hive: Hive, tree: Path, operation: str
) -> None:
    put_aside(tree, operation)
    ran = quick("worktree", "remove", "ui", "--force")
    assert ran.code == 0 and "unfinished/" in ran.out, ran
    kept = git(quick.cwd, "log", "-p", "-m", "--glob=refs/heads/unfinished/*")
    assert "put aside" in kept


ALONE = {
    "rebase": ("rebase", "other"),
    "rebase --apply": ("rebase", "--apply", "other"),
    "am": ("am", "../mail"),
    "cherry-pick": ("cherry-pick", "TIP~2..TIP"),
    "merge": ("merge", "TIP"),
    "bisect": ("bisect", "start"),
}


def leave_alone(tree: Path, operation: str, text: str = "left to apply\n") -> None:
    """Leaves a git command under way that has work to do which is on no branch."""
    git(tree, "branch", "other")
    git(tree, "checkout", "-q", "--detach")
    commit_file(tree, "a.txt", "mine\n")
    commit_file(tree, "b.txt", text)
    tip = git(tree, "rev-parse", "HEAD").strip()
    mail = tree.with_name("mail")
    mail.write_text(git(tree, "format-patch", "-2", "--stdout"))
    words = [each.replace("TIP", tip) for each in ALONE[operation]]
    if operation == "bisect":
        git(tree, *words)
    git(tree, "checkout", "-q", "other")
    commit_file(tree, "a.txt", "other\n")
    if operation != "bisect":
        git(tree, "checkout", "-q", "--detach", tip if "rebase" in operation else "other")
        with pytest.raises(AssertionError):
            git(tree, *words)
    mail.unlink()


@pytest.mark.parametrize("is_removed", [False, True])
@pytest.mark.parametrize(
    ("side", "under_way"),
    [("--ours", ""), ("--theirs", ""), ("--ours", "am"), ("--ours", "bisect")],
)
def test_both_sides_of_a_conflict_that_no_commit_has_are_kept(
    hive: Hive, tree: Path, side: str, under_way: str, is_removed: bool
) -> None:
    """One of them is only in the index once a file has the other one."""
    if under_way == "bisect":
        git(tree, "bisect", "start")
    elif under_way:
        leave_alone(tree, under_way)
        git(tree, "reset", "-q", "--hard")
    (tree / "a.txt").write_text("of the patch\n")
    patch = tree.with_name("patch")
    patch.write_text(git(tree, "diff"))
    (tree / "a.txt").write_text("staged\n")
    git(tree, "add", "a.txt")
    with pytest.raises(AssertionError):
        git(tree, "apply", "--3way", str(patch))
    git(tree, "checkout", side, "a.txt")
    if is_removed:
        remove(hive, "ui", force=True)
    else:
        put_back(hive, tree)
        assert_back(tree, "ui")
    repo = Path(hive.layout.tree)
    kept = git(repo, "log", "-p", "--glob=refs/heads/unfinished/*")
    assert "+of the patch" in kept and "+staged" in kept


@pytest.mark.parametrize("is_removed", [False, True])
@pytest.mark.parametrize("joins", ["merge", "cherry-pick", "revert"])
def test_what_is_staged_beside_the_conflict_of_a_merge_is_kept(
    hive: Hive, tree: Path, joins: str, is_removed: bool
) -> None:
    commit_file(tree, "b.txt", "b\n")
    git(tree, "checkout", "-q", "-b", "other")
    commit_file(tree, "a.txt", "other\n")
    if joins == "revert":
        commit_file(tree, "a.txt", "more\n")
    git(tree, "checkout", "-q", "other" if joins == "revert" else "ui")
    if joins == "revert":
        git(tree, "checkout", "-q", "-B", "ui")
    else:
        commit_file(tree, "a.txt", "own\n")
    with pytest.raises(AssertionError):
        git(tree, joins, *(["--no-edit", "HEAD~1"] if joins == "revert" else ["other"]))
    for name, then in (("b.txt", "typed\n"), ("new.txt", None)):
        (tree / name).write_text(f"staged {name}\n")
        git(tree, "add", name)
        if then is None:
            (tree / name).unlink()
        else:
            (tree / name).write_text(then)
    if is_removed:
        remove(hive, "ui", force=True)
    else:
        put_back(hive, tree)
        assert_back(tree, "ui")
    kept = git(Path(hive.layout.tree), "log", "-p", "-m", "--glob=refs/heads/unfinished/*")
    for each in ("staged b.txt", "typed", "staged new.txt"):
        assert f"+{each}\n" in kept


@pytest.mark.parametrize("is_conflict", [False, True])
def test_what_only_the_index_has_outlives_whoever_is_killed_once_the_files_are_in_it(
    hive: Hive, tree: Path, monkeypatch: pytest.MonkeyPatch, is_conflict: bool
) -> None:
    if is_conflict:
        (tree / "a.txt").write_text("of the patch\n")
        patch = tree.with_name("patch")
        patch.write_text(git(tree, "diff"))
    (tree / "a.txt").write_text("staged\n")
    git(tree, "add", "a.txt")
    if is_conflict:
        with pytest.raises(AssertionError):
            git(tree, "apply", "--3way", str(patch))
    (tree / "a.txt").write_text("typed\n")
    add = unfinished.add_taken

    def killed(*words: Any) -> None:
        add(*words)
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(unfinished, "add_taken", killed)
    child = os.fork()
    if child == 0:
        put_back(hive, tree)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    monkeypatch.undo()
    remove(hive, "ui", force=True)
    kept = git(Path(hive.layout.tree), "log", "-p", "--glob=refs/heads/unfinished/*")
    for each in ["staged", "typed", *["of the patch"] * is_conflict]:
        assert f"+{each}\n" in kept


@pytest.mark.parametrize("is_removed", [False, True])
@pytest.mark.parametrize("operation", ALONE)
def test_what_git_has_left_to_do_is_kept(
    hive: Hive, tree: Path, operation: str, is_removed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_alone(tree, operation)
    if is_removed:
        type_late(tree, monkeypatch)
        remove(hive, "ui", force=True)
        assert not tree.exists()
    else:
        put_back(hive, tree)
        assert_back(tree, "ui")
    repo = Path(hive.layout.tree)
    kept = git(repo, "log", "-p", "-m", "--root", "--glob=refs/heads/unfinished/*")
    assert "+left to apply" in kept
    assert not is_removed or "+late" in kept


@pytest.mark.parametrize("operation", ["rebase", "cherry-pick"])
def test_no_word_brings_back_a_commit_that_was_purged(
    hive: Hive, tree: Path, operation: str
) -> None:
    leave_alone(tree, operation)
    secret = git(tree, "commit-tree", "HEAD^{tree}", "-m", "secret").strip()
    own = Path(git(tree, "rev-parse", "--absolute-git-dir").strip())
    folder = own / ("rebase-merge" if operation == "rebase" else "sequencer")
    (folder / "message").write_text(f"{secret}\n")
    (folder / "patch").write_text(f" {secret[:9]}\n")
    for todo in folder.glob("*todo"):
        todo.write_text(f"{todo.read_text().rstrip()} {secret[:9]} {secret}\nlabel {secret[:9]}\n")
    remove(hive, "ui", force=True)
    assert "secret" not in git(Path(hive.layout.tree), "log", "--all", "--format=%s")


def test_an_open_merge_of_notes_keeps_the_worktree(hive: Hive, tree: Path) -> None:
    git(tree, "notes", "add", "-m", "one")
    git(tree, "notes", "--ref=other", "add", "-m", "other")
    with pytest.raises(AssertionError):
        git(tree, "notes", "merge", "other")
    with pytest.raises(Conflict, match="git notes is under way"):
        remove(hive, "ui")
    remove(hive, "ui", force=True)
    assert not tree.exists()


def type_late(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has somebody write a file at the last moment, and nothing before that."""
    begin = worktree_care.begin
    git(tree, "checkout", "-q", "--force", "HEAD", "--", ".")

    def beginning(*arguments: Any) -> Any:
        (tree / "late.txt").write_text("late\n")
        return begin(*arguments)

    monkeypatch.setattr(worktree_care, "begin", beginning)


def test_what_is_staged_and_in_no_file_is_kept_with_a_worktree_that_is_removed(
    quick: QuickQueen, hive: Hive, tree: Path
) -> None:
    (tree / "a.txt").write_text("staged\n")
    (tree / "gone.txt").write_text("staged and removed\n")
    git(tree, "add", "--all")
    (tree / "a.txt").write_text("typed\n")
    (tree / "gone.txt").unlink()
    assert quick("worktree", "remove", "ui", "--force").code == 0
    kept = git(quick.cwd, "log", "-p", "--glob=refs/heads/unfinished/*")
    assert "+staged\n" in kept and "+typed\n" in kept and "staged and removed" in kept


def test_what_is_typed_in_between_is_refused_and_not_overwritten(
    hive: Hive, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "a.txt").write_text("first\n")
    run = unfinished.user_git

    def typing(*arguments: str, cwd: str, **how: Any) -> tuple[int, bytes, bytes]:
        if "checkout" in arguments:
            (tree / "a.txt").write_text("second, while it was kept\n")
        return run(*arguments, cwd=cwd, **how)

    monkeypatch.setattr(unfinished, "user_git", typing)
    with pytest.raises(ExternalFailure, match="kept on unfinished/work"):
        put_back(hive, tree)
    assert (tree / "a.txt").read_text() == "second, while it was kept\n"
    assert kept(tree, "a.txt") == "first\n"
    monkeypatch.undo()
    assert put_back(hive, tree).branch == "unfinished/work-2"
    assert_back(tree, "ui")
    assert kept(tree, "a.txt", "unfinished/work-2") == "second, while it was kept\n"


@pytest.mark.parametrize("first", ["unfinished/work", "unfinished"])
def test_is_kept_however_many_branches_of_that_name_there_are(
    hive: Hive, tree: Path, first: str
) -> None:
    said = "unfinished-work" if first == "unfinished" else first
    for each in {first, said, *(f"{said}-{number}" for number in range(2, 60))}:
        git(tree, "branch", each)
    (tree / "a.txt").write_text("typed\n")
    assert put_back(hive, tree).branch == f"{said}-60"
    assert kept(tree, "a.txt", f"{said}-60") == "typed\n"


class TestWhatGitIgnores:
    """It is kept where the commit has a file in its place."""

    @pytest.fixture(autouse=True)
    def _ignoring(self, hive: Hive, tree: Path) -> None:
        git(tree, "rm", "-q", "a.txt")
        (tree / ".gitignore").write_text("a.txt\n")
        git(tree, "add", ".gitignore")
        git(tree, "commit", "-qm", "ignore it")

    def test_a_file_is_kept(self, hive: Hive, tree: Path) -> None:
        (tree / "a.txt").write_text("a secret of mine\n")
        found = put_back(hive, tree, "refs/heads/main")
        assert (found.branch, found.files) == ("unfinished/work", ["a.txt"])
        assert_back(tree, "main")
        assert kept(tree, "a.txt") == "a secret of mine\n"

    def test_a_folder_is_kept(self, hive: Hive, tree: Path) -> None:
        (tree / "a.txt").mkdir()
        for name in ("one", "two"):
            (tree / "a.txt" / name).write_text(f"{name}\n")
        put_back(hive, tree, "refs/heads/main")
        assert_back(tree, "main")
        assert (kept(tree, "a.txt/one"), kept(tree, "a.txt/two")) == ("one\n", "two\n")

    def test_nothing_of_it_is_overwritten_by_the_next_issue(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        git(tree, "checkout", "-q", "-B", "ui", "main~1")
        (tree / "a.txt").write_text("mine\n")
        git(repo, "config", "core.excludesFile", str(repo / ".git" / "ignored"))
        (repo / ".git" / "ignored").write_text("a.txt\n")
        quick("issue", "new", "do it", as_="lead")
        assert git(tree, "status", "--porcelain", "--", "a.txt") == ""
        assert quick("next", as_="ui", cwd=tree).code == 0
        assert (tree / "a.txt").read_text() == "mine\n"
        (tree / "a.txt").unlink()
        assert quick("next", as_="ui", cwd=tree).code == 0

    def test_a_fifo_in_a_folder_makes_room(self, hive: Hive, tree: Path) -> None:
        (tree / "a.txt").mkdir()
        os.mkfifo(tree / "a.txt" / "mine")
        put_back(hive, tree, "refs/heads/main")
        assert_back(tree, "main")

    def test_a_repository_is_in_the_way(self, hive: Hive, tree: Path) -> None:
        git(tree, "init", "-q", "a.txt")
        commit_file(tree / "a.txt", "x.txt", "x\n")
        with pytest.raises(Conflict, match="is where ui has files"):
            put_back(hive, tree, "refs/heads/main")
        assert (tree / "a.txt" / "x.txt").exists()


class TestWhatIsKeptOfASilentDroid:
    """It goes to a branch with which another agent goes on."""

    def assigned(self, hive: Hive, droid: str, tree: Path) -> Assignment:
        claimed = Hive.open(hive.layout.root, droid=droid, env={}).assignments.claim("shop-1")
        return Assignment({**claimed.fields, "worktree": tree.name})

    @pytest.mark.parametrize("named", [False, True])
    def test_is_nothing_of_a_worktree_that_queenbee_did_not_make(
        self, hive: Hive, tmp_path: Path, named: bool
    ) -> None:
        """Which one it is in, whoever pushes records may say."""
        tree = tmp_path / "mine"
        git(Path(hive.layout.root), "worktree", "add", "-q", "-b", "mine", str(tree))
        if named:
            assert QuickQueen(tree)("hive", "whoami", "--set", "ann").code == 0
        (tree / "draft.txt").write_text("private\n")
        assert WorktreeKeeper(hive).keep(self.assigned(hive, "ann", tree)) is None
        assert git(tree, "branch", "--list", "unfinished/*") == ""

    def test_is_nothing_of_an_issue_that_has_not_begun_there(self, hive: Hive, tree: Path) -> None:
        (tree / "new.txt").write_text("typed\n")
        add(hive, "ui", issue_id="shop-1")
        with Hive.open(hive.layout.root, droid="ui", env={}) as home:
            waits = home.assignments.claim("shop-2")
            (begun,) = home.assignments.find(issue_id="shop-1")
            assert WorktreeKeeper(home).keep(waits) is None
            found = WorktreeKeeper(home).keep(begun)
        assert found is not None and found.branch == "unfinished/shop-1-ui"

    def test_is_all_but_untracked_files_with_the_names_of_secrets(
        self, hive: Hive, tree: Path
    ) -> None:
        commit_file(tree, "b.key", "tracked\n")
        for name in (".env", "b.key", "keys/id_rsa", "new.txt"):
            (tree / name).parent.mkdir(exist_ok=True)
            (tree / name).write_text("typed\n")
        found = WorktreeKeeper(hive).keep(self.assigned(hive, "ui", tree))
        assert found is not None and found.branch is not None
        assert found.files == ["b.key", "new.txt"]
        names = git(tree, "ls-tree", "-r", "--name-only", found.branch).split()
        assert {"b.key", "new.txt"} <= {*names}
        assert not {".env", "keys/id_rsa"} & {*names}
        assert (tree / ".env").read_text() == "typed\n"


def keep_late(hive: Hive, tree: Path) -> None:
    place = next(each for each in worktrees(hive.layout) if each.path == str(tree))
    unfinished.keep_late(place, "work", place.head, None)


class TestASecretThatWasKept:
    """`queen land -m` refused it; whoever goes on with that branch has not looked."""

    KEY = f"ghp_{'a1B2' * 9}\n"

    @pytest.mark.parametrize("how", ["put back", "removed", "late", "am", "merge", "rebase"])
    def test_lands_with_no_branch(
        self, quick: QuickQueen, hive: Hive, tree: Path, how: str
    ) -> None:
        if how == "am":
            leave_alone(tree, how, self.KEY)
            (tree / "c.txt").write_text("typed\n")
        elif how in ("merge", "rebase"):
            put_aside(tree, how, self.KEY)
        else:
            (tree / "b.txt").write_text(self.KEY)
        if how == "removed":
            remove(hive, "ui", force=True)
        elif how == "late":
            keep_late(hive, tree)
        else:
            put_back(hive, tree)
        branches = git(quick.cwd, "for-each-ref", "--format=%(refname)", "refs/heads/unfinished/")
        other = Path(add(hive, "bob").path)
        git(other, "merge", "-q", "--no-edit", branches.strip())
        refused = quick("land", "--unchecked", cwd=other)
        assert (refused.code, "looks like a secret: " in refused.err) == (5, True), refused

    def test_is_left_out_as_the_hint_says(self, quick: QuickQueen, hive: Hive, tree: Path) -> None:
        (tree / ".env").write_text("A=1\n")
        (tree / "b.txt").write_text("half\n")
        keep_late(hive, tree)
        (tree / "my.pem").write_text(self.KEY)
        put_back(hive, tree)
        other = Path(add(hive, "bob").path)
        commit_file(other, ".gitignore", "*.js\n")
        (other / "c.js").write_text("own\n")
        git(other, "add", "--force", "c.js")
        git(other, "commit", "-qm", "own")
        git(other, "merge", "-q", "--no-edit", "unfinished/work", "unfinished/work-2")
        commit_file(quick.cwd, "d.txt", "of somebody else\n")
        refused = quick("land", "--unchecked", cwd=other)
        typed = refused.err.partition("try: ")[2].partition(",")[0]
        subprocess.run(typed, shell=True, check=True, cwd=other)
        ignoring = quick("land", "--unchecked", "-m", "all", cwd=other)
        assert "looks like a secret: .env" in ignoring.err
        (other / ".gitignore").write_text("*.js\n.env\n*.pem\n")
        landed = quick("land", "--unchecked", "-m", "all", cwd=other)
        assert landed.code == 0, landed
        said = git(quick.cwd, "ls-tree", "--name-only", "main").split()
        assert {"b.txt", "c.js", "d.txt"} <= {*said}
        assert git(quick.cwd, "log", "main", "--", ".env", "my.pem") == ""

    @pytest.mark.parametrize("line", ["index on customer_id, sorted", "Queen-Kept: yes, by hand"])
    def test_is_none_in_a_commit_of_a_person_with_such_words(
        self, quick: QuickQueen, tree: Path, line: str
    ) -> None:
        (tree / "fixture.txt").write_text(self.KEY)
        git(tree, "add", "fixture.txt")
        git(tree, "commit", "-qm", f"orders\n\n{line}\nOn main: autostash")
        landed = quick("land", "--unchecked", cwd=tree)
        assert landed.code == 0, landed

    def test_lands_once_somebody_says_that_it_is_none(
        self, quick: QuickQueen, hive: Hive, tree: Path
    ) -> None:
        (tree / ".env").write_text("A=1\n")
        put_back(hive, tree)
        git(tree, "merge", "-q", "unfinished/work")
        assert quick("land", "--unchecked", cwd=tree).code == 5
        allowed = quick("land", "--unchecked", cwd=tree, env={"QUEEN_ALLOW_SECRET": "1"})
        assert allowed.code == 0, allowed


@pytest.mark.usefixtures("asking")
def test_no_worktree_is_brought_to_a_target_that_nobody_agreed_to(hive: Hive, tree: Path) -> None:
    """A pull may bring one while a team works."""
    repo = Path(hive.layout.root)
    git(repo, "switch", "-q", "-c", "eve")
    commit_file(repo, "evil.txt")
    git(repo, "switch", "-q", "main")
    (repo / ".beads" / "queen.toml").write_text('[land]\ntarget = "eve"\n')
    (tree / "new.txt").write_text("typed\n")
    with Hive.open(repo, droid="ui", env={}) as home:
        claimed = home.assignments.claim("shop-1")
        for brings in (
            partial(WorktreeKeeper(home).set_aside, claimed),
            lambda: [*WorktreeMender(home, str(tree), "ui", git).clear("work")],
        ):
            with pytest.raises(Untrusted):
                brings()
    assert (tree / "new.txt").exists()
    assert not (tree / "evil.txt").exists()


def test_a_repository_in_it_stays(hive: Hive, tree: Path) -> None:
    for name in ("full", "empty"):
        (tree / name).mkdir()
        git(tree / name, "init", "-q")
    commit_file(tree / "full", "x.txt", "x\n")
    (tree / "new.txt").write_text("new\n")
    put_back(hive, tree)
    assert (tree / "full" / "x.txt").exists()
    assert not (tree / "new.txt").exists()
    assert kept(tree, "new.txt") == "new\n"


def test_a_branch_that_another_worktree_has_is_not_taken(hive: Hive, tree: Path) -> None:
    git(tree, "checkout", "-q", "--detach")
    git(tree, "worktree", "add", "-q", f"{tree}-2", "ui")
    with pytest.raises(Conflict, match="is checked out in"):
        put_back(hive, tree)


def test_a_branch_that_is_called_unfinished_is_in_nobodys_way(hive: Hive, tree: Path) -> None:
    git(tree, "branch", "unfinished")
    (tree / "new.txt").write_text("typed\n")
    found = put_back(hive, tree)
    assert found.branch == "unfinished-work"
    assert kept(tree, "new.txt", "unfinished-work") == "typed\n"


@pytest.mark.parametrize("aim", ["main", "person", "nothing"])
def test_a_branch_that_leads_elsewhere_moves_nothing(hive: Hive, tree: Path, aim: str) -> None:
    git(tree, "branch", "person")
    (tree / "new.txt").write_text("typed\n")
    git(tree, "symbolic-ref", "refs/heads/ui", f"refs/heads/{aim}")
    before = git(tree, "for-each-ref")
    with pytest.raises(Conflict, match=f"ui is a symbolic reference to {aim}"):
        put_back(hive, tree, "refs/heads/main")
    assert git(tree, "for-each-ref") == before
    assert (tree / "new.txt").exists()


def test_a_branch_for_what_is_kept_leads_nowhere_else(hive: Hive, tree: Path) -> None:
    git(tree, "symbolic-ref", "refs/heads/unfinished/work", "refs/heads/person")
    (tree / "new.txt").write_text("typed\n")
    branch = put_back(hive, tree).branch
    assert branch is not None
    assert kept(tree, "new.txt", branch) == "typed\n"
    assert "person" not in git(tree, "branch", "--format=%(refname:short)").split()


def test_in_a_repository_with_long_names_of_commits_all_is_kept(tmp_path: Path) -> None:
    repo = tmp_path / "long"
    repo.mkdir()
    git(repo, "init", "-q", "--object-format=sha256", "-b", "main")
    commit_file(repo, "a.txt", "a\n")
    (repo / ".beads").mkdir()
    hive = Hive.open(repo, droid="lead", env={})
    tree = Path(add(hive, "ui").path)
    (tree / "new.txt").write_text("typed\n")
    assert put_back(hive, tree).branch == "unfinished/work"
    assert kept(tree, "new.txt") == "typed\n"


@pytest.mark.parametrize("seconds", [60.0, 0.0])
def test_signs_of_many_are_looked_for_in_one_reading_and_a_bounded_time(
    hive: Hive, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """Each reading of the worktrees reads files of all of them."""
    names = ["ui", "api", "docs"]
    for name in names:
        made = Path(add(hive, name).path)
        with Hive.open(made, droid=name, env={}) as own:
            own.assignments.claim(f"shop-{name}")
        presence.note(hive.layout, name, 1)
        (made / "new.txt").write_text("typed\n")
    readings = []
    monkeypatch.setattr(unfinished, "worktrees", lambda x: readings.append(x) or worktrees(x))
    monkeypatch.setattr(unfinished, "_LOOK_S", seconds)
    assert WorktreeKeeper(hive).note_signs_of(names) is bool(seconds)
    assert len(readings) == 1
    last_ms = [presence.last_ms(hive.layout, name) for name in names]
    assert all((each or 0) > 1 for each in last_ms) is bool(seconds)
