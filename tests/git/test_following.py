"""A worktree follows what landed of it, while its droid goes on working there."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, Ran, add_hook, commit_file, git

STRATEGIES = ("merge", "rebase", "squash")
LINES = "".join(f"{number}\n" for number in range(9))


@pytest.fixture
def tree(repo: Path, tmp_path: Path) -> Path:
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    return tmp_path / "ui"


def set_up(quick: QuickQueen, repo: Path, tree: Path, strategy: str) -> None:
    """Gives both sides a commit, so that every strategy lands another commit than the branch's."""
    quick("config", "set", "land.strategy", strategy)
    commit_file(repo, "a", LINES)
    git(tree, "merge", "-q", "main")
    commit_file(tree, "mine", "x\n")
    commit_file(repo, "theirs", "x\n")


def landing(quick: QuickQueen, tree: Path, check: str = "true", *more: str) -> Ran:
    return quick("land", "--check", check, *more, as_="ui", cwd=tree)


def while_files_move(repo: Path, tree: Path, what: str) -> None:
    """Has something happen once, after the files of the worktree were written, and before its
    branch is moved.
    """
    done = repo / "happened"
    add_hook(
        repo,
        "post-index-change",
        f'[ "$PWD" = {tree} ] && [ -e theirs ] && [ ! -e {done} ] || exit 0\n'
        f"touch {done}; unset GIT_INDEX_FILE\n{what}\nexit 0\n",
    )


