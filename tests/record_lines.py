"""Lines of ledgers for property tests: records as QueenBee and others might write them."""

from __future__ import annotations

import json

from hypothesis import strategies as st

IDS = ("qm-1", "qm-2", "qm-3")
STAMPS = (
    "2024-12-14T10:30:00Z",
    "2024-12-14T10:30:00.000Z",
    "2024-12-14T11:30:00.001+01:00",
    "2024-12-15T00:00:00.123456789Z",
)

FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "created_at": st.sampled_from((*STAMPS, "", None, "yesterday", 7)),
        "updated_at": st.sampled_from(STAMPS),
        "read": st.sampled_from((True, False, None, "yes")),
        "deleted": st.sampled_from((True, False)),
        "status": st.sampled_from(("active", "expired", "completed", "released", "odd", 3)),
        "subject": st.sampled_from(("a", "b", "")),
        "droid": st.sampled_from(("ui", "api")),
        "agent": st.sampled_from(("ui", "api")),
        "x-unknown": st.sampled_from(([1], {"a": None}, 1.5)),
    },
)
"""Some of the fields that a line may carry: an update may hold all of them or a few."""


def encoded(identifier: str, fields: dict[str, object], rev: object = None) -> bytes:
    """Returns the line of a record; without `rev` where none is given."""
    line = {"id": identifier, **fields}
    if rev is not None:
        line["rev"] = rev
    return json.dumps(line).encode()


def lines_with_rev(*, max_size: int = 12) -> st.SearchStrategy[list[bytes]]:
    """Returns ledgers in which every line states its revision, some of them the same."""
    line = st.builds(encoded, st.sampled_from(IDS), FIELDS, st.integers(1, 4))
    return st.lists(line, max_size=max_size)


def lines_without_rev(*, max_size: int = 12) -> st.SearchStrategy[list[bytes]]:
    """Returns ledgers as a writer that knows nothing of revisions leaves them."""
    return st.lists(st.builds(encoded, st.sampled_from(IDS), FIELDS), max_size=max_size)


def any_lines(*, max_size: int = 12) -> st.SearchStrategy[list[bytes]]:
    """Returns ledgers of both kinds of lines, with bookkeeping and unusable ones between."""
    odd = st.sampled_from(
        (
            b'{"_migration":"v1_to_v2","at":"2024-12-14T10:00:00Z"}',
            b"<<<<<<< HEAD",
            b'{"id":"qm-1","torn',
            b"[]",
            b'{"no":"id"}',
        )
    )
    rev = st.sampled_from((None, None, 1, 2, 3, 0, -1, 2.0, True, "2", 2**60))
    line = st.builds(encoded, st.sampled_from(IDS), FIELDS, rev)
    return st.lists(line | line | odd, max_size=max_size)
