"""Overlap of two patterns outside some paths, against the enumeration of all short paths."""

from __future__ import annotations

from itertools import product

import pytest
from extent import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queenbee.core.glob import matches, overlap
from queenbee.core.glob.outside import overlap_outside
from queenbee.errors import BadPattern

LETTERS = "ab"
NAMES = ["".join(word) for size in (1, 2, 3) for word in product(LETTERS, repeat=size)]
PATHS = [*NAMES, *("/".join(pair) for pair in product(NAMES[:6], repeat=2))]
PATHS += ["/".join(three) for three in product(NAMES[:2], repeat=3)]

parts = st.sampled_from(["a", "b", "*", "?", "[ab]", "[!a]", "{a,b}", "{a*,bb}"])
segments = st.one_of(st.just("**"), st.lists(parts, min_size=1, max_size=3).map("".join))
patterns = st.lists(segments, min_size=1, max_size=3).map("/".join)


@settings(max_examples=examples(600))
@given(patterns, patterns, st.lists(st.sampled_from(PATHS), max_size=5))
@example("{a,b}", "*", ["a", "b"])
@example("**", "**", ["a"])
@example("a/**", "**/a", ["a", "a/a"])
@example("[ab]?", "?[ab]", ["aa", "ab", "ba"])
def test_it_is_what_enumeration_says(one: str, other: str, without: list[str]) -> None:
    try:
        path = overlap_outside(one, other, without)
    except BadPattern:
        return
    if path is not None:
        assert path not in without
        assert matches(one, path) and matches(other, path)
        return
    shared = [each for each in PATHS if matches(one, each) and matches(other, each)]
    assert set(shared) <= set(without)


@given(patterns, patterns, st.lists(st.sampled_from(PATHS), max_size=5))
def test_it_is_symmetric_and_without_paths_it_is_overlap(
    one: str, other: str, without: list[str]
) -> None:
    try:
        there = overlap_outside(one, other, without) is not None
    except BadPattern:
        return
    assert there == (overlap_outside(other, one, without) is not None)
    assert (overlap_outside(one, other, []) is None) == (overlap(one, other) is None)


@pytest.mark.parametrize(
    ("one", "other", "without", "path"),
    [
        ("src/**", "src/a.py", ["src/a.py"], None),
        ("src/**", "src/*.py", ["src/a.py"], "src/x.py"),
        ("src/*.py", "src/a.{py,js}", ["src/a.py"], None),
        ("src/{a,b}.py", "src/*", ["src/a.py"], "src/b.py"),
        ("src/**", "src", ["src/a.py"], "src"),
        ("src/**", "src", ["src"], None),
        ("src/a.py", "src/a.py/**", ["src/b.py"], "src/a.py"),
    ],
)
def test_what_is_left_is_found(one: str, other: str, without: list[str], path: str | None) -> None:
    assert overlap_outside(one, other, without) == path


def test_case_is_folded_where_the_file_system_does() -> None:
    assert overlap_outside("Src/**", "src/A.py", ["src/a.py"], fold_case=True) is None
    assert overlap_outside("src/**", "src/A.py", ["src/a.py"]) == "src/A.py"


def test_what_is_to_be_avoided_is_not_found() -> None:
    cases = [("src/**", "src/a.py"), ("src/{a.py,b.py}", "src/?.py"), ("src/[ab].py", "src/?.py")]
    without = ["src/a.py", "src/b.py"]
    assert [overlap_outside(*case, without) for case in cases] == [None] * 3
