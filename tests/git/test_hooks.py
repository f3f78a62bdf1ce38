"""Git's hooks: the guard is put beside what is there, and taken out without a trace."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import QuickQueen, Ran, commit_file, git, snapshot

from queenbee import Reservation

Git = Callable[..., "subprocess.CompletedProcess[str]"]
Hold = Callable[..., Reservation]

NOTE = (
    '#!/bin/sh\necho "theirs: $*" >> "$(git rev-parse --show-toplevel)/../note"\ncat >> ../note\n'
)


HOOKS = ("pre-commit", "prepare-commit-msg", "pre-applypatch", "pre-push")


def guard(tree: Path, verb: str) -> Ran:
    return QuickQueen(tree)("guard", verb, "--json")


def states(ran: Ran) -> list[str]:
    return [each["state"] for each in ran.json["hooks"]]


def install(tree: Path) -> list[str]:
    return states(guard(tree, "install"))


def uninstall(tree: Path) -> list[str]:
    return states(guard(tree, "uninstall"))


def write_hook(path: Path, text: str = NOTE, mode: int = 0o755) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def note(tree: Path) -> str:
    path = tree.parent / "note"
    return path.read_text() if path.exists() else ""


def stage(tree: Path, name: str) -> None:
    (tree / name).write_text("changed\n")
    git(tree, "add", "--", name)


def files(place: Path) -> dict[str, tuple[bytes, int]]:
    """Returns what is in a folder of hooks: content and mode of each file."""
    return {
        path.name: (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in place.iterdir()
        if not path.name.endswith(".sample")
    }


# A plain repository


def test_all_hooks_are_installed_and_found_again(repo: Path) -> None:
    assert {*states(guard(repo, "status"))} == {"absent"}
    assert install(repo) == ["installed"] * 4
    assert {*states(guard(repo, "status"))} == {"installed"}
    for hook in HOOKS:
        assert os.access(repo / ".git" / "hooks" / hook, os.X_OK)


def test_installing_twice_changes_nothing(repo: Path) -> None:
    install(repo)
    before = snapshot(repo / ".git")
    install(repo)
    assert snapshot(repo / ".git") == before


def test_uninstalling_leaves_the_folder_as_it_was(repo: Path) -> None:
    place = repo / ".git" / "hooks"
    before = files(place)
    install(repo)
    assert uninstall(repo) == ["absent"] * 4
    assert files(place) == before
    assert not (repo / ".git" / "queenbee-guard.sh").exists()
    assert uninstall(repo) == ["absent"] * 4


def test_the_hooks_contain_no_path_of_this_machine(repo: Path) -> None:
    install(repo)
    for hook in HOOKS:
        text = (repo / ".git" / "hooks" / hook).read_text()
        assert str(repo.parent) not in text
        assert "python" not in text


def test_a_hook_that_was_there_runs_after_the_guard_with_its_arguments_and_input(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    uninstall(guarded)
    for hook in HOOKS:
        write_hook(guarded / ".git" / "hooks" / hook)
    install(guarded)
    bare = guarded.parent / "remote.git"
    git(guarded, "init", "-q", "--bare", str(bare))
    hold("held.py")

    stage(guarded, "free.py")
    assert try_git("commit", "-m", "x").returncode == 0
    assert try_git("push", str(bare), "main").returncode == 0

    lines = note(guarded).splitlines()
    assert lines[0] == "theirs: "
    assert lines[1] == "theirs: .git/COMMIT_EDITMSG message"
    assert lines[2] == f"theirs: {bare} {bare}"
    assert lines[3].startswith("refs/heads/main ") and lines[3].endswith("0" * 40)
    assert len(lines) == 4


def test_a_hook_that_was_there_does_not_run_when_the_guard_refuses(
    repo: Path, try_git: Git, hold: Hold
) -> None:
    write_hook(repo / ".git" / "hooks" / "pre-commit")
    install(repo)
    hold("held.py")
    stage(repo, "held.py")
    assert try_git("commit", "-m", "x").returncode == 1
    assert note(repo) == ""


def test_a_hook_that_was_there_still_refuses(repo: Path, try_git: Git) -> None:
    write_hook(repo / ".git" / "hooks" / "pre-commit", "#!/bin/sh\nexit 3\n")
    write_hook(repo / ".git" / "hooks" / "pre-push", "#!/bin/sh\nexit 3\n")
    install(repo)
    stage(repo, "free.py")
    assert try_git("commit", "-m", "x").returncode == 1
    bare = repo.parent / "remote.git"
    git(repo, "init", "-q", "--bare", str(bare))
    assert try_git("push", str(bare), "main").returncode == 1


def test_an_earlier_hook_is_restored_with_its_mode(repo: Path) -> None:
    place = repo / ".git" / "hooks"
    write_hook(place / "pre-commit", NOTE, 0o750)
    write_hook(place / "pre-push", "never run: not executable\n", 0o644)
    before = files(place)
    install(repo)
    state = guard(repo, "status").json["hooks"][0]
    assert state["chained"] == str(place / "pre-commit.before-queenbee")
    uninstall(repo)
    assert files(place) == before


def test_a_hook_that_git_would_not_run_is_not_run_by_the_guard_either(
    repo: Path, try_git: Git
) -> None:
    write_hook(repo / ".git" / "hooks" / "pre-commit", mode=0o644)
    install(repo)
    stage(repo, "free.py")
    assert try_git("commit", "-m", "x").returncode == 0
    assert note(repo) == ""


def test_a_hook_that_is_a_link_is_chained_and_restored_as_a_link(repo: Path, try_git: Git) -> None:
    write_hook(repo / "tools" / "check.sh")
    link = repo / ".git" / "hooks" / "pre-commit"
    link.symlink_to("../../tools/check.sh")
    install(repo)
    stage(repo, "free.py")
    assert try_git("commit", "-m", "x").returncode == 0
    assert note(repo).startswith("theirs: ")
    uninstall(repo)
    assert os.readlink(link) == "../../tools/check.sh"


@pytest.mark.parametrize("real", ["pre-commit", "pre-push"])
def test_a_hook_that_is_a_link_to_another_hook_is_chained_and_restored(
    repo: Path, try_git: Git, hold: Hold, real: str
) -> None:
    place = repo / ".git" / "hooks"
    write_hook(place / real)
    links = [each for each in HOOKS if each != real]
    for each in links:
        (place / each).symlink_to(real)
    bare = repo.parent / "remote.git"
    git(repo, "init", "-q", "--bare", str(bare))
    assert install(repo) == install(repo) == ["installed"] * 4
    stage(repo, "free.py")
    assert try_git("commit", "-m", "x").returncode == 0
    hold("held.py")
    stage(repo, "held.py")  # What is staged keeps nobody from pushing.
    pushed = try_git("push", str(bare), "main")
    assert pushed.returncode == 0, pushed.stderr
    lines = note(repo).splitlines()
    assert lines[:2] == ["theirs: ", "theirs: .git/COMMIT_EDITMSG message"]
    assert lines[2] == f"theirs: {bare} {bare}"
    assert lines[3].startswith("refs/heads/main ") and len(lines) == 4
    uninstall(repo)
    assert [os.readlink(place / each) for each in links] == [real] * 3
    assert (place / real).read_text() == NOTE
    assert not [*place.glob("*.before-queenbee")]


def test_a_link_to_the_guard_of_another_repository_is_nobodys_to_remove(repo: Path) -> None:
    install(repo)
    hook = repo / ".git" / "hooks" / "pre-commit"
    elsewhere = hook.rename(repo.parent / "pre-commit")
    hook.symlink_to(elsewhere)
    uninstall(repo)
    assert os.readlink(hook) == str(elsewhere)
    assert "queenbee guard" in elsewhere.read_text()


@pytest.mark.parametrize("earlier", [False, True])
def test_lines_that_somebody_adds_to_the_guards_hook_stay(repo: Path, earlier: bool) -> None:
    path, begin = repo / ".git" / "hooks" / "pre-push", "# >>> queenbee guard >>>"
    if earlier:
        write_hook(path)
    install(repo)
    lines = '\n# my own\ngit lfs pre-push "$@"\n'
    path.write_text(path.read_text() + lines)
    for _ in range(2):
        assert install(repo) == ["installed"] * 4
        assert path.read_text().endswith(lines)
        assert path.read_text().count(begin) == 1
    uninstall(repo)
    assert begin not in path.read_text()
    assert path.read_text().endswith(lines)
    assert (".before-queenbee" in path.read_text()) == earlier
    assert path.with_name("pre-push.before-queenbee").exists() == earlier
    assert not path.with_name("pre-commit").exists()


def test_a_second_earlier_hook_is_a_conflict(repo: Path) -> None:
    place = repo / ".git" / "hooks"
    write_hook(place / "pre-commit")
    install(repo)
    write_hook(place / "pre-commit", "#!/bin/sh\n# somebody else's again\n")
    before = files(place)
    refused = guard(repo, "install").error
    assert (refused["code"], "already exists" in refused["message"]) == ("conflict", True)
    assert files(place) == before


# Where queen is


def test_the_hook_runs_if_queen_is_not_on_the_path(guarded: Path, try_git: Git, hold: Hold) -> None:
    hold("held.py")
    stage(guarded, "held.py")
    done = try_git("commit", "-m", "x", PATH="/usr/bin:/bin")
    assert done.returncode == 1
    assert "held by reviewer" in done.stderr


def moved_away(tree: Path) -> None:
    """Makes the recorded interpreter one that is not there any more."""
    runner = tree / ".git" / "queenbee-guard.sh"
    text = runner.read_text()
    assert f"'{sys.executable}'" in text
    gone = shlex.quote("/no such place/it's python")
    runner.write_text(text.replace(f"'{sys.executable}'", gone))


def test_the_hook_finds_queen_on_the_path_if_its_python_is_gone(
    guarded: Path, try_git: Git, hold: Hold, tmp_path: Path
) -> None:
    moved_away(guarded)
    program = tmp_path / "bin" / "queen"
    write_hook(program, '#!/bin/sh\necho "asked: $*" >&2\nexit 1\n')
    stage(guarded, "a.py")
    done = try_git("commit", "-m", "x", PATH=f"{program.parent}:/usr/bin:/bin")
    assert done.returncode == 1
    assert "asked: guard check --staged" in done.stderr


def test_without_queen_a_commit_passes_with_a_warning(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    hold("a.py")
    moved_away(guarded)
    stage(guarded, "a.py")
    done = try_git("commit", "-m", "x", PATH="/usr/bin:/bin")
    assert done.returncode == 0
    assert "queen was not found, so nothing was checked" in done.stderr


def test_a_python_without_queenbee_is_ignored(guarded: Path, try_git: Git, tmp_path: Path) -> None:
    write_hook(tmp_path / "python", "#!/bin/sh\nexit 97\n")
    runner = guarded / ".git" / "queenbee-guard.sh"
    runner.write_text(runner.read_text().replace(sys.executable, str(tmp_path / "python")))
    stage(guarded, "a.py")
    done = try_git("commit", "-m", "x", PATH="/usr/bin:/bin")
    assert done.returncode == 0
    assert "queen was not found" in done.stderr


@pytest.mark.parametrize("status", [70, 8, 139])
def test_a_bug_in_queen_stops_no_commit(
    guarded: Path, try_git: Git, tmp_path: Path, status: int
) -> None:
    write_hook(tmp_path / "python", f"#!/bin/sh\nexit {status}\n")
    runner = guarded / ".git" / "queenbee-guard.sh"
    runner.write_text(runner.read_text().replace(sys.executable, str(tmp_path / "python")))
    stage(guarded, "a.py")
    done = try_git("commit", "-m", "x")
    assert done.returncode == 0
    assert f"failed with status {status}" in done.stderr


def test_a_module_of_the_repository_is_not_imported_by_queen(
    guarded: Path, try_git: Git, hold: Hold
) -> None:
    (guarded / "queenbee").mkdir()
    (guarded / "queenbee" / "__init__.py").write_text("raise SystemExit('taken over')\n")
    (guarded / "json.py").write_text("raise SystemExit('taken over')\n")
    hold("a.py")
    stage(guarded, "a.py")
    done = try_git("commit", "-m", "x")
    assert done.returncode == 1
    assert "held by reviewer" in done.stderr


def test_a_tracked_hook_in_a_clone_without_queen_warns_only_if_there_is_a_hive(
    repo: Path, try_git: Git
) -> None:
    git(repo, "config", "core.hooksPath", ".githooks")
    install(repo)
    (repo / ".git" / "queenbee-guard.sh").unlink()
    stage(repo, "a.py")
    done = try_git("commit", "-m", "x", PATH="/usr/bin:/bin")
    assert (done.returncode, "nothing was checked" in done.stderr) == (0, True)
    (repo / ".beads").rmdir()
    stage(repo, "b.py")
    done = try_git("commit", "-m", "x", PATH="/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (0, "")


# Other places of hooks


def test_a_relative_hooks_path_is_relative_to_the_top_of_the_tree(
    repo: Path, try_git: Git, hold: Hold
) -> None:
    git(repo, "config", "core.hooksPath", ".githooks")
    (repo / "sub").mkdir()
    assert install(repo / "sub") == ["installed"] * 4
    assert (repo / ".githooks" / "pre-commit").exists()
    hold("a.py")
    stage(repo, "a.py")
    assert try_git("commit", "-m", "x").returncode == 1


def test_tracked_hooks_keep_their_files_and_are_said_to_be_the_repositorys(
    repo: Path, try_git: Git, hold: Hold
) -> None:
    git(repo, "config", "core.hooksPath", ".githooks")
    own = "#!/usr/bin/env bash\nset -euo pipefail\n[[ 1 == 1 ]]\necho theirs >> ../note\n"
    write_hook(repo / ".githooks" / "pre-commit", own)
    write_hook(repo / ".githooks" / "pre-push", "#!/usr/bin/env python3\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "hooks", "--no-verify")
    before = files(repo / ".githooks")
    ran = guard(repo, "install")
    assert states(ran) == ["installed"] * 4
    assert git(repo, "status", "--porcelain", ".githooks").splitlines() == [
        " M .githooks/pre-commit",
        " M .githooks/pre-push",
        "?? .githooks/pre-applypatch",
        "?? .githooks/pre-push.before-queenbee",
        "?? .githooks/prepare-commit-msg",
    ]
    text = (repo / ".githooks" / "pre-commit").read_text()
    assert text.startswith("#!/usr/bin/env bash\n# >>> queenbee guard >>>\n")
    assert text.endswith(own.partition("\n")[2])
    for said in (QuickQueen(repo)("guard", "status").out, QuickQueen(repo)("doctor").out):
        assert ".githooks/pre-commit" in said
        assert "are files of the repository: commit them" in " ".join(said.split())
    hold("a.py")
    stage(repo, "a.py")
    assert try_git("commit", "-m", "x").returncode == 1
    assert note(repo) == ""
    git(repo, "rm", "-qf", "a.py")
    assert install(repo) == ["installed"] * 4
    stage(repo, "b.py")
    assert try_git("commit", "-m", "x").returncode == 0
    assert "theirs" in note(repo)
    git(repo, "add", ".githooks")
    git(repo, "commit", "-qm", "the guard")
    assert guard(repo, "status").json["to_commit"] == ""
    uninstall(repo)
    assert files(repo / ".githooks") == before


def test_linked_worktrees_share_the_hooks_of_the_repository(
    repo: Path, try_git: Git, hold: Hold
) -> None:
    linked = repo.parent / "linked"
    git(repo, "worktree", "add", "-q", str(linked), "-b", "topic")
    install(linked)
    assert (repo / ".git" / "hooks" / "pre-commit").exists()
    hold("a.py")
    for tree in (repo, linked):
        stage(tree, "a.py")
        assert try_git("commit", "-m", "x", cwd=tree).returncode == 1


@pytest.fixture
def everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of hooks that a user has for all repositories."""
    folder, config = tmp_path / "every", tmp_path / "gitconfig"
    folder.mkdir()
    config.write_text(f"[core]\n\thooksPath = {folder}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    return folder


def test_hooks_of_all_repositories_are_written_only_with_a_yes(
    repo: Path, everywhere: Path, quick: QuickQueen
) -> None:
    for verb in ("install", "uninstall"):
        ran = quick("guard", verb)
        assert ran.code == 5
        assert f"queen guard {verb} --shared" in ran.err
    ran = quick("setup", "claude")
    assert ran.code == 0
    assert "queen guard install --shared" in ran.err
    assert quick("setup", "claude", "--check").code == 0
    assert "queen guard install --shared" in quick("guard", "status").out
    assert "queen guard install --shared" in quick("doctor").out
    assert list(everywhere.iterdir()) == []
    assert quick("guard", "install", "--shared").code == 0
    assert (everywhere / "pre-commit").exists()
    quick("setup", "--undo")
    assert (everywhere / "pre-commit").exists()
    assert quick("guard", "uninstall", "--shared").code == 0
    assert list(everywhere.iterdir()) == []


def test_a_folder_elsewhere_that_the_repository_names_is_its_own(
    repo: Path, tmp_path: Path, everywhere: Path
) -> None:
    git(repo, "config", "core.hooksPath", str(tmp_path / "own"))
    assert install(repo) == ["installed"] * 4


def test_where_git_runs_no_hooks_that_is_said(repo: Path, quick: QuickQueen) -> None:
    git(repo, "config", "core.hooksPath", os.devnull)
    assert {*states(guard(repo, "status"))} == {"absent"}
    ran = quick("guard", "install")
    assert ran.code == 5
    assert "git runs no hooks here: core.hooksPath is /dev/null" in ran.err
    assert "git config --unset core.hooksPath" in ran.err


def test_a_tool_that_writes_its_hooks_anew_takes_the_guard_out_and_is_named(
    repo: Path, quick: QuickQueen
) -> None:
    """As simple-git-hooks does, at each `npm install`."""
    hook = repo / ".git" / "hooks" / "pre-commit"
    write_hook(hook)
    install(repo)
    write_hook(hook)
    assert "git's hooks lack the guard that was installed here" in quick("doctor").out
    assert install(repo) == ["installed"] * 4
    assert uninstall(repo)[0] == "other"
    assert hook.read_text() == NOTE


def test_the_cure_is_said_where_git_runs_no_guard(quick: QuickQueen, repo: Path) -> None:
    quick("init")
    git(repo, "config", "core.hooksPath", ".githooks")
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "a hive")
    install(repo)
    said = f"commit the hooks with the guard in {repo}, and merge them"
    assert said in quick("worktree", "add", "api").err
    assert said in quick("doctor").out
    (repo / "lefthook.yml").touch()
    assert "queen guard install, which prints what to add to lefthook.yml" in quick("doctor").out


