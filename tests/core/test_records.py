"""Records are read-only views of the folded fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stamps import parse_ms

from queenbee.core.records import Assignment, Message, Record, Reservation

SCALARS = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers())
KINDS = [Message, Assignment, Reservation]


@given(st.dictionaries(st.text(), SCALARS), st.sampled_from(KINDS))
def test_unknown_fields_survive(fields, kind):
    shown = kind(fields).to_dict()
    shown.pop("rev")
    assert shown == {name: value for name, value in fields.items() if name != "rev"}


@given(st.dictionaries(st.sampled_from(("id", "read", "status", "expires_at", "to")), SCALARS))
def test_a_field_of_another_type_reads_as_its_default(fields):
    assert isinstance(Message(fields).read, bool)
    assert isinstance(Message(fields).to, str)
    assert isinstance(Reservation(fields).status, str)
    assert isinstance(Reservation(fields).expires_ms, int)


def test_fields_that_a_foreign_writer_left_out_read_as_their_defaults():
    lease = Reservation({"id": "qr-1"})
    assert (lease.status, lease.exclusive, lease.expires_ms) == ("active", True, 0)
    assert (Message({}).importance, Message({}).read) == ("normal", False)


def test_a_reader_lease_needs_a_true_false():
    assert Reservation({"exclusive": False}).exclusive is False
    assert Reservation({"exclusive": "false"}).exclusive is True


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_is_read_only(kind):
    with pytest.raises(AttributeError, match="is a value"):
        kind({"id": "q"}).status = "released"


def test_records_are_equal_when_their_fields_are():
    assert Message({"id": "q", "rev": 1}) == Message({"id": "q", "rev": 1})
    assert Message({"id": "q", "rev": 1}) != Message({"id": "q", "rev": 2})
    assert Message({"id": "q"}) != Assignment({"id": "q"})


def test_the_revision_is_shown_last():
    assert list(Record({"rev": 2, "id": "q", "x": 1}).to_dict()) == ["id", "x", "rev"]


def test_a_message_begins_the_thread_that_it_names_no_other_for():
    assert Message({"id": "qm-1"}).thread == "qm-1"
    assert Message({"id": "qm-2", "thread_id": "qm-1"}).thread == "qm-1"


def test_what_a_droid_does_beside_its_issue_is_news_for_a_day():
    noted = Assignment({"note": "the helper", "noted_at": "2026-01-05T10:00:00.000Z"})
    then_ms = parse_ms("2026-01-05T10:00:00.000Z")
    assert noted.note(then_ms + 24 * 3_600_000 - 1) == "the helper"
    assert noted.note(then_ms + 24 * 3_600_000) == ""


@pytest.mark.parametrize(
    "said", ["HEAD", ";sh ./x;", "main^{/|, read this}", "A" * 40, "a" * 41, 7]
)
def test_no_other_text_is_the_commit_of_an_assignment(said: object) -> None:
    assert Assignment({"landed": said}).landed is None
    assert Assignment({"landed": "a1" * 20}).landed == "a1" * 20
    assert Assignment({"landed": "a1" * 32}).landed == "a1" * 32


def test_a_reservation_says_whom_it_keeps_out():
    assert Reservation({}).mode == "exclusive"
    assert Reservation({"exclusive": False, "tree_id": "T"}).mode == "shared"
    assert Reservation({"exclusive": False}).mode == "read"
