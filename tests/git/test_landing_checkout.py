"""The checkout of landings: nothing that was left there has a say, and nobody loses work in it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, add_submodule, commit_file, git

from queenbee.services.waiting import landing_steps

CHECK = "sh ./t.sh"


@pytest.fixture
def tree(repo: Path, tmp_path: Path) -> Path:
    commit_file(repo, "t.sh", "true\n")
    git(repo, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
    return tmp_path / "ui"


def place(repo: Path) -> Path:
    return repo.with_name(f"{repo.name}-landing-main")


def lands(quick: QuickQueen, tree: Path, path: str, text: str = "x\n") -> int:
    commit_file(tree, path, text)
    return quick("land", "--check", CHECK, as_="ui", cwd=tree).code


@pytest.mark.parametrize("has_it", ["ui", "main"])
def test_a_failed_check_names_what_git_ignores_if_the_worktree_that_lands_has_it(
    quick: QuickQueen, repo: Path, tree: Path, has_it: str
) -> None:
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "exclude").write_text(".env\n")
    ((tree if has_it == "ui" else repo) / ".env").write_text("KEY=1\n")
    commit_file(tree, "t.sh", "false\n")
    done = quick("land", "--check", CHECK, "--json", as_="ui", cwd=tree)
    said = done.json["landing"]["output"]
    assert (done.code, "and not .env; if the check needs it" in said) == (1, has_it == "ui"), done


class TestItsRemoval:
    @pytest.fixture(autouse=True)
    def checkout(self, quick: QuickQueen, repo: Path, tree: Path) -> Path:
        assert lands(quick, tree, "a.txt") == 0
        return place(repo)

    def test_leaves_nothing_and_the_next_landing_makes_it_anew(
        self, quick: QuickQueen, repo: Path, tree: Path, checkout: Path
    ) -> None:
        done = quick("worktree", "remove", checkout.name, cwd=repo)
        assert done.out == f"removed {checkout}\n"
        assert not checkout.exists()
        assert lands(quick, tree, "b.txt") == 0
        assert checkout.exists()
        git(repo, "commit", "-q", "--amend", "--allow-empty", "-m", "amended")
        git(tree, "reset", "-q", "--hard", "main")
        assert quick("worktree", "remove", checkout.name, cwd=repo).code == 0
        assert git(repo, "branch", "--list", "unfinished/*") == ""

    def test_keeps_what_somebody_made_there(
        self, quick: QuickQueen, repo: Path, checkout: Path
    ) -> None:
        commit_file(checkout, "mine.txt", "mine\n")
        (checkout / "more.txt").write_text("more\n")
        assert quick("worktree", "remove", str(checkout), cwd=repo).code == 0
        kept = f"unfinished/{checkout.name}"
        assert "mine" in git(repo, "show", f"{kept}:mine.txt")
        assert git(repo, "show", f"{kept}:more.txt") == "more\n"

    def test_is_of_no_worktree_of_a_person(self, quick: QuickQueen, repo: Path, tree: Path) -> None:
        (tree / "open.txt").touch()
        assert quick("worktree", "remove", tree.name, cwd=repo).code == 5
        assert (tree / "open.txt").exists()

    def test_waits_for_no_landing_that_uses_it(
        self, quick: QuickQueen, repo: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(landing_steps, "_PATIENCE_S", 0.0)
        folder = repo / ".git" / "queenbee-private" / "landing" / "main"
        assert folder.is_dir()
        with landing_steps.Step.of(str(folder), str(checkout)):
            busy = quick("worktree", "remove", checkout.name, cwd=repo)
        assert (busy.code, "another queen land is at work" in busy.err) == (6, True)
        assert checkout.exists()


class TestASubmodule:
    @pytest.fixture
    def lib(self, repo: Path, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A submodule with a commit that is bad, on a branch of its own."""
        count = int(os.environ["GIT_CONFIG_COUNT"])
        monkeypatch.setenv("GIT_CONFIG_COUNT", str(count + 1))
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{count}", "protocol.file.allow")
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{count}", "always")
        other = tmp_path / "other"
        add_submodule(tree, other, "lib", "s")
        git(tree, "commit", "-qm", "a submodule")
        git(other, "switch", "-qc", "bad")
        commit_file(other, "s", "BAD\n")
        return other

    def bad(self, tree: Path) -> None:
        git(tree / "lib", "fetch", "-q", "origin", "bad:bad")
        git(tree / "lib", "checkout", "-q", "bad")
        git(tree, "add", "lib")

    def test_lands_whatever_git_is_told_of_them(
        self, quick: QuickQueen, repo: Path, tree: Path, lib: Path
    ) -> None:
        git(repo, "config", "submodule.recurse", "true")
        for number in (1, 2):
            assert lands(quick, tree, "t.sh", f"#{number}\n") == 0
        assert (repo / "t.sh").read_text() == "#2\n"

    def test_of_a_checkout_that_is_broken_is_made_anew_with_it(
        self, quick: QuickQueen, repo: Path, tree: Path, lib: Path
    ) -> None:
        assert lands(quick, tree, "t.sh", "#1\n") == 0
        shutil.rmtree(repo / ".git" / "worktrees" / "repo-landing-main" / "modules")
        assert lands(quick, tree, "t.sh", "#2\n") == 0

    def test_without_an_entry_in_gitmodules_keeps_nobody_from_landing(
        self, quick: QuickQueen, repo: Path, tree: Path, lib: Path
    ) -> None:
        git(repo, "merge", "-q", "ui")
        git(repo, "init", "-q", "embedded")
        commit_file(repo / "embedded", "e", "x\n")
        git(repo, "add", "embedded")
        git(repo, "commit", "-qm", "by accident")
        assert lands(quick, tree, "t.sh", "test -e lib/s\n") == 0

    def test_that_cannot_be_fetched_is_named_with_a_way(
        self, quick: QuickQueen, repo: Path, tree: Path, lib: Path, tmp_path: Path
    ) -> None:
        program = tmp_path / "ssh"
        program.write_text(f'#!/bin/sh\necho "$SSH_AUTH_SOCK" > {tmp_path}/log; exit 1\n')
        program.chmod(0o755)
        quick.env |= {"GIT_SSH_COMMAND": str(program), "SSH_AUTH_SOCK": "/socket"}
        git(repo, "config", "submodule.lib.url", "ssh://nowhere/lib")
        commit_file(tree, "t.sh", "#1\n")
        refused = quick("land", "--check", CHECK, as_="ui", cwd=tree)
        assert (refused.code, "submodule.NAME.update none" in refused.err) == (5, True), refused
        assert (tmp_path / "log").read_text() == "/socket\n"
        git(tree, "config", "-f", ".gitmodules", "submodule.lib.update", "none")
        git(tree, "commit", "-qam", "not needed")
        assert lands(quick, tree, "u.sh") == 0

    @pytest.mark.parametrize(
        "leaves",
        ["touch lib/built", "cd lib; git update-index --skip-worktree s; echo ok > s; exit 1"],
    )
    def test_has_nothing_that_another_check_left(
        self, quick: QuickQueen, repo: Path, tree: Path, lib: Path, leaves: str
    ) -> None:
        assert lands(quick, tree, "t.sh", "true\n#\n") == 0
        lands(quick, tree, "t.sh", leaves + "\n")
        git(tree, "reset", "-q", "--hard", "main")
        git(tree, "submodule", "--quiet", "update", "--init")
        self.bad(tree)
        assert lands(quick, tree, "t.sh", "test -e lib/built || ! grep -q BAD lib/s\n") == 1


