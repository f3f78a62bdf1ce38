"""`queen land -m`: one call commits, lands, completes and takes the next issue, in one stream."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from hives import COMMAND, Queen, QuickQueen, add_hook, commit_file, git, write_lines

from queenbee.git import hooks

KEY = "ghp_" + "a1B2" * 9


@pytest.fixture
def tree(quick: QuickQueen, repo: Path) -> Path:
    """A worktree with an issue, a change, a new file and a removed one."""
    rows = [{"id": f"q-{n}", "title": f"t{n}", "status": "open"} for n in (1, 2)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    (repo / ".beads" / "queen.toml").write_text("[land]\ncheck = 'test -e new.txt'\n")
    commit_file(repo, "old.txt", "x\n")
    commit_file(repo, ".gitignore", "*.log\n")
    tree = Path(quick("worktree", "add", "ui", "q-1", "--json", as_="boss").json["path"])
    (tree / "README.md").write_text("changed\n")
    (tree / "new.txt").write_text("new\n")
    (tree / "big.log").write_bytes(b"x" * (6 * 2**20))
    (tree / "old.txt").unlink()
    return tree


def test_all_changes_are_committed_and_land_in_one_call(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    done = quick("land", "-m", "all in", "--next", cwd=tree)
    assert done.code == 0, done
    changed = git(repo, "show", "--name-status", "--format=%s", "main", "--").splitlines()
    assert changed[0] == "all in"
    assert set(changed[2:]) == {"M\tREADME.md", "A\tnew.txt", "D\told.txt"}
    assert git(tree, "status", "--porcelain", "--untracked-files=all") == ""
    assert "q-2 is yours" in done.out


def test_what_is_said_is_in_one_stream_in_order_with_the_result_last(
    queen: Queen, tree: Path
) -> None:
    done = queen("land", "-m", "all in", "--next", cwd=tree)
    said = [done.out.index(each) for each in (
        "check: test -e", "check passed", "landed on main", "q-1 was completed", "q-2 is yours"
    )]  # fmt: skip
    assert said == sorted(said)
    assert done.err == ""


def test_a_message_is_kept_that_looks_like_a_comment(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    git(repo, "config", "commit.cleanup", "strip")
    done = quick("land", "-m", "#124 all in", cwd=tree)
    assert done.code == 0, done
    assert git(repo, "log", "-1", "--format=%s", "main") == "#124 all in\n"


def test_with_nothing_to_commit_it_lands_what_there_is(quick: QuickQueen, tree: Path) -> None:
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "mine")
    done = quick("land", "-m", "nothing", cwd=tree)
    assert (done.code, "nothing is left to commit: the text of -m is not used" in done.out) == (
        0,
        True,
    )
    assert git(tree, "log", "-1", "--format=%s", "--no-merges").strip() == "mine"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("large.bin", "x" * (5 * 2**20 + 1), "larger than 5 MiB: large.bin"),
        ("conf.py", f"TOKEN = '{KEY}'\n", "looks like a secret: conf.py"),
        ("README.md", f"changed\n{KEY}\n", "looks like a secret: README.md"),
        (".env", "A=1\n", "looks like a secret: .env"),
        (".git-credentials", "x\n", "looks like a secret: .git-credentials"),
        (".aws/credentials", "x\n", "looks like a secret: .aws/credentials"),
        (".docker/config.json", "{}\n", "looks like a secret: .docker/config.json"),
        ("deploy/id_rsa", "x\n", "looks like a secret: deploy/id_rsa"),
        ("deploy/.Env", "A=1\n", "looks like a secret: deploy/.Env"),
    ],
)
def test_what_must_not_be_in_git_is_refused_by_name(
    quick: QuickQueen, repo: Path, tree: Path, name: str, text: str, said: str
) -> None:
    before = git(tree, "rev-parse", "HEAD")
    (tree / name).parent.mkdir(exist_ok=True)
    (tree / name).write_text(text)
    refused = quick("land", "-m", "all", cwd=tree)
    assert (refused.code, said in refused.err) == (5, True), refused
    assert git(tree, "rev-parse", "HEAD") == before
    assert git(tree, "diff", "--cached", "--name-only") == ""
    if "secret" in said:
        allowed = quick("land", "-m", "all", cwd=tree, env={"QUEEN_ALLOW_SECRET": "1"})
        assert allowed.code == 0


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cfg.txt", f"x\n{KEY}\n".encode()),  # With `cfg.txt -diff`.
        ("cfg.dat", f"x\n{KEY}\n".encode()),  # With `*.dat binary`.
        ("plus.txt", f"++ {KEY}\n".encode()),
        ("le.ps1", f"\ufeff$t = '{KEY}'\r\n".encode("utf-16-le")),
        ("be.ps1", f"$t = '{KEY}'\r\n".encode("utf-16-be")),
        ("crlf.txt", f"x\r\n{KEY}\r\n".encode()),
        ("a.db", b"SQLite\0\1\2" + KEY.encode() + b"\0\3"),
        (f"{KEY}.txt", b"x\n"),
        (f"docs/{KEY}/x.txt", b"x\n"),
        ("min.js", b"a" * 400_000 + b" " + KEY.encode() + b" " + b"b" * 400_000),
    ],
)
def test_a_secret_is_found_whatever_hides_it_from_git_diff(
    quick: QuickQueen, repo: Path, tree: Path, name: str, data: bytes
) -> None:
    """Both in a new file and in a line that was added to a tracked one."""
    (tree / ".gitattributes").write_text("cfg.txt -diff\n*.dat binary\n")
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    if not name.startswith(("ghp_", "docs")):
        (tree / name).write_bytes(
            data.replace(KEY.encode(), b"").replace(bytes(KEY, "utf-16-le"), b"")
        )
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "without")
    before = git(tree, "rev-parse", "HEAD")
    (tree / name).write_bytes(data)
    refused = quick("land", "-m", "all", cwd=tree)
    assert (refused.code, "this looks like a secret: " in refused.err) == (5, True), refused
    assert name in refused.err
    assert git(tree, "rev-parse", "HEAD") == before
    assert git(tree, "diff", "--cached", "--name-only") == ""


def test_a_secret_in_the_message_is_refused(quick: QuickQueen, tree: Path) -> None:
    before = git(tree, "rev-parse", "HEAD")
    refused = quick("land", "-m", f"use {KEY}", cwd=tree)
    assert (refused.code, "the message seems to hold a secret" in refused.err) == (2, True)
    assert git(tree, "rev-parse", "HEAD") == before
    assert quick("land", "-m", f"use {KEY}", cwd=tree, env={"QUEEN_ALLOW_SECRET": "1"}).code == 0


def test_what_is_staged_already_is_looked_at_and_stays_staged(
    quick: QuickQueen, tree: Path
) -> None:
    (tree / "conf.py").write_text(f"TOKEN = '{KEY}'\n")
    git(tree, "add", "conf.py")
    refused = quick("land", "-m", "all", cwd=tree)
    assert (refused.code, "looks like a secret: conf.py" in refused.err) == (5, True)
    assert git(tree, "diff", "--cached", "--name-only").split() == ["conf.py"]


def test_a_secret_that_a_hook_adds_is_taken_back(quick: QuickQueen, repo: Path, tree: Path) -> None:
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\necho {KEY} > made.txt && git add made.txt\n")
    hook.chmod(0o755)
    before = git(tree, "rev-parse", "HEAD")
    refused = quick("land", "-m", "all", cwd=tree)
    assert (refused.code, "looks like a secret: made.txt" in refused.err) == (5, True), refused
    assert git(tree, "rev-parse", "HEAD") == before
    assert (tree / "README.md").read_text() == "changed\n"


def test_what_a_hook_changes_otherwise_lands(quick: QuickQueen, repo: Path, tree: Path) -> None:
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho formatted > README.md && git add README.md\n")
    hook.chmod(0o755)
    assert quick("land", "-m", "all", cwd=tree).code == 0
    assert git(repo, "show", "main:README.md") == "formatted\n"


@pytest.mark.parametrize("strategy", ["merge", "rebase"])
@pytest.mark.parametrize("text", [["-m", "Both"], []])
def test_a_secret_that_resolves_a_conflict_is_refused(
    quick: QuickQueen, repo: Path, tree: Path, strategy: str, text: list[str]
) -> None:
    quick("config", "set", "land.strategy", strategy)
    commit_file(repo, "README.md", f"theirs\n{KEY[:-1]}x\n")
    assert quick("land", "-m", "mine", cwd=tree).code == 5
    (tree / "README.md").write_text(f"both\n{KEY}\n")
    git(tree, "add", "README.md")
    refused = quick("land", "--continue", *text, cwd=tree)
    assert (refused.code, "looks like a secret: README.md" in refused.err) == (5, True), refused
    (tree / "README.md").write_text(f"both\n{KEY[:-1]}x\n")  # Their line is no new one.
    git(tree, "add", "README.md")
    assert quick("land", "--continue", *text, cwd=tree).code == 0


@pytest.mark.parametrize("by", ["queen", "git", "git, squashed"])
def test_a_copy_from_the_main_worktree_is_refused_once_git_ignores_it_no_more(
    quick: QuickQueen, repo: Path, tree: Path, by: str
) -> None:
    quick("config", "set", "worktree.copy", "*.log", cwd=repo)
    (repo / "local.log").write_text("password of this machine\n")
    (tree / "local.log").write_text("password of this machine, changed\n")
    (tree / "other.log").write_text("is not there\n")
    (tree / ".gitignore").write_text("*.pyc\n")
    (tree / "big.log").unlink()
    quick("config", "set", "land.strategy", "squash" if "squashed" in by else "merge", cwd=repo)
    if by != "queen":
        git(tree, "add", "--all")
        git(tree, "commit", "-qm", "all in")
    done = quick("land", "-m", "all in", cwd=tree)
    assert done.code == 5 and "where git does not track it: local.log" in done.err, done
    (tree / ".gitignore").write_text("local.log\n")
    if by != "queen":
        git(tree, "reset", "-q", "main")
    assert quick("land", "-m", "again", cwd=tree).code == 0
    assert "other.log" in git(repo, "ls-tree", "--name-only", "main").split()


@pytest.mark.parametrize("strategy", ["merge", "squash"])
def test_a_copy_from_the_main_worktree_does_not_land_in_an_earlier_commit(
    quick: QuickQueen, repo: Path, tree: Path, strategy: str
) -> None:
    quick("config", "set", "worktree.copy", "*.log", cwd=repo)
    quick("config", "set", "land.strategy", strategy, cwd=repo)
    for place in (repo, tree):
        (place / "local.log").write_text("password of this machine\n")
    (tree / "big.log").unlink()
    git(tree, "add", "--force", "local.log")
    git(tree, "commit", "-qm", "with it")
    git(tree, "rm", "-q", "--cached", "local.log")
    done = quick("land", "-m", "without it", cwd=tree)
    if strategy == "squash":
        assert done.code == 0, done
        return
    assert done.code == 5 and "git reset --soft main, then queen land -m" in done.err, done
    git(tree, "reset", "-q", "--soft", "main")
    assert quick("land", "-m", "again", cwd=tree).code == 0
    assert git(repo, "log", "--format=%h", "main", "--", "local.log") == ""


def test_a_moved_file_with_an_old_secret_lands(quick: QuickQueen, tree: Path) -> None:
    (tree / "conf.py").write_text(f"TOKEN = '{KEY}'\n")
    git(tree, "add", "conf.py")
    git(tree, "commit", "-qm", "meant")
    (tree / "conf.py").rename(tree / "settings.py")
    assert quick("land", "-m", "all", cwd=tree).code == 0


def test_the_size_that_git_stores_counts(quick: QuickQueen, repo: Path, tree: Path) -> None:
    """As with Git LFS, whose filter leaves a pointer."""
    git(repo, "config", "filter.short.clean", "head -c 100")
    (tree / ".gitattributes").write_text("*.bin filter=short\n")
    (tree / "large.bin").write_bytes(b"x" * (21 * 2**20))
    assert quick("land", "-m", "all", cwd=tree).code == 0
    assert git(repo, "cat-file", "-s", "main:large.bin").strip() == "100"


def test_a_file_that_a_filter_makes_large_is_refused(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    git(repo, "config", "filter.long.clean", "yes | head -c 5300000")
    (tree / ".gitattributes").write_text("*.bin filter=long\n")
    (tree / "small.bin").write_text("x\n")
    refused = quick("land", "-m", "all", cwd=tree)
    assert (refused.code, "larger than 5 MiB: small.bin" in refused.err) == (5, True), refused


def test_an_index_that_is_gone_is_made_anew(quick: QuickQueen, repo: Path, tree: Path) -> None:
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "with records")
    git(tree, "merge", "-q", "main")
    (repo / ".git" / "worktrees" / tree.name / "index").unlink()
    assert quick("land", "-m", "all", cwd=tree).code == 0
    assert git(repo, "show", "main:README.md") == "changed\n"
    assert "q-1" in git(repo, "show", "main:.beads/issues.jsonl")


def test_a_lock_that_a_killed_git_left_is_named(quick: QuickQueen, repo: Path, tree: Path) -> None:
    lock = repo / ".git" / "worktrees" / tree.name / "index.lock"
    lock.touch()
    refused = quick("land", "-m", "all in", cwd=tree)
    assert refused.code == 5
    assert f"git is at work in {tree}, or was killed there: {lock}" in refused.err
    assert lock.exists()
    lock.unlink()
    assert quick("land", "-m", "all in", cwd=tree).code == 0


def test_a_huge_file_is_not_even_stored(quick: QuickQueen, repo: Path, tree: Path) -> None:
    (tree / "huge.bin").write_bytes(os.urandom(21 * 2**20))
    refused = quick("land", "-m", "all", cwd=tree)
    assert (refused.code, "larger than 5 MiB: huge.bin" in refused.err) == (5, True), refused
    sizes = [each.stat().st_size for each in (repo / ".git" / "objects").rglob("*")]
    assert max(sizes) < 2**20


def test_what_git_and_its_hooks_warn_of_is_told(quick: QuickQueen, repo: Path, tree: Path) -> None:
    git(repo, "config", "core.autocrlf", "input")
    for number in range(25):
        (tree / f"dos{number}.txt").write_bytes(b"one\r\n")
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho step done\nprintf 'warning: \\033[31mold style\\n'\n")
    hook.chmod(0o755)
    done = quick("land", "-m", "all", cwd=tree)
    assert done.code == 0, done
    assert "CRLF will be replaced by LF" in done.out
    assert "\033" not in done.out
    assert "more lines" in done.out
    for each in tree.glob("dos*"):
        each.unlink()
    done = quick("land", "-m", "fewer", cwd=tree)
    assert "old style" in done.out
    assert "step done" not in done.out


def test_a_refused_commit_is_told_what_may_help(quick: QuickQueen, repo: Path, tree: Path) -> None:
    hook = repo / ".git" / "hooks" / "commit-msg"
    hook.write_text("#!/bin/sh\ngrep -q '^feat: ' \"$1\"\n")
    hook.chmod(0o755)
    refused = quick("land", "-m", "all", cwd=tree)
    assert "if a hook refuses the message, in its form: queen land -m MESSAGE" in refused.err
    hook.unlink()
    for key in ("name", "email"):
        git(repo, "config", f"user.{key}", "")
    no_identity = {f"GIT_{who}_{what}": "" for who in ("AUTHOR", "COMMITTER") for what in ("NAME",)}
    refused = quick("land", "-m", "all", cwd=tree, env=no_identity)
    assert "try: git config user.name NAME && git config user.email EMAIL, then" in refused.err


def test_what_was_in_git_before_is_no_new_secret(quick: QuickQueen, repo: Path, tree: Path) -> None:
    (tree / "conf.py").write_text(f"TOKEN = '{KEY}'\n")
    git(tree, "add", "conf.py")
    git(tree, "commit", "-qm", "meant")
    (tree / "conf.py").write_text(f"TOKEN = '{KEY}'\nmore = 1\n")
    assert quick("land", "-m", "all", cwd=tree).code == 0


def test_a_commit_that_the_guard_refuses_lands_nothing_and_says_so(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    hooks.install(hooks.HookFolder(str(repo)))
    assert quick("reserve", "README.md", as_="boss").code == 0
    before = git(repo, "rev-parse", "main")
    refused = quick("land", "-m", "all", cwd=tree)
    assert refused.code == 5
    said = " ".join(refused.err.split())
    assert "so nothing was committed or landed: README.md by boss, " in said
    assert "try: queen msg send boss BODY" in said
    assert "queenbee guard" not in said
    assert git(repo, "rev-parse", "main") == before
    assert git(tree, "diff", "--cached", "--name-only") == ""


def test_a_commit_that_another_hook_refuses_leaves_what_was_staged(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho no thanks\nexit 1\n")
    hook.chmod(0o755)
    git(tree, "add", "new.txt")
    refused = quick("land", "-m", "all", cwd=tree)
    assert "the commit was refused, so nothing was landed: no thanks" in refused.err
    assert git(tree, "diff", "--cached", "--name-only") == "new.txt\n"


def test_what_is_staged_while_a_hook_runs_that_refuses_stays_staged(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    commit_file(tree, "other.txt", "x\n")
    add_hook(
        repo,
        "pre-commit",
        "echo 1 > later.txt; git rm -q --cached other.txt; git add later.txt; echo 2 > later.txt; "
        "exit 1",
    )
    (tree / "partly.txt").write_text("1\n")
    git(tree, "add", "partly.txt")
    (tree / "partly.txt").write_text("2\n")
    assert "the commit was refused" in quick("land", "-m", "all", cwd=tree).err
    staged = git(tree, "diff", "--cached", "--name-status").split("\n")
    assert staged == ["A\tlater.txt", "D\tother.txt", "A\tpartly.txt", ""]
    assert git(tree, "show", ":later.txt", ":partly.txt") == "1\n1\n"


def test_without_a_check_nothing_is_committed_either(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    (repo / ".beads" / "queen.toml").write_text("")
    before = git(tree, "rev-parse", "HEAD")
    assert quick("land", "-m", "all", cwd=tree).code == 2
    assert git(tree, "rev-parse", "HEAD") == before


def test_an_open_conflict_is_not_committed(quick: QuickQueen, repo: Path, tree: Path) -> None:
    commit_file(repo, "README.md", "theirs\n")
    assert quick("land", "-m", "mine", cwd=tree).code == 5
    refused = quick("land", "-m", "again", cwd=tree)
    assert (refused.code, "queen land --continue" in refused.err) == (5, True)
    assert quick("land", "--continue", "-m", "x", cwd=tree).code == 5


def test_what_is_resolved_has_only_to_be_added(quick: QuickQueen, repo: Path, tree: Path) -> None:
    commit_file(repo, "README.md", "theirs\n")
    assert quick("land", "-m", "mine", cwd=tree).code == 5
    (tree / "README.md").write_text("both\n")
    refused = quick("land", "--continue", cwd=tree)
    assert (refused.code, "resolved, but not added: README.md" in refused.err) == (5, True)
    [way] = re.findall("try: (.*)", refused.err)
    assert way == "git add README.md && queen land --continue"
    git(tree, "add", "README.md")
    assert quick("land", "--continue", cwd=tree).code == 0


@pytest.mark.parametrize("path", ["old.txt", ".beads/issues.jsonl"])
@pytest.mark.parametrize("options", [("-m", "all"), ()])
def test_an_unfinished_revert_is_named(
    quick: QuickQueen, tree: Path, path: str, options: tuple[str, ...]
) -> None:
    git(tree, "stash", "--include-untracked")
    (tree / ".beads").mkdir(exist_ok=True)
    for text in ("one\n", "two\n"):
        (tree / path).write_text(text)
        git(tree, "add", "-f", path)
        git(tree, "commit", "-qm", text)
    with pytest.raises(AssertionError):
        git(tree, "revert", "--no-edit", "HEAD~1")
    refused = quick("land", *options, cwd=tree)
    assert refused.code == 5
    assert f"a git revert is not finished here, in conflict: {path}; nothing was" in refused.err
    assert "try: git revert --abort; or resolve them, git add, git revert --cont" in refused.err


@pytest.mark.parametrize("strategy", ["merge", "rebase"])
def test_going_on_with_a_text_commits_what_was_resolved_with_it(
    quick: QuickQueen, repo: Path, tree: Path, strategy: str
) -> None:
    quick("config", "set", "land.strategy", strategy)
    commit_file(repo, "README.md", "theirs\n")
    assert quick("land", "-m", "mine", cwd=tree).code == 5
    (tree / "README.md").write_text("both\n")
    git(tree, "add", "README.md")
    (tree / "new.txt").write_text("newer\n")
    assert quick("land", "--continue", "-m", "Both of them", cwd=tree).code == 0
    assert "Both of them" in git(repo, "log", "--format=%s", "main").splitlines()
    assert git(repo, "show", "main:README.md", "main:new.txt") == "both\nnewer\n"


def test_next_waits_while_others_are_at_work(queen: Queen, quick: QuickQueen, tree: Path) -> None:
    """The other issue is somebody's: it comes back while the landing waits for one."""
    quick("claim", "q-2", as_="boss")
    command = [*COMMAND, "land", "-m", "all", "--next", "--wait", "50s"]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    waiting = subprocess.Popen(command, cwd=tree, env=env, stdout=subprocess.PIPE, text=True)
    assert waiting.stdout is not None
    line = next(each for each in waiting.stdout if "landed on" in each)
    assert "main" in line
    while not quick("status", "--json", as_="boss").json["queue"]:
        assert waiting.poll() is None, "it did not wait"
    assert quick("release", "q-2", as_="boss").code == 0
    rest, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert "q-2 is yours" in rest


