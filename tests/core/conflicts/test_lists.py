"""Lists of names: joined whatever their wrapping, sorted where they were, and no name twice."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from queenbee.core.conflicts.lists import are_alike, in_turn, read
from queenbee.core.conflicts.markers import Conflict
from queenbee.core.conflicts.rules import listed_names


def lines(text: str) -> list[bytes]:
    return text.encode().splitlines(keepends=True)


def joined(main: str, base: str, branch: str, before: str = "", after: str = "") -> str | None:
    sides = [lines(each) for each in (main, base, branch)]
    found = listed_names(Conflict(*sides, before=lines(before), after=lines(after)))
    return None if found is None else b"".join(found).decode()


class TestAListOnLinesOfItsOwn:
    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            ('x = [\n    "a",\n', '    "d",\n]\n', '    "b",\n    "c",\n'),
            ('x = [\n    "z",\n    "a",\n', "]\n", '    "c",\n    "b",\n'),
            ("x = {\n", "}\n", '    "c",\n    "b",\n'),
            ('x = [\n    # first\n    "a",\n', '    "d",\n]\n', '    "b",\n    "c",\n'),
            ("__all__ += [  # public\n", "]\n", '    "c",\n    "b",\n'),
        ],
    )
    def test_gets_the_names_of_both_in_its_order_or_that_of_landing(
        self, before: str, after: str, expected: str
    ) -> None:
        assert joined('    "c",\n', "", '    "b",\n', before, after) == expected

    @pytest.mark.parametrize("before", ['f(\n    "a",\n', '    "a"\n', "import (\n", "x\n", ""])
    def test_is_none_in_a_call_without_commas_or_where_it_begins_is_not_seen(
        self, before: str
    ) -> None:
        assert joined('    "b",\n', "", '    "c",\n', before, "    'd',\n)\n") is None

    def test_may_end_without_a_comma(self) -> None:
        found = joined('  "a",\n  "b"\n', '  "a"\n', '  "a",\n  "c"\n', '"x": [\n', "]\n")
        assert found == '  "a",\n  "b",\n  "c"\n'
        assert joined('  "b"\n', "", '  "c"\n', '"x": [\n', '  "d"\n]\n') is None

    def test_keeps_comments_with_their_names(self) -> None:
        found = joined("    c,  # three\n", "", "    b,  # two\n", "x = [\n    a,\n", "    d,\n]\n")
        assert found == "    b,  # two\n    c,  # three\n"

    def test_gets_no_name_that_it_has_elsewhere(self) -> None:
        assert joined("    a,\n", "", "    b,\n", "x = [\n    a,\n", "]\n") is None


class TestAListThatOneSideWrappedAgain:
    WRAPPED = "from x import (\n    a,\n    b,\n    c,\n)\n"

    def test_stays_wrapped_and_gets_the_name_of_the_other(self) -> None:
        wanted = "from x import (\n    a,\n    b,\n    c,\n    d,\n)\n"
        sides = (self.WRAPPED, "from x import a, c\n", "from x import a, c, d\n")
        assert joined(*sides) == wanted
        assert joined(*sides[::-1]) == wanted

    def test_is_filled_where_it_was_filled(self) -> None:
        before = "from x import (\n    A,\n"
        found = joined(
            "    a, b, c,\n    d)\n", "    a, b, d)\n", "    a, b,\n    bb, d, e)\n", before
        )
        assert found == "    a, b, bb, c, d, e)\n"

    def test_keeps_the_length_that_its_lines_have(self) -> None:
        begun = "__all__ = (\n"
        three = ["    aaaa, bbbb,\n", "    cccc, dddd,\n", "    eeee, ffff"]
        texts = ("".join(three) + more for more in (")\n", ", gggg)\n", ", hhhh)\n"))
        base, main, branch = texts
        found = joined(main, base, branch, begun)
        assert found is not None
        assert max(map(len, found.splitlines())) <= len("    eeee, ffff, gggg)")

    def test_is_wrapped_where_a_line_gets_too_long(self) -> None:
        one, two, three = (letter * 30 for letter in "abc")
        base = f"from x import {one}, {two}\n"
        found = joined(base.replace("\n", f", {three}\n"), base, base.replace("\n", ", d\n"))
        assert found == f"from x import (\n    {one},\n    {two},\n    {three},\n    d,\n)\n"
        noted = base.replace("\n", "  # noqa\n")
        sides = [noted.replace("  #", f", {each}  #") for each in (three, "d")]
        assert joined(sides[0], noted, sides[1]) == noted.replace("  #", f", {three}, d  #")

    def test_is_sorted_if_the_one_who_wrapped_it_sorted_it(self) -> None:
        wanted = "x = [\n    a,\n    b,\n    c,\n    d,\n]\n"
        assert joined("x = [c, a, d]\n", "x = [c, a]\n", wanted.replace("    d,\n", "")) == wanted


@pytest.mark.parametrize(
    ("main", "base", "branch"),
    [
        ("x = [a]\n", "x = [a, b]\n", "x = [a, b, c]\n"),
        ("from x import b\n", "from x import a\n", "from x import c\n"),
        ("from x import a, view\n", "from x import a\n", "from x import a, views\n"),
        ("x = [a, a, b]\n", "x = [a]\n", "x = [a, c]\n"),
        ("x = [a, b]\n", "x = [a]\n", "y = [a, c]\n"),
        ("f([a, b])\n", "f([a])\n", "f([a, c])\n"),
        ('["a", "b"]\n', '["a"]\n', '["a", "c"]\n'),
    ],
    ids=["removed", "replaced", "alike", "twice", "another list", "an argument", "no name"],
)
def test_what_is_not_one_list_to_which_both_added_is_left(
    main: str, base: str, branch: str
) -> None:
    assert joined(main, base, branch) is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("sleep", "_sleep", True),
        ("view", "views", True),
        ("Type", "TypedDict", True),
        ("chunk", "chunk_while", False),
        ("parse", "parseAll", False),
        ("'a'", '"b"', False),
    ],
)
def test_two_names_may_be_tries_at_one(one: str, other: str, expected: bool) -> None:
    assert are_alike([one.encode()], [other.encode()]) is expected
    assert are_alike([other.encode()], [one.encode()]) is expected


ENDS = [" " * 20_000, "\n" * 20_000, "a, " * 20_000, "a,\n" * 20_000, '"' * 20_000, "= " * 20_000]


@pytest.mark.parametrize("text", [*ENDS, *(f"from x import (a{each}!" for each in ENDS)])
def test_no_text_keeps_it_busy(text: str) -> None:
    begun_s = time.process_time()
    joined(text + "b\n", text, text + "c\n", before=text, after=text)
    assert time.process_time() - begun_s < 5


NAMES = st.lists(
    st.sampled_from([f"{a}{b}" for a in "kqxz" for b in "0123456789"]), unique=True, max_size=8
)


def written(names: list[str], wrapping: str) -> str:
    """A list, wrapped in one of three ways."""
    if wrapping == "line":
        return f"x = [{', '.join(names)}]\n"
    rows = [names[at : at + 3] for at in range(0, len(names), 3)]
    if wrapping == "each":
        rows = [[each] for each in names]
    return "x = [\n" + "".join(f"    {', '.join(each)},\n" for each in rows) + "]\n"


WRAPPING = st.sampled_from(["line", "each", "filled"])


@given(
    NAMES,
    NAMES,
    NAMES,
    st.tuples(WRAPPING, WRAPPING, WRAPPING),
    st.booleans(),
)
@settings(max_examples=examples(300))
def test_names_are_joined_whatever_the_wrapping_none_lost_and_none_twice(
    base: list[str],
    main: list[str],
    branch: list[str],
    wrappings: tuple[str, str, str],
    is_sorted: bool,
) -> None:
    sides = [[*base, *(each for each in more if each not in base)] for more in ([], main, branch)]
    if is_sorted:
        sides = [sorted(each) for each in sides]
    # Without a name, a list has no line to be wrapped.
    texts = [
        written(*each) if each[0] else "x = []\n" for each in zip(sides, wrappings, strict=True)
    ]
    found = [joined(texts[1], texts[0], texts[2]), joined(texts[2], texts[0], texts[1])]
    plain = [written(each, "line") for each in sides]
    expected = joined(plain[1], plain[0], plain[2])
    result = [read(lines(each)) if each is not None else None for each in (*found, expected)]
    assert all(result)  # No two of these names are alike.
    names = [[each.decode() for each in one.items] for one in result if one is not None]
    assert names[0] == names[2]  # The wrapping decides nothing but the wrapping.
    assert set(names[0]) == set(names[1]) == {*sides[1], *sides[2]}
    assert len(names[0]) == len({*names[0]})
    if is_sorted and len(names[0]) > 2:
        assert names[0] == sorted(names[0])
        assert found[0] is None or names[0] == names[1]


@given(NAMES, NAMES, NAMES)
@settings(max_examples=examples(200))
def test_in_turn_each_side_keeps_its_order_and_what_landed_is_first(
    base: list[str], main: list[str], branch: list[str]
) -> None:
    one, two = (
        [each.encode() for each in (*base, *(name for name in more if name not in base))]
        for more in (main, branch)
    )
    common = {*one} & {*two}
    found = in_turn(one, two, {*one} - common)
    places = {name: at for at, name in enumerate(found)}
    assert {*found} == {*one, *two}
    assert len(found) == len(places)
    assert [each for each in found if each in one] == one
    if [each for each in one if each in common] == [each for each in two if each in common]:
        assert all(places[a] < places[b] for a, b in pairwise(two))
    if not common:
        assert found == one + two
