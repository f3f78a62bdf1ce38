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

from queenbee.core.conflicts.markers import MARKER_SIZE, both_only_added, parts, union_setting


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
    ("first", "base", "second", "only_added"),
    [
        (b"a\nx\nz\n", b"a\nz\n", b"a\ny\nz\n", True),
        (b"x\n", b"", b"y\n", True),
        (b"a\nx", b"a\n", b"a\ny", True),
        (b"b\nx\nz\n", b"a\nz\n", b"a\ny\nz\n", False),
        (b"a\nx\nz\n", b"a\nb\nz\n", b"a\ny\nz\n", False),
        (b"x\na\nb\nc\nd\nq\n", b"a\nb\nc\nd\ne\n", b"y\na\nb\nc\nd\nr\n", False),
        (b"<<<<<<< a\nx\n", b"<<<<<<< a\n", b"<<<<<<< a\n=======\n", True),
    ],
)
def test_an_addition_on_both_sides_is_told_from_a_change(
    tmp_path: Path, first: bytes, base: bytes, second: bytes, only_added: bool
) -> None:
    count, text = merged(tmp_path, first, base, second)
    assert len(parts(text)[1]) == count > 0
    assert both_only_added(text) == only_added


def test_a_conflict_says_what_each_side_has_and_what_is_around_it(tmp_path: Path) -> None:
    _, text = merged(tmp_path, b"a\nx\n\nc\n", b"a\nb\n\nc\n", b"a\ny\n\nc\n")
    between, (found,) = parts(text)
    assert (found.main, found.base, found.branch) == ([b"x\n"], [b"b\n"], [b"y\n"])
    assert (found.before, found.after) == (between[0], between[1]) == ([b"a\n"], [b"\n", b"c\n"])


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n"]), max_size=8)


@given(LINES, LINES, LINES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
def test_the_parts_are_the_whole_text(
    tmp_path: Path, base: list[bytes], one: list[bytes], two: list[bytes]
) -> None:
    sides = [b"".join(each) for each in (one, base, two)]
    count, text = merged(tmp_path, *sides)
    between, found = parts(text)
    assert len(found) == count
    marks = sum(len(each.main) + len(each.base) + len(each.branch) + 4 for each in found)
    assert sum(map(len, between)) + marks == text.count(b"\n")


def test_a_text_without_conflicts_has_none() -> None:
    assert parts(b"a\nb\n") == ([[b"a\n", b"b\n"]], [])
    assert not both_only_added(b"a\nb\n")


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

    def test_code_is_left_out_because_both_sides_may_have_one_half_of_something(self) -> None:
        assert union_setting(["test_a.py", "b.toml", ".travis.yml"]) == ""
        assert union_setting(["test_a.py", "d/b.md"]).endswith(" land.union d/b.md")
