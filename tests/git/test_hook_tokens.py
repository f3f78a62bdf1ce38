"""Hooks and what they run may be anybody's code: git that QueenBee runs gives them no tokens."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git, write_lines

from queenbee.git.hook_scripts import END
from queenbee.git.run import network

HOOKS = (
    "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-index-change",
    "post-checkout", "pre-merge-commit", "post-merge", "pre-push", "reference-transaction",
)  # fmt: skip
SIGNERS = {
    "ssh": 'for each; do :; done; exec > "$each.sig"',
    "openpgp": "cat > /dev/null; echo '[GNUPG:] SIG_CREATED ' >&2",
}


@pytest.fixture
def queen(quick: QuickQueen, hub: Path) -> QuickQueen:
    """`queen`, where somebody has tokens."""
    assert quick("config", "set", "land.target", "origin/main").code == 0
    quick.env |= {"GH_TOKEN": "ghp", "SSH_AUTH_SOCK": "/socket"}
    return quick


def add_hooks(folder: Path, log: Path) -> None:
    """Has each hook say which tokens it got."""
    folder.mkdir(exist_ok=True)
    for name in HOOKS:
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $GH_TOKEN$SSH_AUTH_SOCK" >> {log}\n')
        (folder / name).chmod(0o755)


def got(log: Path) -> dict[str, set[str]]:
    """Returns what each hook got."""
    lines = [each.split(" ") for each in log.read_text().splitlines()]
    return {name: {tokens for each, tokens in lines if each == name} for name, _ in lines}


def land_all(queen: QuickQueen, repo: Path, hub: Path) -> None:
    """Has a worktree be made, its work committed, merged, pushed, and the worktree removed."""
    tree = repo.with_name("repo-ui")
    if not tree.exists():
        assert queen("worktree", "add", "ui").code == 0
    other = hub.with_name("other")
    git(hub, "clone", "-q", str(hub), str(other))
    commit_file(other, "b", "theirs\n")
    git(other, "push", "-q", "origin", "main")
    (tree / "a").write_text("x\n")
    landed = queen("land", "-m", "a", "--check", "test -e a", as_="ui", cwd=tree)
    assert landed.code == 0, landed
    removed = queen("worktree", "remove", "ui", "--force")
    assert removed.code == 0, removed


def test_not_even_a_persons_own_hooks_get_them(
    queen: QuickQueen, repo: Path, hub: Path, tmp_path: Path
) -> None:
    """That of a push may run tests of the branch, as lefthook's and the pre-commit framework's."""
    add_hooks(repo / ".git" / "hooks", tmp_path / "log")
    land_all(queen, repo, hub)
    assert got(tmp_path / "log") == {name: {""} for name in HOOKS}


LFS = (
    "#!/bin/sh\ncommand -v git-lfs >/dev/null 2>&1 || { printf >&2 "
    '"\\n%s\\n\\n" "It is not there (set by \'x\'; or \'y\')."; exit 2; }\ngit lfs pre-push "$@"\n'
)


@pytest.mark.parametrize(
    ("hook", "guards", "tokens"),
    [
        (LFS, False, "ghp/socket"),
        (LFS, True, "ghp/socket"),
        (f"{LFS}true\n", False, ""),
        (f"{LFS}true\n", True, ""),
        (LFS.replace("exit 2", "true; exit 2"), False, ""),
        (LFS.replace("It is", "$(true)"), False, ""),
        (LFS.replace("It is", '\\" "; true; echo "'), False, ""),
    ],
)
def test_what_is_git_lfs_own_and_nothing_else_gets_them(
    queen: QuickQueen, repo: Path, hub: Path, tmp_path: Path, hook: str, guards: bool, tokens: str
) -> None:
    log, program = tmp_path / "log", tmp_path / "bin" / "git-lfs"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$1 $GH_TOKEN$SSH_AUTH_SOCK" >> {log}\n')
    program.chmod(0o755)
    queen.env["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    path = repo / ".git" / "hooks" / "pre-push"
    path.parent.mkdir(exist_ok=True)
    path.write_text(hook)
    path.chmod(0o755)
    if guards:
        assert queen("guard", "install").code == 0
    land_all(queen, repo, hub)
    assert got(log) == {"pre-push": {tokens}}


def test_a_push_has_them(queen: QuickQueen, repo: Path, hub: Path, tmp_path: Path) -> None:
    log, program = tmp_path / "log", tmp_path / "receive"
    program.write_text(
        f'#!/bin/sh\necho "push $GH_TOKEN$SSH_AUTH_SOCK" >> {log}\nexec git-receive-pack "$@"\n'
    )
    program.chmod(0o755)
    git(repo, "config", "remote.origin.receivepack", str(program))
    land_all(queen, repo, hub)
    assert got(log) == {"push": {"ghp/socket"}}


def test_the_guard_that_somebody_changed_gets_none(
    queen: QuickQueen, repo: Path, hub: Path, tmp_path: Path
) -> None:
    log, path = tmp_path / "log", repo / ".git" / "hooks" / "pre-push"
    assert queen("guard", "install").code == 0
    added = f'echo "pre-push $GH_TOKEN$SSH_AUTH_SOCK" >> {log}\n'
    path.write_text(path.read_text().replace(END, f"{added}{END}"))
    path.with_name("pre-push.before-queenbee").write_text(LFS)
    land_all(queen, repo, hub)
    assert got(log) == {"pre-push": {""}}


def test_hooks_that_an_agent_leaves_in_its_worktree_get_none(
    queen: QuickQueen, repo: Path, hub: Path, tmp_path: Path
) -> None:
    git(repo, "config", "core.hooksPath", ".githooks")
    write_lines(repo / ".git" / "info" / "exclude", ".githooks/")
    assert queen("worktree", "add", "ui").code == 0
    add_hooks(repo.with_name("repo-ui") / ".githooks", tmp_path / "log")
    land_all(queen, repo, hub)
    left = got(tmp_path / "log")
    assert {"post-index-change", "pre-commit", "post-merge"} <= left.keys()
    assert set[str]().union(*left.values()) == {""}


def test_hooks_get_those_that_the_git_config_names(
    queen: QuickQueen, repo: Path, hub: Path, tmp_path: Path
) -> None:
    git(repo, "config", "queenbee.env", "GH_TOKEN")
    add_hooks(repo / ".git" / "hooks", tmp_path / "log")
    land_all(queen, repo, hub)
    assert set[str]().union(*got(tmp_path / "log").values()) == {"ghp"}


@pytest.mark.parametrize("kind", SIGNERS)
def test_a_key_of_the_ssh_agent_signs_by_that_agent(
    queen: QuickQueen, repo: Path, hub: Path, tmp_path: Path, kind: str
) -> None:
    log, program = tmp_path / "log", tmp_path / "signer"
    program.write_text(
        f'#!/bin/sh\necho "signer $GH_TOKEN$SSH_AUTH_SOCK" >> {log}\n{SIGNERS[kind]}\n'
        "printf -- '-----BEGIN SIGNATURE-----\\n\\nx\\n-----END SIGNATURE-----\\n'\n"
    )
    program.chmod(0o755)
    git(repo, "config", "gpg.format", kind)
    git(repo, "config", f"gpg.{kind}.program", str(program))
    git(repo, "config", "user.signingKey", "/key")
    git(repo, "config", "commit.gpgSign", "true")
    add_hooks(repo / ".git" / "hooks", log)
    land_all(queen, repo, hub)
    said = got(log)
    assert said["signer"] == {"/socket" if kind == "ssh" else ""}
    assert said["post-checkout"] == {""}
    assert "" in said["post-merge"]  # Where nothing is signed.


def test_git_that_talks_to_a_remote_has_them(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/sh\necho "$GH_TOKEN$SSH_AUTH_SOCK" > {tmp_path}/log; exit 1\n')
    program.chmod(0o755)
    git(repo, "config", "core.sshCommand", str(program))
    monkeypatch.setenv("GH_TOKEN", "ghp")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/socket")
    network("ls-remote", "ssh://nowhere/x", cwd=str(repo), timeout_s=5)
    assert (tmp_path / "log").read_text() == "ghp/socket\n"


def test_a_filter_in_a_submodule_gets_none(quick: QuickQueen, repo: Path, tmp_path: Path) -> None:
    """The remote of the submodule wants a token, and its commit has a program of its own."""
    log, private = tmp_path / "log", tmp_path / "private"
    tool = tmp_path / "ssh"
    tool.write_text('#!/bin/sh\nfor each; do :; done\n[ "$GH_TOKEN" ] && exec sh -c "$each"\n')
    tool.chmod(0o755)
    git(tmp_path, "init", "-q", str(private))
    (private / ".gitattributes").write_text("*.txt filter=fmt\n")
    (private / "fmt").write_text(f'#!/bin/sh\necho "fmt $GH_TOKEN" >> {log}\nexec tr a b\n')
    (private / "fmt").chmod(0o755)
    git(private, "add", "--all")
    commit_file(private, "x.txt", "a\n")
    settings = tmp_path / "settings"
    settings.write_text('[filter "fmt"]\nsmudge = ./fmt\nclean = tr b a\n')
    quick.env |= {"GIT_CONFIG_GLOBAL": str(settings)}
    env = {**os.environ, "GH_TOKEN": "ghp", "GIT_SSH_COMMAND": str(tool)}
    add = ("git", "submodule", "--quiet", "add", f"ssh://host{private}", "sub")
    subprocess.run(add, cwd=repo, env=env, check=True)
    git(repo, "commit", "-qam", "sub")
    tree = Path(quick("worktree", "add", "ui", "--json").json["path"])
    commit_file(tree, "a", "x\n")
    log.unlink(missing_ok=True)
    quick.env |= {"GH_TOKEN": "ghp", "GIT_SSH_COMMAND": str(tool)}
    landed = quick("land", "--check", "grep b sub/x.txt", as_="ui", cwd=tree)
    assert landed.code == 0, landed
    assert got(log) == {"fmt": {""}}
