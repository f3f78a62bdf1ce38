"""Elements: what is no element is text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_worlds import HOSTILE, Seen

from queenbee.core.text import printable
from queenbee.report.markup import element, joined, style, text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_text_is_text_in_an_element_and_in_an_attribute(hostile):
    shown = printable(hostile, keep_newlines=True)
    seen = Seen(element("p", hostile, title=hostile))
    assert seen.tags == [("p", {"title": printable(hostile)})]
    assert seen.text == shown
    assert seen.others == []


@given(st.text())
def test_any_text_is_one_element(any_text):
    seen = Seen(element("p", any_text, "-", title=any_text))
    assert [name for name, _ in seen.tags] == ["p"]
    assert seen.text == printable(any_text, keep_newlines=True) + "-"


def test_elements_stay_elements_and_none_is_left_out():
    both = joined("<", element("b", "x"), None, "&")
    assert both == "&lt;<b>x</b>&amp;"
    assert text(both) == both
    assert element("td", None, class_=None, hidden=True) == "<td hidden></td>"
    assert element("rect", x=1.25, view_box="0", aria_label="a") == (
        '<rect x="1.2" viewBox="0" aria-label="a"/>'
    )


@pytest.mark.parametrize(
    "attributes",
    [
        {"href": "javascript:alert(1)"},
        {"href": "https://example.com"},
        {"href": "//x"},
        {"src": "#x"},
        {"style": "color: red"},
        {"onclick": "x"},
    ],
)
def test_no_element_leads_out_of_the_page_or_runs_anything(attributes):
    with pytest.raises(ValueError, match="place in the page"):
        element("a", "x", **attributes)


def test_a_link_to_a_place_in_the_page_is_allowed():
    assert element("a", "x", href="#plan") == '<a href="#plan">x</a>'


def test_rules_of_style_cannot_end_their_element():
    with pytest.raises(ValueError, match="end their element"):
        style("a { } </style><script>")
