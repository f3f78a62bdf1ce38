"""`queen worktree remove` while somebody writes there, or is killed: nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from extent import quick_or
from hives import Queen, QuickQueen, commit_file, git
from live_processes import is_alive
from made_worktrees import STOPPING, add, opened, remove

from queenbee.errors import Ambiguous, Conflict, ExternalFailure, NotFound
from queenbee.git.worktrees import worktree_care, worktree_removal


@pytest.fixture
def tree(repo: Path) -> Path:
    """A worktree `ui` with a change that is not committed, and what git ignores."""
    commit_file(repo, ".gitignore", "build/\n")
    commit_file(repo, "folder/a.txt", "a\n")
    path = Path(add(opened(repo), "ui").path)
    (path / "draft.txt").write_text("draft\n")
    (path / "build").mkdir()
    (path / "build" / "x").write_text("x\n")
    return path


def kept(repo: Path, name: str, branch: str = "unfinished/repo-ui") -> str:
    return git(repo, "show", f"{branch}:{name}")


def with_submodule(repo: Path, tmp_path: Path) -> Path:
    """Makes a worktree `ui` of a repository with a submodule `lib`."""
    git(repo, "init", "-q", str(tmp_path / "library"))
    commit_file(tmp_path / "library", "lib.py", "x\n")
    allowed = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    git(repo, *allowed, "add", str(tmp_path / "library"), "lib")
    git(repo, "commit", "-qm", "a submodule")
    path = Path(add(opened(repo), "ui").path)
    git(path, *allowed, "update", "--init")
    return path


def assert_gone(repo: Path, path: Path) -> None:
    assert [*path.parent.glob("repo-ui*")] == []
    assert git(repo, "worktree", "list").count("\n") == 1
    assert "ui" not in git(repo, "branch", "--format=%(refname:short)").split()


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str, Callable[..., object]], None]:
    """Does something each time before a function is called."""

    def patch(module: Any, name: str, does: Callable[..., object]) -> None:
        function = getattr(module, name)

        def called(*arguments: Any, **more: Any) -> Any:
            does(*arguments)
            return function(*arguments, **more)

        monkeypatch.setattr(module, name, called)

    return patch


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_an_agent_removes_none_that_a_person_made(
    repo: Path, quick: QuickQueen, force: tuple[str, ...]
) -> None:
    (repo / ".git" / "info" / "exclude").write_text(".env\n")
    git(repo, "worktree", "add", "-q", "-b", "mine", "../mine")
    mine = repo.with_name("mine")
    (mine / ".env").touch()
    done = quick("worktree", "remove", "mine", *force, as_="ui", env={"CLAUDECODE": "1"})
    assert (done.code, "QueenBee did not make" in done.err) == (5, True), done
    assert (mine / ".env").exists()
    assert quick("worktree", "remove", "mine", as_="human").code == 0


def test_a_record_gives_no_worktree_to_a_droid(repo: Path, quick: QuickQueen) -> None:
    git(repo, "worktree", "add", "-q", "-b", "mine", "../theirs")
    path = repo.parent / "theirs"
    assert quick("issue", "new", "one", "--id", "x-1", as_="human").code == 0
    opened(path, "api").assignments.claim("x-1")
    opened(path, "api").assignments.release("x-1")
    with pytest.raises(NotFound):
        remove(opened(repo), "api")
    assert remove(opened(repo), "theirs").path == str(path)


class TestAName:
    """It may be that of one worktree's droid, of another's folder and of a third one's branch."""

    def test_is_first_that_of_one_which_queenbee_made(self, repo: Path) -> None:
        git(repo, "worktree", "add", "-q", "-b", "other", "../api")
        git(repo, "worktree", "add", "-q", "-b", "repo-api", "../mine")
        for name in ("api", "repo-api"):
            made = add(opened(repo), "api").path
            assert remove(opened(repo), name).path == made
        with pytest.raises(NotFound):
            remove(opened(repo), "API")
        assert remove(opened(repo), "api").path == str(repo.parent / "api")

    def test_of_several_is_refused(self, repo: Path) -> None:
        made = [add(opened(repo), name).path for name in ("api", "repo-api")]
        git(repo, "worktree", "add", "-q", "-b", "v2", "../docs")
        git(repo, "worktree", "add", "-q", "-b", "docs", "../v3")
        for name in ("repo-api", "docs"):
            with pytest.raises(Ambiguous):
                remove(opened(repo), name)
        assert remove(opened(repo), made[0]).path == made[0]

    @pytest.mark.parametrize("env", [{}, {"CLAUDECODE": "1"}])
    def test_is_not_first_that_of_one_which_a_person_handed_over(
        self, repo: Path, quick: QuickQueen, env: dict[str, str]
    ) -> None:
        git(repo, "worktree", "add", "-q", "-b", "docs", "../v1")
        git(repo, "worktree", "add", "-q", "-b", "other", "../docs")
        adopted = quick("worktree", "add", "docs", "--path", "../v1", "--adopt", "docs")
        assert adopted.code == 0, adopted
        with pytest.raises(Ambiguous):
            remove(opened(repo), "docs", force=True)
        path = str(repo.with_name("v1"))
        done = quick("worktree", "remove", path, "--force", as_="ui", env=env)
        assert (done.code, Path(path).exists()) == ((5, True) if env else (0, False)), done

    def test_in_a_hint_is_of_the_same_one(self, repo: Path) -> None:
        git(repo, "worktree", "add", "-q", "-b", "other", "../api")
        made = add(opened(repo), "api").path
        (repo.parent / "api" / "typed.txt").write_text("x\n")
        with pytest.raises(Conflict) as refused:
            remove(opened(repo), str(repo.parent / "api"))
        assert f"queen worktree remove {repo.parent / 'api'} --force" in str(refused.value.hint)
        assert Path(made).exists()


