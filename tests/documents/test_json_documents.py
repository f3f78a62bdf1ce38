"""JSON documents are kept whole, and unusable ones are refused with the reason."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenbee.documents.json_documents import (
    MAX_DEPTH,
    format_json,
    json_files,
    parse_json,
    read_object,
)
from queenbee.errors import NotFound, Unreadable

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Half of a surrogate pair too: JSON can write it, and so can an agent.
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.slow
@given(VALUES)
def test_what_is_written_is_read_back_the_same(value):
    assert parse_json(format_json(value), "it") == value


def test_keys_keep_their_order():
    data = b'{"z": 1, "a": 2, "m": {"y": 1, "b": 2}}'
    document = parse_json(data, "it")
    assert list(document) == ["z", "a", "m"]
    assert json.loads(format_json(document), object_pairs_hook=list) == json.loads(
        data, object_pairs_hook=list
    )


def test_an_integer_of_more_than_64_bits_is_kept_exactly():
    assert parse_json(b"[123456789012345678901234567890]", "it") == [123456789012345678901234567890]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'\xef\xbb\xbf{"intent": "caf\xc3\xa9"}', id="utf8-with-mark"),
        pytest.param('{"intent": "café"}'.encode("utf-16"), id="utf16-with-mark"),
        pytest.param(b"\xfe\xff" + '{"intent": "café"}'.encode("utf-16-be"), id="utf16-big-endian"),
    ],
)
def test_a_leading_byte_order_mark_is_accepted(data):
    assert parse_json(data, "it") == {"intent": "café"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "is not JSON", id="empty"),
        pytest.param(b'{"a": 1,}', "line 1, column", id="trailing-comma"),
        pytest.param(b'{"a": 1} {"b": 2}', "Extra data", id="two-documents"),
        pytest.param(b'{"a": NaN}', "NaN is not a JSON value", id="nan"),
        pytest.param(b'{"a": -Infinity}', "-Infinity is not a JSON value", id="infinity"),
        pytest.param(b'{"a": 1e999}', "out of range", id="number-beyond-a-float"),
        pytest.param(b'{"a": ' + b"9" * 5000 + b"}", "not usable", id="five-thousand-digits"),
        pytest.param(b'{"status": "x", "status": "y"}', "'status' occurs twice", id="twice"),
        pytest.param(b'{"a": "\xff"}', "not usable", id="not-utf8"),
        pytest.param(b"\xff\xfe{", "not usable", id="half-a-utf16-character"),
        pytest.param(b'{"a": "\x01"}', "control character", id="bare-control-character"),
        pytest.param(b"[" * 100_000, "nested too deeply", id="a-hundred-thousand-brackets"),
        pytest.param(
            b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2), "levels of nesting", id="too-deep"
        ),
        pytest.param(b'{"a":' * 500 + b"1" + b"}" * 500, "levels of nesting", id="deep-objects"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(data, reason):
    with pytest.raises(Unreadable, match="the document") as refusal:
        parse_json(data, "the document")
    assert reason in refusal.value.message


def test_the_deepest_nesting_that_is_allowed_is_read_and_written():
    data = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert parse_json(format_json(parse_json(data, "it")), "it") == parse_json(data, "it")


def test_a_name_with_a_nul_is_not_found(tmp_path):
    with pytest.raises(NotFound):
        read_object(f"{tmp_path}/a\0b.json")


def test_a_folder_lists_its_json_files_and_not_what_is_being_written(tmp_path):
    for name in ("b.json", "a.json", ".a.json.7.tmp", ".hidden.json", "notes.md"):
        (tmp_path / name).write_text("{}")
    assert json_files(str(tmp_path)) == [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