def test_the_worktree_has_what_landed_while_it_waited(
    queen: Queen, quick: QuickQueen, repo: Path, tree: Path
) -> None:
    """Else the next issue seems to build on something that is not there."""
    quick("claim", "q-2", as_="boss")
    command = [*COMMAND, "land", "-m", "all", "--next", "--wait", "50s"]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    waiting = subprocess.Popen(command, cwd=tree, env=env, stdout=subprocess.PIPE, text=True)
    while not quick("status", "--json", as_="boss").json["queue"]:
        assert waiting.poll() is None, "it did not wait"
    commit_file(repo, "meanwhile.txt", "x\n")
    time.sleep(3)
    assert quick("release", "q-2", as_="boss").code == 0
    said, _ = waiting.communicate(timeout=60)
    assert (tree / "meanwhile.txt").exists()
    assert "came in: 1\n" in said
    assert "for an issue\n" in said


@pytest.mark.parametrize("kind", ["a commit", "a change"])
def test_what_has_not_landed_stays_as_it_is(
    quick: QuickQueen, repo: Path, tree: Path, kind: str
) -> None:
    assert quick("land", "-m", "all in", cwd=tree).code == 0
    commit_file(repo, "README.md", "from main\n")
    (tree / "README.md").write_text("mine\n")
    if kind == "a commit":
        git(tree, "commit", "-qam", "mine")
    before = git(tree, "rev-parse", "HEAD")
    done = quick("next", cwd=tree)
    assert (done.code, "your branch lacks" in done.out) == (0, True)
    assert git(tree, "rev-parse", "HEAD") == before
    assert (tree / "README.md").read_text() == "mine\n"