@pytest.mark.some(1)
@pytest.mark.slow
@pytest.mark.parametrize(("config", "name"), [(".husky/_", "v9"), (".husky", "v8")])
def test_with_husky_the_guard_is_in_the_files_that_its_users_write(
    repo: Path, try_git: Git, hold: Hold, config: str, name: str
) -> None:
    user = repo / ".husky" / "pre-commit"
    text = "#!/usr/bin/env sh\nnpx lint-staged --quiet || echo linted >> ../note\n"
    write_hook(user, text)
    if name == "v9":
        # As husky writes it: a shim for each hook, made anew by every `npm install`.
        shim = '#!/usr/bin/env sh\nexec sh -e "$(dirname "$0")/../$(basename "$0")" "$@"\n'
        for hook in HOOKS:
            write_hook(repo / ".husky" / "_" / hook, shim)
    git(repo, "config", "core.hooksPath", config)
    assert guard(repo, "status").json["framework"] == "husky"
    assert install(repo) == ["installed"] * 4
    once = user.read_text()
    assert install(repo) == ["installed"] * 4
    assert user.read_text() == once
    assert once.startswith("#!/usr/bin/env sh\n# >>> queenbee guard >>>\n")

    hold("held.py")
    stage(repo, "held.py")
    assert try_git("commit", "-m", "x").returncode == 1
    assert note(repo) == ""
    git(repo, "reset", "-q", "--hard")
    stage(repo, "free.py")
    assert try_git("commit", "-m", "x").returncode == 0
    assert "linted" in note(repo)

    uninstall(repo)
    assert user.read_text() == text
    assert not (repo / ".husky" / "pre-push").exists()


