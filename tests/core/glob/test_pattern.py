"""What patterns cover, whether two share a path, and that the checks of it can fail."""

from __future__ import annotations

import subprocess
import sys

import pytest
from glob_reference import PATHS, covered, examples, patterns, share_a_path, starry_patterns, usable
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pathspec import PathSpec

from queenbee.core.glob import pattern as globs
from queenbee.errors import BadPattern


def _is_usable(text: str) -> bool:
    try:
        return bool(globs.normalise(text))
    except BadPattern:
        return False


usable_patterns = patterns.filter(_is_usable)


class TestOverlap:
    def test_returns_a_path_that_both_patterns_cover(self) -> None:
        assert globs.overlap("src/*/a.py", "src/b/*.py") == "src/b/a.py"

    def test_returns_nothing_where_no_path_is_covered_by_both(self) -> None:
        assert globs.overlap("src/**/*.ts", "src/**/*.py") is None

    def test_is_the_same_in_both_directions(self) -> None:
        assert globs.overlap("**/a/**", "**/b/**") == globs.overlap("**/b/**", "**/a/**")

    def test_takes_patterns_that_are_not_in_normal_form(self) -> None:
        assert globs.overlap("./src//auth/", "lib/../src/*/a.py") == "src/auth/a.py"

    def test_refuses_a_pattern_that_is_not_usable(self) -> None:
        with pytest.raises(BadPattern):
            globs.overlap("src/*", "src/[")

    def test_a_witness_has_a_name_for_what_is_left_open(self) -> None:
        assert globs.overlap("src/**/*.py", "src/auth/**") == "src/auth/x.py"

    @pytest.mark.parametrize(
        ("one", "other"),
        [("*", "?"), ("[!a]", "[!b]"), ("[!-~]*", "*"), ("[!a-z]", "[!A-Z]"), ("**", "?/*")],
    )
    def test_a_witness_is_made_of_readable_letters(self, one: str, other: str) -> None:
        witness = globs.overlap(one, other)
        assert witness is not None
        assert witness.replace("/", "").isalnum()

    def test_a_witness_beyond_ascii_is_printable(self) -> None:
        assert globs.overlap("[! -ÿ]", "?") == "ā"

    @pytest.mark.parametrize(
        ("one", "other", "witness"),
        [
            (".*", "*.", ".x."),
            ("?", "[.!]", "!"),
            ("??", "[.a]?", "ax"),
            ("[.]?", "?[.]", None),
            ("[.]*", "?", None),
            ("{.,..,...}*", ".*", ".x"),
            ("*[.]", "[.]*", ".x."),
            ("*.*", "?.", "x."),
            ("[.]{[.],a}{,b}{,c}{,d}{,e}", "[.]{[.],z}", None),
            ("[.]{[.],a}{,b}{,c}{,d}{,e}", "[.]{[.],z}?", "..e"),
            ("[.]{,b}{,c}{,d}{,e}{[.],a}", "??", ".a"),
        ],
    )
    def test_a_witness_is_never_a_dot_or_two(
        self, one: str, other: str, witness: str | None
    ) -> None:
        assert globs.overlap(one, other) == witness

    def test_a_control_character_is_the_last_resort_of_a_witness(self) -> None:
        # Such a file can exist, and both patterns cover it: silence would be wrong.
        witness = globs.overlap("[! -~]", "[!\xa0-\U0010ffff]")
        assert witness is not None
        assert ord(witness) < 0xA0


class TestMatches:
    @pytest.mark.parametrize(
        ("pattern", "path"),
        [
            ("*.md", "README.md"),
            ("*", ".env"),
            ("*", "..."),
            ("src/auth/**", "src/auth"),
            ("src/auth/**", "src/auth/a/b.py"),
            ("**/a", "a"),
            ("**", "a/b/c"),
            ("a?c", "a\nc"),
            ("docs/?", "docs/é"),
            (r"\!a", "!a"),
        ],
    )
    def test_a_path_in_the_language_is_covered(self, pattern: str, path: str) -> None:
        assert globs.matches(pattern, path)

    @pytest.mark.parametrize(
        ("pattern", "path"),
        [
            ("*.md", "docs/a.md"),
            ("src/*", "src"),
            ("src/*", "src/a/b"),
            ("src/auth/**", "src/authx"),
            ("a[!b]c", "a/c"),
            ("a?c", "a/c"),
        ],
    )
    def test_a_path_outside_the_language_is_not(self, pattern: str, path: str) -> None:
        assert not globs.matches(pattern, path)

    @pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", ".", "..", "a/../b", "./a"])
    def test_nothing_covers_an_invalid_path(self, path: str) -> None:
        assert not globs.matches("**", path)
        assert not globs.matches("{a,**}", path)

    def test_a_path_may_be_longer_than_any_pattern(self) -> None:
        assert globs.matches("**/z", "a/" * 5000 + "z")
        assert globs.matches("*z*", "a" * 5000 + "z")