@pytest.mark.parametrize("force", [False, True])
def test_what_is_written_after_the_look_is_kept(
    repo: Path, tree: Path, before: Any, force: bool
) -> None:
    def writes(*_: object) -> None:
        (tree / "folder" / "a.txt").write_text("late\n")
        (tree / "late").mkdir()
        (tree / "late" / "b.txt").write_text("late\n")

    before(worktree_care, "begin", writes)
    if not force:
        (tree / "draft.txt").unlink()
    removed = remove(opened(repo), "ui", force=force)
    assert removed.kept == "unfinished/repo-ui"
    assert kept(repo, "late/b.txt") == kept(repo, "folder/a.txt") == "late\n"
    assert not force or kept(repo, "draft.txt") == "draft\n"
    assert_gone(repo, tree)


def test_what_is_written_through_an_open_folder_is_kept(
    repo: Path, tree: Path, before: Any
) -> None:
    handle, times = os.open(tree, os.O_RDONLY), [0]

    def writes(*_: object) -> None:
        times[0] += 1
        name = f"late{times[0]}.txt" if times[0] < 3 else "folder/never"
        if times[0] < 3:
            fd = os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=handle)
            os.write(fd, b"late\n")
            os.close(fd)

    before(worktree_removal.Removal, "_emptied", writes)
    removed = remove(opened(repo), "ui", force=True)
    os.close(handle)
    assert kept(repo, "late1.txt") == kept(repo, "late2.txt") == "late\n"
    assert kept(repo, "draft.txt") == "draft\n"
    assert removed.kept == "unfinished/repo-ui"
    assert_gone(repo, tree)


def test_a_file_that_is_changed_while_it_goes_is_kept(repo: Path, tree: Path, before: Any) -> None:
    changes = ["late\n"]

    def writes(removal: Any, *_: object) -> None:
        if changes:
            Path(removal.aside, "folder", "a.txt").write_text(changes.pop())

    before(worktree_removal.Removal, "_emptied", writes)
    remove(opened(repo), "ui", force=True)
    assert kept(repo, "folder/a.txt") == "late\n"
    assert_gone(repo, tree)


