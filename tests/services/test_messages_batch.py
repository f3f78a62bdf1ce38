"""Many messages in one turn: all of them or none, and the refusal says which one is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from queenbee import Hive
from queenbee.errors import InvalidInput, NotFound, UnknownDroid
from queenbee.services.telling.sending import send_batch
from queenbee.services.writing.secrets import LooksLikeSecret

pytestmark = pytest.mark.both_engines

GOOD = [{"to": "reviewer", "body": f"body {number}"} for number in range(5)]


def test_messages_come_in_their_order(hive: Hive, reviewer: Hive) -> None:
    sent = hive.messages.send_many(GOOD)
    assert [message.body for message in sent] == [each["body"] for each in GOOD]
    assert [message.id for message in reviewer.messages.inbox()] == [each.id for each in sent][::-1]


def test_each_is_what_send_would_have_sent(hive: Hive) -> None:
    given = {"to": "reviewer,human", "body": "two\nlines", "importance": "high", "ack_within_s": 60}
    alone = hive.messages.send(**given)  # type: ignore[arg-type]
    many = hive.messages.send_many([given])
    own = {"id", "thread_id", "created_at", "ack_by"}
    for one, other in zip(alone, many, strict=True):
        assert {k: v for k, v in one.to_dict().items() if k not in own} == {
            k: v for k, v in other.to_dict().items() if k not in own
        }
    assert many[0].thread == many[1].thread == many[0].id


def test_an_answer_joins_the_thread_and_takes_the_subject(hive: Hive) -> None:
    parent = hive.messages.send("reviewer", "question")[0]
    [answer] = hive.messages.send_many([{**GOOD[0], "reply_to": parent.id}])
    assert (answer.thread, answer.subject) == (parent.thread, "Re: question")


def test_none_is_a_write_of_nothing(hive: Hive, beads: Path) -> None:
    assert hive.messages.send_many([]) == []
    assert not (beads / "queen_messages.jsonl").exists()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"to": "reviewer", "body": "  "}, InvalidInput),
        ({"to": "", "body": "hello"}, InvalidInput),
        ({"to": "no such name", "body": "hello"}, InvalidInput),
        ({"to": "revewer", "body": "hello"}, UnknownDroid),
        ({"to": "reviewer", "body": "hello", "importance": "most"}, InvalidInput),
        ({"to": "reviewer", "body": "hello", "reply_to": "qm-nowhere"}, NotFound),
        ({"to": "reviewer", "body": "\ud800"}, InvalidInput),
        ({"to": "reviewer", "body": "x" * 2_000_000}, InvalidInput),
        ({"to": "reviewer", "body": "AWS AKIAIOSFODNN7EXAMPLQ"}, LooksLikeSecret),
    ],
)
def test_one_that_is_wrong_sends_none(
    hive: Hive, reviewer: Hive, wrong: dict[str, str], error: type[Exception]
) -> None:
    reviewer.messages.send("ui-engineer", "I am here")
    before = len(hive.messages.sent())
    with pytest.raises(error, match=r"^message 4: ") as refused:
        hive.messages.send_many([*GOOD[:3], wrong, *GOOD])
    assert refused.value.details["message"] == 4  # type: ignore[attr-defined]
    assert len(hive.messages.sent()) == before


@pytest.mark.linux
@pytest.mark.only_files  # The database's disk is another one.
def test_a_thousand_wait_for_the_disk_once(hive: Hive, monkeypatch: pytest.MonkeyPatch) -> None:
    hive.layout.settings.durability = "synced"
    hive.messages.send("reviewer", "the first write makes the files")
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    hive.messages.send_many({"to": "reviewer", "body": f"body {number}"} for number in range(1_000))
    assert len(synced) == 1
    assert len(hive.messages.sent()) == 1_001


# Lines of JSON


def test_lines_are_sent_with_all_that_they_say(hive: Hive) -> None:
    lines = (
        '{"to": "reviewer", "body": "one"}\n'
        '{"to": "human", "body": "two", "subject": "S", "issue": "qb-42", "importance": "low", '
        '"ack_within": "1h", "new": false, "reply_to": null}\n\n'
    )
    one, two = send_batch(hive, lines)
    assert (one.to, one.subject, one.importance) == ("reviewer", "one", "normal")
    assert (two.to, two.subject, two.importance) == ("human", "S", "low")
    assert two.issue_id == "qb-42"
    assert two.ack_by


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        ('{"to": "human"}', "body is missing"),
        ('{"body": "hello"}', "to is missing"),
        ('{"to": ["human"], "body": "hello"}', "to is not text"),
        ('{"to": "human", "body": "hello", "new": 1}', "new is not true or false"),
        ('{"to": "human", "body": "hello", "issues": "x"}', "there is no field 'issues'"),
        ('{"to": "human", "body": "hello", "ack_within": "soon"}', "soon"),
        ('{"to": "human", "body": ""}', "the message is empty"),
    ],
)
def test_a_line_that_is_wrong_is_named(hive: Hive, line: str, says: str) -> None:
    good = '{"to": "human", "body": "hello"}'
    with pytest.raises(InvalidInput, match=r"^line 2: ") as refused:
        send_batch(hive, f"{good}\n{line}\n{good}\n")
    assert says in refused.value.message
    assert refused.value.details["line"] == 2
    assert hive.messages.sent() == []
