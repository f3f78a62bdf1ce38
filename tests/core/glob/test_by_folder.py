"""Many patterns for many questions: the table answers as a comparison with each would."""

from __future__ import annotations

import pytest
from glob_comparing import compared, is_pattern
from glob_reference import PATHS, examples, real_patterns, texts, wide_patterns
from hypothesis import given
from hypothesis import strategies as st

from queenbee.core.glob import pattern as globs
from queenbee.core.glob.by_folder import ByFolder
from queenbee.errors import BadPattern

hives = st.lists(st.one_of(texts, wide_patterns, real_patterns), max_size=12).map(
    lambda held: [(f"k{number}", text) for number, text in enumerate(held)]
)


@pytest.mark.slow
@examples(300)
@given(texts.filter(is_pattern), hives, st.booleans())
def test_finds_what_a_comparison_with_each_finds(
    pattern: str, held: list[tuple[str, str]], fold_case: bool
) -> None:
    found = ByFolder(held, fold_case=fold_case).meeting(pattern)
    assert len(found) == len(set(found))
    assert set(found) == set(compared(pattern, held, fold_case))


@pytest.mark.slow
@examples(150)
@given(st.one_of(real_patterns, st.sampled_from(PATHS)), hives, st.booleans())
def test_finds_every_pattern_that_covers_a_path(
    path: str, held: list[tuple[str, str]], fold_case: bool
) -> None:
    found = ByFolder(held, fold_case=fold_case).covering(path)
    assert len(found) == len(set(found))
    assert set(found) == {
        key
        for key, text in held
        if is_pattern(text) and globs.matches(text, path, fold_case=fold_case)
    }


@pytest.mark.slow
@examples(150)
@given(texts.filter(is_pattern), hives, st.data())
def test_forgets_what_is_discarded(
    pattern: str, held: list[tuple[str, str]], data: st.DataObject
) -> None:
    table = ByFolder(held)
    gone = {key for key, _ in held if data.draw(st.booleans())}
    for key in gone:
        table.discard(key)
    left = [pair for pair in held if pair[0] not in gone]
    assert set(table.meeting(pattern)) == set(compared(pattern, left, False))


@examples(50)
@given(hives)
def test_keeps_nothing_once_all_is_discarded(held: list[tuple[str, str]]) -> None:
    table = ByFolder(held)
    for key, _ in held:
        table.discard(key)
    assert not (table._heads or table._tables)


def test_discards_what_it_does_not_hold_without_complaint() -> None:
    table = ByFolder([("k", "src/*")])
    table.discard("other")
    assert table.meeting("**") == ["k"]


def test_refuses_a_question_that_is_not_usable() -> None:
    with pytest.raises(BadPattern):
        ByFolder().meeting("src/[")


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "..", "a/../b"])
def test_finds_nothing_that_covers_an_invalid_path(path: str) -> None:
    assert ByFolder([("k", "**"), ("l", "a/**")]).covering(path) == []


@pytest.mark.parametrize("question", ["src/auth", "src/*/b.py", "src/**", "**", "src", "*s/**"])
def test_finds_patterns_that_begin_above_and_below(question: str) -> None:
    texts = ["src/auth/**", "src/a/b.py", "srcs/b.py", "**", "src/**", "src", "{src,lib}/a/*"]
    held = [(text, text) for text in texts]
    assert set(ByFolder(held).meeting(question)) == set(compared(question, held, False))


def test_finds_each_pattern_once() -> None:
    held = [("k", "**"), ("l", "src/**"), ("m", "src")]
    assert sorted(ByFolder(held).meeting("**")) == ["k", "l", "m"]


def test_folds_case_if_told_so() -> None:
    held = [("k", "Src/**"), ("l", "src/A/b.py"), ("m", "lib/**")]
    assert sorted(ByFolder(held, fold_case=True).covering("SRC/a/b.py")) == ["k", "l"]
    assert ByFolder(held).covering("SRC/a/b.py") == []
