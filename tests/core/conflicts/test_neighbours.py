"""Additions at one place: both are kept where each is whole, and left where they may be one."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from queenbee.core.conflicts.markers import Conflict
from queenbee.core.conflicts.neighbours import definitions, entries, sections

ONE = "def ant(n):\n    total = count(n)\n    return total + 1\n\n\n"
TWO = "def bee(text):\n    found = text.upper()\n    print(found)\n\n\n"
LAST = "def last():\n    pass\n"


def lines(text: str) -> list[bytes]:
    return text.encode().splitlines(keepends=True)


def conflict(main: str, branch: str, before: str = "", after: str = "", base: str = "") -> Conflict:
    sides = [lines(each) for each in (main, base, branch)]
    return Conflict(*sides, before=lines(before), after=lines(after))


def text(joined: list[bytes] | None) -> str | None:
    return None if joined is None else b"".join(joined).decode()


class TestDefinitions:
    def test_are_both_kept_in_the_order_of_landing(self) -> None:
        assert text(definitions(conflict(ONE, TWO, after=LAST))) == ONE + TWO

    def test_at_the_end_of_a_file_have_blank_lines_between_them(self) -> None:
        one, two = (f"\n\n{each.rstrip()}\n" for each in (ONE, TWO))
        assert text(definitions(conflict(one, two, before="x = 1\n"))) == one + two
        one, two = (each.rstrip() + "\n" for each in (ONE, TWO))
        assert text(definitions(conflict(one, two, before="x = 1\n\n\n"))) == f"{one}\n\n{two}"

    @pytest.mark.parametrize(
        ("one", "two"),
        [
            ("@slow\ndef ant():\n    one()\n", "@slow\ndef bee():\n    two()\n"),
            ("// One\nfunc Ant() {\n\tone()\n}\n", "// Two\nfunc Bee() {\n\ttwo()\n}\n"),
            ("  it('eats', () => {\n    a()\n  })\n", "  it('runs', () => {\n    b()\n  })\n"),
            ("pub fn ant() {\n    one();\n}\n", "pub fn bee() {\n    two();\n}\n"),
            ("class Ant:\n    legs = 6\n", "class Bee:\n    wings = 4\n"),
            ("def ant\n  one\nend\n", "def bee\n  two\nend\n"),
        ],
    )
    def test_of_many_languages_with_what_stands_above_them(self, one: str, two: str) -> None:
        assert text(definitions(conflict(f"{one}\n", f"{two}\n"))) == f"{one}\n{two}\n"

    def test_keep_what_git_takes_for_the_lines_of_the_next(self) -> None:
        """An addition ends as the lines before it do, so git shows it further down."""
        whole = "@slow\ndef {}():\n    {}()\n\n\n"
        rotated = [
            each.removeprefix("@slow\n") + "@slow\n"
            for each in (whole.format("ant", "one"), whole.format("bee", "two"))
        ]
        after = "def last():\n    pass\n"
        found = text(definitions(conflict(*rotated, before="import x\n\n\n@slow\n", after=after)))
        assert f"@slow\n{found}{after}" == (
            whole.format("ant", "one") + whole.format("bee", "two") + "@slow\n" + after
        )

    def test_that_are_further_in_come_first(self) -> None:
        """Else a method would get into the class that the other side added."""
        method = "    def fly(self):\n        self.up()\n\n\n"
        added = "class Ant:\n    legs = 6\n\n\n"
        for sides in ((method, added), (added, method)):
            found = text(definitions(conflict(*sides, before="class Bee:\n", after=LAST)))
            assert found == method + added

    @pytest.mark.parametrize(
        ("main", "branch", "before", "after"),
        [
            (ONE, "def ant(other):\n    print(other)\n\n\n", "", ""),
            (ONE, f"{TWO}def ant(n):\n    return n + 1\n\n\n", "", ""),
            (ONE, f"{TWO}{TWO}", "", ""),
            (ONE, "x = open(\n", "", ""),
            (ONE, "print('a statement')\n", "", ""),
            (ONE, f"{TWO}x = 1\n", "", ""),
            (ONE, "    def bee(text):\n        return text.upper()\n\n", "", "    more()\n"),
            (ONE, "@skip\n", "", ""),
            (ONE, f"{TWO}@skip\n", "", ""),
            (ONE, TWO, "", "    more()\n"),
            (ONE, TWO, "@skip\n", LAST),
            (ONE, TWO, "", "def bee():\n    pass\n"),
            ("    total += 1\n", "    count -= 1\n", "", ""),
            (ONE, TWO.replace("upper()\n", 'upper("""\n'), "", ""),
        ],
        ids=[
            "the same name",
            "the same name, among others",
            "twice on one side",
            "not whole",
            "a statement",
            "a definition and a statement",
            "a body that goes on",
            "a decorator of what follows",
            "a definition and a decorator of what follows",
            "a body that goes on, at the top",
            "a decorator before it",
            "a name that the file has",
            "no definition",
            "a text that goes on",
        ],
    )
    def test_that_may_belong_together_or_to_others_are_left(
        self, main: str, branch: str, before: str, after: str
    ) -> None:
        assert definitions(conflict(main, branch, before, after)) is None

    def test_with_half_their_words_in_common_are_left(self) -> None:
        one = "def first_price(order):\n    return tax(order) + order.total\n"
        two = "def second_price(order):\n    return tax(order) - order.total\n"
        assert definitions(conflict(one, two)) is None

    def test_that_were_changed_are_left(self) -> None:
        assert definitions(conflict(ONE, TWO, base="def old():\n    pass\n")) is None


