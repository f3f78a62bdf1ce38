"""What others do to a pull request: they force-push it, rename its base, or look from a clone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hives import QuickQueen, git
from proposed import ask_again, follow, land, state
from scripted_host import SLUG, ScriptedHost

pytestmark = pytest.mark.slow


def test_a_head_that_was_force_pushed_is_told_once_and_never_overwritten(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    other = host.git("commit-tree", "main^{tree}", "-p", "main", "-m", "rewritten")
    host.git("update-ref", "refs/heads/ui-q-1", other)
    told = follow(quick, tree)
    assert "has commits of somebody else" in told.out, told
    assert "has commits of somebody else" not in follow(quick, tree).out
    refused = land(quick, tree, "b", "--json")
    assert (refused.code, refused.error["code"]) == (5, "foreign_commits"), refused
    assert host.tip("ui-q-1") == other


def test_a_base_that_was_renamed_is_named_and_then_followed(
    quick: QuickQueen, host: ScriptedHost, tree: Path, repo: Path
) -> None:
    land(quick, tree)
    host.git("branch", "-m", "main", "trunk")
    host.git("branch", "main", "trunk")  # The scripted host merges to it.
    host.merge(1)
    host.git("update-ref", "refs/heads/trunk", "main")
    host.git("update-ref", "-d", "refs/heads/main")
    host.pulls[1]["base"] = "trunk"
    follow(quick, tree)
    assert state(quick, "q-1") == "active"
    refused = land(quick, tree, "b")
    assert refused.code == 6, refused
    assert "queen config set land.target origin/BRANCH" in refused.err
    git(repo, "fetch", "-q", "origin")
    assert quick("config", "set", "land.target", "origin/trunk", cwd=repo).code == 0
    follow(quick, tree)
    assert state(quick, "q-1") == "done"


def test_what_another_clone_saw_merged_is_complete_and_its_branch_left_to_who_pushed_it(
    quick: QuickQueen, host: ScriptedHost, tree: Path, repo: Path, tmp_path: Path
) -> None:
    land(quick, tree)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", git(repo, "remote", "get-url", "origin").strip(), str(clone))
    git(clone, "config", "queenbee.host", f"github.com/{SLUG}")
    shutil.copytree(repo / ".beads", clone / ".beads", dirs_exist_ok=True)
    head = host.tip("ui-q-1")
    host.merge(1)
    there = QuickQueen(clone)
    assert "has landed" in there("status", "--sync", as_="api").err
    assert state(there, "q-1") == "done"
    assert host.tip("ui-q-1") == head
    ask_again(tree)
    follow(quick, tree)
    assert state(quick, "q-1") == "done"
    assert host.tip("ui-q-1") == ""