def test_with_husky_a_push_is_refused_and_its_script_still_reads_the_refs(
    repo: Path, try_git: Git, hold: Hold
) -> None:
    write_hook(repo / ".husky" / "pre-push", "cat > ../note\n")
    shim = '#!/usr/bin/env sh\nexec sh -e "$(dirname "$0")/../$(basename "$0")" "$@"\n'
    for hook in HOOKS:
        write_hook(repo / ".husky" / "_" / hook, shim)
    git(repo, "config", "core.hooksPath", ".husky/_")
    install(repo)
    bare = repo.parent / "remote.git"
    git(repo, "init", "-q", "--bare", str(bare))
    git(repo, "remote", "add", "origin", str(bare))
    assert try_git("push", "origin", "main").returncode == 0
    assert note(repo).startswith("refs/heads/main ")
    stage(repo, "held.py")
    git(repo, "commit", "-q", "--no-verify", "-m", "x")
    hold("held.py")
    assert try_git("push", "origin", "main").returncode == 1


@pytest.mark.parametrize("name", ["lefthook.yml", ".lefthook.toml", ".config/lefthook.json"])
def test_with_lefthook_nothing_is_changed_and_what_to_add_is_printed(
    repo: Path, quick: QuickQueen, name: str
) -> None:
    (repo / name).parent.mkdir(exist_ok=True)
    (repo / name).write_text("pre-commit: {}\n")
    before = snapshot(repo)
    ran = quick("guard", "install")
    assert ran.code == 1
    assert "lefthook manages the hooks here" in ran.out
    assert "run: queen guard check --staged" in ran.out
    assert snapshot(repo) == before
    (repo / name).write_text("pre-commit: {commands: {q: {run: queen guard check --staged}}}\n")
    status = quick("guard", "status")
    assert status.code == 1
    assert "not installed here: git finds nothing that it can run" in status.out
    assert "or install lefthook" in status.out
    for hook in ("pre-commit", "pre-push"):
        write_hook(repo / ".git" / "hooks" / hook, "#!/bin/sh\nlefthook run\n")
    assert quick("guard", "status").code == 0