class TestSections:
    def test_are_both_kept(self) -> None:
        one, two = "## Ants\n\nThey walk.\n\n", "## Bees\n\nHoney, says who likes it.\n\n"
        assert text(sections(conflict(one, two, after="## End\n"))) == one + two
        one, two = "Ants\n----\n\nThey walk.\n\n", "Bees\n----\n\nHoney, says who likes it.\n\n"
        assert text(sections(conflict(one, two, after="End\n---\n"))) == one + two

    def test_of_one_heading_or_without_any_are_left(self) -> None:
        one = "## Ants\n\nThey walk.\n\n"
        assert sections(conflict(one, "## Ants\n\nSix legs each.\n\n")) is None
        assert sections(conflict(one, "Honey, says who likes it.\n\n")) is None
        assert sections(conflict(one, "Honey.\n\n## Bees\n")) is None


class TestEntries:
    @pytest.mark.parametrize(
        ("one", "two", "before", "after"),
        [
            ("- ants walk\n", "- bees fly\n  far away\n", "## Animals\n\n", ""),
            ("  - lint\n", "  - docs\n", "jobs:\n", ""),
            ('    "ant": 6,\n', "    'bee': fly(4),\n", "LEGS = {\n", "}\n"),
            ("    ANT = 1\n", "    BEE = 2\n", "class Animal(IntEnum):\n", ""),
            ("    ANT = auto()\n", "    BEE = auto()\n", "class Animal(Enum):\n    X = 1\n", ""),
        ],
    )
    def test_are_both_kept_one_below_the_other(
        self, one: str, two: str, before: str, after: str
    ) -> None:
        assert text(entries(conflict(one, two, before, after))) == one + two

    @pytest.mark.parametrize(
        ("one", "two", "before", "after"),
        [
            ("- ants walk\n", "- ants walk\n", "", ""),
            ("- ants walk a lot\n", "- ants walk\n", "", ""),
            ("- ants walk\n", "Bees fly\n", "", ""),
            ("- ants walk\n", "  - bees fly\n- so they do\n", "", ""),
            ('    "ant": 6,\n', "    'ant': 4,\n", "LEGS = {\n", "}\n"),
            ("    ant=6,\n", "    bee=4,\n", "count(\n", ")\n"),
            ('    "ant": [\n', '    "bee": [\n', "LEGS = {\n", "    1]\n}\n"),
            ("    ANT = 3\n", "    BEE = 3\n", "class Animal(IntEnum):\n", ""),
            ("    ANT = 1\n", "    BEE = 2\n", "class Animal:\n", ""),
        ],
        ids=[
            *("the same", "alike", "a text", "another depth", "one key", "arguments", "not whole"),
            *("one value", "attributes"),
        ],
    )
    def test_that_may_be_one_or_are_something_else_are_left(
        self, one: str, two: str, before: str, after: str
    ) -> None:
        assert entries(conflict(one, two, before, after)) is None


WORDS = st.lists(st.text("abcdefghij", min_size=4, max_size=8), min_size=2, max_size=4, unique=True)
LAYOUT = st.sampled_from(["{}\n\n\n", "\n\n{}\n", "{}\n"])


def defined(words: list[str], depth: int) -> str:
    name, *body = words
    indent = "    " * depth
    rest = "\n".join(f"{indent}    {each}({each!r})" for each in body)
    return f"{indent}def {name}_{depth}():\n{rest}"


@given(WORDS, WORDS, LAYOUT, st.integers(0, 1), st.integers(0, 1))
@settings(max_examples=examples(300))
def test_of_definitions_nothing_is_lost_and_what_comes_out_is_read_as_both(
    one: list[str], two: list[str], layout: str, depth: int, other: int
) -> None:
    main, branch = layout.format(defined(one, depth)), layout.format(defined(two, other))
    before, after = "class First:\n    x = 1\n\n", "\n\nclass Last:\n    y = 1\n"
    found = definitions(conflict(main, branch, before, after))
    if found is None:
        return
    whole = before + b"".join(found).decode() + after
    names = [
        [node.name for node in ast.walk(ast.parse(each)) if isinstance(node, ast.FunctionDef)]
        for each in (before + main + after, before + branch + after, whole)
    ]
    assert Counter(names[2]) == Counter(names[0]) + Counter(names[1])
    said = [Counter(each for each in lines(part) if each.strip()) for part in (main, branch)]
    assert Counter(each for each in found if each.strip()) == said[0] + said[1]
    classes = {each.name: each for each in ast.parse(whole).body if isinstance(each, ast.ClassDef)}
    inner = {each.name for each in classes["First"].body if isinstance(each, ast.FunctionDef)}
    assert inner == {f"{words[0]}_1" for words, level in ((one, depth), (two, other)) if level == 1}
