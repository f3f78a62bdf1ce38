"""The page: what is in it, and that others' texts are only text in it."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from report_worlds import HOSTILE, Seen, report_of

from queenbee.core.text import printable
from queenbee.report import caps
from queenbee.report.page import page
from queenbee.report.values import Graph, IssueLine

ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "nav"),
    *("section", "h1", "h2", "h3", "p", "ul", "li", "a", "b", "span", "div", "pre"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary"),
    *("svg", "g", "rect", "path", "line", "text"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "role", "scope"),
    *("tabindex", "aria-label", "width", "height", "viewbox", "x", "y", "x1", "x2", "y1", "y2"),
    *("d", "rx"),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_becomes_an_element(hostile):
    seen = Seen(page(report_of(hostile)))
    assert {name for name, _ in seen.tags} <= ELEMENTS
    assert {key for _, attributes in seen.tags for key in attributes} <= ATTRIBUTES
    assert all(
        attributes["href"].startswith("#") for _, attributes in seen.tags if "href" in attributes
    )
    assert printable(hostile)[: caps.TEXT - 1].strip() in seen.text
    assert "\x1b" not in seen.text and "\u202e" not in seen.text


def test_the_page_loads_nothing_and_runs_nothing():
    source = page(report_of("x"))
    assert not re.search(r"<script|<link|<img|@import|url\(|https?:", source)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', source)
    assert policy is not None
    rules = re.search(r"<style>(.*)</style>", source, re.DOTALL)
    assert rules is not None
    digest = base64.b64encode(hashlib.sha256(rules[1].encode()).digest()).decode()
    assert policy[1].replace("&#x27;", "'") == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def test_each_section_has_a_link_that_leads_to_it():
    seen = Seen(page(report_of("x")))
    links = [attributes["href"] for name, attributes in seen.tags if name == "a"]
    places = {f"#{attributes['id']}" for _, attributes in seen.tags if "id" in attributes}
    assert set(links) == places
    assert len(places) == 7


def test_an_empty_report_says_so_in_each_section():
    empty = report_of(
        "x",
        phases=[],
        open=[],
        graph=Graph({}, {}, 0, 0),
        bars=[],
        waits=[],
        usual_wait_s=None,
        waiting=[],
        met=[],
        avoided=[],
        foreseen=[],
        gates=[],
        checks=[],
        threads=[],
        left_out=[],
    )
    said = Seen(page(empty)).text
    for words in (
        "No issue waits for another.",
        "Nobody had an issue or a lease.",
        "No waiting times are known.",
        "None were met, and none are foreseen; no files were handed over.",
        "No beads or gates have been checked",
        "No messages.",
    ):
        assert words in said


def test_a_graph_that_is_too_large_is_a_table():
    waits = [IssueLine("qb-2", "two", "waits", None, ["qb-1"], None)]
    said = Seen(page(report_of("x", graph=Graph({}, {}, 0, 500, waits)))).text
    assert "too many issues to draw" in said
    assert "qb-2" in said


def test_what_is_left_out_is_said():
    assert "400 of 9,000 leases" in Seen(page(report_of("400 of 9,000 leases"))).text
