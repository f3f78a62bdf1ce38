"""One pattern against many: the index and the scans answer as a comparison with each would."""

from __future__ import annotations

import pytest
from glob_reference import PATHS, examples, real_patterns, texts, wide_patterns
from hypothesis import given
from hypothesis import strategies as st

from queenbee.core.glob import index as globindex
from queenbee.core.glob import pattern as globs
from queenbee.core.glob import sieve as globsieve
from queenbee.core.glob.index import GlobIndex, candidates, scan_covering, scan_meeting
from queenbee.errors import BadPattern

_below = st.builds(
    "{}/**/{}".format,
    st.sampled_from(["src", "src/ab", "lib", "**"]),
    st.sampled_from(["a.py", "*.py", "b", "*", "*.{py,ts}", "?.ts", "a*", "[ab].py"]),
).map(lambda text: text.replace("**/**", "**"))
hives = st.lists(texts, max_size=12).map(
    lambda held: [(f"k{number}", text) for number, text in enumerate(held)]
)


def usable(text: str) -> bool:
    try:
        return bool(globs.compiled(text))
    except BadPattern:
        return False


def compared(pattern: str, held: list[tuple[str, str]], fold_case: bool) -> list[str]:
    return [
        key
        for key, text in held
        if usable(text) and globs.overlap(pattern, text, fold_case=fold_case) is not None
    ]


def indexed(held: list[tuple[str, str]], fold_case: bool = False) -> GlobIndex:
    index = GlobIndex(fold_case=fold_case)
    for key, text in held:
        index.add(key, text)
    return index


