"""Where patterns can meet: nothing that shares a path is ever looked for elsewhere."""

from __future__ import annotations

import sys

import pytest
from glob_reference import PATHS, examples, real_patterns, texts
from hypothesis import example, given
from hypothesis import strategies as st

from queenbee.core.glob import pattern as globs
from queenbee.core.glob.chars import fold_char
from queenbee.core.glob.places import place_of, places_of_path, places_of_paths, places_of_pattern
from queenbee.errors import BadPattern

_cased = texts.flatmap(lambda text: st.sampled_from([text, text.upper(), text.title()]))


def overlaps(one: str, other: str, fold_case: bool) -> bool:
    try:
        return globs.overlap(one, other, fold_case=fold_case) is not None
    except BadPattern:
        return False


@pytest.mark.slow
@examples(600)
@given(texts, _cased, st.booleans())
@example("a/c", "a/b/.{,x}.{,y}/c", False)
@example("a/c", r"a/b/\.\./c", False)
@example("b", "a/*/../../b", False)
def test_a_pattern_that_overlaps_is_in_these_places(
    pattern: str, text: str, fold_case: bool
) -> None:
    if overlaps(pattern, text, fold_case):
        assert places_of_pattern(pattern).include(text)


@pytest.mark.slow
@examples(300)
@given(st.one_of(real_patterns, st.sampled_from(PATHS)), _cased, st.booleans())
def test_a_pattern_that_covers_a_path_is_in_its_places(
    path: str, text: str, fold_case: bool
) -> None:
    try:
        covered = globs.matches(text, path, fold_case=fold_case)
    except BadPattern:
        return
    if covered:
        assert places_of_path(path).include(text)
        assert places_of_paths(["lib/b", path, "a"]).include(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("src/auth/login.py", ("src/auth/login.py", "py")),
        ("src/auth/**", ("src/auth/", "")),
        ("src/auth/*.py", ("src/auth/", "py")),
        ("src/auth/lo*.{ts,tsx}", ("src/auth/", "")),
        ("SRC/*.MD", ("src/", "md")),
        ("**/*.md", ("", "md")),
        (r"app/\[id]/page.tsx", ("app/", "")),
        ("a", ("a", "")),
        ("src/", ("src/", "")),
        ("", ("", "")),
        *[(text, ("", "")) for text in ("./a/b.py", "a//b.py", "a/../b.py", "/a/b", "!a/b", "a/.")],
    ],
)
def test_what_a_text_alone_tells(text: str, place: tuple[str, str]) -> None:
    assert place_of(text) == place


def test_what_lies_elsewhere_is_left_out() -> None:
    found = places_of_pattern("src/auth/*.py")
    left_out = ["src/api/**", "docs/a.py", "src/auth/a.ts", "src/auth/core/*.md"]
    assert [text for text in left_out if found.include(text)] == []
    assert [text for text in left_out if places_of_path("src/auth/a.py").include(text)] == []
    many = places_of_paths([f"work/{n % 40}/f{n}.py" for n in range(1_000)])
    assert [text for text in left_out if many.include(text)] == []
    assert many.include("work/7/**")


def test_names_that_are_not_utf_8_are_not_asked_for() -> None:
    found = places_of_path("src/\udce9/a")
    assert found.heads == ("", "src/")
    assert found.include("src/**")
    assert found.include(globs.escape("src/\udce9/a"))


def test_a_path_of_very_many_folders_is_looked_for_everywhere() -> None:
    assert places_of_path("a/" * 2_000 + "b").heads is None


def test_folding_a_second_time_changes_nothing() -> None:
    for char in map(chr, range(sys.maxunicode + 1)):
        assert fold_char(fold_char(char)) == fold_char(char)


CASES = [
    ("src/auth", "src/auth/**"),
    ("src/auth/**", "src/auth"),
    ("src/auth/a.py", "src/**"),
    ("src/**", "src/auth/a.py"),
    ("SRC/a", "src/*"),
    ("b/x.py", "a/../b/*.py"),
    ("a/c", "a/b/.{,x}.{,y}/c"),
    (r"src/b\u000a", r"src/b\u000a"),
    ("a//x", "a/x"),
    ("a/c", r"a/b/\.\./c"),
    ("a/x.py", "a/x.[p]y"),
    ("a/x.py", "a/*.p?"),
    ("a/x.py", "**/*.{ts,py}"),
    ("{a,b}/x", "b/*"),
]


def test_the_cases_themselves_are_found() -> None:
    for one, other in CASES:
        for pattern, text in ((one, other), (other, one)):
            assert overlaps(pattern, text, True)
            assert places_of_pattern(pattern).include(text)
