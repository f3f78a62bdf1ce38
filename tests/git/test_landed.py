"""An announcement ends when its change has landed or is gone, and not before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hives import commit_file, git

from queenbee import Hive
from queenbee.git import landed
from queenbee.git.landed import end_landed
from queenbee.services.leases import edits

pytestmark = pytest.mark.slow

Opener = Callable[[str], Hive]
FILES = ("landed.py", "committed.py", "edited.py", "reverted.py", "new.py", "[odd].py", "gone.py")


@pytest.fixture
def worked(repo: Path, open_beside: Opener) -> Hive:
    """A worktree with files in every state, all announced by one session."""
    for name in ("landed.py", "committed.py", "edited.py", "reverted.py", "[odd].py", "o.py"):
        commit_file(repo, name, "before\n")
    hive = open_beside("ui")
    tree = Path(hive.layout.tree)
    edits.keep(hive.reservations, edits.look(hive.reservations, FILES, "s1"), "s1")
    for name in FILES:
        (tree / name).write_text("after\n")
    git(tree, "commit", "-qm", "landed", "--", "landed.py")
    git(repo, "merge", "-q", "of-ui")
    git(tree, "commit", "-qm", "committed", "--", "committed.py")
    git(tree, "checkout", "--", "reverted.py")
    (tree / "gone.py").unlink()
    return hive


def patterns(hive: Hive) -> list[str]:
    return sorted(lease.pattern for lease in hive.reservations.find())


def check_what_ends(hive: Hive) -> None:
    ended = landed.end_landed(hive)
    assert sorted(lease.pattern for lease in ended) == ["gone.py", "landed.py", "reverted.py"]
    assert {lease.status for lease in ended} == {"released"}
    assert patterns(hive) == [r"\[odd].py", "committed.py", "edited.py", "new.py"]


def test_what_landed_or_is_gone_is_no_longer_announced(worked: Hive) -> None:
    check_what_ends(worked)
    assert end_landed(worked) == []


def test_what_others_announce_and_what_was_reserved_by_name_stays(
    worked: Hive, open_beside: Opener, repo: Path
) -> None:
    worked.reservations.reserve(["reserved.py"])
    worked.reservations.reserve(["shared.py"], exclusive=False)
    other = Hive.open(worked.layout.tree, droid="other", env={}, clock=lambda: worked.now_ms())
    edits.keep(other.reservations, edits.look(other.reservations, ["o.py"], "s2"), "s2")
    elsewhere = Hive.open(repo, droid="ui", env={}, clock=lambda: worked.now_ms())
    edits.keep(elsewhere.reservations, edits.look(elsewhere.reservations, ["o.py"], "s3"), "s3")
    end_landed(worked)
    assert patterns(worked).count("o.py") == 2
    assert {"reserved.py", "shared.py"} < set(patterns(worked))


def test_in_the_main_worktree_a_commit_lands(hive: Hive, repo: Path) -> None:
    edits.keep(hive.reservations, edits.look(hive.reservations, ["README.md"], "s1"), "s1")
    (repo / "README.md").write_text("after\n")
    assert end_landed(hive) == []
    git(repo, "commit", "-qam", "done")
    assert [lease.pattern for lease in end_landed(hive)] == ["README.md"]


def test_without_a_branch_to_land_on_nothing_ends(hive: Hive, repo: Path) -> None:
    edits.keep(hive.reservations, edits.look(hive.reservations, ["README.md"], "s1"), "s1")
    git(repo, "checkout", "-q", "--detach")
    assert end_landed(hive) == []
