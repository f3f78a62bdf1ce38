"""Messages: what is sent, to whom, in which thread, and who may mark or hide it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, environment, records, snapshot

from queenbee import Hive, Message
from queenbee.errors import InvalidInput, NoActor, NotFound, NotYours

pytestmark = pytest.mark.both_engines

Opener = Callable[[str], Hive]


def ledger(beads: Path) -> Path:
    return beads / "queen_messages.jsonl"


def send(hive: Hive, to: str = "reviewer", body: str = "hello", **more: object) -> Message:
    return hive.messages.send(to, body, **more)[0]  # type: ignore[arg-type]


# Sending


def test_a_message_is_one_line_with_the_fields_of_the_records_document(
    hive: Hive, beads: Path
) -> None:
    sent = send(hive, body="Claiming now", subject="Starting", issue_id="qb-42")
    assert records(ledger(beads)) == [
        {
            "id": sent.id,
            "created_at": "2024-12-14T10:30:00.000Z",
            "from": "ui-engineer",
            "to": "reviewer",
            "subject": "Starting",
            "body": "Claiming now",
            "issue_id": "qb-42",
            "importance": "normal",
            "read": False,
            "rev": 1,
        }
    ]


def test_a_message_without_a_subject_takes_its_first_line_that_says_anything(hive: Hive) -> None:
    assert send(hive, body="\n  \n  Button is ready \nmore").subject == "Button is ready"


def test_a_subject_taken_from_the_body_is_cut_to_what_the_document_recommends(hive: Hive) -> None:
    subject = send(hive, body="x" * 300).subject
    assert len(subject) == 100
    assert subject.endswith("…")


def test_a_subject_that_is_given_is_never_cut(hive: Hive) -> None:
    assert send(hive, subject="x" * 300).subject == "x" * 300


def test_an_empty_subject_stays_empty(hive: Hive) -> None:
    assert send(hive, subject="").subject == ""


def test_ids_of_one_instant_sort_in_the_order_of_sending(hive: Hive) -> None:
    ids = [send(hive, body=str(number)).id for number in range(50)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 50


def test_several_recipients_get_one_record_each_in_the_order_given(hive: Hive) -> None:
    sent = hive.messages.send("reviewer, tester,reviewer", "to you all")
    assert [message.to for message in sent] == ["reviewer", "tester"]


def test_copies_of_one_message_share_one_thread(hive: Hive) -> None:
    first, second = hive.messages.send("reviewer,tester", "to you all")
    assert first.thread == second.thread == first.id


def test_a_message_to_one_droid_begins_a_thread_without_naming_it(hive: Hive) -> None:
    sent = send(hive)
    assert sent.thread_id is None
    assert sent.thread == sent.id


@pytest.mark.parametrize("importance", ["low", "normal", "high", "urgent"])
def test_each_importance_of_the_document_is_kept(hive: Hive, importance: str) -> None:
    assert send(hive, importance=importance).importance == importance


@pytest.mark.parametrize(
    ("to", "more", "said"),
    [
        ("", {}, "no recipient"),
        (" , ,", {}, "no recipient"),
        ("no spaces", {}, "'no spaces' is not a droid name"),
        ("-dash", {}, "'-dash' is not a droid name"),
        ("x" * 65, {}, "is not a droid name"),
        ("reviewer,@all", {}, "'@all' is not a droid name"),
        ("reviewer", {"importance": "loud"}, "'loud' is not an importance"),
        ("reviewer", {"issue_id": "qb 42"}, "'qb 42' is not an issue id"),
        ("reviewer", {"issue_id": ""}, "'' is not an issue id"),
        ("reviewer", {"issue_id": "q\x1b[2J"}, "is not an issue id"),
    ],
)
def test_a_message_that_is_not_well_formed_is_refused_and_nothing_is_written(
    hive: Hive, beads: Path, to: str, more: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        hive.messages.send(to, "x", **more)  # type: ignore[arg-type]
    assert said in refusal.value.message
    assert snapshot(beads) == {}


def test_nobody_sends_anonymously(repo: Path, beads: Path) -> None:
    with pytest.raises(NoActor) as refusal:
        Hive.open(repo, env=environment()).messages.send("reviewer", "x")
    for way in ("--as NAME", "QUEEN_DROID=NAME", "queen hive whoami --set NAME"):
        assert way in str(refusal.value.hint)
    assert snapshot(beads) == {}


def test_a_body_whose_line_would_pass_one_mebibyte_is_refused_with_a_way_out(
    hive: Hive, beads: Path
) -> None:
    with pytest.raises(InvalidInput, match="at most 1,048,576") as refusal:
        send(hive, body="x" * 1_048_576)
    assert "send its path" in str(refusal.value.hint)
    assert not ledger(beads).exists()


def test_one_copy_that_cannot_be_written_stops_the_others(hive: Hive, beads: Path) -> None:
    # The name of the second recipient makes its line longer than the first one's.
    longest = 1_048_576 - 330
    with pytest.raises(InvalidInput, match="a line holds at most"):
        hive.messages.send("a," + "b" * 64, "x" * longest)
    assert not ledger(beads).exists()


# Inboxes


def test_an_inbox_is_newest_first_and_ends_at_its_limit(hive: Hive, reviewer: Hive) -> None:
    for number in range(5):
        send(hive, body=str(number))
    assert [m.body for m in reviewer.messages.inbox(limit=2)] == ["4", "3"]
    assert len(reviewer.messages.inbox()) == 5


def test_the_newest_messages_of_the_hive_are_those_of_all_its_droids(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    for sender, to in ((hive, "reviewer"), (reviewer, "tester"), (hive, "@all"), (hive, "tester")):
        send(sender, to, f"to {to}", new=True)
        clock.advance(1)
    hidden = send(hive, "reviewer", "taken back")
    hive.messages.delete(hidden.id)
    assert [m.body for m in reviewer.messages.recent(limit=3)] == [
        "to tester",
        "to @all",
        "to tester",
    ]
    assert [m.to for m in reviewer.messages.recent(limit=9)] == [
        "tester",
        "@all",
        "tester",
        "reviewer",
    ]
    assert hive.messages.recent(limit=0) == []


def test_the_newest_messages_say_what_the_actor_has_read(hive: Hive, reviewer: Hive) -> None:
    send(hive, "@all")
    assert [m.read for m in reviewer.messages.recent(limit=1)] == [False]
    reviewer.messages.read_unread()
    assert [m.read for m in reviewer.messages.recent(limit=1)] == [True]


def test_an_inbox_holds_only_what_was_sent_to_its_owner(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    send(hive, "tester")
    clock.advance(1)
    send(reviewer, "tester")
    assert hive.messages.inbox() == []
    assert [m.from_ for m in hive.messages.inbox(droid="tester")] == ["reviewer", "ui-engineer"]


@pytest.mark.parametrize(
    ("filters", "bodies"),
    [
        ({}, ["c", "b", "a"]),
        ({"unread": True}, ["c", "b"]),
        ({"from_": "tester"}, ["b"]),
        ({"issue_id": "qb-1"}, ["b", "a"]),
        ({"since_ms": 1_734_172_260_000}, ["c", "b"]),
        ({"unread": True, "issue_id": "qb-1"}, ["b"]),
        ({"limit": 1}, ["c"]),
    ],
)
def test_each_filter_of_an_inbox_keeps_what_it_names(
    hive: Hive, open_as: Opener, clock: Clock, filters: dict[str, object], bodies: list[str]
) -> None:
    reviewer = open_as("reviewer")
    first = send(hive, body="a", issue_id="qb-1")
    clock.advance(60)
    send(open_as("tester"), "reviewer", "b", issue_id="qb-1")
    clock.advance(60)
    send(hive, body="c")
    reviewer.messages.mark_read([first.id])
    assert [m.body for m in reviewer.messages.inbox(**filters)] == bodies  # type: ignore[arg-type]


def test_sent_lists_what_the_actor_wrote_newest_first(hive: Hive, reviewer: Hive) -> None:
    for number in range(3):
        send(hive, body=str(number))
    send(reviewer, "ui-engineer", "not mine")
    assert [m.body for m in hive.messages.sent(limit=2)] == ["2", "1"]


# Reading


def test_reading_marks_a_message_with_its_whole_record_and_the_time(
    hive: Hive, reviewer: Hive, beads: Path, clock: Clock
) -> None:
    sent = send(hive)
    clock.advance(360)
    [read] = reviewer.messages.mark_read([sent.id])
    assert (read.read, read.read_at) == (True, "2024-12-14T10:36:00.000Z")
    first, second = records(ledger(beads))
    assert second == {**first, "read": True, "read_at": read.read_at, "rev": 2}


def test_reading_again_changes_nothing(
    hive: Hive, reviewer: Hive, beads: Path, clock: Clock
) -> None:
    sent = send(hive)
    before = reviewer.messages.mark_read([sent.id]), snapshot(beads)
    clock.advance(60)
    assert (reviewer.messages.mark_read([sent.id, sent.id]), snapshot(beads)) == before


@pytest.mark.parametrize("reader", ["ui-engineer", "tester", "human", "queen"])
def test_only_the_recipient_marks_a_message_as_read(
    hive: Hive, open_as: Opener, beads: Path, reader: str
) -> None:
    sent = send(hive)
    before = snapshot(beads)
    with pytest.raises(NotYours, match=f"is to reviewer, not to {reader}") as refusal:
        open_as(reader).messages.mark_read([sent.id])
    assert refusal.value.owner == "reviewer"
    assert refusal.value.hint == f"queen msg thread {sent.id}"
    assert snapshot(beads) == before


def test_several_messages_are_marked_together_or_not_at_all(
    hive: Hive, reviewer: Hive, beads: Path
) -> None:
    mine, theirs = send(hive), send(hive, "tester", new=True)
    before = snapshot(beads)
    with pytest.raises(NotYours):
        reviewer.messages.mark_read([mine.id, theirs.id])
    with pytest.raises(NotFound):
        reviewer.messages.mark_read([mine.id, "qm-nowhere"])
    assert snapshot(beads) == before


# Hiding


@pytest.mark.parametrize("who", ["ui-engineer", "reviewer"])
def test_both_sides_may_hide_a_message_and_it_is_gone_for_both(
    hive: Hive, open_as: Opener, beads: Path, who: str
) -> None:
    sent = send(hive, body="secret")
    assert open_as(who).messages.delete(sent.id).deleted
    assert open_as("reviewer").messages.inbox() == []
    assert hive.messages.sent() == []
    assert [row.get("deleted") for row in records(ledger(beads))] == [None, True]


def test_hiding_again_changes_nothing(hive: Hive, beads: Path) -> None:
    sent = send(hive)
    hive.messages.delete(sent.id)
    before = snapshot(beads)
    assert hive.messages.delete(sent.id).deleted
    assert snapshot(beads) == before


def test_a_stranger_hides_nothing(hive: Hive, open_as: Opener, beads: Path) -> None:
    sent = send(hive)
    before = snapshot(beads)
    with pytest.raises(NotYours, match="between ui-engineer and reviewer"):
        open_as("tester").messages.delete(sent.id)
    assert snapshot(beads) == before


def test_a_hidden_message_is_not_found_by_reading_or_answering(
    hive: Hive, reviewer: Hive, beads: Path
) -> None:
    sent = send(hive)
    hive.messages.delete(sent.id)
    before = snapshot(beads)
    for attempt in (
        lambda: reviewer.messages.get(sent.id),
        lambda: reviewer.messages.mark_read([sent.id]),
        lambda: reviewer.messages.reply(sent.id, "what was it?"),
    ):
        with pytest.raises(NotFound, match=f"{sent.id} was deleted") as refusal:
            attempt()
        assert refusal.value.hint == f"queen hive history {sent.id}"
    assert snapshot(beads) == before


# Acknowledgements that are late


def overdue(hive: Hive, **more: int) -> list[str]:
    return [message.body for message in hive.messages.inbox(overdue=True, **more)]


def test_an_acknowledgement_is_overdue_from_the_very_instant_it_was_due(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    hive.messages.send("reviewer", "may I merge?", ack_within_s=60)
    clock.advance(59.999)
    assert overdue(reviewer) == []
    clock.advance(0.001)
    assert overdue(reviewer) == ["may I merge?"]


def test_what_was_acknowledged_or_asks_for_nothing_is_never_overdue(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    [asked] = hive.messages.send("reviewer", "may I merge?", ack_within_s=60)
    hive.messages.send("reviewer", "merged")
    clock.advance(61)
    reviewer.messages.acknowledge([asked.id])
    assert overdue(reviewer) == []


def test_a_limit_counts_only_what_is_overdue(hive: Hive, reviewer: Hive, clock: Clock) -> None:
    for body in ("one", "two", "three"):
        hive.messages.send("reviewer", body, ack_within_s=60)
        hive.messages.send("reviewer", "by the way")
        clock.advance(1)
    clock.advance(60)
    assert overdue(reviewer, limit=2) == ["three", "two"]


# Reading what is unread


def test_reading_without_ids_marks_everything_unread_and_returns_it_oldest_first(
    hive: Hive, reviewer: Hive
) -> None:
    sent = [send(hive, body=f"number {number}") for number in range(25)]
    reviewer.messages.mark_read([sent[3].id])
    read = reviewer.messages.read_unread()
    assert [each.id for each in read] == [each.id for each in sent if each.id != sent[3].id]
    assert all(each.read for each in read)
    assert reviewer.messages.inbox(unread=True) == []


def test_reading_a_few_marks_only_the_oldest(hive: Hive, reviewer: Hive) -> None:
    first, second, third = (send(hive, body=text) for text in ("a", "b", "c"))
    assert [m.id for m in reviewer.messages.read_unread(limit=2)] == [first.id, second.id]
    assert [m.id for m in reviewer.messages.inbox(unread=True)] == [third.id]


def test_reading_a_few_takes_those_to_everyone_by_their_age(hive: Hive, reviewer: Hive) -> None:
    sent = [send(hive, to=to, body=to) for to in ("@all", "reviewer", "reviewer", "@all")]
    for some in (sent[:2], sent[2:]):
        assert [each.id for each in reviewer.messages.read_unread(limit=2)] == [m.id for m in some]


def test_reading_where_nothing_is_unread_writes_nothing(
    hive: Hive, reviewer: Hive, beads: Path
) -> None:
    send(hive)
    reviewer.messages.read_unread()
    before = snapshot(beads)
    assert reviewer.messages.read_unread() == []
    assert snapshot(beads) == before


@pytest.mark.parametrize("body", ["", " ", "\n\t \n"])
def test_a_message_without_text_is_refused_and_nothing_is_written(
    hive: Hive, beads: Path, body: str
) -> None:
    with pytest.raises(InvalidInput, match="the message is empty"):
        send(hive, body=body)
    assert not ledger(beads).exists()
