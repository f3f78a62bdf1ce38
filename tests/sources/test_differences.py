"""The page of differences is the one that the tests of the documents make."""

from __future__ import annotations

import pytest

from sources.differences import DOCUMENTS, HERE, PAGE, page, read


def test_the_page_says_what_the_tests_say() -> None:
    again = "python tests/sources/differences.py"
    assert PAGE.read_text(encoding="utf-8") == page(), f"write it again: {again}"


def test_every_document_is_on_it() -> None:
    modules = {path.name for path in HERE.glob("test_*.py")} - {"test_differences.py"}
    assert modules == set(DOCUMENTS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_heading_has_a_test_and_each_is_there_once(name: str) -> None:
    title, headings = read(HERE / name)
    assert title and all(each.text and each.tests for each in headings)
    texts = [each.text for each in headings]
    # Two sections of the records have headings "Messages", and of two documents "Field Reference".
    assert len(texts) == len(set(texts))
