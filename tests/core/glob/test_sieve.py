"""One pattern against many: the scans answer as a comparison with each would."""

from __future__ import annotations

import pytest
from glob_comparing import compared, is_pattern
from glob_reference import PATHS, examples, real_patterns, texts
from hypothesis import given
from hypothesis import strategies as st

from queenbee.core.glob import pattern as globs
from queenbee.core.glob import sieve as globsieve
from queenbee.core.glob.by_folder import ByFolder
from queenbee.core.glob.sieve import candidates, scan_covering, scan_meeting

hives = st.lists(texts, max_size=12).map(
    lambda held: [(f"k{number}", text) for number, text in enumerate(held)]
)


class TestCandidates:
    @pytest.mark.slow
    @examples(400)
    @given(texts.filter(is_pattern), hives, st.booleans())
    def test_hold_back_nothing_that_meets_the_pattern(
        self, pattern: str, held: list[tuple[str, str]], fold_case: bool
    ) -> None:
        kept = {key for key, _ in candidates(pattern, held, fold_case=fold_case)}
        assert kept >= set(compared(pattern, held, fold_case))

    @pytest.mark.parametrize(
        ("pattern", "text"),
        [
            ("src/auth/**", "lib/a.py"),
            ("src/auth/**", "src/api/**"),
            ("src/auth/**", "srcs/*"),
            ("src/a*", "src/b*"),
            ("**/*.md", "src/a.py"),
            ("*.{ts,mts}", "docs/a.md"),
            ("src/a.py", "src"),
        ],
    )
    def test_hold_back_what_begins_or_ends_otherwise(self, pattern: str, text: str) -> None:
        assert candidates(pattern, [("k", text)]) == []

    def test_parse_no_pattern_that_they_hold_back(self) -> None:
        assert candidates("src/**", [("k", "lib/[")]) == []

    def test_take_any_keys_and_any_iterable(self) -> None:
        held = ((number, text) for number, text in enumerate(["src/a", "lib/a"]))
        assert candidates("src/*", held) == [(0, "src/a")]


class TestScans:
    @pytest.mark.slow
    @examples(200)
    @given(texts.filter(is_pattern), hives, st.booleans())
    def test_find_what_a_comparison_with_each_finds(
        self, pattern: str, held: list[tuple[str, str]], fold_case: bool
    ) -> None:
        found = scan_meeting(pattern, held, fold_case)
        assert sorted(found) == sorted(compared(pattern, held, fold_case))

    @pytest.mark.slow
    @examples(200)
    @given(st.one_of(real_patterns, st.sampled_from(PATHS)), hives, st.booleans())
    def test_find_every_pattern_that_covers_a_path(
        self, path: str, held: list[tuple[str, str]], fold_case: bool
    ) -> None:
        expected = [
            key
            for key, text in held
            if is_pattern(text) and globs.matches(text, path, fold_case=fold_case)
        ]
        assert sorted(scan_covering(path, held, fold_case)) == sorted(expected)

    def test_find_a_pattern_whose_dots_meet_between_braces(self) -> None:
        held = [("k", "a/b/.{,x}.{,y}/c"), ("l", "a/b/.{,x}-.{,y}/c")]
        assert scan_meeting("a/c", held) == ["k"]
        assert scan_covering("a/c", held) == ["k"]

    def test_pass_over_a_pattern_that_is_not_usable(self) -> None:
        held = [("bad", "src/["), ("good", "src/*")]
        assert scan_meeting("src/a", held) == ["good"]
        assert scan_covering("src/a", held) == ["good"]

    def test_take_a_path_that_no_pattern_could_name(self) -> None:
        long = "src/" + "a" * 3000
        assert scan_covering(long, [("k", "src/*"), ("l", "lib/*")]) == ["k"]
        assert scan_covering("src/a\nb", [("k", "src/*")]) == ["k"]

    @pytest.mark.parametrize("name", ["src/a\nb", "src/b\n", "\n", "\n/b", "src/\nbcdef"])
    def test_find_a_name_that_is_written_escaped(self, name: str) -> None:
        held = [("k", globs.escape(name)), ("l", "src/a"), ("m", r"src/\u000d")]
        assert scan_covering(name, held) == ["k"]
        assert scan_meeting(globs.escape(name), held) == ["k"]
        assert scan_meeting("**/*" + globs.escape(name[-2:].strip("/")), held) == ["k"]
        assert ByFolder(held).covering(name) == ["k"]
        assert ByFolder(held).meeting(globs.escape(name)) == ["k"]


def check_the_sieve_is_sound(sieve: object) -> None:
    """Fails if the sieve holds back one of a few texts that do cover the path."""
    texts = [
        "src/**",
        "src/**/a.py",
        "s*/x/a.py",
        "src/x/*.py",
        "**",
        "src/x/a.{py,ts}",
        "./src/x/a.py",
        "src//x/a.py",
        "lib/../src/x/a.py",
        "src/x/",
        "src/x/a.[p]y",
        "{src,lib}/x/a.py",
        "[s]rc/x/a.p?",
    ]
    held = [(text, text) for text in texts]
    kept = sieve.sift(held, "src/x/a.py", "a.py", False)
    assert sorted(key for key, _ in kept) == sorted(texts)
    assert all(globs.matches(text, "src/x/a.py") for _, text in held)


def test_the_sieve_lets_through_every_way_to_write_a_pattern() -> None:
    check_the_sieve_is_sound(globsieve)
