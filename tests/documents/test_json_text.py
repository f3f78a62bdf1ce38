"""JSON texts: what is put in can be cut out again, and not one other byte changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenbee.documents.json_text import Container, begin, cut, insert, loads

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=5), VALUES, max_size=4)
LAYOUTS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({"indent": None, "separators": (",", ":")}),
    st.just({"indent": None}),
    st.sampled_from([{"indent": 2}, {"indent": 4}, {"indent": "\t"}, {"indent": 0}]),
    st.just({"indent": 2, "separators": (" ,", " : ")}),
)


def root_of(text: str) -> Container:
    return Container(text, begin(text))


@pytest.mark.slow
@given(OBJECTS, LAYOUTS, st.sampled_from(["", "\n", "\r\n  "]), st.booleans(), VALUES)
def test_an_item_inserted_into_an_object_can_be_cut_out_exactly(
    document: dict[str, Any], layout: dict[str, Any], end: str, ascii_only: bool, value: Any
) -> None:
    document.pop("ours", None)
    text = end + json.dumps(document, ensure_ascii=ascii_only, **layout) + end
    changed = insert(text, root_of(text), "ours", value, 1)
    assert json.loads(changed) == {**document, "ours": value}
    root = root_of(changed)
    assert cut(changed, [root], len(root.items) - 1) == text


@pytest.mark.slow
@given(st.lists(VALUES, max_size=4), LAYOUTS, VALUES)
def test_an_item_inserted_into_an_array_can_be_cut_out_exactly(
    items: list[Any], layout: dict[str, Any], value: Any
) -> None:
    text = json.dumps({"list": items}, **layout)
    member = root_of(text).member("list")
    assert member is not None
    changed = insert(text, Container(text, member.value), None, value, 2)
    assert json.loads(changed) == {"list": [*items, value]}
    root = root_of(changed)
    place = Container(changed, root.items[0].value)
    assert cut(changed, [root, place], len(items)) == text


@pytest.mark.slow
@given(OBJECTS, LAYOUTS)
def test_the_items_of_a_text_are_those_that_a_parser_finds(
    document: dict[str, Any], layout: dict[str, Any]
) -> None:
    text = json.dumps(document, **layout)
    root = root_of(text)
    found = {str(item.key): json.loads(text[item.value : item.end]) for item in root.items}
    assert found == document
    assert text[root.open] + text[root.close] == "{}"


# Comments and trailing commas


COMMENTS = st.sampled_from(["", "", " ", "\n", "// c, }\n", '/* " ] */', "  // x\n  ", "/**/ "])


@st.composite
def commented(draw: st.DrawFn) -> str:
    """An object with comments, blanks and trailing commas where they may be."""

    def value(depth: int) -> str:
        kind = draw(st.sampled_from(["scalar", "object", "array"] if depth else ["scalar"]))
        if kind == "scalar":
            return json.dumps(draw(SCALARS))
        return members(depth, "{}" if kind == "object" else "[]")

    def members(depth: int, brackets: str) -> str:
        parts = []
        for number in range(draw(st.integers(0, 3))):
            key = f'"k{number}"{draw(COMMENTS)}:{draw(COMMENTS)}' if brackets == "{}" else ""
            parts.append(f"{draw(COMMENTS)}{key}{value(depth - 1)}{draw(COMMENTS)}")
        trailing = f",{draw(COMMENTS)}" if parts and draw(st.booleans()) else ""
        return brackets[0] + ",".join(parts) + draw(COMMENTS) + trailing + brackets[1]

    return draw(COMMENTS) + members(2, "{}") + draw(COMMENTS)


@pytest.mark.slow
@given(commented(), VALUES)
def test_an_item_inserted_among_comments_can_be_cut_out_exactly(text: str, value: Any) -> None:
    document = loads(text, comments=True)
    assert isinstance(document, dict)
    changed = insert(text, root_of(text), "ours", value, 1)
    assert loads(changed, comments=True) == {**document, "ours": value}
    root = root_of(changed)
    number = next(n for n, item in enumerate(root.items) if item.key == "ours")
    assert cut(changed, [root], number) == text


def test_a_comment_that_was_added_to_a_file_of_ours_is_kept() -> None:
    text = '{\n  // mine\n  "hooks": {}\n}\n'
    assert cut(text, [root_of(text)], 0) == "{\n  // mine\n}\n"


@pytest.mark.parametrize("text", ["{}", "{ }", "{\n}", "{\n\n  }\n", "{\r\n}"])
def test_an_empty_object_gets_back_the_space_that_was_in_it(text: str) -> None:
    changed = insert(text, root_of(text), "a", [1], 1)
    assert json.loads(changed) == {"a": [1]}
    assert cut(changed, [root_of(changed)], 0) == text


def test_an_object_in_lines_gets_lines_of_the_same_depth() -> None:
    text = '{\n\t"a": 1\n}\n'
    assert insert(text, root_of(text), "b", {"c": 2}, 1) == (
        '{\n\t"a": 1,\n\t"b": {\n\t\t"c": 2\n\t}\n}\n'
    )


def test_an_item_inserted_into_a_single_line_has_its_own_lines() -> None:
    text = '{"a":1,"d":4}'
    changed = insert(text, root_of(text), "b", {"c": [2]}, 1)
    assert changed == '{"a":1,"d":4,"b": {\n    "c": [\n      2\n    ]\n  }}'


def test_the_line_ending_of_the_text_is_kept() -> None:
    text = '{\r\n  "a": 1\r\n}\r\n'
    changed = insert(text, root_of(text), "b", {"c": 2}, 1)
    assert changed.count("\n") == changed.count("\r\n") == 6


def test_the_last_of_several_members_with_one_key_counts() -> None:
    text = '{"a": 1, "a": 2}'
    member = root_of(text).member("a")
    assert member is not None
    assert text[member.value : member.end] == "2"
