"""Announced edits, with real processes: in one working tree only one session gets a file, in trees
of their own all do, and a merge of two clones takes nothing from anybody.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest
from agent_inputs import OTHER_SESSION, SESSION, edit_of, recorded
from edit_processes import denied, edits, start
from hives import git

from queenbee import Hive, Reservation

pytestmark = pytest.mark.slow


def live(tree: Path) -> list[Reservation]:
    return Hive.open(tree, env={}).reservations.find()


def linked(tree: Path, name: str) -> Path:
    beside = tree.parent / name
    git(tree, "worktree", "add", "-q", str(beside), "-b", name)
    return beside


# One tree


def test_two_sessions_in_one_tree_keep_each_other_out(tree: Path) -> None:
    assert edits(tree, SESSION) == ""
    reason = edits(tree, OTHER_SESSION)
    assert "is reserved by claude-1b4e28ba, which edits it in this working tree" in reason
    assert edits(tree, OTHER_SESSION, "src/other.py") == ""


def test_two_sessions_of_one_name_in_one_tree_keep_each_other_out(tree: Path) -> None:
    assert edits(tree, SESSION, QUEEN_DROID="ui") == ""
    assert edits(tree, SESSION, QUEEN_DROID="ui") == ""
    reason = edits(tree, OTHER_SESSION, QUEEN_DROID="ui")
    assert "reserved by ui, which edits it in this working tree in another session" in reason
    assert "git worktree add" in reason
    assert "queen msg send" not in reason
    denied(start(recorded("claude/session-end", tree), tree, QUEEN_DROID="ui"))
    assert edits(tree, OTHER_SESSION, QUEEN_DROID="ui") == ""


def test_of_eight_sessions_at_once_in_one_tree_one_gets_the_file(tree: Path) -> None:
    sessions = [str(uuid.uuid4()) for _ in range(8)]
    data = [edit_of(tree / "src/app.py", tree, session_id=each) for each in sessions]
    answers = [denied(each) for each in [start(one, tree) for one in data]]
    assert answers.count("") == 1
    (lease,) = live(tree)
    assert lease.session == sessions[answers.index("")]


def test_of_eight_sessions_of_one_name_at_once_in_one_tree_one_gets_the_file(tree: Path) -> None:
    sessions = [str(uuid.uuid4()) for _ in range(8)]
    data = [edit_of(tree / "src/app.py", tree, session_id=each) for each in sessions]
    answers = [denied(each) for each in [start(one, tree, QUEEN_DROID="ui") for one in data]]
    assert answers.count("") == 1
    assert [lease.session for lease in live(tree)] == [sessions[answers.index("")]]


# Trees of their own


def test_in_trees_of_their_own_two_agents_edit_one_file(tree: Path) -> None:
    beside = linked(tree, "topic")
    assert edits(tree, SESSION) == ""
    assert edits(beside, OTHER_SESSION) == ""
    one, other = live(tree)
    assert (one.worktree, one.branch, other.worktree, other.branch) == (
        *(None, "main"),
        *("topic", "topic"),
    )
    assert one.tree_id and other.tree_id and one.tree_id != other.tree_id


def test_one_name_in_two_trees_announces_in_both(tree: Path) -> None:
    beside = linked(tree, "topic")
    assert edits(tree, SESSION, QUEEN_DROID="ui") == ""
    assert edits(beside, OTHER_SESSION, QUEEN_DROID="ui") == ""
    assert [lease.worktree for lease in live(tree)] == [None, "topic"]


def test_eight_agents_at_once_in_eight_trees_all_get_the_file(tree: Path) -> None:
    trees = [linked(tree, f"tree-{number}") for number in range(8)]
    started = [
        start(edit_of(each / "src/app.py", each, session_id=str(uuid.uuid4())), each)
        for each in trees
    ]
    assert [denied(each) for each in started] == [""] * 8
    found = live(tree)
    assert len({lease.tree_id for lease in found}) == len(found) == 8


def test_what_somebody_reserved_by_name_is_refused_in_every_tree(tree: Path) -> None:
    beside = linked(tree, "topic")
    Hive.open(tree, droid="reviewer", env={}).reservations.reserve(["src/**"])
    for each in (tree, beside):
        assert "reserved by reviewer (src/**)" in edits(each)


def test_an_agent_that_stays_in_one_folder_edits_in_the_tree_of_the_file(tree: Path) -> None:
    """The tree of the file decides, not where the session runs."""
    beside = linked(tree, "topic")
    assert edits(beside, SESSION) == ""
    data = edit_of(beside / "src/app.py", tree, session_id=OTHER_SESSION)
    assert "in this working tree" in denied(start(data, tree))


# Two machines


def test_a_copy_of_a_repository_counts_as_the_same_tree(tree: Path) -> None:
    """Nothing tells a copy from the original: it refuses too much, for a quarter of an hour."""
    assert edits(tree, SESSION) == ""
    copy = tree.parent / "copy"
    shutil.copytree(tree, copy)
    assert "in this working tree" in edits(copy, OTHER_SESSION)
