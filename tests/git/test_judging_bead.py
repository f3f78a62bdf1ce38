"""By which Definition of Done an issue is judged, whatever files have landed beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import commit_file, git

from queenbee.errors import Conflict
from queenbee.git.contents.judging_bead import judging_bead
from queenbee.workflows.complete_hive import Hive

BEAD = ".beads/active/x-1.json"


def bead(command: str, **more: str) -> str:
    dod = {"verifiers": [{"name": "t", "command": command}]}
    return json.dumps({"title": "one", "intent": "write", "dod": dod, **more})


def judged_by(hive: Hive) -> str:
    found, _ = judging_bead(hive, "x-1")
    assert found is not None
    return str(found.document["dod"]["verifiers"][0]["command"])


@pytest.fixture
def hive(repo: Path, open_as: Callable[[str], Hive]) -> Hive:
    commit_file(repo, BEAD, bead("false", id="x-1"))
    return open_as("ui")


@pytest.mark.parametrize("path", [".beads/active/0/x.json", ".beads/active/a\nHEAD:weak/x.json"])
def test_a_file_below_the_folder_of_beads_is_none(repo: Path, hive: Hive, path: str) -> None:
    commit_file(repo, "weak/x.json", bead("true", id="x-1"))
    commit_file(repo, path, bead("true", id="x-1"))
    assert judged_by(hive) == "false"


@pytest.mark.parametrize("name", ["a.json", "z.json", "a\nHEAD:weak.json"])
def test_a_second_file_on_the_main_branch_takes_nothing_away(
    repo: Path, hive: Hive, name: str
) -> None:
    commit_file(repo, f".beads/active/{name}", bead("true", id="x-1"))
    (repo / ".beads" / "active" / name).unlink()
    with pytest.raises(Conflict, match="more than one Definition of Done of x-1"):
        judging_bead(hive, "x-1")


def test_a_file_on_the_main_branch_replaces_no_row_there(repo: Path, hive: Hive) -> None:
    row = {"id": "x-1", "title": "one", "status": "open", "issue_type": "task"}
    dod = {"verifiers": [{"name": "t", "command": "true"}]}
    commit_file(repo, ".beads/issues.jsonl", json.dumps({**row, "dod": dod}) + "\n")
    (repo / ".beads" / "issues.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(Conflict, match="more than one Definition of Done of x-1"):
        judging_bead(hive, "x-1")


def test_a_link_on_the_main_branch_is_none(repo: Path, hive: Hive) -> None:
    (repo / BEAD).unlink()
    (repo / BEAD).symlink_to(bead("true"))
    git(repo, "commit", "-qam", "a link")
    (repo / BEAD).unlink()
    assert judging_bead(hive, "x-1") == (None, False)


def test_an_equal_copy_in_another_folder_is_fine(repo: Path, hive: Hive) -> None:
    done = bead("false", id="x-1", status="completed")
    commit_file(repo, BEAD.replace("active", "completed"), done)
    (repo / BEAD).unlink()
    assert judged_by(hive) == "false"
