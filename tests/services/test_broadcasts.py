"""Messages to everyone: one record, read by each droid for itself, also by who joins in time."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Clock, QuickQueen, records, snapshot, write_lines

from queenbee import Hive, Message
from queenbee.errors import NotYours

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]
HOUR = 3_600_000
LEDGER = "queen_messages.jsonl"


def everyone(hive: Hive, body: str = "stand-up") -> Message:
    [sent] = hive.messages.send("@all", body)
    return sent


def ids(messages: list[Message]) -> list[str]:
    return [each.id for each in messages]


def test_a_message_to_everyone_is_one_record(hive: Hive, beads: Path, open_as: Opener) -> None:
    open_as("planner").reservations.reserve(["docs/**"])
    hive.messages.send("reviewer", "hello", new=True)
    sent = everyone(hive)
    assert (sent.to, sent.thread) == ("@all", sent.id)
    assert len(records(beads / LEDGER)) == 2
    assert hive.messages.reach() == ["planner", "reviewer"]


def test_everyone_but_the_sender_gets_it(hive: Hive, open_as: Opener) -> None:
    sent = everyone(hive)
    assert ids(open_as("reviewer").messages.inbox()) == [sent.id]
    assert ids(open_as("tester").messages.inbox(unread=True)) == [sent.id]
    assert hive.messages.inbox() == []
    assert hive.messages.wait(timeout_s=0) == []


def test_each_reads_it_for_itself(hive: Hive, open_as: Opener, beads: Path) -> None:
    sent = everyone(hive)
    reviewer, tester = open_as("reviewer"), open_as("tester")
    [read] = reviewer.messages.read_unread()
    assert (read.read, read.read_at) == (True, "2024-12-14T10:30:00.000Z")
    assert reviewer.messages.inbox(unread=True) == []
    assert [each.read for each in reviewer.messages.inbox()] == [True]
    assert [each.read for each in tester.messages.inbox(unread=True)] == [False]
    assert [each.read for each in tester.messages.thread(sent.id)] == [False]
    assert ids(tester.messages.read_unread()) == [sent.id]
    assert hive.messages.get(sent.id).readers == ["reviewer", "tester"]
    before = snapshot(beads)
    tester.messages.mark_read([sent.id])
    assert snapshot(beads) == before


def marked(droid: str, rev: int, **more: object) -> dict[str, object]:
    at = f"2024-12-14T1{rev}:00:00.000Z"
    return {"id": "qm-1", "from": "api", "to": "@all", "rev": rev, f"{droid}:read_at": at, **more}


def test_marks_made_in_two_clones_both_survive_whatever_the_order(tmp_path: Path) -> None:
    first = {"id": "qm-1", "from": "api", "to": "@all", "body": "x", "read": False, "rev": 1}
    ours = [marked("ui", 2), marked("db", 3, **{"ui:read_at": "2024-12-14T12:00:00.000Z"})]
    theirs = [marked("qa", 2)]
    for number, order in enumerate(itertools.permutations([first, *ours, *theirs])):
        beads = tmp_path / str(number) / ".beads"
        beads.mkdir(parents=True)
        write_lines(beads / "queen_messages.jsonl", *order)
        hive = Hive.open(beads.parent, droid="api", env={})
        assert hive.messages.get("qm-1").readers == ["db", "qa", "ui"]


@pytest.mark.only_files  # Two clones share the database.
def test_two_clones_that_read_it_apart_agree_after_a_merge(
    hive: Hive, repo: Path, tmp_path: Path, clock: Clock
) -> None:
    sent = everyone(hive)
    clone = tmp_path / "clone"
    shutil.copytree(repo, clone)
    here, there = (
        Hive.open(tree, droid=droid, env={}, clock=clock)
        for tree, droid in ((repo, "reviewer"), (clone, "tester"))
    )
    here.messages.mark_read([sent.id])
    there.messages.mark_read([sent.id])
    ledgers = [tree / ".beads" / LEDGER for tree in (repo, clone)]
    lines = list(dict.fromkeys(line for path in ledgers for line in path.read_text().splitlines()))
    ledgers[0].write_text("".join(f"{line}\n" for line in lines))
    ledgers[1].write_text("".join(f"{line}\n" for line in [lines[0], *lines[:0:-1]]))
    states = [each.messages.get(sent.id).to_dict() for each in (here, there)]
    assert states[0] == states[1]
    assert here.messages.get(sent.id).readers == ["reviewer", "tester"]


# Who joins later


@pytest.mark.parametrize(("after_h", "reached"), [(0, True), (23, True), (24, True), (25, False)])
def test_it_reaches_who_joins_within_a_day(
    hive: Hive, open_as: Opener, clock: Clock, after_h: int, reached: bool
) -> None:
    sent = everyone(hive)
    clock.now_ms += after_h * HOUR
    newcomer = open_as("tester")
    assert ids(newcomer.messages.inbox()) == ([sent.id] if reached else [])
    assert ids(newcomer.messages.read_unread()) == ([sent.id] if reached else [])


@pytest.mark.parametrize("sign", ["sent", "received", "claimed", "reserved"])
def test_who_was_there_gets_it_however_late_it_is_read(
    hive: Hive, open_as: Opener, clock: Clock, sign: str
) -> None:
    tester = open_as("tester")
    if sign == "sent":
        tester.messages.send("ui-engineer", "hello")
    elif sign == "received":
        hive.messages.send("tester", "hello")
    elif sign == "claimed":
        tester.assignments.claim("qb-1")
    else:
        tester.reservations.reserve(["docs/**"])
    sent = everyone(hive)
    clock.now_ms += 72 * HOUR
    assert sent.id in ids(tester.messages.inbox(unread=True))


def test_who_only_looked_around_was_there_too(quick: QuickQueen, frozen: Clock, repo: Path) -> None:
    quick("init")
    quick("reserve", "a", as_="api")
    quick("reserve", "list", as_="ui")
    quick("msg", "send", "@all", "hello", as_="api")
    frozen.now_ms += 72 * HOUR
    assert len(quick("msg", "inbox", "--json", as_="ui").json) == 1
    assert quick("msg", "inbox", "--json", as_="late").json == []


def test_a_droid_that_the_repository_lists_is_there(
    hive: Hive, open_as: Opener, repo: Path, clock: Clock
) -> None:
    droids = repo / ".factory" / "droids"
    droids.mkdir(parents=True)
    for name in ("ui-engineer", "reviewer", "tester"):
        (droids / f"{name}.md").touch()
        os.utime(droids / f"{name}.md", ns=(clock.now_ms * 1_000_000, clock.now_ms * 1_000_000))
    everyone(hive)
    clock.now_ms += 72 * HOUR
    assert hive.messages.reach() == ["reviewer", "tester"]
    assert len(open_as("tester").messages.inbox()) == 1


def test_where_nobody_else_is_here_it_waits_for_who_joins(quick: QuickQueen) -> None:
    said = quick("msg", "send", "@all", "anybody?", as_="ui")
    assert (said.code, "nobody else is here yet" in said.out) == (0, True)
    assert len(quick("msg", "read", "--json", as_="api").json) == 1


def test_the_sender_is_told_whom_it_reaches(quick: QuickQueen) -> None:
    quick("reserve", "a", as_="db-2")
    quick("reserve", "list", as_="api")
    quick("hive", "whoami", "--set", "db")
    (sent,) = quick("msg", "send", "@all", "hello", "--json", as_="ui").json
    assert (sent["to"], sent["reaches"]) == ("@all", ["api", "db", "db-2"])
    assert (
        "to api, db, db-2, and to whoever joins" in quick("msg", "send", "@all", "x", as_="ui").out
    )


# What else is done with messages


def test_each_acknowledges_it_for_itself(hive: Hive, open_as: Opener, clock: Clock) -> None:
    [sent] = hive.messages.send("@all", "ready?", ack_within_s=60)
    reviewer, tester = open_as("reviewer"), open_as("tester")
    [acked] = reviewer.messages.acknowledge([sent.id])
    assert (acked.read, acked.acked_at) == (True, "2024-12-14T10:30:00.000Z")
    clock.now_ms += HOUR
    assert reviewer.messages.inbox(overdue=True) == []
    assert ids(tester.messages.inbox(overdue=True)) == [sent.id]


def test_an_answer_goes_to_the_sender_in_the_same_thread(hive: Hive, open_as: Opener) -> None:
    sent = everyone(hive)
    answer = open_as("reviewer").messages.reply(sent.id, "here")
    assert (answer.to, answer.thread) == ("ui-engineer", sent.id)
    again = hive.messages.reply(sent.id, "and now")
    assert (again.to, again.thread) == ("@all", sent.id)
    assert ids(open_as("tester").messages.inbox()) == [again.id, sent.id]
    assert len(hive.messages.thread(sent.id)) == 3


def test_only_the_sender_deletes_it(hive: Hive, open_as: Opener) -> None:
    sent = everyone(hive)
    with pytest.raises(NotYours, match="only ui-engineer can delete it"):
        open_as("reviewer").messages.delete(sent.id)
    hive.messages.delete(sent.id)
    assert open_as("reviewer").messages.inbox() == []


def test_the_sender_does_not_mark_it(hive: Hive) -> None:
    with pytest.raises(NotYours, match="from you, to everyone else"):
        hive.messages.mark_read([everyone(hive).id])


def test_it_arrives_after_the_last_message_that_was_seen(
    hive: Hive, open_as: Opener, clock: Clock
) -> None:
    first = hive.messages.send("reviewer", "hello")[0]
    sent = everyone(hive)
    everyone(open_as("reviewer"))
    assert ids(open_as("reviewer").messages.since(first.id)) == [sent.id]
    clock.now_ms += 48 * HOUR
    assert open_as("late").messages.since(first.id) == []


def test_filters_and_limits_count_it_like_any_other(
    hive: Hive, open_as: Opener, clock: Clock
) -> None:
    reviewer = open_as("reviewer")
    hive.messages.send("reviewer", "one", issue_id="qb-1")
    clock.now_ms += 1000
    hive.messages.send("@all", "two", issue_id="qb-2")
    clock.now_ms += 1000
    open_as("api").messages.send("@all", "three")
    clock.now_ms += 1000
    hive.messages.send("reviewer", "four")

    def bodies(**filters: object) -> list[str]:
        return [each.body for each in reviewer.messages.inbox(**filters)]  # type: ignore[arg-type]

    assert bodies() == ["four", "three", "two", "one"]
    assert bodies(limit=2) == ["four", "three"]
    assert bodies(from_="ui-engineer") == ["four", "two", "one"]
    assert bodies(issue_id="qb-2") == ["two"]
    assert bodies(since_ms=clock.now_ms - 2500) == ["four", "three", "two"]


def test_reading_it_is_a_sign_of_life_with_a_line_in_its_history(
    hive: Hive, open_as: Opener, clock: Clock
) -> None:
    sent = everyone(hive)
    clock.now_ms += HOUR
    open_as("reviewer").messages.mark_read([sent.id])
    assert hive.droids.seen_ms("reviewer") == clock.now_ms
    made, read = hive.history(sent.id)
    assert (made.by, read.by) == ("ui-engineer", "reviewer")
    assert (read.at, list(read.changes)) == ("2024-12-14T11:30:00.000Z", ["reviewer:read_at"])


def test_among_many_messages_those_to_everyone_are_read_by_each_for_itself(
    open_as: Opener, beads: Path
) -> None:
    at = "2024-12-14T10:00:00.000Z"
    rows = [
        {
            "id": f"qm-{n:04}", "created_at": at, "from": ["api", "reviewer", "db"][n % 3],
            "to": ["@all", "reviewer"][n % 2], "body": "x" * 300, "read": n % 4 == 1, "rev": 1,
        }
        for n in range(300)
    ]  # fmt: skip
    write_lines(beads / LEDGER, *rows)
    reviewer = open_as("reviewer")
    reviewer.messages.mark_read([f"qm-{n:04}" for n in range(0, 300, 6)])
    mine = [n for n in range(300) if n % 2 or n % 3 != 1]
    unread = {f"qm-{n:04}" for n in mine if (n % 4 == 3 if n % 2 else n % 6)}
    for hive in (reviewer, open_as("reviewer")):
        assert {each.id for each in hive.messages.inbox()} == {f"qm-{n:04}" for n in mine}
        assert {each.id for each in hive.messages.inbox(unread=True)} == unread
        for only in (False, True):
            inbox = hive.messages.inbox
            assert ids(inbox(unread=only, limit=7)) == ids(inbox(unread=only))[:7]
        assert hive.droids.known() == ["api", "db", "reviewer"]
