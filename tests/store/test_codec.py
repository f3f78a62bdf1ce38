"""One language, two decoders; what is written is read back; what is unusable says why."""

from __future__ import annotations

import json
import subprocess
import sys

import orjson
import pytest
from extent import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queenbee.errors import InvalidInput
from queenbee.store import codec
from queenbee.store.codec import (
    MAX_DEPTH,
    MAX_LINE_BYTES,
    Unusable,
    decode_exactly,
    decoder,
    encode,
    is_migration,
    lost_precision,
)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
RECORDS = st.dictionaries(st.text(), VALUES, max_size=6).map(lambda each: {**each, "id": "q"})
NEARLY_JSON = st.lists(
    st.sampled_from(
        (
            *'{}[],:" \t\r\\/-+.eE0123456789',
            '"id":"q"',
            '{"id":"q","x":',
            "}",
            "true",
            "false",
            "null",
            "NaN",
            "Infinity",
            "-Infinity",
            "\\u00e9",
            "\\ud83d",
            "\\ude00",
            "\\u",
            "\\x",
            "\ufeff",
            "\x00",
            "\x1f",
            "\x7f",
            "\x85",
            "\u2028",
            "é",
            "1e999",
            "1e-999",
            "-0",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775809",
            "9" * 40,
        )
    ),
    max_size=14,
).map(lambda parts: "".join(parts).encode())

ODD_LINES = (
    b'{"id":"q","x":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
    b'{"id":"q","x":"' + b"[{" * MAX_DEPTH + b'"}',
    b'{"id":"q","x":"' + b"x" * MAX_LINE_BYTES + b'"}',
    b"[" * 100_000,
    b"[]",
    b"7",
    b'{"id":7}',
    b'{"id":""}',
    b'{"_migration":"v1"}',
    b'{"id":"q","_migration":"v1"}',
)
LEDGERS = st.lists(
    st.sampled_from(ODD_LINES) | NEARLY_JSON | st.just(b'{"id":"q","rev":1}'), max_size=80
)


def by_orjson(raw):
    return codec._checked(raw, orjson.loads)


def by_the_standard_library(raw):
    return codec._checked(raw, codec._strict_loads)


def said(decode, raw):
    """Returns what a decoder makes of a line, told apart down to the types of its numbers."""
    try:
        return repr(decode(raw))
    except Unusable as error:
        return f"unusable: {error}"


class TestTheTwoDecoders:
    @pytest.mark.slow
    @given(RECORDS, st.booleans(), st.sampled_from((None, 1)))
    @settings(max_examples=examples(300))
    def test_agree_on_json(self, fields, ascii_only, indent):
        raw = json.dumps(fields, ensure_ascii=ascii_only, indent=indent).encode()
        assert said(by_orjson, raw) == said(by_the_standard_library, raw)

    @pytest.mark.slow
    @given(NEARLY_JSON)
    @settings(max_examples=examples(1_500))
    @example(b'{"id":"q","x":1e999}')
    @example(b'{"id":"q","x":1e-999}')
    @example(b'{"id":"q","x":-0}')
    @example(b'{"id":"q","x":-0.0}')
    @example(b'{"id":"q","x":01}')
    @example(b'{"id":"q","x":1.}')
    @example(b'{"id":"q","x":NaN}')
    @example(b'{"id":"q","id":"r"}')
    @example(b'{"id":"q","x":"\\ud83d\\ude00"}')
    @example(b'{"id":"q","x":"\\ud83d"}')
    @example(b'{"id":"q","\\udc00":1}')
    @example(b'{"id":"q","x":"\\ud83d","x":1}')
    @example(b'{"id":"q","x":[{"y":["\\ud83d"]}],"x":1}')
    @example(b'{"id":"q","x":{"y":"\\ud83d","y":"\\u00e9"}}')
    @example(b'{"id":"q","x":"\xed\xa0\x80"}')
    @example(b'{"id":"q","x":"\\u12"}')
    @example(b'{"id":"q"} x')
    @example(b'\xef\xbb\xbf{"id":"q"}')
    @example(b'{"id":"q","x":9223372036854775807}')
    @example(b'{"id":"q","x":9223372036854775808}')
    @example(b'{"id":"q","x":18446744073709551616}')
    @example(b'{"id":"q","x":-9223372036854775809}')
    @example(b'{"id":"q","x":' + b"9" * 5_000 + b"}")
    @example(b'{"id":"q","x":-' + b"9" * 309 + b"}")
    @example(b'{"id":"q","x":0.' + b"3" * 5_000 + b"}")
    @example(b'{"id":"q",\x0b"x":1}')
    @example(b'{"id":"q","x":"\x7f"}')
    def test_agree_on_what_is_nearly_json(self, raw):
        assert said(by_orjson, raw) == said(by_the_standard_library, raw)

    @given(st.binary(max_size=60))
    @settings(max_examples=examples(500))
    def test_agree_on_any_bytes(self, raw):
        assert said(by_orjson, raw) == said(by_the_standard_library, raw)

    @pytest.mark.slow
    @given(RECORDS, st.data())
    @settings(max_examples=examples(300))
    def test_agree_on_json_with_a_byte_changed(self, fields, data):
        raw = bytearray(json.dumps(fields).encode())
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        assert said(by_orjson, bytes(raw)) == said(by_the_standard_library, bytes(raw))

    @pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, 900, 1_023, 1_025, 2_000, 100_000])
    @pytest.mark.parametrize("opening", [b"[", b'{"a":'])
    def test_agree_on_how_deep_is_too_deep(self, depth, opening):
        closing = b"]" if opening == b"[" else b"}"
        middle = b"" if opening == b"[" else b"1"
        raw = b'{"id":"q","x":' + opening * depth + middle + closing * depth + b"}"
        theirs = said(by_orjson, raw)
        assert theirs.startswith("unusable") == (depth > MAX_DEPTH - 1)
        assert theirs.startswith("unusable") == said(by_the_standard_library, raw).startswith(
            "unusable"
        )

    def test_are_chosen_by_the_size_of_the_input(self):
        script = (
            "import sys; from queenbee.store.codec import decoder; "
            "decoder(1000); few = 'orjson' in sys.modules; "
            "decoder(10**9); print(few, 'orjson' in sys.modules)"
        )
        told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert told.stdout.split() == ["False", "True"]

    @pytest.mark.parametrize("size_bytes", [0, 10**9], ids=["standard library", "orjson"])
    @given(LEDGERS)
    @settings(max_examples=examples(300))
    def test_take_the_same_of_many_lines_as_of_each(self, size_bytes, lines):
        assert told_at_once(lines, size_bytes) == told_one_by_one(lines, size_bytes)

    def test_refuse_the_same_of_many_odd_lines(self):
        lines = [*ODD_LINES, b'{"id":"q"}']
        assert told_at_once(lines, 10**9) == told_one_by_one(lines, 10**9)


