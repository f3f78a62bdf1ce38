"""Others' text: nothing in it moves a cursor, hides, breaks a line or leaves its shell word."""

from __future__ import annotations

import shlex
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from queenbee.core.text import (
    JOINERS,
    bracketed,
    escaped,
    mentioned,
    named,
    one_line,
    printable,
    quotation,
    shell_quoted,
    shell_word,
    shortened,
    suggested,
)

HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
ANY_TEXT = st.text(st.characters())


def test_emoji_that_are_made_of_several_are_left_whole() -> None:
    for text in ("👩‍💻", "🏳️‍🌈", "é", "日本語", "naïve café"):
        assert printable(text) == text


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        ("\x1b", "\\x1b"),
        ("\x9b", "\\x9b"),
        ("\u202e", "\\u202e"),
        ("\u2028", "\\u2028"),
        ("\ue000", "\\ue000"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("\n", "⏎"),
        ("\t", " "),
    ],
)
def test_what_a_terminal_would_obey_is_spelled_out(char: str, shown: str) -> None:
    assert printable(f"a{char}b") == f"a{shown}b"


def test_every_hidden_character_of_unicode_is_spelled_out_and_no_other() -> None:
    for code in (*range(0x3000), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0200)):
        char = chr(code)
        hidden = unicodedata.category(char) in HIDDEN or char in IGNORED or char == "\u2800"
        assert (printable(char) != char) == (hidden and char not in JOINERS), hex(code)


# Default_Ignorable_Code_Point, from DerivedCoreProperties-17.0.0.txt.
IGNORABLE = (
    "00AD 034F 061C 115F..1160 17B4..17B5 180B..180F 200B..200F 202A..202E 2060..206F 3164 "
    "FE00..FE0F FEFF FFA0 FFF0..FFF8 1BCA0..1BCA3 1D173..1D17A E0000..E0FFF"
)


IGNORED = frozenset(
    chr(code)
    for low, _, high in (each.partition("..") for each in IGNORABLE.split())
    for code in range(int(low, 16), int(high or low, 16) + 1)
)


def test_what_unicode_says_is_ignorable_is_shown() -> None:
    """By its data, also what Python takes for printable; and signs that look like a space."""
    blank = ["\u2800", "\U0001d159", "\U00016fe4"]
    for char in {*blank, *IGNORED} - JOINERS:
        for shown in (printable(f"a{char}b"), one_line(f"a{char}b"), escaped(f"a{char}b")):
            assert char not in shown, hex(ord(char))


def test_the_copy_of_unicode_data_is_right() -> None:
    regex = pytest.importorskip("regex")
    said = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    assert set(said.findall("".join(map(chr, range(0x110000))))) == IGNORED


def test_lines_stay_apart_where_they_are_wanted() -> None:
    assert printable("a\tb\nc\x1b", keep_newlines=True) == "a    b\nc\\x1b"


@given(ANY_TEXT)
def test_an_escaped_text_is_printable_and_says_which_characters_it_had(text: str) -> None:
    assert escaped(text).isprintable()
    if "\\" not in text:
        assert escaped(text).encode("latin-1", "backslashreplace").decode("unicode_escape") == text


@given(ANY_TEXT, st.integers(2, 20))
def test_one_line_is_printable_and_no_longer_than_it_may_be(text: str, most: int) -> None:
    line = one_line(text, most)
    assert line.isprintable()
    assert len(line) <= most
    assert len(one_line(text)) == len(text)


def test_a_text_that_is_too_long_is_cut_with_a_mark() -> None:
    assert shortened("x" * 60) == "x" * 60
    assert shortened("x" * 61) == "x" * 59 + "…"


@given(st.text(st.characters(exclude_characters="\0")))
def test_a_quoted_text_is_one_word_of_a_shell_command(text: str) -> None:
    for quoted in (shell_quoted(text), shell_word(text)):
        assert shlex.split(f"echo {quoted} end") == ["echo", text, "end"]


def test_only_what_needs_quotes_gets_them() -> None:
    assert shell_word("src/app-1_2.py@x+y") == "src/app-1_2.py@x+y"
    assert [shell_word(text) for text in ("", "a b", "$(rm)", "it's", "*")] == [
        "''", "'a b'", "'$(rm)'", "'it'\\''s'", "'*'",
    ]  # fmt: skip


# Suggested commands and sentences


def argued(make: object, words: list[str], issue: str) -> None:
    """Asserts that each word and each value of a suggested command is one argument of its own."""
    assert callable(make)
    given = shlex.split(make("queen x", *words, issue=issue, as_=None, no_verify=True))
    assert given[:2] == ["queen", "x"]
    dashed = any(word.startswith("-") for word in words)
    value = [f"--issue={issue}"] if issue.startswith("-") else ["--issue", issue]
    flags = [*value, "--no-verify"]
    assert given[2:] == ([*flags, "--", *words] if dashed else [*words, *flags])


@example(["a; b"], "c d")
@example(["-a"], "-b")
@given(st.lists(ANY_TEXT, max_size=3), ANY_TEXT)
def test_each_word_of_a_suggested_command_stays_one_argument(words: list[str], issue: str) -> None:
    argued(suggested, words, issue)


def test_plain_words_are_suggested_without_quotes() -> None:
    assert suggested("queen msg send", "bob", "BODY", issue="qb-1", as_="ui") == (
        "queen msg send bob BODY --issue qb-1 --as ui"
    )


@given(ANY_TEXT)
def test_a_quotation_ends_where_its_quotes_end(text: str) -> None:
    inside = quotation(text)
    assert (inside[0], inside[-1]) == ("“", "”")
    assert "“" not in inside[1:-1]
    assert "”" not in inside[1:-1]


def test_names_and_phrases_are_quoted_only_if_they_could_end_what_they_are_in() -> None:
    assert mentioned("src/**/{a,b}.py") == "src/**/{a,b}.py"
    assert mentioned("rev; touch x") == "“rev; touch x”"
    assert mentioned("rev, 0s left") == "“rev, 0s left”"
    assert mentioned("") == "“”"
    assert bracketed("splitting the module, a bit") == "(splitting the module, a bit)"
    assert bracketed("x), 0s left. Run: y (") == "(“x), 0s left. Run: y (”)"


def test_names_that_are_cut_say_how_many_there_are_more() -> None:
    assert named(["a", "b c"]) == "a, “b c”"
    assert named(["a", "b", "c"], 2) == "a, b and 1 more"
