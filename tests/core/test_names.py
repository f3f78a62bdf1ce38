"""Names of droids: what is well formed, and which known one was probably meant."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from queenbee.core.names import NOBODYS, checked_name, is_name, nearest
from queenbee.errors import InvalidInput


@given(st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z"))
def test_a_well_formed_name_is_returned_unchanged(name):
    assume(name.lower() not in NOBODYS)
    assert checked_name(name) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-ui",
        ".ui",
        "_ui",
        "ui engineer",
        "ui\n",
        "ui/engineer",
        "ünder",
        "a" * 65,
        "ui\x00",
        "٣",
    ],
)
def test_an_invalid_name_is_refused_with_the_rules_for_names(text):
    with pytest.raises(InvalidInput) as refused:
        checked_name(text)
    assert "1 to 64 letters" in refused.value.hint


@given(st.text())
def test_any_text_is_a_name_or_not(text):
    assert is_name(text) == (
        1 <= len(text) <= 64
        and text.isascii()
        and text[0].isalnum()
        and all(char.isalnum() or char in "._-" for char in text)
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("ui-enginer", "ui-engineer"), ("UI-ENGINEER", "ui-engineer"), ("reviewr", "Reviewer")],
)
def test_the_nearest_known_name_is_suggested(typed, meant):
    assert nearest(typed, ["ui-engineer", "Reviewer", "queen"]) == meant


def test_there_is_no_suggestion_without_a_similar_name():
    assert nearest("zzzzzz", ["ui-engineer", "queen"]) is None
