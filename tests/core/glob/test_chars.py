"""Sets of characters, and what stands for a letter where case does not count."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from glob_reference import examples
from hypothesis import given
from hypothesis import strategies as st

from queenbee.core.glob import chars as globchars
from queenbee.core.glob.chars import ANY_CHAR, Chars, common_char, everything_but, fold, fold_char

pytestmark = pytest.mark.slow

EVERY_CHAR = [chr(code) for code in range(sys.maxunicode + 1)]
NEAR = sorted({fold_char(char) for char in EVERY_CHAR[0x20:0x600]} | set(EVERY_CHAR[0x20:0x600]))
"""All that the ranges below name, and what it folds to."""

codes = st.integers(min_value=0x20, max_value=0x250)
ranges = st.lists(st.tuples(codes, codes).map(lambda ends: (min(ends), max(ends))), max_size=4)


def test_a_folded_character_is_one_character_and_its_own_fold() -> None:
    for char in EVERY_CHAR:
        folded = fold_char(char)
        assert len(folded) == 1
        assert fold_char(folded) == folded


def test_no_character_has_a_case_beyond_the_last_that_is_looked_at() -> None:
    assert all(fold_char(char) == char for char in EVERY_CHAR[globchars._LAST_CASED + 1 :])


def test_no_character_folds_to_one_of_syntax() -> None:
    for char in EVERY_CHAR:
        if fold_char(char) in "*?[]{}\\,!^-/.":
            assert fold_char(char) == char


@examples(200)
@given(st.text(alphabet="aAßẞİıſΣσςÉé\u212a", max_size=8))
def test_a_text_is_folded_character_by_character(text: str) -> None:
    assert fold(text) == "".join(map(fold_char, text))


@examples(200)
@given(ranges)
def test_merged_ranges_hold_the_same_characters_but_the_slash(parts: list) -> None:
    merged = globchars.merged(parts)
    assert list(merged) == sorted(merged)
    assert all(one[1] + 1 < other[0] or one[1] + 2 == other[0] for one, other in pairwise(merged))
    for code in range(0x20, 0x260):
        expected = code != ord("/") and any(low <= code <= high for low, high in parts)
        assert (chr(code) in Chars(merged, False)) == expected


@examples(200)
@given(ranges)
def test_a_character_is_in_a_set_or_in_everything_but_it(parts: list) -> None:
    inside = Chars(globchars.merged(parts), False)
    outside = Chars(everything_but(parts), False)
    for code in range(0x20, 0x260):
        if code != ord("/"):
            assert (chr(code) in inside) != (chr(code) in outside)
    assert "/" not in outside
    assert "\0" not in outside


@examples(300)
@given(ranges, ranges, st.booleans(), st.booleans())
def test_what_two_sets_share_is_found_if_there_is_anything(
    one: list, other: list, negated: bool, folded: bool
) -> None:
    def as_set(parts: list, negated: bool) -> Chars:
        merged = globchars.merged(parts)
        if folded:
            merged = globchars.fold_ranges(merged)
        return Chars(everything_but(merged) if negated else merged, folded)

    mine, theirs = as_set(one, negated), as_set(other, False)
    shared = [
        char
        for char in NEAR
        if char in mine and char in theirs and (not folded or fold_char(char) == char)
    ]
    found = common_char(mine, theirs)
    assert (found is None) == (not shared)
    assert found is None or found in shared


def test_a_sample_is_a_letter_where_one_is_covered() -> None:
    assert common_char(ANY_CHAR, ANY_CHAR) == "x"
    assert common_char(Chars(((0x2E, 0x2E), (0x41, 0x5A)), False), ANY_CHAR) == "A"


def test_a_dot_comes_after_all_else_that_is_printable() -> None:
    assert common_char(Chars(((0x21, 0x2C), (0x2E, 0x2E)), False), ANY_CHAR) == "!"
    assert common_char(Chars(((0x1, 0x1F), (0x2E, 0x2E)), False), ANY_CHAR) == "."
