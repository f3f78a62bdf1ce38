"""Messages: threads, and lines that others wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, records, write_lines

from queenbee import Hive, Message
from queenbee.errors import NotFound

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]


def ledger(beads: Path) -> Path:
    return beads / "queen_messages.jsonl"


def send(hive: Hive, to: str = "reviewer", body: str = "hello", **more: object) -> Message:
    return hive.messages.send(to, body, **more)[0]  # type: ignore[arg-type]


# Threads


def test_a_reply_goes_to_the_sender_in_the_thread_of_its_parent(hive: Hive, reviewer: Hive) -> None:
    question = send(hive, body="Ready?", issue_id="qb-42")
    answer = reviewer.messages.reply(question.id, "Yes")
    assert (answer.to, answer.reply_to, answer.thread_id) == (
        "ui-engineer",
        question.id,
        question.id,
    )
    assert (answer.subject, answer.issue_id) == ("Re: Ready?", "qb-42")


def test_a_reply_to_a_reply_stays_in_the_first_thread(hive: Hive, reviewer: Hive) -> None:
    question = send(hive, body="Ready?")
    answer = reviewer.messages.reply(question.id, "Yes")
    thanks = hive.messages.reply(answer.id, "Thanks")
    assert thanks.thread == question.id
    assert thanks.subject == "Re: Ready?"


def test_a_reply_to_your_own_message_goes_to_its_recipient(hive: Hive) -> None:
    sent = send(hive)
    assert hive.messages.reply(sent.id, "one more thing").to == "reviewer"


def test_a_message_may_answer_one_parent_and_go_to_somebody_else(hive: Hive) -> None:
    sent = send(hive)
    forwarded = send(hive, "tester", reply_to=sent.id, new=True)
    assert (forwarded.to, forwarded.thread) == ("tester", sent.id)


def test_a_reply_to_nothing_is_refused_and_nothing_is_written(hive: Hive, beads: Path) -> None:
    for attempt in (
        lambda: send(hive, reply_to="qm-nowhere"),
        lambda: hive.messages.reply("qm-nowhere", "x"),
    ):
        with pytest.raises(NotFound, match="'qm-nowhere'"):
            attempt()
    assert not ledger(beads).exists()


def test_a_thread_is_found_by_any_of_its_messages_oldest_first(
    hive: Hive, reviewer: Hive, clock: Clock
) -> None:
    question = send(hive, body="1")
    clock.advance(60)
    answer = reviewer.messages.reply(question.id, "2")
    clock.advance(60)
    thanks = hive.messages.reply(answer.id, "3")
    send(hive, body="something else")
    for each in (question, answer, thanks):
        assert [m.body for m in hive.messages.thread(each.id)] == ["1", "2", "3"]


def test_a_thread_is_found_by_its_issue_across_threads(hive: Hive, clock: Clock) -> None:
    for number in range(3):
        send(hive, body=str(number), issue_id="qb-42")
        clock.advance(1)
    send(hive, body="no", issue_id="qb-43")
    assert [m.body for m in hive.messages.thread("qb-42")] == ["0", "1", "2"]


def test_a_thread_that_does_not_exist_is_not_found(hive: Hive) -> None:
    with pytest.raises(NotFound, match="'qb-7'"):
        hive.messages.thread("qb-7")


def test_a_thread_continues_after_its_first_message_is_hidden(hive: Hive, reviewer: Hive) -> None:
    question = send(hive, body="1")
    answer = reviewer.messages.reply(question.id, "2")
    hive.messages.delete(question.id)
    assert [m.id for m in hive.messages.thread(answer.id)] == [answer.id]


# Foreign lines


def test_fields_that_nobody_knows_survive_every_update(
    hive: Hive, reviewer: Hive, beads: Path
) -> None:
    extra = {"x_trace": {"span": [1, 2.5, None]}, "priority": "p0", "big": 2**70}
    row = {"id": "qm-foreign", "created_at": "2024-12-14T10:00:00Z", "from": "go-tool"}
    write_lines(ledger(beads), {**row, "to": "reviewer", "body": "hi", "read": False, **extra})
    reviewer.messages.mark_read(["qm-foreign"])
    reviewer.messages.delete("qm-foreign")
    for line in records(ledger(beads))[1:]:
        assert {name: line[name] for name in extra} == extra


def test_the_documents_example_folds_to_what_the_document_says(hive: Hive, beads: Path) -> None:
    write_lines(
        ledger(beads),
        '{"id":"qm-01HZ1A","created_at":"2024-12-14T10:30:00Z","from":"queen","to":"ui-engineer",'
        '"subject":"[qb-42] Assigned: Button component","body":"You\'ve been assigned...",'
        '"issue_id":"qb-42","importance":"normal","read":false}',
        '{"id":"qm-01HZ1A","created_at":"2024-12-14T10:36:00Z","from":"queen","to":"ui-engineer",'
        '"read":true,"read_at":"2024-12-14T10:36:00Z"}',
    )
    [message] = hive.messages.inbox()
    assert message.read
    assert message.subject == "[qb-42] Assigned: Button component"
    assert message.created_at == "2024-12-14T10:30:00Z"
    assert message.to_dict()["rev"] == 2


def test_the_thread_that_the_go_tool_made_for_an_issue_is_found(hive: Hive, beads: Path) -> None:
    """It names the thread `issue:ID`; some of its messages have no issue."""
    base = {"from": "queen", "to": "ui-engineer", "subject": "s", "importance": "normal"}
    write_lines(
        beads / "queen_messages.jsonl",
        {**base, "id": "qm-1", "created_at": "2024-12-14T10:00:00Z", "issue_id": "qb-1"},
        {**base, "id": "qm-2", "created_at": "2024-12-14T10:01:00Z", "thread_id": "issue:qb-1"},
        {
            **base,
            "id": "qm-3",
            "created_at": "2024-12-14T10:02:00Z",
            "thread_id": "issue:qb-1",
            "issue_id": "qb-1",
        },
        {**base, "id": "qm-4", "created_at": "2024-12-14T10:03:00Z", "issue_id": "qb-11"},
    )
    for name in ("issue:qb-1", "qb-1"):
        assert [each.id for each in hive.messages.thread(name)] == ["qm-1", "qm-2", "qm-3"]
    with pytest.raises(NotFound):
        hive.messages.thread("issue:qb-2")