def test_a_wait_that_ends_is_no_failure_of_what_landed(quick: QuickQueen, tree: Path) -> None:
    quick("claim", "q-2", as_="boss")
    done = quick("land", "-m", "all", "--next", "--wait", "1s", cwd=tree)
    assert (done.code, "Nothing is ready for you" in done.out) == (0, True)


def test_when_all_is_done_it_says_so_and_succeeds(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    quick("claim", "q-2", as_="boss")
    quick("complete", "q-2", as_="boss")
    done = quick("land", "-m", "all", "--next", cwd=tree)
    assert (done.code, "Everything is done: 2 of 2 issues. You can stop.\n" in done.out) == (
        0,
        True,
    )


@pytest.mark.parametrize("strategy", ["merge", "squash"])
def test_a_title_or_a_branch_with_a_secret_is_in_no_message(
    quick: QuickQueen, repo: Path, tmp_path: Path, strategy: str
) -> None:
    row = {"id": "q-9", "title": f"use {KEY}", "status": "open"}
    write_lines(repo / ".beads" / "issues.jsonl", row)
    quick("config", "set", "land.strategy", strategy)
    tree = tmp_path / "tree"
    git(repo, "worktree", "add", "-q", "-b", f"{KEY}-0", str(tree))
    assert quick("claim", "q-9", as_="api", cwd=tree).code == 0
    for number in range(2):
        for name in "ab":
            commit_file(tree, f"{name}{number}.txt", "x\n")
        commit_file(repo, f"late{number}.txt", "x\n")
        landed = quick("land", "--unchecked", as_="api", cwd=tree)
        assert landed.code == 0, landed
        git(tree, "checkout", "-q", "-b", f"{KEY}-{number + 1}")
    said = git(repo, "log", "--format=%B", "main")
    assert KEY not in said
    assert "q-9: (left out: it looks like a secret)" in said


def test_a_detached_worktree_is_told_the_branch_that_has_its_commits(
    quick: QuickQueen, tree: Path
) -> None:
    git(tree, "checkout", "-q", "--detach")
    assert quick("land", cwd=tree).err.endswith("switch ui\n")
    commit_file(tree, "more", "more\n")
    assert " switch -c " in quick("land", cwd=tree).err


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (("symbolic-ref", "refs/heads/ui", "refs/heads/main"), "is a symbolic reference to main"),
        (("symbolic-ref", "HEAD", "refs/heads/main"), "has main checked out"),
        (("checkout", "-q", "--ignore-other-worktrees", "main"), "has main checked out"),
        (("checkout", "-q", "--detach"), "has a detached HEAD"),
        (("symbolic-ref", "HEAD", "refs/heads/other"), "other is checked out in"),
        (("symbolic-ref", "refs/heads/ui", "refs/heads/other"), "a symbolic reference to other"),
        (("symbolic-ref", "refs/heads/ui", "refs/heads/ui"), "is a symbolic reference to ui"),
    ],
)
def test_a_branch_that_is_not_the_worktrees_own_gets_no_commit(
    quick: QuickQueen, repo: Path, tree: Path, spoil: tuple[str, ...], said: str
) -> None:
    git(repo, "worktree", "add", "-q", "-b", "other", "../other")
    git(tree, *spoil)
    head = repo / ".git" / "worktrees" / tree.name / "HEAD"
    before = git(repo, "for-each-ref"), head.read_text()
    for words in (("land", "-m", "unchecked"), ("land",)):
        done = quick(*words, cwd=tree)
        assert (done.code in (2, 5), said in done.err) == (True, True), done
    assert (git(repo, "for-each-ref"), head.read_text()) == before
    assert (tree / "new.txt").read_text() == "new\n"