def subjects(tree: Path, *commits: str) -> list[str]:
    return git(tree, "log", "--format=%s", *commits).splitlines()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_commit_that_waits_for_its_hook_is_on_the_branch_afterwards(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path, strategy: str
) -> None:
    """`git commit -a` holds the lock of the index meanwhile."""
    set_up(quick, repo, tree, strategy)
    before = git(repo, "rev-parse", "main").strip()
    add_hook(
        repo,
        "pre-commit",
        f"[ -e {tmp_path}/on ] || exit 0; touch {tmp_path}/begun\n"
        f"while [ $(git -C {repo} rev-parse main) = {before} ]; do sleep 0.05; done; sleep 1\n",
    )
    script = tmp_path / "commit"
    script.write_text(f"cd {tree}; sed -i s/^4/four/ a; git commit -qam precious\n")
    # In a session of its own: a check ends with its processes.
    begins = f"touch {tmp_path}/on; setsid -f sh {script}"
    done = landing(quick, tree, f"{begins}; until [ -e {tmp_path}/begun ]; do sleep 0.05; done")
    assert done.code == 0, done
    assert "precious" in subjects(tree, "ui")
    assert (tree / "a").read_text() == LINES.replace("4", "four")
    assert git(tree, "status", "--porcelain") == ""
    if strategy != "merge":
        assert subjects(tree, "main..ui") == ["precious"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_commit_made_between_its_files_and_its_branch_wins(
    quick: QuickQueen, repo: Path, tree: Path, strategy: str
) -> None:
    set_up(quick, repo, tree, strategy)
    later = "git commit-tree -p HEAD -m precious $(git rev-parse HEAD:)"
    while_files_move(repo, tree, f"git update-ref HEAD $({later})")
    done = landing(quick, tree)
    assert done.code == 0, done
    assert (repo / "happened").exists()
    assert "precious" in subjects(tree, "ui")
    assert git(tree, "status", "--porcelain") == ""
    assert (tree / "theirs").exists() is (strategy != "merge")


def test_a_commit_that_has_the_files_already_keeps_them(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    set_up(quick, repo, tree, "merge")
    files = "$(GIT_INDEX_FILE=$(git rev-parse --git-path queenbee-index) git write-tree)"
    while_files_move(
        repo, tree, f"git update-ref HEAD $(git commit-tree -p HEAD -m precious {files})"
    )
    assert landing(quick, tree).code == 0
    assert subjects(tree, "-1") == ["precious"]
    assert git(tree, "status", "--porcelain") == ""
    assert (tree / "theirs").exists()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_worktree_that_switched_branches_stays_there(
    quick: QuickQueen, repo: Path, tree: Path, strategy: str, when: str
) -> None:
    set_up(quick, repo, tree, strategy)
    head, check = git(tree, "rev-parse", "HEAD"), "true"
    if when == "before":
        check = f"(cd {tree} && git switch -qc idea && echo x >> a)"
    else:
        while_files_move(repo, tree, "git switch -qc idea; echo x >> a")
    done = landing(quick, tree, check)
    assert (done.code, "it has idea checked out by now" in done.out) == (0, True), done
    assert git(tree, "branch", "--show-current").strip() == "idea"
    assert git(tree, "rev-parse", "idea") == head
    assert git(tree, "status", "--porcelain") == " M a\n"
    git(tree, "commit", "-qam", "idea")
    assert landing(quick, tree).code == 0
    assert git(repo, "log", "--format=%s", "main", "--", "mine").count("\n") == 1


@pytest.mark.parametrize("strategy", ["rebase", "squash"])
def test_nothing_is_rebased_in_it_for_a_conflict_with_what_was_committed_since(
    quick: QuickQueen, repo: Path, tree: Path, strategy: str
) -> None:
    quick("config", "set", "land.strategy", strategy)
    commit_file(repo, "a", LINES)
    git(tree, "merge", "-q", "main")
    commit_file(tree, "mine", "x\n")
    commit_file(repo, "a", LINES.replace("7", "seven"))
    hook = f'[ "$PWD" != {tree} ] || echo "an edit saved meanwhile" >> README.md\n'
    add_hook(repo, "post-checkout", hook)
    later = f"(cd {tree} && sed -i s/7/VII/ a && git commit -qam later && echo y >> README.md)"
    done = landing(quick, tree, later)
    assert (done.code, "stays as it was: main and ui conflict: a" in done.out) == (0, True), done
    assert subjects(tree, "-1") == ["later"]
    assert git(tree, "branch", "--show-current").strip() == "ui"
    assert git(tree, "log", "-g", "-1", "--format=%gs", "HEAD") == "commit: later\n"
    assert git(tree, "status", "--porcelain") == " M README.md\n"


def test_nothing_is_rebased_in_it_by_the_next_landing_if_its_droid_does_not_wait(
    quick: QuickQueen, queen: Queen, repo: Path, tree: Path
) -> None:
    quick("config", "set", "land.strategy", "squash")
    commit_file(repo, "a", LINES)
    git(tree, "merge", "-q", "main")
    commit_file(tree, "mine", "x\n")
    commit_file(repo, "a", LINES.replace("7", "seven"))
    later = f"(cd {tree} && sed -i s/7/VII/ a && git commit -qam later)"
    assert "stays as it was" in landing(quick, tree, later).out
    assert queen("land", "--no-wait", "--check", "true", as_="ui", cwd=tree).code == 9
    until_s = time.monotonic() + 60
    while (done := queen("land", "--result", as_="ui", cwd=tree)).code == 9:
        assert time.monotonic() < until_s
        time.sleep(0.05)
    assert (done.code, "main and ui conflict: a" in done.out) == (5, True), done
    assert git(tree, "log", "-g", "-1", "--format=%gs", "HEAD") == "commit: later\n"
    assert git(tree, "status", "--porcelain") == ""
    assert landing(quick, tree).code == 5
    assert "<<<<<<<" in (tree / "a").read_text()


@pytest.mark.parametrize("strategy", ["rebase", "squash"])
def test_what_was_committed_since_comes_along_and_what_is_not_committed_stays(
    quick: QuickQueen, repo: Path, tree: Path, strategy: str
) -> None:
    set_up(quick, repo, tree, strategy)
    own = ("-c", "user.name=Ada", "-c", "user.email=ada@x")
    made = f"git {' '.join(own)} commit -q --date=@1700000000 -m 'lätér\n\nbody' later"
    later = f"echo x > later && git add later && {made} && echo edit >> a"
    script = tree.parent / "later"
    script.write_text(f"cd {tree}\n{later}\ngit commit -q --allow-empty -m empty\n")
    done = landing(quick, tree, f"sh {script}")
    assert (done.code, "stays" in done.out) == (0, False), done
    assert subjects(tree, "main..ui") == ["empty", "lätér"]
    said = git(tree, "log", "-1", "--format=%an %ae %at %b", "ui~1").strip()
    assert said == "Ada ada@x 1700000000 body"
    assert git(tree, "status", "--porcelain") == " M a\n"
    assert (tree / "theirs").exists()


def test_a_file_that_was_only_touched_gets_what_landed(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    set_up(quick, repo, tree, "merge")
    commit_file(repo, "a", "theirs\n")
    done = landing(quick, tree, f"touch -d 2001-01-01 {tree}/a")
    assert (done.code, "stays" in done.out) == (0, False), done
    assert (tree / "a").read_text() == "theirs\n"
    assert git(tree, "status", "--porcelain") == ""


def test_a_file_that_git_ignores_is_not_overwritten(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    set_up(quick, repo, tree, "squash")
    head = git(tree, "rev-parse", "HEAD")
    exclude = repo / ".git" / "info" / "exclude"
    done = landing(quick, tree, f"echo own > {tree}/theirs; echo theirs >> {exclude}")
    assert (done.code, "without git: theirs" in done.out) == (0, True), done
    assert (tree / "theirs").read_text() == "own\n"
    assert (git(tree, "rev-parse", "HEAD"), git(tree, "diff", "HEAD")) == (head, "")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("has_own", [False, True])
def test_a_file_in_place_of_a_folder_is_followed_unless_that_has_files_without_git(
    quick: QuickQueen, repo: Path, tree: Path, strategy: str, has_own: bool
) -> None:
    commit_file(repo, "d/x", "x\n")
    set_up(quick, repo, tree, strategy)
    head = git(tree, "rev-parse", "HEAD")
    git(repo, "rm", "-rq", "d")
    commit_file(repo, "d", "a file\n")
    (repo / ".git" / "info" / "exclude").write_text("own\n")
    does = f"mkdir -p {tree}/d/empty {tree}/d/own; echo mine > {tree}/d/own/mine"
    done = landing(quick, tree, does if has_own else "true")
    assert (done.code, "it has files: d/own:" in done.out) == (0, has_own), done
    assert "left alone" not in done.out + done.err
    assert (git(tree, "rev-parse", "HEAD") == head, (tree / "d").is_dir()) == (has_own, has_own)
    assert git(tree, "status", "--porcelain") == ""


@pytest.mark.parametrize("puts", ["echo mine > d/mine; git add d", "mkfifo d/mine"])
def test_what_git_would_take_with_a_folder_in_place_of_a_file_stays(
    quick: QuickQueen, repo: Path, tree: Path, puts: str
) -> None:
    set_up(quick, repo, tree, "merge")
    commit_file(repo, "d", "a file\n")
    done = landing(quick, tree, f"cd {tree}; mkdir d; {puts}")
    assert (done.code, "it has files: d" in done.out) == (0, True), done
    assert (tree / "d" / "mine").exists()


def test_a_conflict_beside_a_file_in_place_of_a_folder_is_left_to_be_resolved(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    commit_file(repo, "d/x", "x\n")
    set_up(quick, repo, tree, "merge")
    git(repo, "rm", "-rq", "d")
    commit_file(repo, "d", "a file\n")
    commit_file(repo, "mine", "theirs\n")
    done = landing(quick, tree)
    assert (done.code, "conflict: mine" in done.err) == (5, True), done
    (tree / "mine").write_text("both\n")
    git(tree, "add", "mine")
    assert landing(quick, tree, "true", "--continue").code == 0


def test_a_branch_that_a_hook_does_not_let_move_has_its_files(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    set_up(quick, repo, tree, "squash")
    head = git(tree, "rev-parse", "HEAD")
    refuses = f'[ "$PWD" = {tree} ] && [ $1 = prepared ] && grep -q heads/ui && exit 1\nexit 0\n'
    add_hook(repo, "reference-transaction", refuses)
    done = landing(quick, tree)
    assert (done.code, "ui cannot be moved to" in done.out) == (0, True), done
    assert (git(tree, "rev-parse", "HEAD"), git(tree, "status", "--porcelain")) == (head, "")
    (repo / ".git" / "hooks" / "reference-transaction").unlink()
    commit_file(tree, "more", "x\n")
    assert landing(quick, tree).code == 0
    assert git(tree, "rev-parse", "HEAD") == git(repo, "rev-parse", "main")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_git_that_is_killed_leaves_no_file_of_what_landed(
    quick: QuickQueen, repo: Path, tree: Path, strategy: str
) -> None:
    set_up(quick, repo, tree, strategy)
    head = git(tree, "rev-parse", "HEAD")
    while_files_move(repo, tree, "kill -9 $PPID")
    done = landing(quick, tree)
    assert (done.code, "stays as it was" in done.out) == (0, True), done
    assert (git(tree, "rev-parse", "HEAD"), git(tree, "status", "--porcelain")) == (head, "")
    commit_file(tree, "more", "x\n")
    assert landing(quick, tree).code == 0
    assert git(tree, "rev-parse", "HEAD") == git(repo, "rev-parse", "main")


@pytest.mark.parametrize(
    ("strategy", "hook"), [("merge", "post-merge"), ("squash", "post-checkout")]
)
def test_the_hook_runs_that_git_runs_after_such_a_move(
    quick: QuickQueen, repo: Path, tree: Path, strategy: str, hook: str
) -> None:
    set_up(quick, repo, tree, strategy)
    head = git(tree, "rev-parse", "HEAD").strip()
    add_hook(repo, hook, f'[ "$PWD" != {tree} ] || echo "$@" >> {repo}/ran\n')
    assert landing(quick, tree).code == 0
    now = git(tree, "rev-parse", "HEAD").strip()
    assert (repo / "ran").read_text() == ("0\n" if strategy == "merge" else f"{head} {now} 1\n")


def test_what_continue_committed_is_kept_by_an_abort_at_the_next_conflict(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    quick("config", "set", "land.strategy", "rebase")
    commit_file(repo, "a", "a\n")
    commit_file(repo, "b", "b\n")
    git(tree, "merge", "-q", "main")
    for name in ("a", "b"):
        commit_file(tree, name, "mine\n")
        commit_file(repo, name, "theirs\n")
    assert landing(quick, tree).code == 5
    (tree / "a").write_text("resolved\n")
    git(tree, "add", "a")
    assert landing(quick, tree, "true", "--continue").code == 5
    assert git(tree, "ls-files", "--unmerged", "b")
    done = quick("land", "--abort", as_="ui", cwd=tree)
    assert (done.code, "unfinished/ui" in done.err) == (0, True), done
    assert git(repo, "show", "unfinished/ui:a") == "resolved\n"
    assert git(tree, "show", "HEAD:a") == "mine\n"
