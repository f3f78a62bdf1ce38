"""One pattern or path against many: the scans and the table answer as one comparison each."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from glob_comparing import compared, is_pattern
from glob_reference import PATHS, examples, real_patterns, texts, wide_patterns
from hypothesis import given
from hypothesis import strategies as st

from queenbee.core.glob import pattern as globs
from queenbee.core.glob.pattern import ByFolder, scan_covering, scan_meeting
from queenbee.errors import BadPattern

Held = list[tuple[str, str]]

hives = st.lists(st.one_of(texts, wide_patterns, real_patterns), max_size=12).map(
    lambda held: [(f"k{number}", text) for number, text in enumerate(held)]
)


def meeting(pattern: str, held: Held, fold_case: bool = False) -> list[str]:
    """Returns what the scan finds, which the table finds too, in some order."""
    found = scan_meeting(pattern, held, fold_case)
    assert sorted(found) == sorted(ByFolder(held, fold_case=fold_case).meeting(pattern))
    return sorted(found)


def covering(path: str, held: Held, fold_case: bool = False) -> list[str]:
    """Returns what the scan finds, which the table finds too, in some order."""
    found = scan_covering(path, held, fold_case)
    assert sorted(found) == sorted(ByFolder(held, fold_case=fold_case).covering(path))
    return sorted(found)


def under_themselves(patterns: Iterable[str]) -> Held:
    return [(text, text) for text in patterns]


@pytest.mark.slow
@examples(400)
@given(texts.filter(is_pattern), hives, st.booleans())
def test_what_a_comparison_with_each_finds_is_found(
    pattern: str, held: Held, fold_case: bool
) -> None:
    assert meeting(pattern, held, fold_case) == sorted(compared(pattern, held, fold_case))


@pytest.mark.slow
@examples(250)
@given(st.one_of(real_patterns, st.sampled_from(PATHS)), hives, st.booleans())
def test_every_pattern_that_covers_a_path_is_found(path: str, held: Held, fold_case: bool) -> None:
    assert covering(path, held, fold_case) == sorted(
        key
        for key, text in held
        if is_pattern(text) and globs.matches(text, path, fold_case=fold_case)
    )


@pytest.mark.slow
@examples(150)
@given(texts.filter(is_pattern), hives, st.data())
def test_a_table_forgets_what_is_discarded(pattern: str, held: Held, data: st.DataObject) -> None:
    table = ByFolder(held)
    gone = {key for key, _ in held if data.draw(st.booleans())}
    for key in [*gone, "never held"]:
        table.discard(key)
    left = [pair for pair in held if pair[0] not in gone]
    assert set(table.meeting(pattern)) == set(compared(pattern, left, False))


@pytest.mark.parametrize("question", ["src/auth", "src/*/b.py", "src/**", "**", "src", "*s/**"])
def test_patterns_that_begin_above_and_below_are_found(question: str) -> None:
    held = under_themselves(
        ["src/auth/**", "src/a/b.py", "srcs/b.py", "**", "src/**", "src", "{src,lib}/a/*"]
    )
    assert meeting(question, held) == sorted(compared(question, held, False))


def test_each_pattern_is_found_once() -> None:
    assert meeting("**", [("k", "**"), ("l", "src/**"), ("m", "src")]) == ["k", "l", "m"]


@pytest.mark.parametrize(
    "text",
    [
        "src/**", "src/**/a.py", "s*/x/a.py", "src/x/*.py", "**", "src/x/a.{py,ts}", "./src/x/a.py",
        "src//x/a.py", "lib/../src/x/a.py", "src/x/", "src/x/a.[p]y", "{src,lib}/x/a.py",
        "[s]rc/x/a.p?", "lib/.{,z}.{,z}/src/x/a.py", r"lib/.\./src/x/a.py", "src/x/a.py/",
        "src/x/a.py/.", r"src/x/a\.py", "src/x/a.py/b/{..,c}",
    ],
)  # fmt: skip
def test_a_pattern_is_found_however_it_is_written(text: str) -> None:
    for question in ("src/x/a.py", "src/x/*.py", "**/a.py"):
        assert meeting(question, [("k", text)]) == ["k"]
    assert covering("src/x/a.py", [("k", text)]) == ["k"]


def test_an_invalid_pattern_covers_nothing() -> None:
    held = [("bad", "src/["), ("good", "src/*")]
    assert meeting("src/a", held) == covering("src/a", held) == ["good"]


def test_an_invalid_question_is_refused() -> None:
    for ask in (ByFolder().meeting, lambda pattern: scan_meeting(pattern, [])):
        with pytest.raises(BadPattern):
            ask("src/[")


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "..", "a/../b"])
def test_nothing_covers_an_invalid_path(path: str) -> None:
    assert covering(path, [("k", "**"), ("l", "a/**")]) == []


def test_a_path_may_be_one_that_no_pattern_could_name() -> None:
    held = [("k", "src/*"), ("l", "lib/*")]
    assert covering("src/" + "a" * 3000, held) == covering("src/a\nb", held) == ["k"]


@pytest.mark.parametrize("name", ["src/a\nb", "src/b\n", "\n", "\n/b", "src/\nbcdef"])
def test_a_name_that_is_written_escaped_is_found(name: str) -> None:
    held = [("k", globs.escape(name)), ("l", "src/a"), ("m", r"src/\u000d")]
    assert covering(name, held) == meeting(globs.escape(name), held) == ["k"]
    assert meeting("**/*" + globs.escape(name[-2:].strip("/")), held) == ["k"]


def test_an_escape_may_be_written_otherwise() -> None:
    assert meeting(r"src/*\u000a", [("k", r"src/\u000A")]) == ["k"]


def test_a_letter_of_a_name_may_look_like_a_wildcard() -> None:
    assert covering("*ab", [("k", "*b"), ("l", r"\*ab"), ("m", "a*")]) == ["k", "l"]


def test_case_is_folded_if_told_so() -> None:
    held = [("k", "Src/**"), ("l", "src/A/b.py"), ("m", "lib/**"), ("n", "src/a/*.PY")]
    assert covering("SRC/a/b.py", held, fold_case=True) == ["k", "l", "n"]
    assert meeting("SRC/a/*.py", held, fold_case=True) == ["k", "l", "n"]
    assert covering("SRC/a/b.py", held) == []


def test_a_folder_meets_the_file_of_its_name_also_where_case_is_folded() -> None:
    assert meeting("src/Auth/**", [("k", "src/Auth"), ("l", "src/auth")], fold_case=True) == [
        "k",
        "l",
    ]


def test_a_scan_takes_any_keys_and_any_iterable() -> None:
    held = ((number, text) for number, text in enumerate(["src/a", "lib/a"]))
    assert scan_meeting("src/*", held) == [0]