def told_at_once(lines, size_bytes):
    others = []
    records = list(codec.decode_records(lines, size_bytes, others))
    return repr(records), repr(others)


def told_one_by_one(lines, size_bytes):
    """Returns the same as `told_at_once`, from the decoder that says of each line why."""
    decode, usable = decoder(size_bytes), []
    for raw in lines:
        try:
            usable.append((raw, decode(raw)))
        except Unusable:
            continue
    records = [line for line in usable if not is_migration(line[1])]
    return repr(records), repr([line for line in usable if is_migration(line[1])])


class TestWhatIsWritten:
    @pytest.mark.slow
    @given(RECORDS)
    @settings(max_examples=examples(300))
    def test_is_one_line_and_read_back_the_same(self, fields):
        raw = encode(fields)
        assert b"\n" not in raw
        assert decode_exactly(raw) == fields

    @given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()))
    @settings(max_examples=examples(100))
    def test_is_the_same_bytes_with_and_without_orjson(self, fields):
        # Only how a float is spelled may differ.
        assert codec._dumps(fields) == encode(fields)

    @pytest.mark.parametrize(
        "body", ["", "\n", "\r\n", "\0", "\x1b[31m", "🐝", "\u2028\u2029", "\ufeff", "\x85", "\\u"]
    )
    def test_holds_any_text(self, body):
        raw = encode({"id": "q", "body": body})
        assert b"\n" not in raw
        assert decoder(0)(raw)["body"] == body

    def test_keeps_a_forty_digit_number_digit_by_digit(self):
        digits = "1234567890" * 4
        fields = decode_exactly(b'{"id":"q","x":' + digits.encode() + b"}")
        assert digits.encode() in encode(fields)

    def test_is_refused_over_a_mebibyte(self):
        with pytest.raises(InvalidInput, match="at most"):
            encode({"id": "q", "body": "x" * MAX_LINE_BYTES})

    def test_fits_up_to_a_mebibyte(self):
        frame = len(encode({"id": "q", "body": ""}))
        raw = encode({"id": "q", "body": "x" * (MAX_LINE_BYTES - 1 - frame)})
        assert len(raw) == MAX_LINE_BYTES - 1
        assert decoder(len(raw))(raw)["id"] == "q"

    @pytest.mark.parametrize("body", ["\ud800", "a\udcffb"])
    def test_is_refused_where_json_has_no_word_for_it(self, body):
        with pytest.raises(InvalidInput, match="JSON"):
            encode({"id": "q", "body": body})


class TestAnUnusableLine:
    @pytest.mark.parametrize(
        ("raw", "reason"),
        [
            (b"<<<<<<< HEAD", "a conflict marker"),
            (b"=======", "a conflict marker"),
            (b">>>>>>> theirs", "a conflict marker"),
            (b"||||||| base", "a conflict marker"),
            (b"\0\0\0\0", "NUL bytes"),
            (b'{"id":"q"}\0\0', "NUL bytes"),
            ('{"id":"q"}'.encode("utf-16"), "NUL bytes"),
            (b'{"id":"q","x":"\xff"}', "not valid UTF-8"),
            (b'{"id":"q","x', "not JSON"),
            (b'{"id":"q"}{"id":"r"}', "not JSON"),
            (b'\xef\xbb\xbf{"id":"q"}', "not JSON"),
            (b'{"id":"q","x":"\\ud800"}', "not JSON"),
            (b"[]", "not a JSON object"),
            (b"7", "not a JSON object"),
            (b"null", "not a JSON object"),
            (b"{}", "no id"),
            (b'{"id":""}', "no id"),
            (b'{"id":7}', "no id"),
            (b'{"id":null}', "no id"),
            (b'{"id":"' + b"x" * MAX_LINE_BYTES + b'"}', "longer than 1,048,576 bytes"),
        ],
    )
    def test_says_why(self, raw, reason):
        for decode in (by_orjson, by_the_standard_library):
            with pytest.raises(Unusable) as refused:
                decode(raw)
            assert str(refused.value) == reason

    def test_is_none_where_it_is_bookkeeping(self):
        assert decoder(0)(b'{"_migration":"v1_to_v2"}') == {"_migration": "v1_to_v2"}


@given(st.integers())
def test_a_number_that_decoding_may_have_rounded_is_known(number):
    fields = decoder(0)(b'{"id":"q","x":[{"y":%d}]}' % number)
    assert lost_precision(fields) or decode_exactly(b'{"id":"q","x":[{"y":%d}]}' % number) == fields