def test_a_branch_that_leads_elsewhere_is_made_its_own_as_the_refusal_says(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    git(tree, "symbolic-ref", "refs/heads/ui", "refs/heads/main")
    way = quick("land", "-m", "unchecked", cwd=tree).err.partition("own: ")[2].strip()
    subprocess.run(shlex.split(way), check=True, cwd=tree)
    assert quick("land", "-m", "checked", cwd=tree).code == 0


def test_an_alias_of_the_main_branch_is_that(quick: QuickQueen, repo: Path, tree: Path) -> None:
    git(repo, "symbolic-ref", "refs/heads/trunk", "refs/heads/main")
    git(repo, "symbolic-ref", "HEAD", "refs/heads/trunk")
    git(tree, "checkout", "-q", "--ignore-other-worktrees", "main")
    done = quick("land", "-m", "unchecked", cwd=tree)
    assert (done.code, "on which work lands" in done.err) == (5, True), done
    git(tree, "checkout", "-q", "ui")
    assert quick("land", "-m", "checked", cwd=tree).code == 0
    assert (repo / "new.txt").exists()


def test_the_next_issue_moves_no_branch_that_leads_elsewhere(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    assert quick("land", "-m", "all in", cwd=tree).code == 0
    git(repo, "branch", "person", "main")
    commit_file(repo, "README.md", "from main\n")
    git(tree, "symbolic-ref", "refs/heads/ui", "refs/heads/person")
    before = git(repo, "rev-parse", "person")
    done = quick("next", cwd=tree)
    assert (done.code, "your branch lacks" in done.out) == (0, True)
    assert git(repo, "rev-parse", "person") == before


def hooks_that_say(repo: Path, hook: str, text: str) -> None:
    folder = repo.parent / "hooks"
    folder.mkdir(exist_ok=True)
    (folder / hook).write_text(f"#!/bin/sh\n{text}\n")
    (folder / hook).chmod(0o755)
    git(repo, "config", "core.hooksPath", str(folder))


@pytest.mark.parametrize("hook", ["prepare-commit-msg", "commit-msg"])
def test_a_secret_that_a_hook_puts_into_the_message_is_not_committed(
    quick: QuickQueen, repo: Path, tree: Path, hook: str
) -> None:
    hooks_that_say(repo, hook, f'echo "token: {KEY}" >> "$1"')
    before = git(repo, "for-each-ref")
    done = quick("land", "-m", "all in", cwd=tree)
    assert (done.code, "the message seems to hold a secret" in done.err) == (5, True), done
    assert git(repo, "for-each-ref") == before
    assert (tree / "new.txt").exists()
    assert quick("land", "-m", "all", cwd=tree, env={"QUEEN_ALLOW_SECRET": "1"}).code == 0


def test_a_secret_in_a_message_is_found_below_another_commit_of_a_hook(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    hooks_that_say(repo, "prepare-commit-msg", f'echo "token: {KEY}" >> "$1"')
    on_top = "echo 1 > VERSION; git add VERSION; git -c core.hooksPath=/dev/null commit -qm bump"
    hooks_that_say(repo, "post-commit", on_top)
    before = git(repo, "for-each-ref")
    done = quick("land", "-m", "all in", cwd=tree)
    assert (done.code, "the message seems to hold a secret" in done.err) == (5, True), done
    assert git(repo, "for-each-ref") == before
    assert (tree / "new.txt").exists() and (tree / "VERSION").exists()


@pytest.mark.parametrize("resolves", [False, True])
def test_a_secret_that_a_hook_puts_into_the_message_of_a_merge_does_not_land(
    quick: QuickQueen, repo: Path, tree: Path, resolves: bool
) -> None:
    commit_file(repo, "README.md" if resolves else "other.txt", "from main\n")
    if resolves:
        assert quick("land", "-m", "all in", cwd=tree).code == 5
        (tree / "README.md").write_text("both\n")
        git(tree, "add", "README.md")
    amid = '[ -e "$(git rev-parse --git-dir)/MERGE_HEAD" ]'
    hooks_that_say(repo, "prepare-commit-msg", f'{amid} || exit 0; echo "token: {KEY}" >> "$1"')
    words = ("land", "--continue") if resolves else ("land", "-m", "all in")
    done = quick(*words, cwd=tree)
    assert (done.code, "the message seems to hold a secret" in done.err) == (5, True), done
    assert KEY not in git(repo, "log", "--all", "--format=%B")
    git(repo, "config", "--unset", "core.hooksPath")
    assert quick(*words[:2], *(["x"] if not resolves else []), cwd=tree).code == 0
    assert (repo / "new.txt").exists()


@pytest.mark.linux
def test_a_file_that_differs_by_case_alone_is_committed_as_its_own(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    git(repo, "config", "core.ignorecase", "true")
    (tree / "readme.MD").write_text("another\n")
    assert quick("land", "-m", "all in", cwd=tree).code == 0
    assert git(repo, "show", "main:readme.MD") == "another\n"
    assert git(repo, "show", "main:README.md") == "changed\n"
