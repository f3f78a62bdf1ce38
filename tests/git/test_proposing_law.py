"""Whatever others write at a host is on no command line, and no token is anywhere but there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hives import QuickQueen, git, write_lines
from hypothesis import example, given
from hypothesis import strategies as st
from proposed import follow, land
from scripted_host import SLUG, ScriptedHost

from queenbee.git.hosts.client import as_text
from queenbee.store.layout import discover

PLACES = {"github": "github.com", "gitlab": "gitlab.com", "gitea": "git.example.org"}
EVIL, TOKEN = "; touch EVIL --admin $(id) \x1b[31m", "s3cr3t-t0k3n"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command lines of all processes that are started."""
    found: list[str] = []
    popen, spawn = subprocess.Popen.__init__, os.posix_spawnp

    def noted(self: Any, args: Any, *more: Any, **options: Any) -> None:
        found.append(" ".join(map(os.fsdecode, args)))
        popen(self, args, *more, **options)

    def spawned(path: Any, argv: Any, env: Any, **options: Any) -> int:
        found.append(" ".join(map(os.fsdecode, argv)))
        return spawn(path, argv, env, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    monkeypatch.setattr(os, "posix_spawnp", spawned)
    return found


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", PLACES)
def test_nothing_hostile_is_on_a_command_line_and_no_token_is_kept(
    quick: QuickQueen, repo: Path, tree: Path, host: ScriptedHost, kind: str, started: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("GH_TOKEN", TOKEN)
    host.kind = kind
    git(repo, "config", "queenbee.host", f"{kind}://{PLACES[kind]}/{SLUG}")
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "q-1", "title": EVIL, "status": "open"})
    del started[:]
    assert land(quick, tree).code == 10
    host.check(1, "FAILURE", name=EVIL, log=EVIL)
    host.required = ["ci", EVIL]
    follow(quick, tree)
    host.check(1, "SUCCESS", name=EVIL)
    host.review(1, "CHANGES_REQUESTED", EVIL)
    host.comment(1, EVIL, EVIL, 1)
    told = follow(quick, tree)
    assert "EVIL" in told.out
    thread = told.out.partition("queen review reply ")[2].split()[0]
    assert quick("review", "reply", thread, EVIL, as_="ui", cwd=tree).code == 0
    host.close(1, EVIL)
    assert "EVIL" in follow(quick, tree).out
    assert land(quick, tree, "b").code == 10
    assert quick("review", "withdraw", as_="ui", cwd=tree).code == 0
    assert sum(each.startswith(("gh", "glab", "tea")) for each in started) > 8
    assert not [each for each in started if "EVIL" in each or "--admin" in each or TOKEN in each]
    folders = (repo, tree, host.repo, Path(discover(str(tree), {}).state_dir))
    files = [each for folder in folders for each in folder.rglob("*") if each.is_file()]
    assert not [each for each in files if TOKEN.encode() in each.read_bytes()]


def test_no_secret_of_a_commit_or_a_template_is_in_a_pull_request(
    quick: QuickQueen, repo: Path, tree: Path, host: ScriptedHost
) -> None:
    """`git commit` and a template bring text that `queen` has not seen."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    token = token[:40]
    (tree / "a").write_text("x\n")
    (tree / ".github").mkdir()
    (tree / ".github" / "pull_request_template.md").write_text(f"log in with {token}\n")
    git(tree, "add", "a", ".github")
    git(tree, "commit", "-qm", f"use {token}")
    assert quick("land", as_="ui", cwd=tree).code == 10
    (proposed,) = host.pulls.values()
    assert token not in proposed["title"] + proposed["body"]
    assert "(left out: it looks like a secret)" in proposed["body"]


@given(st.text("/merge \r\n\t\\\v`>") | st.text())
@example("\r/merge")
@example("a\n\t/\rmerge")
def test_no_text_for_gitlab_has_a_line_that_is_a_quick_action(text: str) -> None:
    """It takes `\\r` away, and then each line that begins with a slash."""
    lines = as_text(text).replace("\r", "").split("\n")
    assert not [each for each in lines if each.lstrip().startswith("/")]


def test_a_quick_action_is_shown_at_gitlab_and_not_run(
    quick: QuickQueen, repo: Path, tree: Path, host: ScriptedHost
) -> None:
    """It would be run as the person."""
    host.kind = "gitlab"
    git(repo, "config", "queenbee.host", f"gitlab://{PLACES['gitlab']}/{SLUG}")
    (tree / ".gitlab" / "merge_request_templates").mkdir(parents=True)
    template = tree / ".gitlab" / "merge_request_templates" / "Default.md"
    template.write_text("/target_branch production\n")
    assert land(quick, tree, "a", "--reason", "Done.\r\n /approve\n\n/merge").code == 10
    told = "Done.\r\n \\/approve\n\n\\/merge\n\n\\/target_branch production\n\n"
    assert host.pulls[1]["body"].startswith(told)
    host.review(1, "CHANGES_REQUESTED", "Please round up")
    host.comment(1, "Why not round?", "a", 1)
    thread = follow(quick, tree).out.partition("queen review reply ")[2].split()[0]
    assert quick("review", "reply", thread, "/merge", as_="ui", cwd=tree).code == 0
    *_, said = host.pulls[1]["threads"][0]["comments"]["nodes"]
    assert said["body"] == "\\/merge"