PRE_COMMIT = "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\nexit 0\n"


def test_with_pre_commit_nothing_is_changed_and_what_to_add_is_printed(
    repo: Path, quick: QuickQueen
) -> None:
    write_hook(repo / ".git" / "hooks" / "pre-commit", PRE_COMMIT)
    before = snapshot(repo)
    ran = quick("guard", "install")
    assert ran.code == 1
    assert "entry: queen guard check --staged" in ran.out
    assert snapshot(repo) == before
    (repo / ".pre-commit-config.yaml").write_text("entry: queen guard check --staged\n")
    assert [each["state"] for each in quick("guard", "status", "--json").json["hooks"]] == [
        "installed",
        "not run",
    ]
    write_hook(repo / ".git" / "hooks" / "pre-push", PRE_COMMIT)
    assert quick("guard", "status").code == 0


def test_a_guard_that_pre_commit_set_aside_is_still_seen_and_can_be_taken_out(
    repo: Path,
) -> None:
    place = repo / ".git" / "hooks"
    write_hook(place / "pre-commit")
    theirs = files(place)["pre-commit"]
    install(repo)
    # As `pre-commit install` does with a hook that it finds.
    (place / "pre-commit").rename(place / "pre-commit.legacy")
    write_hook(place / "pre-commit", PRE_COMMIT)
    first, _ = guard(repo, "status").json["hooks"]
    assert (first["state"], Path(first["path"]).name) == ("installed", "pre-commit.legacy")
    uninstall(repo)
    assert files(place)["pre-commit.legacy"] == theirs
    assert files(place)["pre-commit"][0] == PRE_COMMIT.encode()


