"""Each kind of record is defined once, and an unknown kind is served as far as it can be."""

from __future__ import annotations

import pytest

from queenbee.core.kinds import KINDS, Kind, kind_of
from queenbee.core.records import Flag, OptionalText, Text

STAMP = "2024-12-14T10:30:00.000Z"


def test_prefixes_tell_kinds_apart():
    assert len({kind.prefix for kind in KINDS.values()}) == len(KINDS)


@pytest.mark.parametrize("kind", [each for each in KINDS.values() if each.everywhere], ids=str)
def test_what_a_kind_says_of_fields_are_fields_of_its_view(kind):
    known = {
        field.name
        for owner in kind.view.__mro__
        for field in vars(owner).values()
        if isinstance(field, Text | OptionalText | Flag)
    }
    named = {*kind.columns, *kind.exported.values(), *kind.droids, *kind.required}
    named |= {droid for droid, _ in kind.signs}
    assert named <= known


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_exported_columns_can_be_queried(kind):
    assert set(kind.exported.values()) <= set(kind.columns)


@pytest.mark.parametrize("kind", KINDS.values(), ids=str)
def test_every_kind_that_we_know_can_be_closed(kind):
    assert isinstance(kind.closed_ms({"id": "x", "created_at": STAMP}), int)


def test_an_unknown_kind_is_never_closed_and_its_droid_is_its_author():
    kind = kind_of("reviews")
    assert (type(kind), kind.name, kind.columns) == (Kind, "reviews", ())
    assert kind.closed_ms({"id": "x", "created_at": STAMP}) is None
    assert kind.author({"droid": "ui"}, {}, first=True) == "ui"
