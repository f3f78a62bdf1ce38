"""The replay of public merges: which conflicts it reads, and what it calls right."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hives import commit_file, git

from bench.replay import Clone, Found, verdict
from queenbee.core.conflicts.markers import Conflict


def found(people: str, *, elsewhere: str = "") -> Found:
    lines = [each.encode() for each in people.split("\n")]
    conflict = Conflict([b"- one\n"], [], [b"- two\n"], before=[], after=[])
    more = Counter(elsewhere.encode().split(b"\n"))
    return Found("x", "NEWS.md", conflict, lines, more, [conflict])


@pytest.mark.parametrize(
    ("people", "elsewhere", "said"),
    [
        ("- two\n\n- one  ", "", "right"),
        ("- one\n- two", "", "order"),
        ("- two", "- one", "order"),
        ("- two\n- one (#3)", "", "more"),
        ("- two", "", "wrong"),
        ("- two\n- 1", "", "wrong"),
    ],
)
def test_what_is_right_but_for_order(people: str, elsewhere: str, said: str) -> None:
    assert verdict(found(people, elsewhere=elsewhere), [b"- two\n", b"- one\n"]) == said


def test_a_merge_is_replayed_with_what_its_people_made_of_it(repo: Path, tmp_path: Path) -> None:
    commit_file(repo, "NEWS.md", "# News\n\n- begun\n\nend\n")
    git(repo, "switch", "-qc", "side")
    commit_file(repo, "NEWS.md", "# News\n\n- begun\n- side\n\nend\n")
    git(repo, "switch", "-q", "main")
    commit_file(repo, "NEWS.md", "# News\n\n- begun\n- main\n\nend\n")
    with pytest.raises(AssertionError):
        git(repo, "merge", "-q", "side")
    (repo / "NEWS.md").write_text("# News\n\n- begun\n- main\n- side\n\nend\n")
    git(repo, "commit", "-qam", "merged")
    before = git(repo, "count-objects", "-v")
    (one,) = Clone(repo, tmp_path).conflicts()
    assert (one.path, one.kind) == ("NEWS.md", "change log")
    assert (one.conflict.main, one.conflict.branch) == ([b"- main\n"], [b"- side\n"])
    assert one.people == [b"- main", b"- side"]
    assert git(repo, "count-objects", "-v") == before
    assert one.joined() == ("both kept", [b"- side\n", b"- main\n"])


def test_a_conflict_is_joined_only_with_all_of_its_file_and_neighbours_only_if_they_are_new() -> (
    None
):
    good = Conflict([b"def a(): one()\n"], [], [b"def b(): two()\n"], before=[], after=[])
    bad = Conflict([b"x\n"], [b"y\n"], [b"z\n"], before=[], after=[])
    whole = Found("x", "a.py", good, [], Counter(), [good])
    assert whole.joined() == ("definitions kept", [*good.main, *good.branch])
    assert replace(whole, of_file=[good, bad]).joined() is None
    assert replace(whole, parted_s=15 * 24 * 3600).joined() is None