def test_a_check_that_a_kill_left_is_ended_before_the_next_one(
    queen: Queen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    began, go, made = tmp_path / "began", tmp_path / "go", tmp_path / "made"
    left = f"touch {began}; until [ -e {go} ]; do sleep 0.05; done; touch {made} made; sleep 60\n"
    commit_file(tree, "t.sh", left)
    queen.env["QUEEN_LAND_ATTACHED"] = "1"
    started = queen.start("land", "--check", CHECK, as_="ui", cwd=tree)
    while not began.exists():
        time.sleep(0.02)
    started.send_signal(signal.SIGKILL)
    started.communicate()
    git(tree, "reset", "-q", "--hard", "main")
    commit_file(tree, "t.sh", f"touch {go}; sleep 1; test ! -e made\n")
    assert queen("land", "--check", CHECK, as_="ui", cwd=tree).code == 0
    assert go.exists() and not made.exists()


@pytest.mark.parametrize("is_known", [True, False])
def test_only_the_files_that_differ_are_written(
    quick: QuickQueen, repo: Path, tree: Path, is_known: bool
) -> None:
    """A build of what is in the checkout goes on from there."""
    known = repo / ".git" / "worktrees" / place(repo).name / "queenbee-known"
    assert lands(quick, tree, "a") == 0
    files = [place(repo) / name for name in ("t.sh", "a")]
    before = [(each.stat().st_ino, each.stat().st_ctime_ns) for each in files]
    for name in ("b", "c"):
        known.write_bytes(known.read_bytes() if is_known else b"torn")
        assert lands(quick, tree, name) == 0
    assert [(each.stat().st_ino, each.stat().st_ctime_ns) for each in files] == before


def test_only_the_files_that_may_have_changed_are_read(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    for number in range(40):
        (tree / f"f{number}").write_text(f"{number}\n")
    git(tree, "add", "-A")
    for name in ("a", "b", "c"):
        assert lands(quick, tree, name) == 0
    commit_file(tree, "d", "x\n")
    trace = tmp_path / "trace"
    how = {"GIT_TRACE2_PERF": str(trace)}
    assert quick("land", "--check", "true", as_="ui", cwd=tree, env=how).code == 0
    runs = trace.read_text().split("| version ")
    read = [
        int(count)
        for run in runs
        if str(place(repo)) in run
        for count in re.findall(r"refresh/sum_scan:(\d+)", run)
    ]
    assert read and max(read) < 20, read


@pytest.mark.parametrize(("how", "count"), [("--unchecked", 1), ("--check=true", 2)])
def test_git_looks_at_all_of_it_once_and_after_a_check_again(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path, how: str, count: int
) -> None:
    assert lands(quick, tree, "a") == 0
    quick("issue", "new", "One", "--id", "q-1")
    quick("claim", "q-1", as_="ui", cwd=tree)
    commit_file(tree, "b", "x\n")
    trace = tmp_path / "trace"
    env = {"GIT_TRACE2_PERF": str(trace)}
    assert quick("land", how, as_="ui", cwd=tree, env=env).code == 0
    runs = trace.read_text().split("| version ")
    assert sum(f"-C {place(repo)} " in run and " status " in run for run in runs) == count


class TestTheFolder:
    def test_has_no_link_set_aside_that_leads_to_repositories(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        assert lands(quick, tree, "t.sh", "true #\n") == 0
        (place(repo) / "out").symlink_to(repo.parent)
        assert lands(quick, tree, "a") == 0
        assert not [*repo.parent.glob("*set-aside*")]
        assert not (place(repo) / "out").is_symlink()

    def test_is_not_looked_for_changes_behind_a_link(
        self, quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
    ) -> None:
        far = repo.with_name("far")
        far.mkdir()
        assert lands(quick, tree, "a") == 0
        (place(repo) / "out").symlink_to(far)
        (repo / ".git" / "worktrees" / place(repo).name / "queenbee-closed").touch()
        (far / "typed").write_text("typed\n")
        commit_file(tree, "b", "x\n")
        trace = tmp_path / "trace"
        env = {"GIT_TRACE": str(trace)}
        assert quick("land", "--check", CHECK, as_="ui", cwd=tree, env=env).code == 0
        assert not [x for x in trace.read_text().splitlines() if x.endswith("read-tree HEAD")]

    def test_that_somebody_has_is_left_and_another_one_is_made_beside_it(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        place(repo).mkdir()
        (place(repo) / "mine").write_text("x\n")
        (repo / "pytest.ini").write_text("[pytest]\n")
        assert lands(quick, tree, "t.sh", "test ! -e ../pytest.ini && pwd\n") == 0
        assert [each.name for each in place(repo).iterdir()] == ["mine"]
        assert place(repo).with_name(f"{place(repo).name}a").is_dir()

    def test_has_repositories_of_somebody_set_aside(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        assert lands(quick, tree, "a") == 0
        (place(repo) / "sub" / "proj").mkdir(parents=True)
        git(place(repo) / "sub" / "proj", "init", "-q")
        (place(repo) / "sub" / "proj" / "only").write_text("x\n")
        assert lands(quick, tree, "b") == 0
        aside = place(repo).with_name(f"{place(repo).name}.set-aside-1")
        assert (aside / "proj" / "only").read_text() == "x\n"
        assert lands(quick, tree, "c") == 0
        assert not place(repo).with_name(f"{place(repo).name}.set-aside-2").exists()

    def test_has_what_is_not_committed_on_a_branch_kept(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        assert lands(quick, tree, "a") == 0
        git(place(repo), "switch", "-qc", "mine")
        (place(repo) / "a").write_text("mine\n")
        (repo / ".git" / "worktrees" / place(repo).name / "queenbee-closed").unlink()  # A kill.
        assert lands(quick, tree, "b") == 0
        kept = git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/unfinished")
        assert git(repo, "show", f"{kept.split()[0]}:a") == "mine\n"

    def test_has_what_somebody_changed_by_mistake_kept_and_nothing_of_a_check(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        commit_file(repo, "other.txt", "x\n")
        git(tree, "merge", "-q", "main")
        assert lands(quick, tree, "t.sh", "echo by check > other.txt\n") != 0
        assert (place(repo) / "other.txt").read_text() == "by check\n"
        (place(repo) / "README.md").write_text("typed\n")
        (place(repo) / "typed.txt").write_text("typed\n")
        commit_file(tree, "t.sh", "true\n")
        done = quick("land", "--check", CHECK, as_="ui", cwd=tree)
        kept = f"unfinished/{place(repo).name}"
        assert (done.code, f"is kept: git log -p {kept}" in done.out) == (0, True), done
        files = git(repo, "diff", "--name-only", f"{kept}^", kept).split()
        assert files == ["README.md", "typed.txt"]
        assert git(repo, "show", f"{kept}:README.md") == "typed\n"
        assert lands(quick, tree, "more.txt") == 0
        left = ["unfinished/left-by-check", kept]
        assert git(repo, "branch", "--list", "unfinished/*").split() == left

    def test_has_what_somebody_staged_or_put_into_a_folder_kept(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        other = tree.with_name("other")
        git(repo, "worktree", "add", "-q", str(other), "-b", "other")
        (tree / "new" / "sub").mkdir(parents=True)
        assert lands(quick, tree, "new/sub/a") == 0
        (place(repo) / "new" / "sub" / "typed").write_text("typed\n")
        assert lands(quick, other, "b") == 0
        name = f"unfinished/{place(repo).name}"
        assert git(repo, "show", f"{name}:new/sub/typed") == "typed\n"
        before = (place(repo) / "README.md").read_text()
        (place(repo) / "README.md").write_text("staged\n")
        git(place(repo), "add", "README.md")
        (place(repo) / "README.md").write_text(before)
        assert lands(quick, tree, "c") == 0
        assert "+staged" in git(repo, "log", "-p", "-m", f"{name}-2")

    def test_has_no_file_of_another_branch_that_git_status_is_set_not_to_show(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        git(repo, "config", "status.showUntrackedFiles", "no")
        other = tree.with_name("other")
        git(repo, "worktree", "add", "-q", str(other), "-b", "other")
        commit_file(tree, "t.sh", "false\n")
        assert lands(quick, tree, "stray.txt") != 0
        assert lands(quick, other, "t.sh", "! ls stray.txt\n") == 0

    def test_gets_no_worktree_of_a_droid(self, quick: QuickQueen, repo: Path, tree: Path) -> None:
        assert lands(quick, tree, "a") == 0
        refused = quick("worktree", "add", "x", "--path", str(place(repo) / "x"), as_="ui")
        assert refused.code == 2
        assert "emptied at each landing" in refused.err


def test_a_link_in_its_place_is_refused_and_what_it_leads_to_is_left_alone(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    assert lands(quick, tree, "a") == 0
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "notes.txt").write_text("mine\n")
    shutil.copy(place(repo) / ".git", theirs / ".git")
    shutil.rmtree(place(repo))
    place(repo).symlink_to(theirs)
    commit_file(tree, "b", "x\n")
    refused = quick("land", "--check", CHECK, as_="ui", cwd=tree)
    assert (refused.code, "is a link, where landings are checked" in refused.err) == (5, True)
    assert (theirs / "notes.txt").read_text() == "mine\n"
    place(repo).unlink()
    assert quick("land", "--check", CHECK, as_="ui", cwd=tree).code == 0
