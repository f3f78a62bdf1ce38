"""The text of a pattern: its normal form, and where and why it is refused."""

from __future__ import annotations

import pytest
from glob_reference import PATHS, covered, examples, patterns
from hypothesis import assume, given
from hypothesis import strategies as st

from queenbee.core.glob import pattern as globs
from queenbee.core.glob.parse import MAX_CHARS, MAX_DEPTH, MAX_PATHS
from queenbee.errors import BadPattern

NORMAL_FORMS = [
    ("src/main.go", "src/main.go"),
    ("./src/main.go", "src/main.go"),
    ("src/./main.go", "src/main.go"),
    ("src//main.go", "src/main.go"),
    ("src/auth/", "src/auth/**"),
    ("src/auth//", "src/auth/**"),
    ("src/auth/.", "src/auth"),
    ("lib/../src/a.py", "src/a.py"),
    ("lib/*/../a.py", "lib/a.py"),
    ("{a,b}/../c", "c"),
    (".", "**"),
    ("./", "**"),
    ("src/..", "**"),
    ("**/**", "**"),
    ("a/**/**/**/b", "a/**/b"),
    ("a/**/", "a/**"),
    ("{a}", "a"),
    ("{{a}}.py", "a.py"),
    ("{a,a}", "a"),
    ("{a,{b,c}}", "{a,{b,c}}"),
    ("{*}{*}", "*"),
    ("{**}", "**"),
    ("a{,b}", "a{,b}"),
    ("a/{,b}/c", "{a/c,a/b/c}"),
    ("{.,src}/x", "{x,src/x}"),
    ("a/{b/,c}", "{a/b/**,a/c}"),
    ("x/{..,a}", "{**,x/a}"),
    ("{src/**,docs}/x", "{src/**,docs}/x"),
    (r"a\-b", "a-b"),
    (r"a\ b", "a b"),
    (r"\!a", r"\!a"),
    (r"a\!", "a!"),
    (r"{\!a}", r"\!a"),
    (r"a\,b", "a,b"),
    (r"{a\,b,c}", r"{a\,b,c}"),
    ("a]b", "a]b"),
    (r"app/\[id]/page.tsx", r"app/\[id]/page.tsx"),
    (r"app/\[id\]/page.tsx", r"app/\[id]/page.tsx"),
    ("[a]b", "ab"),
    ("[[]b", r"\[b"),
    ("[.]b", "[.]b"),
    ("[ba]", "[ab]"),
    ("[abc]", "[a-c]"),
    ("[^a]", "[!a]"),
    ("[a-cb-d]", "[a-d]"),
    ("[a-]", r"[\-a]"),
    ("[]a]", r"[\]a]"),
    ("[!]a]", r"[!\]a]"),
    (r"[\]\\]", r"[\\\]]"),
    ("[+-9]", "[+-.0-9]"),
]

REFUSALS = [
    ("", 1, "empty"),
    ("/src", 1, "absolute"),
    ("//", 1, "absolute"),
    ("!src", 1, "negated"),
    ("..", 1, "out of the repository"),
    ("a/../..", 6, "out of the repository"),
    ("a/../../b", 6, "out of the repository"),
    ("{a,..}/b", 4, "out of the repository"),
    ("a/**/../b", 6, "one folder"),
    ("a**b", 2, "whole segment"),
    ("src/**.ts", 5, "whole segment"),
    ("src/***", 5, "whole segment"),
    ("a{**,b}", 3, "whole segment"),
    ("{a/**,b}c", 4, "whole segment"),
    ("{a,b}**", 6, "whole segment"),
    ("src/[ab", 5, "never closed"),
    ("src/[", 5, "never closed"),
    ("[]", 1, "empty"),
    ("a[!]", 2, "empty"),
    ("[a/b]", 3, "never covers /"),
    (r"[a\/b]", 4, "never covers /"),
    ("[z-a]", 2, "reversed"),
    ("x[ab-a]", 4, "reversed"),
    ("[[:alpha:]]", 2, "named classes"),
    ("[a\\", 1, "never closed"),
    ("src/{a,b", 5, "never closed"),
    ("src/{a,{b}", 5, "never closed"),
    ("a}b", 2, "closes nothing"),
    ("a{}b", 2, "braces are empty"),
    ("{,}", 1, "braces are empty"),
    ("{,a}", 1, "makes the pattern empty"),
    ("{,a}/b", 1, "makes the pattern absolute"),
    ("src\\", 4, "escapes nothing"),
    (r"src\main.go", 4, "escapes nothing"),
    (r"src\/a", 4, "escapes nothing"),
    ("a\nb", 2, "U+000A"),
    (r"a\u0061", 2, r"\u does not stand for a control character"),
    (r"a\u0000", 2, r"\u does not stand for a control character"),
    (r"a\u00", 2, r"\u does not stand for a control character"),
    (r"a\u000g", 2, r"\u does not stand for a control character"),
    (r"a\u 00a", 2, r"\u does not stand for a control character"),
    ("a\0", 2, "U+0000"),
    ("a\x1b[0m", 2, "U+001B"),
    ("a\x7f", 2, "U+007F"),
    ("a\x85", 2, "U+0085"),
    ("a\udcff", 2, "U+DCFF"),
    ("a" * (MAX_CHARS + 1), MAX_CHARS + 1, "longer than 1,024"),
    ("a" * (MAX_CHARS - 1) + "/", 1, "normal form is longer than 1,024"),
    ("{" * (MAX_DEPTH + 1) + "a", MAX_DEPTH + 1, "nested deeper"),
    ("{a/b,c}" * 7, 43, "too many paths"),
    ("x/{" + ",".join(f"{n}/a" for n in range(MAX_PATHS + 1)) + "}", 3, "too many paths"),
    ("[.]", 1, "covers no path"),
    ("a/[.][.]/b", 1, "covers no path"),
]