class TestLiterals:
    @pytest.mark.parametrize(
        ("path", "pattern"),
        [
            ("src/main.go", "src/main.go"),
            ("app/[id]/page.tsx", r"app/\[id]/page.tsx"),
            ("app/[...slug]/page.tsx", r"app/\[...slug]/page.tsx"),
            ("{{cookiecutter.name}}/a.py", r"\{\{cookiecutter.name\}\}/a.py"),
            ("!important", r"\!important"),
            ("a*b?c", r"a\*b\?c"),
            ("a\\b", r"a\\b"),
            ("a,b]", "a,b]"),
        ],
    )
    def test_an_escaped_path_is_a_pattern_for_it_alone(self, path: str, pattern: str) -> None:
        assert globs.escape(path) == pattern
        assert globs.normalise(pattern) == pattern
        assert globs.literal_path(pattern) == path
        assert globs.is_literal(pattern)

    @examples(150)
    @given(st.text(alphabet="ab[]{}*?!\\,-./u0\n\x7f\x85\udce9", min_size=1, max_size=12))
    def test_an_escaped_path_covers_only_itself(self, path: str) -> None:
        if all(map(usable, path.split("/"))):
            pattern = globs.escape(path)
            assert globs.literal_path(pattern) == path
            assert [each for each in [*PATHS, path] if globs.matches(pattern, each)] in (
                [path],
                [path, path],
            )
        else:
            with pytest.raises(BadPattern):
                globs.escape(path)

    def test_a_path_that_no_pattern_can_name_is_refused_with_the_column(self) -> None:
        for path, column in [
            ("a\0b", 2),
            ("a\ud800", 2),
            ("a//b", 3),
            ("a/../b", 3),
            ("", 1),
            ("/a", 1),
        ]:
            with pytest.raises(BadPattern) as refused:
                globs.escape(path)
            assert refused.value.column == column

    @pytest.mark.parametrize(
        ("name", "pattern"),
        [
            ("a\nb", r"a\u000ab"),
            ("\x1b[2J", r"\u001b\[2J"),
            ("\x7f", r"\u007f"),
            ("\x85", r"\u0085"),
            ("latin\udce9", r"latin\udce9"),
            ("u000a", "u000a"),
            (r"\u000a", r"\\u000a"),
        ],
    )
    def test_a_name_that_no_text_should_hold_has_an_escaped_form(
        self, name: str, pattern: str
    ) -> None:
        assert globs.escape(name) == pattern
        assert pattern.isascii()
        assert globs.normalise(pattern) == pattern
        assert globs.literal_path(pattern) == name
        assert globs.overlap(pattern, "*") == name
        assert globs.overlap(pattern, "{x,y," + pattern + "}") == name
        assert globs.overlap(pattern, pattern + "?") is None
        assert globs.matches(pattern, name, fold_case=True)

    def test_the_digits_of_an_escape_are_small_in_the_normal_form(self) -> None:
        assert globs.normalise(r"a\u000A") == r"a\u000a"

    @pytest.mark.parametrize("pattern", ["*", "a?", "[ab]", "{a,b}", "**", "src/"])
    def test_a_pattern_with_something_to_match_is_not_literal(self, pattern: str) -> None:
        assert not globs.is_literal(pattern)
        assert globs.literal_path(pattern) is None


class TestFoldedCase:
    @pytest.mark.parametrize(
        ("pattern", "path"),
        [
            ("README.md", "readme.MD"),
            ("SRC/*.PY", "src/a.py"),
            ("[A-C].py", "b.py"),
            ("[a-c].py", "B.py"),
            ("É*", "école"),
            ("[É]*", "école"),
            ("[À-Þ]*", "école"),
            ("σ", "ς"),
            ("K", "\u212a"),
            ("*.{PY,md}", "a.Md"),
        ],
    )
    def test_names_that_differ_by_case_alone_are_the_same(self, pattern: str, path: str) -> None:
        assert globs.matches(pattern, path, fold_case=True)
        assert globs.overlap(pattern, globs.escape(path), fold_case=True) is not None
        assert not globs.matches(pattern, path)

    @pytest.mark.parametrize(
        ("pattern", "path"),
        [("[!a].py", "A.py"), ("[!É]", "é"), ("straße", "strasse"), ("a", "b"), ("[a-c]", "D")],
    )
    def test_names_that_differ_by_more_are_not(self, pattern: str, path: str) -> None:
        assert not globs.matches(pattern, path, fold_case=True)
        assert globs.overlap(pattern, path, fold_case=True) is None

    def test_two_classes_meet_only_in_letters_that_stand_for_their_case(self) -> None:
        assert globs.overlap("[A]", "[!a]", fold_case=True) is None
        assert globs.overlap("[A]", "[!a]") == "A"
        assert globs.overlap("[!b-z]", "[A]", fold_case=True) == "a"

    @pytest.mark.slow
    @examples(150)
    @given(patterns, st.sampled_from(PATHS))
    def test_folding_both_sides_first_makes_no_difference(self, pattern: str, path: str) -> None:
        if _is_usable(pattern):
            expected = globs.matches(pattern, path)
            assert globs.matches(pattern.upper(), path, fold_case=True) == expected
            assert globs.matches(pattern, path.upper(), fold_case=True) == expected

    @pytest.mark.slow
    @examples(150)
    @given(patterns, patterns)
    def test_overlap_is_that_of_the_folded_patterns(self, one: str, other: str) -> None:
        if _is_usable(one) and _is_usable(other):
            found = globs.overlap(one.upper(), other, fold_case=True)
            assert (found is not None) == share_a_path(one, other)
            assert found is None or (covered(one, found) and covered(other, found))


