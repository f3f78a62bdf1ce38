"""The table of mutants: each row finds its code and its tests, and breaks the code."""

from __future__ import annotations

import ast
import functools
import os
import textwrap
from collections.abc import Sequence

import pytest

from mutation import promises
from mutation.promises import NotOnce, Row

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = textwrap.dedent(
    '''\
    SQL = """SELECT a
    FROM b"""

    class Box:
        def grow(self, by):
            # Never more than this.
            if (by > 3
                    and by < 9):
                self.size += by
                self.note()
            return "grown"
    '''
)


def text_of(path: str) -> str:
    with open(os.path.join(REPOSITORY, path), encoding="utf-8") as file:
        return file.read()


@functools.cache
def tree_of(path: str) -> ast.Module:
    return ast.parse(text_of(path))


def row(old: str, new: str, *, function: str = "Box.grow", inside: str = "code") -> Row:
    return Row("box.py", function, old, new, ("tests/test_box.py::test_box",), "It grows.", inside)


class TestTheTable:
    def test_finds_the_code_of_each_row(self) -> None:
        for each in promises.rows():
            assert each.found_in(tree_of(each.module))
            assert each.new != each.old

    def test_names_tests_that_exist(self) -> None:
        named = {test for each in promises.rows() for test in each.tests}
        assert {test for test in named if not exists(test)} == set()

    def test_says_a_promise_in_each_row_and_has_none_twice(self) -> None:
        found = promises.rows()
        assert all(each.promise.endswith(".") and each.tests for each in found)
        assert len({(each.where, each.old, each.new) for each in found}) == len(found)

    def test_can_be_asked_for_some_packages(self) -> None:
        found = promises.rows(["hook"])
        assert found
        assert all(each.module.startswith("queenbee/hook/") for each in found)


def exists(test: str) -> bool:
    """Returns whether a node id, without parameters, names a test."""
    path, *names = test.split("::")
    if not os.path.exists(os.path.join(REPOSITORY, path)):
        return False
    body: Sequence[ast.AST] = tree_of(path).body
    for name in names:
        found = [each for each in body if getattr(each, "name", None) == name]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


class TestARow:
    @pytest.mark.parametrize(
        ("old", "new", "changed"),
        [
            ("by>3 and by<9", "True", "if True:"),
            ("by < 9", "by <= 9", "by <= 9"),
            ("self.size+=by\nself.note()", "pass", "pass"),
            ("self.note()", "pass", "pass"),
            ("return 'grown'", "return 'small'", "return 'small'"),
        ],
    )
    def test_finds_its_code_however_it_is_formatted(self, old: str, new: str, changed: str) -> None:
        assert changed in row(old, new).broken(SOURCE)

    def test_may_be_about_a_part_of_a_string(self) -> None:
        broken = row("SELECT a", "SELECT c", function="", inside="string").broken(SOURCE)
        assert "SELECT c\\nFROM b" in broken or "SELECT c\nFROM b" in broken

    @pytest.mark.parametrize(
        ("old", "function"),
        [("by", "Box.grow"), ("by > 4", "Box.grow"), ("by > 3", "Box.shrink"), ("by > 3", "Bag")],
        ids=["several times", "nowhere", "in another function", "in another class"],
    )
    def test_that_does_not_find_its_code_once_is_refused(self, old: str, function: str) -> None:
        with pytest.raises(NotOnce):
            row(old, "None", function=function).broken(SOURCE)