@pytest.mark.parametrize(("text", "normal"), NORMAL_FORMS)
def test_the_normal_form_is(text: str, normal: str) -> None:
    assert globs.normalise(text) == normal
    assert globs.normalise(normal) == normal


@pytest.mark.parametrize(("text", "column", "reason"), REFUSALS)
def test_a_refusal_names_the_column_and_the_reason(text: str, column: int, reason: str) -> None:
    with pytest.raises(BadPattern) as refused:
        globs.normalise(text)
    assert (refused.value.column, reason in str(refused.value.reason)) == (column, True)


def test_a_refusal_of_a_long_pattern_is_short() -> None:
    with pytest.raises(BadPattern) as refused:
        globs.normalise("a" * 100_000)
    assert len(refused.value.message) < 200


def test_a_pattern_of_the_greatest_length_is_taken() -> None:
    assert globs.normalise("a" * MAX_CHARS) == "a" * MAX_CHARS
    assert globs.normalise("*" + "a" * (MAX_CHARS - 1)) == "*" + "a" * (MAX_CHARS - 1)


def test_braces_are_nested_as_deep_as_is_allowed() -> None:
    deep = "{" * MAX_DEPTH + "a,b" + "}" * MAX_DEPTH
    assert globs.normalise(deep) == "{a,b}"


def test_a_normal_form_that_nests_deeper_than_is_allowed_is_refused() -> None:
    deep = "{a," * MAX_DEPTH + "b" + "}" * MAX_DEPTH
    assert globs.normalise(deep) == deep
    with pytest.raises(BadPattern, match="nested deeper"):
        globs.normalise("{./a,b/c}" + deep)


@pytest.mark.parametrize(
    "hinted", ["src/**.ts", "a[", "a{", "a}", "[]", "/src", "!a", "", "[[:alpha:]]", r"a\b"]
)
def test_a_refusal_that_a_user_meets_has_a_hint(hinted: str) -> None:
    with pytest.raises(BadPattern) as refused:
        globs.normalise(hinted)
    assert refused.value.hint


@pytest.mark.slow
@examples(200)
@given(patterns)
def test_the_normal_form_is_its_own_normal_form(text: str) -> None:
    try:
        normal = globs.normalise(text)
    except BadPattern:
        assume(False)
    assert globs.normalise(normal) == normal


_prefixes = st.lists(st.sampled_from(["./", "b/../", ".//", "*/../"]), max_size=2).map("".join)


@pytest.mark.slow
@examples(40)
@given(_prefixes, patterns, st.sampled_from(["", "/", "/."]))
def test_the_normal_form_covers_the_same_paths(before: str, text: str, after: str) -> None:
    text = before + text + after
    try:
        normal = globs.normalise(text)
    except BadPattern:
        assume(False)
    assert [path for path in PATHS if covered(normal, path)] == [
        path for path in PATHS if covered(text, path)
    ]


_SYNTAX = [*"ab.*?[]{}!^-,\\/é\n", r"\u000a", r"\u", r"\udce9"]


def check_any_text_has_a_normal_form_or_is_refused(text: str) -> None:
    try:
        normal = globs.normalise(text)
    except BadPattern as refused:
        assert 1 <= int(str(refused.column)) <= len(text) + 1
        assert refused.reason
        return
    assert globs.normalise(normal) == normal
    globs.overlap(text, "a*/**")
    globs.matches(text, "a/b")


@examples(400)
@given(st.lists(st.sampled_from(_SYNTAX), max_size=24).map("".join))
def test_any_text_of_syntax_has_a_normal_form_or_is_refused(text: str) -> None:
    check_any_text_has_a_normal_form_or_is_refused(text)


@pytest.mark.slow
@examples(200)
@given(st.text(max_size=40))
def test_any_text_at_all_has_a_normal_form_or_is_refused(text: str) -> None:
    check_any_text_has_a_normal_form_or_is_refused(text)


@examples(200)
@given(st.text(alphabet="ab.*?!/,]- ", min_size=1, max_size=12))
def test_a_simple_pattern_means_what_the_whole_parser_reads(text: str) -> None:
    # A dot segment changes nothing, but needs the whole parser.
    whole = "./" + text
    try:
        normal = globs.normalise(text)
    except BadPattern:
        assume(False)
    assert globs.normalise(whole) == normal
    covering = [[path for path in PATHS if globs.matches(each, path)] for each in (text, whole)]
    assert covering[0] == covering[1]
