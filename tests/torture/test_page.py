"""The page of promises names tests that exist."""

from __future__ import annotations

import ast
import os
import re

import pytest

from tests.torture import TESTS

ROOT = os.path.dirname(TESTS)
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::([\w:]+))?`")


def named():
    with open(os.path.join(ROOT, "docs", "reliability.md"), encoding="utf-8") as page:
        return sorted(set(NAMED.findall(page.read())))


def names_in(path):
    """Returns the tests and classes of tests in a file, as pytest names them."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
            found.update(f"{node.name}::{x.name}" for x in node.body if hasattr(x, "name"))
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return found


@pytest.mark.parametrize(("path", "name"), named(), ids=lambda part: part.replace("::", " "))
def test_a_test_that_holds_a_promise_exists(path, name):
    assert not name or name in names_in(path)


def test_each_promise_names_its_tests():
    with open(os.path.join(ROOT, "docs", "reliability.md"), encoding="utf-8") as page:
        sections = re.split(r"^## (?=\d)", page.read(), flags=re.M)[1:]
    assert len(sections) == 10
    assert all(NAMED.search(section) for section in sections)
