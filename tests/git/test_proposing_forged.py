"""A record may name any branch and any pull request: what was not pushed from here is not merged,
removed or written to.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen
from proposed import follow, forge, land, state
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
