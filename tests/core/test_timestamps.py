"""Instants and durations: RFC 3339 in and out, `1h30m` in and out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenbee.core.timestamps import (
    format_duration,
    format_ms,
    instant_ms,
    parse_duration_s,
    parse_ms,
    parse_since_ms,
)
from queenbee.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_MS = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)
LAST_MS = (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


class TestInstants:
    @given(st.integers(FIRST_MS, LAST_MS))
    def test_a_formatted_instant_reads_back_the_same(self, instant):
        assert parse_ms(format_ms(instant)) == instant

    def test_are_written_in_utc_with_milliseconds(self):
        assert format_ms(1_734_172_200_007) == "2024-12-14T10:30:00.007Z"

    @given(st.integers(FIRST_MS, LAST_MS), st.integers(FIRST_MS, LAST_MS))
    def test_sort_as_text_as_they_do_in_time(self, one, other):
        assert (format_ms(one) < format_ms(other)) == (one < other)

    @pytest.mark.parametrize(
        ("text", "meant"),
        [
            ("2024-12-14T10:30:00Z", "2024-12-14T10:30:00.000Z"),
            ("2024-12-14t10:30:00z", "2024-12-14T10:30:00.000Z"),
            ("2024-12-14 10:30:00+00:00", "2024-12-14T10:30:00.000Z"),
            ("2024-12-14T12:00:00+01:30", "2024-12-14T10:30:00.000Z"),
            ("2024-12-14T10:30:00-08:00", "2024-12-14T18:30:00.000Z"),
            ("2024-12-14T10:30:00.123456789Z", "2024-12-14T10:30:00.123Z"),
            ("2024-12-14T10:30:00.9Z", "2024-12-14T10:30:00.900Z"),
            ("2024-12-14T10:30:00", "2024-12-14T10:30:00.000Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.999Z"),
            ("2016-12-31T23:59:60.5Z", "2016-12-31T23:59:59.999Z"),
        ],
    )
    def test_are_read_in_any_form_that_rfc_3339_has(self, text, meant):
        assert format_ms(parse_ms(text)) == meant

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "now",
            "2024-12-14",
            "2024-12-14T10:30",
            "2024-13-14T10:30:00Z",
            "2024-02-30T10:30:00Z",
            "2024-12-14T24:30:00Z",
            "2024-12-14T10:30:00+99:00",
            "0001-01-01T00:00:00+23:59",
            "9999-12-31T23:59:59-23:59",
            "\ud8002024-12-14T10:30:00Z",
            "2024-12-14T10:30:00Z\x00",
        ],
    )
    def test_that_are_none_are_refused(self, text):
        with pytest.raises(InvalidInput):
            parse_ms(text)

    @given(st.text(max_size=40) | st.from_regex(r"\A[0-9]{4}-[0-9]{2}-.{2}[Tt ].{8,20}\Z"))
    def test_any_text_is_an_instant_or_refused(self, text):
        try:
            parse_ms(text)
        except InvalidInput as error:
            assert error.hint

    @pytest.mark.parametrize("value", [None, 7, 1.5, True, [], {}, "soon"])
    def test_a_field_that_holds_none_reads_as_none(self, value):
        assert instant_ms(value) is None


class TestDurations:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("90s", 90),
            ("15m", 900),
            ("2h", 7_200),
            ("1d", 86_400),
            ("1h30m", 5_400),
            (" 2H ", 7_200),
            ("0s", 0),
        ],
    )
    def test_are_read(self, text, seconds):
        assert parse_duration_s(text) == seconds

    @pytest.mark.parametrize(
        "text", ["", "90", "h", "1.5h", "-1h", "1w", "1h30", "1h m", "٣h", "9" * 11 + "s"]
    )
    def test_that_are_none_are_refused(self, text):
        with pytest.raises(InvalidInput):
            parse_duration_s(text)

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [
            (0, "0s"),
            (-5, "0s"),
            (59.4, "59s"),
            (59.6, "1m"),
            (3_900, "1h 05m"),
            (7_200, "2h"),
            (90_000, "1d 01h"),
        ],
    )
    def test_are_shown_in_at_most_two_units(self, seconds, text):
        assert format_duration(seconds) == text

    def test_may_stand_for_the_instant_that_long_ago(self):
        assert parse_since_ms("2h", 10_000_000) == 10_000_000 - 7_200_000
        assert parse_since_ms("1970-01-01T00:00:01Z", 10_000_000) == 1_000
        with pytest.raises(InvalidInput):
            parse_since_ms("yesterday", 10_000_000)

    @given(st.integers(0, 10**9))
    def test_as_shown_are_read_back_to_the_unit(self, seconds):
        shown = parse_duration_s(format_duration(seconds).replace(" ", ""))
        assert shown <= seconds < shown + 3_600
