"""Changes: what a commit or a push changes, whatever git calls it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hives import add_submodule, commit_file, git

from queenbee.errors import ExternalFailure, InvalidInput
from queenbee.git import changes
from queenbee.git.run import git as run_git
from queenbee.git.run import line

ZEROS = "0" * 40


def write(tree: Path, name: str, text: str = "x\n") -> None:
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text(text)


def head(tree: Path, name: str = "HEAD") -> str:
    return git(tree, "rev-parse", name).strip()


def staged(tree: Path) -> list[str]:
    return changes.staged(str(tree))


@pytest.fixture
def remote(repo: Path) -> Path:
    """A bare repository that `repo` has pushed its branch to, as `origin`."""
    bare = repo.parent / "remote.git"
    git(repo, "clone", "-q", "--bare", str(repo), str(bare))
    git(repo, "remote", "add", "origin", str(bare))
    git(repo, "fetch", "-q", "origin")
    return bare


def pushed(tree: Path, *updates: tuple[str, str], remote: str = "origin") -> list[str]:
    lines = [f"refs/heads/x {local} refs/heads/x {there}" for local, there in updates]
    return changes.pushed(str(tree), remote, lines)


# The next commit


def test_a_new_a_changed_and_a_removed_file_count(repo: Path) -> None:
    for name in ("changed", "removed", "same"):
        commit_file(repo, name)
    write(repo, "changed")
    write(repo, "new")
    git(repo, "add", ".")
    git(repo, "rm", "-q", "removed")
    assert staged(repo) == ["changed", "new", "removed"]


def test_a_rename_counts_under_both_names_whatever_the_settings_say(repo: Path) -> None:
    commit_file(repo, "old/name.py", "same text\n" * 20)
    for value in ("true", "copies", "false"):
        git(repo, "config", "diff.renames", value)
        (repo / "new").mkdir(exist_ok=True)
        git(repo, "mv", "old/name.py", "new/name.py")
        assert staged(repo) == ["new/name.py", "old/name.py"]
        git(repo, "reset", "-q", "--hard")


def test_the_first_commit_of_a_repository_counts(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, "a")
    git(tmp_path, "add", "a")
    assert staged(tmp_path) == ["a"]


def test_names_are_from_the_root_wherever_git_is_asked(repo: Path) -> None:
    write(repo, "sub/a.py")
    write(repo, "b.py")
    git(repo, "add", ".")
    git(repo, "config", "diff.relative", "true")
    assert staged(repo / "sub") == ["b.py", "sub/a.py"]


@pytest.mark.parametrize(
    "name",
    [
        b"new\nline",
        b'quo"te',
        b"\xc3\xa4\xf0\x9f\x90\x9d",
        b"latin\xe9",
        b"tab\there",
        b" s p ",
        b"-x",
    ],
)
def test_a_file_name_of_any_bytes_survives(repo: Path, name: bytes) -> None:
    with open(os.path.join(os.fsencode(repo), name), "wb"):
        pass
    git(repo, "add", ".")
    assert [os.fsencode(path) for path in staged(repo)] == [name]


def test_a_link_counts_by_its_own_name(repo: Path) -> None:
    (repo / "link").symlink_to("README.md")
    git(repo, "add", "link")
    assert staged(repo) == ["link"]


def test_a_submodule_counts_by_its_path_even_where_git_is_told_to_ignore_it(
    repo: Path, tmp_path: Path
) -> None:
    add_submodule(repo, tmp_path / "other", "lib", "a")
    assert staged(repo) == [".gitmodules", "lib"]
    git(repo, "commit", "-qm", "a submodule")
    git(repo, "config", "diff.ignoreSubmodules", "all")
    commit_file(repo / "lib", "b")
    git(repo, "add", "lib")
    assert staged(repo) == ["lib"]


def test_nothing_is_changed_if_nothing_is_staged(repo: Path) -> None:
    write(repo, "unstaged")
    assert staged(repo) == []


def test_only_what_a_merge_itself_changes_counts(repo: Path) -> None:
    for name in ("theirs", "ours", "both", "same"):
        commit_file(repo, name, "1\n")
    git(repo, "checkout", "-qb", "topic")
    write(repo, "theirs", "2\n")
    write(repo, "both", "topic\n")
    git(repo, "commit", "-qam", "topic")
    git(repo, "checkout", "-q", "main")
    write(repo, "ours", "2\n")
    write(repo, "both", "main\n")
    git(repo, "commit", "-qam", "main")
    subprocess.run(["git", "merge", "-q", "topic"], cwd=repo, capture_output=True)
    write(repo, "both", "resolved\n")
    write(repo, "same", "sneaked in\n")
    git(repo, "add", ".")
    assert staged(repo) == ["both", "same"]


# A range


def test_a_range_counts_what_each_of_its_commits_changes(repo: Path) -> None:
    begin = head(repo)
    commit_file(repo, "a", "1\n")
    commit_file(repo, "b", "1\n")
    git(repo, "mv", "b", "c")
    git(repo, "commit", "-qm", "moved")
    write(repo, "a", "2\n")
    git(repo, "commit", "-qam", "changed, and back")
    git(repo, "revert", "--no-edit", "HEAD")
    assert changes.in_range(str(repo), f"{begin}..HEAD") == ["a", "b", "c"]
    assert changes.in_range(str(repo), "HEAD~1..HEAD") == ["a"]


def test_a_merge_in_a_range_counts_only_for_what_differs_from_every_parent(repo: Path) -> None:
    commit_file(repo, "theirs", "1\n")
    commit_file(repo, "ours", "1\n")
    begin = head(repo)
    git(repo, "checkout", "-qb", "topic")
    write(repo, "theirs", "2\n")
    git(repo, "commit", "-qam", "topic")
    git(repo, "checkout", "-q", "main")
    write(repo, "ours", "2\n")
    git(repo, "commit", "-qam", "main")
    git(repo, "merge", "-q", "--no-edit", "topic")
    assert changes.in_range(str(repo), "topic..HEAD") == ["ours"]
    assert changes.in_range(str(repo), f"{begin}..HEAD") == ["ours", "theirs"]
    write(repo, "evil", "1\n")
    git(repo, "add", "evil")
    git(repo, "commit", "-q", "--amend", "--no-edit")
    assert changes.in_range(str(repo), "main^1..HEAD") == ["evil", "theirs"]


def test_signatures_in_gits_log_are_not_file_names(repo: Path) -> None:
    git(repo, "config", "log.showSignature", "true")
    git(repo, "config", "log.showRoot", "false")
    commit_file(repo, "a")
    assert changes.in_range(str(repo), "HEAD~1..HEAD") == ["a"]


@pytest.mark.parametrize("text", ["HEAD", "", "--all", "-x..y", "nowhere..HEAD", "a..b..c"])
def test_a_text_that_is_not_a_range_is_refused(repo: Path, text: str) -> None:
    with pytest.raises(InvalidInput, match="not a range of commits"):
        changes.in_range(str(repo), text)


# A push


def test_a_push_counts_what_the_remote_has_not_seen(repo: Path, remote: Path) -> None:
    before = head(repo)
    commit_file(repo, "a")
    commit_file(repo, "b")
    assert pushed(repo, (head(repo), before)) == ["a", "b"]


def test_a_new_branch_counts_only_its_own_commits(repo: Path, remote: Path) -> None:
    git(repo, "checkout", "-qb", "topic")
    commit_file(repo, "a")
    assert pushed(repo, (head(repo), ZEROS)) == ["a"]


def test_a_merge_does_not_count_what_others_pushed_before(repo: Path, remote: Path) -> None:
    git(repo, "checkout", "-qb", "topic")
    commit_file(repo, "mine")
    git(repo, "checkout", "-q", "main")
    commit_file(repo, "theirs")
    git(repo, "push", "-q", "origin", "main")
    git(repo, "checkout", "-q", "topic")
    git(repo, "merge", "-q", "--no-edit", "main")
    assert pushed(repo, (head(repo), ZEROS)) == ["mine"]


def test_a_deleted_branch_changes_nothing(repo: Path, remote: Path) -> None:
    assert pushed(repo, (ZEROS, head(repo))) == []


def test_a_force_push_counts_what_it_brings(repo: Path, remote: Path) -> None:
    commit_file(repo, "first")
    git(repo, "push", "-q", "origin", "main")
    before = head(repo)
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    commit_file(repo, "second")
    assert pushed(repo, (head(repo), before)) == ["second"]


def test_a_remote_commit_that_is_not_here_is_ignored(repo: Path, remote: Path) -> None:
    commit_file(repo, "a")
    assert pushed(repo, (head(repo), "1" * 40)) == ["a"]


def test_a_remote_named_by_its_address_counts_the_commits_of_all_remotes(
    repo: Path, remote: Path
) -> None:
    commit_file(repo, "a")
    assert pushed(repo, (head(repo), ZEROS), remote=str(remote)) == ["a"]


def test_the_first_push_of_a_repository_counts_all_of_it(repo: Path) -> None:
    commit_file(repo, "a")
    assert pushed(repo, (head(repo), ZEROS), remote="nowhere") == ["README.md", "a"]


def test_a_tag_is_pushed_like_a_branch(repo: Path, remote: Path) -> None:
    commit_file(repo, "a")
    git(repo, "tag", "-am", "release", "v1")
    assert pushed(repo, (head(repo, "v1"), ZEROS)) == ["a"]


def test_several_refs_are_pushed_at_once(repo: Path, remote: Path) -> None:
    before = head(repo)
    commit_file(repo, "a")
    first = head(repo)
    git(repo, "checkout", "-q", "-b", "other", before)
    commit_file(repo, "b")
    assert pushed(repo, (first, before), (head(repo), ZEROS), (ZEROS, before)) == ["a", "b"]


@pytest.mark.parametrize("text", ["", "a b c", "a b c d e", "x"])
def test_a_line_that_git_does_not_hand_to_a_hook_is_refused(repo: Path, text: str) -> None:
    with pytest.raises(InvalidInput):
        changes.pushed(str(repo), "origin", [text])


# Running git


def test_a_failure_of_git_names_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1")
    with pytest.raises(ExternalFailure, match="not a git repository"):
        run_git("status", cwd=str(tmp_path))
    assert line("rev-parse", "HEAD", cwd=str(tmp_path)) is None


def test_a_missing_git_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExternalFailure, match="git cannot be run"):
        run_git("status", cwd=str(tmp_path))


def test_the_index_that_git_names_to_a_hook_is_read(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repo, "staged")
    git(repo, "add", "staged")
    write(repo, "other")
    index = repo / ".git" / "another-index"
    git(repo, "read-tree", f"--index-output={index}", "HEAD")
    monkeypatch.setenv("GIT_INDEX_FILE", str(index))
    git(repo, "add", "other")
    assert staged(repo) == ["other"]
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert staged(repo) == ["staged"]
