"""A record may name any branch and any pull request: what was not pushed from here is not merged,
removed or written to.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hives import QuickQueen
from proposed import ask_again, follow, forge, land, state
from scripted_host import ScriptedHost


def test_the_pull_request_of_a_person_is_not_merged(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    quick("config", "set", "land.merge", "auto")
    host.approvals, host.required = 0, []
    land(quick, tree)
    forge(host, tree, "q-1", "release")
    follow(quick, tree)
    assert [each["state"] for each in host.pulls.values()] == ["OPEN", "OPEN"]
    assert "#2 could be merged" in quick("status", as_="ui", cwd=tree).out


@pytest.mark.parametrize("method", ["MERGE", "SQUASH"])
def test_the_branch_of_a_person_is_not_removed(
    quick: QuickQueen, host: ScriptedHost, tree: Path, method: str
) -> None:
    land(quick, tree)
    number = forge(host, tree, "q-1", "release")
    tip = host.tip("release")
    host.merge(number, method)
    follow(quick, tree)
    assert state(quick, "q-1") == "done"
    assert host.tip("release") == tip


def test_nothing_is_pushed_to_the_branch_of_a_person(
    quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    land(quick, tree)
    forge(host, tree, "q-1", "release", head=host.tip("ui-q-1"))
    tip = host.tip("release")
    land(quick, tree, "b")
    assert host.tip("release") == tip
    assert host.git("show", "ui-q-1:b") == "x"


def test_no_host_is_asked_where_nobody_here_has_agreed(
    asking: Path, quick: QuickQueen, host: ScriptedHost, tree: Path
) -> None:
    """Its client would send it the token of whoever types a command."""
    land(quick, tree)
    shutil.rmtree(asking)
    host.merge(1)
    for words in (("next",), ("status", "--sync"), ("show", "q-1")):
        ask_again(tree)
        quick(*words, as_="ui", cwd=tree)
    assert state(quick, "q-1") == "active"
    assert quick("config", "trust", "--yes", as_="human").code == 0
    follow(quick, tree)
    assert state(quick, "q-1") == "done"
