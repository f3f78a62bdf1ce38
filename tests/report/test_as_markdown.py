"""The report as Markdown: read by an independent parser, others' texts are only code in it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_worlds import HOSTILE, report_of

from queenbee.core.text import printable
from queenbee.report import as_markdown as module
from queenbee.report.as_markdown import code, markdown

READER = MarkdownIt("commonmark", {"linkify": False}).enable(["table", "strikethrough"])
BLOCKS = {
    *("html_block", "heading_open", "heading_close", "inline", "paragraph_open"),
    *("paragraph_close", "table_open", "table_close", "thead_open", "thead_close", "tr_open"),
    *("tr_close", "th_open", "th_close", "td_open", "td_close", "tbody_open", "tbody_close"),
}
INLINE = {"text", "code_inline", "strong_open", "strong_close"}


def plain(text: str) -> str:
    return " ".join(printable(" ".join(text.split())).split())


def cells(source: str) -> list[list[tuple[str, str]]]:
    """Returns the cells of the rows of a table: the type and content of what is in each."""
    tokens = READER.parse(source)
    return [
        [(each.type, each.content) for each in token.children or ()]
        for opening, token in pairwise(tokens)
        if opening.type == "td_open"
    ]


@given(st.text(max_size=79))
@example("a\\|b")
@example("|")
@example("\\")
@example("``")
@example("` `")
@example("` a")
@example("@team")
def test_any_text_is_one_code_span_in_a_cell(text):
    source = f"| a | b | c |\n| --- | --- | --- |\n| x | {code(text)} | y |\n"
    expected = plain(text)
    if not expected:
        assert code(text) == ""
    elif len(expected) <= 80:
        assert cells(source) == [
            [("text", "x")],
            [("code_inline", expected)],
            [("text", "y")],
        ]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_becomes_markup(hostile):
    tokens = READER.parse(markdown(report_of(hostile)))
    assert {token.type for token in tokens} <= BLOCKS
    assert [token.content for token in tokens if token.type == "html_block"] == [f"{module.MARK}\n"]
    inline = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inline} <= INLINE
    shown = plain(hostile)[:60]
    assert all(shown not in child.content for child in inline if child.type == "text" and shown)


def test_a_comment_takes_it_however_much_there_is():
    rows = report_of("`" * 79).gates * 500
    many = report_of("w" * 300, gates=rows, threads=report_of("v" * 300).threads * 500)
    text = markdown(many)
    assert len(text) <= 60_000
    assert "480 more" in text


def test_sections_for_which_there_is_no_room_are_named(monkeypatch):
    monkeypatch.setattr(module, "_MOST_CHARS", 1_200)
    text = markdown(report_of("x"))
    assert len(text) <= 1_300
    assert "Left out for want of room:" in text
