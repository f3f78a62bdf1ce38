"""Why two patterns share no path, in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenbee.core.glob.pattern import overlap, why_apart


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        ("a.py", "b.py", "a.py and b.py are different paths"),
        ("src/**", "docs/**", "one is in src/, the other in docs/"),
        ("src/*.ts", "src/*.py", "one matches names ending in .ts, the other in .py"),
        ("src/*", "src/a/b", "src/* does not cover src/a/b, the only path of src/a/b"),
        ("a?", "b*", "no path fits both patterns"),
    ],
)
def test_the_plainest_reason_is_given(left, right, reason):
    assert overlap(left, right) is None
    assert why_apart(left, right) == reason


NAMES = st.sampled_from(["a", "b", "ab", "*", "?", "a*", "*.c", "*.d", "[ab]", "[!a]b", "{a,b}.c"])
PATTERNS = st.lists(st.one_of(NAMES, st.just("**")), min_size=1, max_size=3).map("/".join)


@given(PATTERNS, PATTERNS)
def test_every_pair_that_does_not_overlap_has_a_reason(left, right):
    assert overlap(left, right) is not None or why_apart(left, right)
