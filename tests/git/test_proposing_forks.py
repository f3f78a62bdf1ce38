"""Work of those who may not push where it is to land: from a branch of their fork."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hives import QuickQueen, git
from proposed import follow, land, state
from scripted_host import SLUG, ScriptedHost

from queenbee.store.layout import discover
from queenbee.store.trust import target_proposal

pytestmark = pytest.mark.some(1)
PLACES = {"github": "github.com", "gitlab": "gitlab.com", "gitea": "git.example.org"}


@pytest.fixture(params=PLACES)
def fork(
    request: pytest.FixtureRequest, quick: QuickQueen, repo: Path, tree: Path, host: ScriptedHost
) -> Path:
    """The fork of `ann`, which is `origin`; `upstream` has the target."""
    there = repo.with_name("fork")
    shutil.copytree(host.repo, there)
    (there / "hooks" / "update").unlink()
    (host.repo / "hooks" / "update").write_text("#!/bin/sh\nexit 1\n")
    host.kind, host.forks = str(request.param), {"ann/shop": there}
    git(repo, "remote", "rename", "origin", "upstream")
    git(repo, "remote", "add", "origin", str(there))
    place = PLACES[host.kind]
    git(repo, "config", "remote.pushDefault", "origin")
    git(repo, "config", "queenbee.host", f"{host.kind}://{place}/{SLUG}")
    git(repo, "config", "queenbee.fork", f"{place}/Ann/shop")
    assert quick("config", "set", "land.target", "upstream/main", cwd=repo).code == 0
    return there


def test_work_goes_from_the_fork_to_where_it_lands(
    quick: QuickQueen, host: ScriptedHost, tree: Path, fork: Path
) -> None:
    done = land(quick, tree)
    assert (done.code, host.pulls[1]["fork"]) == (10, "ann/shop"), done
    assert git(fork, "rev-parse", "ui-q-1") == git(tree, "rev-parse", "HEAD")
    host.check(1, "FAILURE")
    assert "ci failed" in follow(quick, tree).out
    assert land(quick, tree, "b").code == 10
    assert len(host.pulls) == 1
    host.merge(1, "SQUASH")
    follow(quick, tree)
    assert state(quick, "q-1") == "done"
    assert git(fork, "branch", "--list", "ui-q-1") == ""
    assert git(tree, "rev-parse", "HEAD").strip() == host.tip("main")


def test_what_a_maintainer_pushed_to_the_fork_is_not_overwritten(
    quick: QuickQueen, host: ScriptedHost, tree: Path, fork: Path
) -> None:
    land(quick, tree)
    other = git(fork, "commit-tree", "ui-q-1^{tree}", "-p", "ui-q-1", "-m", "mine").strip()
    git(fork, "update-ref", "refs/heads/ui-q-1", other)
    assert "has commits of somebody else" in follow(quick, tree).out
    refused = land(quick, tree, "b", "--json")
    assert (refused.code, refused.error["code"]) == (5, "foreign_commits"), refused
    assert refused.error["hint"].startswith("git fetch origin ui-q-1")


def test_a_pull_request_of_another_fork_says_nothing(
    quick: QuickQueen, host: ScriptedHost, tree: Path, fork: Path
) -> None:
    land(quick, tree)
    host.merge(1)
    host.forks["mallory/shop"] = fork
    host.pulls[1]["fork"] = "mallory/shop"
    follow(quick, tree)
    assert state(quick, "q-1") == "active"


def test_who_has_no_fork_is_told_how_to_name_it(
    quick: QuickQueen, host: ScriptedHost, tree: Path, fork: Path, repo: Path
) -> None:
    before = target_proposal(discover(str(tree), {}), "upstream/main").text
    git(repo, "config", "--unset", "remote.pushDefault")
    refused = land(quick, tree, "a", "--json")
    assert (refused.code, host.pulls) == (5, {}), refused
    assert "git config remote.pushDefault" in refused.error["hint"]
    now = target_proposal(discover(str(tree), {}), "upstream/main").text
    assert (before.split()[2], now.split()[2]) == ("origin", "upstream")