def test_it_says_where_the_rest_is_if_somebody_goes_on_writing(
    quick: QuickQueen, repo: Path, tree: Path, before: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = [0]

    def writes(removal: Any, *_: object) -> None:
        times[0] += 1
        Path(removal.aside, f"late{times[0]}.txt").write_text("late\n")

    with monkeypatch.context():
        before(worktree_removal.Removal, "_emptied", writes)
        done = quick("worktree", "remove", "--force", "ui", cwd=repo)
    rest = tree.parent / "repo-ui.removing"
    assert (done.code, f"the rest of it is in {rest}" in done.err) == (5, True), done
    assert "unfinished/repo-ui" in done.err
    listed = quick("worktree", "list", "--json", cwd=repo).json
    assert str(rest) in [each["path"] for each in listed]
    monkeypatch.undo()
    again = quick("worktree", "remove", "--force", "repo-ui", cwd=repo)
    assert (again.code, again.out.splitlines()[0]) == (0, f"removed {tree}")
    assert kept(repo, "draft.txt") == "draft\n"
    assert kept(repo, f"late{times[0]}.txt") == "late\n"
    assert_gone(repo, tree)


@pytest.mark.some(1)
@pytest.mark.parametrize("back", ["repo-ui", "elsewhere"])
def test_a_person_may_take_the_rest_back(
    repo: Path, tree: Path, monkeypatch: pytest.MonkeyPatch, back: str
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ExternalFailure("git is tired", program="git")

    with monkeypatch.context() as patch:
        patch.setattr(worktree_removal, "keep_late", fails)
        with pytest.raises(Conflict, match=r"tired; the rest of it is in .*repo-ui\.removing"):
            remove(opened(repo), "ui", force=True)
    rest = tree.parent / "repo-ui.removing"
    assert (rest / "draft.txt").read_text() == "draft\n"
    git(repo, "worktree", "move", str(rest), str(tree.parent / back))
    (tree.parent / back / "more.txt").write_text("more\n")
    with pytest.raises(Conflict, match="not committed"):
        remove(opened(repo), "ui")
    remove(opened(repo), "ui", force=True)
    assert kept(repo, "more.txt", f"unfinished/{back if back != 'repo-ui' else 'repo-ui-2'}")
    assert not (tree.parent / back).exists()


def test_where_it_cannot_be_moved_nothing_happens(
    repo: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(worktree_removal.os, "rename", fails)
        with pytest.raises(Conflict, match="cannot be moved aside: Permission denied"):
            remove(opened(repo), "ui", force=True)
    assert (tree / "draft.txt").read_text() == "draft\n"
    assert "locked" not in git(repo, "worktree", "list", "--porcelain")
    remove(opened(repo), "ui", force=True)
    assert_gone(repo, tree)


@pytest.mark.parametrize("force", [False, True])
def test_what_is_mounted_in_it_is_not_touched(
    repo: Path, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    (tree / "draft.txt").unlink()
    mounts, place = tmp_path / "mountinfo", tree / "build" / "a b"
    point = str(place).replace(" ", "\\040")
    mounts.write_text(f"1 2 0:1 / / rw - ext4 x rw\n3 1 0:2 / {point} rw - tmpfs none rw\n")
    monkeypatch.setattr(worktree_removal, "_MOUNTS", str(mounts))
    with pytest.raises(Conflict, match=rf"something is mounted in .*{place}"):
        remove(opened(repo), "ui", force=force)
    assert (tree / "build" / "x").exists()
    monkeypatch.undo()
    remove(opened(repo), "ui", force=force)
    assert_gone(repo, tree)


@pytest.mark.parametrize("force", [False, True])
def test_a_worktree_with_submodules_goes(
    repo: Path, tmp_path: Path, before: Any, force: bool
) -> None:
    path = with_submodule(repo, tmp_path)
    before(worktree_care, "begin", lambda *_: (path / "late.txt").write_text("late\n"))
    if force:
        (path / "draft.txt").write_text("draft\n")
    remove(opened(repo), "ui", force=force)
    assert kept(repo, "late.txt") == "late\n"
    assert not force or kept(repo, "draft.txt") == "draft\n"
    assert_gone(repo, path)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_an_edit_that_a_submodule_hides_keeps_the_worktree(
    repo: Path, tmp_path: Path, flag: str
) -> None:
    path = with_submodule(repo, tmp_path)
    git(path / "lib", "update-index", flag, "lib.py")
    (path / "lib" / "lib.py").write_text("mine\n")
    with pytest.raises(Conflict, match="has what is not committed"):
        remove(opened(repo), "ui")
    assert (path / "lib" / "lib.py").read_text() == "mine\n"


@pytest.mark.parametrize("ref", ["worktree", "bisect", "rewritten"])
@pytest.mark.parametrize("draft", [False, True])
def test_commits_that_only_its_own_refs_have_are_kept(
    repo: Path, tree: Path, ref: str, draft: bool
) -> None:
    commit_file(tree, "b.txt", "b\n")
    git(tree, "update-ref", f"refs/{ref}/mine", "HEAD")
    git(tree, "reset", "-q", "--hard", "HEAD~1")
    if not draft:
        (tree / "draft.txt").unlink()
        with pytest.raises(Conflict, match=r"1 commit of .* on no branch"):
            remove(opened(repo), "ui")
    remove(opened(repo), "ui", force=True)
    own = git(repo, "log", "--format=%s", "unfinished/repo-ui", "--not", "main")
    assert "b.txt" in own
    assert_gone(repo, tree)


def test_a_remote_that_goes_with_it_has_nothing(repo: Path, tree: Path) -> None:
    (tree / "draft.txt").unlink()
    inner, other = tree / "build" / "inner", tree / "build" / "other.git"
    git(repo, "init", "-q", str(inner))
    commit_file(inner, "b.txt", "b\n")
    git(repo, "clone", "-q", "--bare", str(inner), str(other))
    git(inner, "remote", "add", "other", "../other.git")
    git(inner, "fetch", "-q", "other")
    git(other, "remote", "add", "inner", f"file://{inner}")
    git(other, "fetch", "-q", "inner")
    with pytest.raises(Conflict, match="has commits that no remote has"):
        remove(opened(repo), "ui")
    outside = repo.with_name("outside.git")
    git(repo, "clone", "-q", "--bare", str(inner), str(outside))
    for each in (inner, other):
        git(each, "remote", "add", "outside", str(outside))
        git(each, "fetch", "-q", "outside")
    remove(opened(repo), "ui")
    assert not tree.exists()


STOP = f"""{STOPPING}
    from queenbee import Hive
    from queenbee.git.worktrees import worktree_care, worktree_removal as removal

    class System:
        def __getattr__(self, name):
            found = getattr(os, name)
            return stopping(found) if name in ("rename", "rmdir") else found

    class Files:
        def __getattr__(self, name):
            found = getattr(whole, name)
            return stopping(found) if name in ("write", "unlink") else found

    whole = removal.safe_open
    removal.os, removal.safe_open = System(), Files()
    for name in ("write_document", "as_the_user", "keep_late"):
        setattr(removal, name, stopping(getattr(removal, name)))
    for name in ("keep_worktree", "as_the_user"):
        setattr(worktree_care, name, stopping(getattr(worktree_care, name)))
    worktree_care.remove(Hive.open(droid="lead"), "ui", force=True)
    print(step)
"""


def test_killed_at_any_step_nothing_is_lost_and_the_same_call_goes_on(
    quick: QuickQueen, repo: Path
) -> None:
    commit_file(repo, "folder/a.txt", "a\n")
    path = repo.parent / "repo-ui"
    for step in range(1, 200, quick_or(1, quick=3)):
        add(opened(repo), "ui")
        (path / "draft.txt").write_text(f"draft {step}\n")
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(STOP), str(step)], cwd=repo, capture_output=True
        )
        git(repo, "worktree", "prune")  # What a person or `git gc` may do.
        if done.returncode == -signal.SIGKILL:
            again = quick("worktree", "remove", "--force", "ui", cwd=repo)
            assert again.code == 0 or "there is no worktree" in again.err, (step, again)
        branches = git(repo, "branch", "--format=%(refname:short)").split()
        saved = [each for each in branches if each.startswith("unfinished/")]
        assert f"draft {step}\n" in {kept(repo, "draft.txt", each) for each in saved}, step
        git(repo, "branch", "-q", "-D", *(each for each in branches if each != "main"))
        assert_gone(repo, path)
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0, done.stderr
            break
    assert 20 < step < 199


def setting_up(quick: QuickQueen, repo: Path, tree: Path) -> tuple[subprocess.Popen[str], int]:
    """Starts a set-up that takes long; returns its caller, and the process id of what it runs."""
    pid = tree.with_name("pid")
    quick("config", "set", "worktree.setup", f"echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 600")
    started = Queen(repo).start("worktree", "setup", cwd=tree, as_="ui")
    until_s = time.monotonic() + 60
    while not pid.exists():
        assert time.monotonic() < until_s
        time.sleep(0.02)
    return started, int(pid.read_text())


@pytest.mark.linux
@pytest.mark.slow
def test_a_set_up_that_a_killed_call_has_left_ends_first(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    started, pid = setting_up(quick, repo, tree)
    refused = quick("worktree", "remove", "ui", "--force")
    assert (refused.code, f"process {started.pid}" in refused.err) == (5, True), refused
    assert is_alive(pid)
    started.kill()
    started.communicate()
    assert is_alive(pid)
    assert quick("worktree", "remove", "ui", "--force").code == 0
    assert not is_alive(pid)
    assert_gone(repo, tree)


def test_what_is_told_of_another_repository_in_its_place_helps(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    (tree / ".git").unlink()
    git(tree, "init", "-q", "-b", "own")
    commit_file(tree, "own.txt", "own\n")
    own = git(tree, "rev-parse", "HEAD")
    for more in ([], ["--force"]):
        refused = quick("worktree", "remove", "ui", "--json", *more)
        assert (refused.code, refused.error["code"]) == (5, "conflict")
        assert "is that of another repository" in refused.error["message"]
    way, _, _ = refused.error["hint"].rpartition(", then the same")
    subprocess.run(way, shell=True, check=True, capture_output=True)
    assert quick("worktree", "remove", "ui", "--force").code == 0
    assert kept(repo, "draft.txt") == "draft\n"
    assert not tree.exists()
    assert git(tree.with_name("repo-ui.git"), "rev-parse", "HEAD") == own


def test_a_git_directory_that_leads_to_another_repository_runs_nothing_of_that(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    other, ran = tmp_path / "other.git", tmp_path / "ran"
    shutil.copytree(repo / ".git", other)
    for name in ("reference-transaction", "post-checkout", "post-index-change"):
        hook = other / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    (repo / ".git" / "worktrees" / tree.name / "commondir").write_text(f"{other}\n")
    refused = quick("worktree", "remove", "ui", "--force", cwd=repo)
    assert (refused.code, "leads to another repository" in refused.err) == (5, True), refused
    assert not ran.exists()
    assert (tree / "draft.txt").read_text() == "draft\n"
