"""What stands for a letter where case does not count, and classes of letters in both modes."""

from __future__ import annotations

import sys

import pytest
from glob_reference import examples
from hypothesis import given
from hypothesis import strategies as st

from queenbee.core.glob import pattern as globs
from queenbee.core.glob.chars import fold

pytestmark = pytest.mark.slow

EVERY_CHAR = [chr(code) for code in range(sys.maxunicode + 1)]
NEAR = sorted({fold(char) for char in EVERY_CHAR[0x20:0x600]} | set(EVERY_CHAR[0x20:0x600]))
"""All that the classes below name, and what it folds to."""
LAST_CASED = 0x1E943

codes = st.integers(min_value=0x30, max_value=0x250).filter(lambda code: chr(code).isalnum())
ends = st.tuples(codes, codes).map(lambda pair: (min(pair), max(pair)))
classes = st.tuples(st.booleans(), st.lists(ends, min_size=1, max_size=4))


def test_a_folded_character_is_one_character_and_its_own_fold() -> None:
    for char in EVERY_CHAR:
        folded = fold(char)
        assert len(folded) == 1
        assert fold(folded) == folded
        if folded in "*?[]{}\\,!^-/." or ord(char) > LAST_CASED:
            assert folded == char


@examples(200)
@given(st.text(alphabet="aAßẞİıſΣσςÉé\u212a", max_size=8))
def test_a_text_is_folded_character_by_character(text: str) -> None:
    assert fold(text) == "".join(map(fold, text))


@examples(300)
@given(classes, classes, st.booleans())
def test_two_classes_meet_in_exactly_the_characters_that_both_cover(
    one: tuple[bool, list], other: tuple[bool, list], fold_case: bool
) -> None:
    shown = fold if fold_case else str

    def text(negated: bool, parts: list) -> str:
        members = "".join(f"{chr(low)}-{chr(high)}" for low, high in parts)
        return f"[{'!' if negated else ''}{members}]"

    def covered(negated: bool, parts: list) -> set[str]:
        letters = {shown(chr(code)) for low, high in parts for code in range(low, high + 1)}
        return {char for char in NEAR if (shown(char) in letters) != negated}

    witness = globs.overlap(text(*one), text(*other), fold_case=fold_case)
    shared = covered(*one) & covered(*other)
    assert witness in shared or (witness is None and not shared) or (one[0] and other[0])
    assert witness is None or not fold_case or fold(witness) == witness
