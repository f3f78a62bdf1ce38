"""Texts with conflict markers: what both sides only added is kept, and nothing else is."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from extent import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from queenbee.core.marked_conflicts import (
    MARKER_SIZE,
    both_only_added,
    conflicts_in,
    keeping_both,
    ranges_of_both,
    union_setting,
)


def merged(folder: Path, first: bytes, base: bytes, second: bytes) -> tuple[int, bytes]:
    """Returns git's own answer: the number of conflicts, and the marked text."""
    for name, text in (("first", first), ("base", base), ("second", second)):
        (folder / name).write_bytes(text)
    wanted = ("merge-file", "-p", "-q", "--diff3", f"--marker-size={MARKER_SIZE}")
    done = subprocess.run(
        ["git", *wanted, "first", "base", "second"], cwd=folder, capture_output=True, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("first", "base", "second", "kept"),
    [
        (b"a\nx\nz\n", b"a\nz\n", b"a\ny\nz\n", b"a\nx\ny\nz\n"),
        (b"x\n", b"", b"y\n", b"x\ny\n"),
        (b"a\nx", b"a\n", b"a\ny", b"a\nx\ny\n"),
        (b"a\r\nx\r\n", b"a\r\n", b"a\r\ny\r\n", b"a\r\nx\r\ny\r\n"),
        (b"b\nx\nz\n", b"a\nz\n", b"a\ny\nz\n", None),
        (b"a\nx\nz\n", b"a\nb\nz\n", b"a\ny\nz\n", None),
        (b"x\na\nb\nc\nd\nq\n", b"a\nb\nc\nd\ne\n", b"y\na\nb\nc\nd\nr\n", None),
        (b"<<<<<<< a\nx\n", b"<<<<<<< a\n", b"<<<<<<< a\n=======\n", b"<<<<<<< a\nx\n=======\n"),
    ],
)
def test_only_what_both_added_is_kept(
    tmp_path: Path, first: bytes, base: bytes, second: bytes, kept: bytes | None
) -> None:
    count, text = merged(tmp_path, first, base, second)
    assert len(conflicts_in(text)) == count > 0
    assert keeping_both(text) == kept
    assert both_only_added(text) == (kept is not None)


def test_the_lines_at_which_both_are_kept_are_those_of_the_result(tmp_path: Path) -> None:
    base = b"a\nb\nc\nd\ne\n"
    first = base.replace(b"a\n", b"a\n1\n").replace(b"e\n", b"e\n2\n3\n")
    second = base.replace(b"a\n", b"a\n4\n").replace(b"e\n", b"e\n5\n")
    _, text = merged(tmp_path, first, base, second)
    assert keeping_both(text) == b"a\n1\n4\nb\nc\nd\ne\n2\n3\n5\n"
    assert ranges_of_both(text) == [[2, 3], [8, 10]]


def test_a_conflict_says_where_it_is_and_what_each_side_has(tmp_path: Path) -> None:
    _, text = merged(tmp_path, b"a\nx\n", b"a\nb\n", b"a\ny\n")
    (found,) = conflicts_in(text)
    assert (found.line, found.first, found.base, found.second) == (2, [b"x\n"], [b"b\n"], [b"y\n"])


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n"]), max_size=6)


@given(LINES, LINES, LINES, LINES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
def test_no_line_of_either_side_is_lost(
    tmp_path: Path, before: list[bytes], after: list[bytes], one: list[bytes], two: list[bytes]
) -> None:
    base = b"".join([*before, *after])
    sides = [b"".join([*before, *added, *after]) for added in (one, two)]
    count, text = merged(tmp_path, sides[0], base, sides[1])
    kept = keeping_both(text)
    if count and kept is not None:
        assert sorted(kept.split(b"\n")) == sorted(
            b"".join([*before, *one, *two, *after]).split(b"\n")
        )


def test_a_text_without_conflicts_has_none() -> None:
    assert keeping_both(b"a\nb\n") is None
    assert conflicts_in(b"a\nb\n") == []


class TestTheSettingThatIsOffered:
    """Others choose the names of files; what an agent copies into a shell names only them."""

    NAMES = (
        "CHANGELOG.md", "*", "[a-z]?.md", "!no.md", "#x", "a\\b", 'x"]\u00a0check="evil', "ends ",
        "a b", "docs/log.md", "-",
    )  # fmt: skip

    @pytest.mark.parametrize("name", NAMES)
    def test_it_names_this_file_and_no_other(self, name: str) -> None:
        if not name.isprintable():
            assert union_setting([name]) == ""
            return
        words = shlex.split(union_setting([name]))
        assert words[:5] == ["queen", "config", "set", "--add", "land.union"]
        assert words[5:-1] in ([], ["--"])
        pattern = words[-1]
        spec = GitIgnoreSpec.from_lines([pattern])
        assert [each for each in (*self.NAMES, "other.md") if spec.match_file(each)] == [name]

    def test_a_name_that_cannot_be_shown_is_left_out(self) -> None:
        assert union_setting(["a\nb"]) == ""
        assert union_setting(["a\nb", "c"]) == "queen config set --add land.union c"
