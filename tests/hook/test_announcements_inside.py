"""Announced edits: the parts inside."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_inputs import OTHER_SESSION, SESSION
from edit_processes import edits
from hives import git

from queenbee import Hive
from queenbee.core.leases import stand_against

pytestmark = pytest.mark.slow


def test_a_merge_of_two_clones_takes_no_announcement_from_anybody(tree: Path) -> None:
    """Both work in their main worktrees: by path and by name, the two trees are alike."""
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "the beginning")
    other = tree.parent / "machine" / "repo"
    git(tree, "clone", "-q", str(tree), str(other))
    (other / ".beads").mkdir(exist_ok=True)
    assert edits(tree, SESSION) == edits(other, OTHER_SESSION) == ""
    ledger = ".beads/queen_reservations.jsonl"
    lines = (tree / ledger).read_bytes(), (other / ledger).read_bytes()
    for each in (tree, other):
        (each / ledger).write_bytes(b"".join(lines))
        hive = Hive.open(each, env={})
        assert hive.reservations.conflicts() == []
        assert [lease.superseded_by for lease in hive.reservations.find()] == [None, None]
        assert not stand_against(*hive.reservations.find())
    assert edits(tree, SESSION) == edits(other, OTHER_SESSION) == ""
