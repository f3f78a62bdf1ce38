"""Fixtures of the guard's tests: real git, its hooks installed, commits that may fail."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from acting import install_guard
from hives import QuickQueen, commit_file, git, write_lines
from scripted_host import SLUG, ScriptedHost, put_gh

from queenbee import Hive, Reservation

Git = Callable[..., "subprocess.CompletedProcess[str]"]
Hold = Callable[..., Reservation]


@pytest.fixture(autouse=True)
def _no_guard_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings of who runs it."""
    for name in ("QUEEN_GUARD", "PRE_COMMIT_TO_REF", "PRE_COMMIT_FROM_REF", "GIT_EDITOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def hub(repo: Path, tmp_path: Path) -> Path:
    """A bare repository that `repo` is on, as `origin`."""
    git(repo, "clone", "-q", "--bare", str(repo), str(tmp_path / "hub"))
    git(repo, "remote", "add", "origin", str(tmp_path / "hub"))
    git(repo, "fetch", "-q", "origin")
    return tmp_path / "hub"


@pytest.fixture
def host(hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedHost]:
    """The host that `origin` is on, with its `gh`."""
    socket = tmp_path / "h"
    found = ScriptedHost(hub, socket)
    put_gh(tmp_path / "gh", socket, monkeypatch.setenv)
    yield found
    found.stop()


@pytest.fixture
def tree(quick: QuickQueen, repo: Path, host: ScriptedHost, tmp_path: Path) -> Path:
    """A worktree of `ui`, who has `q-1`; `q-2` waits for that, and `q-3` for nothing."""
    git(repo, "config", "queenbee.host", f"github.com/{SLUG}")
    for name, value in (("target", "origin/main"), ("by", "pr"), ("check", "test -e README || :")):
        assert quick("config", "set", f"land.{name}", value).code == 0
    rows = [{"id": f"q-{n}", "title": f"Title {n}", "status": "open"} for n in (1, 2, 3)]
    rows[1]["dependencies"] = [{"issue_id": "q-2", "depends_on_id": "q-1", "type": "blocks"}]  # type: ignore[assignment]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    assert quick("worktree", "add", "ui", "q-1", cwd=repo).code == 0
    return tmp_path / "repo-ui"


@pytest.fixture
def guarded(repo: Path) -> Path:
    """The repository with the guard in its hooks."""
    install_guard(repo)
    return repo


@pytest.fixture
def try_git(repo: Path) -> Git:
    """Runs git, which may fail, in `repo`; `as_` names who acts."""

    def run(
        *arguments: str, cwd: Path = repo, as_: str | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        named = {"QUEEN_DROID": as_} if as_ else {}
        return subprocess.run(
            ["git", *arguments],
            cwd=cwd,
            env={**os.environ, **named, **env},
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=60,
        )

    return run


@pytest.fixture
def hold(repo: Path) -> Hold:
    """Reserves a pattern for a droid: `reviewer`, where nothing else is said."""

    def held(pattern: str, droid: str = "reviewer", cwd: Path = repo, **more: Any) -> Reservation:
        hive = Hive.open(cwd, droid=droid, env={"QUEEN_DURABILITY": "buffered"})
        return hive.reservations.reserve([pattern], **more)[0]

    return held


PROGRAMS = {
    "core.fsmonitor": "MARK",
    "core.hooksPath": "HOOKS",
    "core.pager": "MARK",
    "pager.log": "MARK",
    "pager.status": "MARK",
    "core.editor": "MARK",
    "core.sshCommand": "MARK",
    "core.askPass": "MARK",
    "core.alternateRefsCommand": "MARK",
    "credential.helper": "!MARK",
    "diff.external": "MARK",
    "diff.evil.command": "MARK",
    "diff.evil.textconv": "MARK",
    "filter.evil.clean": "MARK",
    "filter.evil.smudge": "MARK",
    "filter.evil.required": "true",
    "filter.a=b.clean": "MARK",
    "filter.long.process": "MARK",
    "merge.evil.driver": "MARK",
    "gpg.program": "MARK",
    "log.showSignature": "true",
    "alias.status": "!MARK",
    "alias.diff": "!MARK",
    "alias.log": "!MARK",
    "alias.rev-parse": "!MARK",
    "uploadpack.packObjectsHook": "MARK",
    "status.submoduleSummary": "true",
    "remote.origin.url": "ext::MARK",
    "remote.origin.promisor": "true",
    "remote.origin.partialCloneFilter": "blob:none",
    "protocol.ext.allow": "always",
}
"""What git may run, by its config; each MARK becomes a program that leaves a mark."""


HOOKS = (
    "applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit "
    "post-index-change post-merge post-rewrite pre-applypatch pre-auto-gc pre-commit "
    "pre-merge-commit pre-push pre-rebase prepare-commit-msg reference-transaction"
)


@pytest.fixture
def marks(repo: Path, tmp_path: Path) -> Path:
    """A hive in a repository whose config names a program wherever one can be named. The folder
    that is returned gets a file from each that is run.
    """
    with Hive.open(repo, droid="ui", env={}) as hive:
        hive.messages.send("api", "hello")
        hive.messages.delete(hive.messages.sent()[0].id)
        hive.rotate(older_than_s=0)
    for name in ("one", "two", "three"):
        commit_file(repo, name)
    (repo / ".gitattributes").write_text(
        "* diff=evil merge=evil filter=evil\n*.jsonl filter=a=b\n*.toml filter=long\n"
    )
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a hive")
    marks = tmp_path / "marks"
    marks.mkdir()
    hook_folder = tmp_path / "hooks"
    hook_folder.mkdir()
    for hook in HOOKS.split():
        (hook_folder / hook).write_text(f"#!/bin/sh\n: > {marks}/hook-{hook}\n")
        (hook_folder / hook).chmod(0o755)
    config = tmp_path / "included"
    for number, (key, value) in enumerate(PROGRAMS.items()):
        program = tmp_path / f"program-{number}"
        program.write_text(f"#!/bin/sh\n: > {marks}/{number}-{key}\ncat\n")
        program.chmod(0o755)
        text = value.replace("MARK", str(program)).replace("HOOKS", str(hook_folder))
        git(repo, "config", "--file", str(config), key, text)
    git(repo, "config", f"includeIf.gitdir:{repo}/.path", str(config))
    return marks
