"""Ids are ULIDs as the specification has them; the library is the oracle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from queenbee.core.ids import RANDOM_BYTES, following, ulid

INSTANTS = st.integers(0, (1 << 48) - 1)
RANDOMNESS = st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES)


@given(INSTANTS, RANDOMNESS)
def test_a_ulid_is_what_the_library_makes_of_the_same_bytes(instant_ms, random):
    theirs = ULID.from_bytes(instant_ms.to_bytes(6, "big") + random)
    assert ulid(instant_ms, random) == str(theirs)


@given(INSTANTS, RANDOMNESS)
def test_the_library_reads_the_instant_back(instant_ms, random):
    assert ULID.from_str(ulid(instant_ms, random)).milliseconds == instant_ms


@given(INSTANTS, INSTANTS, RANDOMNESS, RANDOMNESS)
def test_ids_sort_by_their_instant(one_ms, other_ms, one, other):
    if one_ms < other_ms:
        assert ulid(one_ms, one) < ulid(other_ms, other)


@given(INSTANTS, RANDOMNESS.filter(lambda random: random != b"\xff" * RANDOM_BYTES))
def test_the_following_id_is_the_next_number(instant_ms, random):
    before = ulid(instant_ms, random)
    assert int(ULID.from_str(following(before))) == int(ULID.from_str(before)) + 1
    assert following(before) > before


@pytest.mark.parametrize(
    ("instant_ms", "random"),
    [(-1, bytes(RANDOM_BYTES)), (1 << 48, bytes(RANDOM_BYTES)), (0, b"short")],
)
def test_what_does_not_fit_is_refused(instant_ms, random):
    with pytest.raises(ValueError, match="48 bits"):
        ulid(instant_ms, random)