def test_importing_the_engine_imports_nothing_heavy() -> None:
    program = "import sys; before = set(sys.modules); import queenbee.core.glob.pattern; "
    program += "print(*sorted(set(sys.modules) - before))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    new = run.stdout.split()
    assert "queenbee.core.glob.pattern" in new
    assert not {"dataclasses", "pathlib", "os", "datetime"} & set(new)


# The laws. Each takes the module under test, so that it can be shown to fail on a broken one.


def check_overlap_is_exact(
    profile: settings, texts: st.SearchStrategy[str] = usable_patterns
) -> None:
    @profile
    @given(texts, texts)
    @example("a/**/b", "a/b")
    @example("{a/b,c}", "c")
    @example("c", "{a/b,c}")
    @example("a", "[!a]")
    @example("*a", "*ab")
    @example("a", "?*?")
    @example("?aabab", "aa*a*ba*")
    def law(one: str, other: str) -> None:
        witness = globs.overlap(one, other)
        assert (witness is not None) == share_a_path(one, other)
        if witness is not None:
            assert covered(one, witness)
            assert covered(other, witness)
            assert globs.matches(one, witness)
            assert globs.matches(other, witness)
        assert globs.overlap(other, one) == witness

    law()


def check_enumerated_paths_are_seen(profile: settings) -> None:
    @profile
    @given(usable_patterns, usable_patterns)
    def law(one: str, other: str) -> None:
        shared = [path for path in PATHS if covered(one, path) and covered(other, path)]
        if shared:
            assert globs.overlap(one, other) is not None

    law()


def check_matching_agrees_with_the_reference(profile: settings) -> None:
    @profile
    @given(usable_patterns)
    def law(pattern: str) -> None:
        for path in PATHS:
            assert globs.matches(pattern, path) == covered(pattern, path)

    law()


@pytest.mark.slow
def test_overlap_is_exact() -> None:
    check_overlap_is_exact(examples(250))


@pytest.mark.slow
def test_overlap_is_exact_where_runs_have_to_be_placed() -> None:
    check_overlap_is_exact(examples(250), starry_patterns)


@pytest.mark.slow
def test_a_path_that_is_enumerated_and_covered_by_both_is_an_overlap() -> None:
    check_enumerated_paths_are_seen(examples(60))


@pytest.mark.slow
def test_matching_agrees_with_the_reference() -> None:
    check_matching_agrees_with_the_reference(examples(60))


_git_tokens = st.sampled_from(["a", "b", ".", "*", "?", "[ab]", "[a-b]", "[.b]"])
_git_names = (
    st.lists(_git_tokens, min_size=1, max_size=3)
    .map("".join)
    .filter(lambda name: usable(name) and "**" not in name)
)
git_patterns = (
    st.lists(st.one_of(_git_names, _git_names, st.just("**")), min_size=1, max_size=4)
    .map(lambda names: "/".join([*names[:-1], "?*" if names[-1] in ("*", "**") else names[-1]]))
    .filter(_is_usable)
)
"""Patterns that pathspec reads as we do: no braces, no negated class (it lets one take in a `/`),
no `**` at the end (which leaves the folder itself out) and no `*` there (which leaves out what
lies in the folders that it names)."""


def _git(pattern: str) -> PathSpec:
    return PathSpec.from_lines("gitignore", ["/" + pattern])


@pytest.mark.slow
@examples(60)
@given(git_patterns)
def test_git_ignores_covered_paths_and_their_contents(pattern: str) -> None:
    git = _git(pattern)
    for path in PATHS:
        names = path.split("/")
        folders = ["/".join(names[:depth]) for depth in range(1, len(names) + 1)]
        assert git.match_file(path) == any(globs.matches(pattern, each) for each in folders)


@pytest.mark.slow
@examples(300)
@given(git_patterns, git_patterns)
def test_git_ignores_every_witness_by_both_patterns(one: str, other: str) -> None:
    witness = globs.overlap(one, other)
    if witness is not None:
        assert _git(one).match_file(witness)
        assert _git(other).match_file(witness)
