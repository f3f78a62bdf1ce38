"""Ids that two clones make alike."""

from __future__ import annotations

from queenbee.documents.reconcile import hashed_id


def test_an_id_is_made_of_any_text_that_json_can_hold() -> None:
    assert hashed_id("\ud800", 0) == hashed_id("\ud800", 0) != hashed_id("\ud801", 0)