def test_the_ready_made_hooks_for_pre_commit_ask_the_guard() -> None:
    text = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text()
    assert "entry: queen guard check --staged" in text
    assert "entry: queen guard check --pre-push" in text
    assert text.count("pass_filenames: false") == text.count("always_run: true") == 2


# The commands


def test_the_commands_install_show_and_uninstall(quick: QuickQueen, repo: Path) -> None:
    assert quick("guard", "status").code == 1
    ran = quick("guard", "install", "--json")
    assert ran.code == 0
    assert ran.json["framework"] == "git"
    assert [each["state"] for each in ran.json["hooks"]] == ["installed"] * 4
    assert quick("guard", "status").code == 0
    assert quick("guard", "uninstall").code == 0
    assert quick("guard", "status").code == 1
    write_hook(repo / ".git" / "hooks" / "pre-commit")
    assert "pre-commit, a hook without the guard" in quick("guard", "status").out


def test_outside_a_repository_there_is_nothing_to_install_into(
    quick: QuickQueen, tmp_path: Path
) -> None:
    ran = quick("guard", "install", "--json", cwd=tmp_path)
    assert (ran.code, ran.error["code"]) == (4, "not_found")


def test_a_hooks_folder_that_cannot_be_written_is_named(repo: Path) -> None:
    from hives import Queen

    (repo / ".git" / "hooks").chmod(0o555)
    ran = Queen(repo)("guard", "install", unprivileged=True)
    (repo / ".git" / "hooks").chmod(0o755)
    assert ran.code == 7
    assert "cannot be written" in ran.err


def test_committing_goes_on_after_the_guard_was_installed_by_a_commit_of_hooks(
    repo: Path, try_git: Git
) -> None:
    git(repo, "config", "core.hooksPath", ".githooks")
    install(repo)
    commit_file(repo, ".githooks/pre-commit", (repo / ".githooks" / "pre-commit").read_text())
    stage(repo, "a.py")
    assert try_git("commit", "-m", "x").returncode == 0