class TestGlobIndex:
    @pytest.mark.slow
    @examples(300)
    @given(texts.filter(usable), hives, st.booleans())
    def test_finds_what_a_comparison_with_each_finds(
        self, pattern: str, held: list[tuple[str, str]], fold_case: bool
    ) -> None:
        index = indexed(held, fold_case)
        assert index.meeting(pattern) == compared(pattern, held, fold_case)
        assert [key for key, _ in index.overlapping(pattern)] == index.meeting(pattern)

    @pytest.mark.slow
    @examples(150)
    @given(
        _below,
        st.lists(st.one_of(_below, wide_patterns, real_patterns), max_size=12),
        st.booleans(),
    )
    def test_decides_alike_for_patterns_that_end_alike(
        self, pattern: str, texts: list[str], fold_case: bool
    ) -> None:
        held = [(f"k{number}", text) for number, text in enumerate(texts)]
        index = indexed(held, fold_case)
        assert index.meeting(pattern) == compared(pattern, held, fold_case)

    @pytest.mark.parametrize(
        ("pattern", "held", "met"),
        [
            # Of these, one branch each is literal: what follows its folders is nothing.
            ("docs/**/y", ["{src/**,docs}/x", "{lib/**,docs}/y"], [1]),
            ("docs/**/y", ["{lib/**,docs}/y", "{src/**,docs}/x"], [0]),
            ("src/**/*.md", ["src/a/*.md", "src/b/*.md", "src/b/*.py", "lib/*.md"], [0, 1]),
            ("src/**/*", ["src", "src/a", "src/a/b", "src/**", "src/*/*.py"], [1, 2, 3, 4]),
            ("**/*.md", [".md", "a/.md", "amd", "a.md/b", "*d", "a/**"], [0, 1, 4, 5]),
            ("src/**/*.{ts,py}", ["src/a.ts", "src/a.md", "src/a/b.py"], [0, 2]),
            ("src/**/a*.py", ["src/ab.py", "src/ba.py", "src/x/a.py"], [0, 2]),
            ("src/**/a", ["src/a", "src/ba", "src/x/a", "src/*/a", "src/*/b"], [0, 2, 3]),
        ],
    )
    def test_a_name_at_any_depth_meets_what_lies_below(
        self, pattern: str, held: list[str], met: list[int]
    ) -> None:
        index = indexed([(str(number), text) for number, text in enumerate(held)])
        assert index.meeting(pattern) == [str(number) for number in met]

    def test_forgets_how_patterns_end_that_it_held_long_ago(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(globindex, "_MANY_RESTS", 2)
        held = [(f"k{number}", f"src/{number}/*.a{number % 5}") for number in range(20)]
        index = indexed(held)
        assert len(index._rests) <= 2
        assert index.meeting("src/**/*.a3") == ["k3", "k8", "k13", "k18"]

    @pytest.mark.slow
    @examples(150)
    @given(texts.filter(usable), hives)
    def test_gives_a_path_that_both_cover(self, pattern: str, held: list[tuple[str, str]]) -> None:
        patterns_held = dict(held)
        for key, witness in indexed(held).overlapping(pattern):
            assert globs.matches(pattern, witness)
            assert globs.matches(patterns_held[key], witness)

    @pytest.mark.slow
    @examples(150)
    @given(st.one_of(real_patterns, st.sampled_from(PATHS)), hives, st.booleans())
    def test_finds_every_pattern_that_covers_a_path(
        self, path: str, held: list[tuple[str, str]], fold_case: bool
    ) -> None:
        expected = [
            key
            for key, text in held
            if usable(text) and globs.matches(text, path, fold_case=fold_case)
        ]
        assert indexed(held, fold_case).covering(path) == expected

    @pytest.mark.slow
    @examples(150)
    @given(texts.filter(usable), hives, st.data())
    def test_forgets_what_is_discarded(
        self, pattern: str, held: list[tuple[str, str]], data: st.DataObject
    ) -> None:
        index = indexed(held)
        gone = {key for key, _ in held if data.draw(st.booleans())}
        for key in gone:
            index.discard(key)
        left = [pair for pair in held if pair[0] not in gone]
        assert [key for key, _ in index.overlapping(pattern)] == compared(pattern, left, False)

    @examples(50)
    @given(hives)
    def test_keeps_nothing_once_all_is_discarded(self, held: list[tuple[str, str]]) -> None:
        index = indexed(held)
        for key, _ in held:
            index.discard(key)
        assert len(index) == 0
        assert not (index._literal or index._paths or index._shapes or index._starting)

    def test_replaces_the_pattern_of_a_key(self) -> None:
        index = indexed([("k", "src/*"), ("k", "lib/*")])
        assert index.overlapping("**") == [("k", "lib/x")]
        assert len(index) == 1

    def test_knows_which_keys_it_holds(self) -> None:
        index = indexed([("k", "src/*")])
        assert "k" in index
        assert "other" not in index

    def test_forgets_the_old_pattern_of_a_key_whose_new_one_is_not_usable(self) -> None:
        index = indexed([("k", "src/*"), ("k", "src/[")])
        assert "k" not in index
        assert index.overlapping("**") == []

    def test_discards_what_it_does_not_hold_without_complaint(self) -> None:
        index = indexed([("k", "src/*")])
        index.discard("other")
        assert len(index) == 1

    def test_refuses_a_question_that_is_not_usable(self) -> None:
        with pytest.raises(BadPattern):
            indexed([]).overlapping("src/[")

    @pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "..", "a/../b"])
    def test_finds_nothing_that_covers_an_invalid_path(self, path: str) -> None:
        assert indexed([("k", "**"), ("l", "a/**")]).covering(path) == []

    def test_answers_in_the_order_of_addition(self) -> None:
        held = [("c", "src/a.py"), ("a", "**"), ("b", "src/**")]
        assert [key for key, _ in indexed(held).overlapping("src/*")] == ["c", "a", "b"]
        assert indexed(held).covering("src/a.py") == ["c", "a", "b"]


class TestCandidates:
    @pytest.mark.slow
    @examples(400)
    @given(texts.filter(usable), hives, st.booleans())
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
    @given(texts.filter(usable), hives, st.booleans())
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
        expected = indexed(held, fold_case).covering(path)
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
        index = GlobIndex()
        for key, pattern in held:
            index.add(key, pattern)
        assert index.covering(name) == ["k"]
        assert index.overlapping(globs.escape(name)) == [("k", name)]


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
