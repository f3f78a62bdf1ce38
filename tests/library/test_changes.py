"""What happens in a hive, from a cursor: everything, in order of arrival, once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import git, records, write_lines

from queenbee import Assignment, Hive, Message, Reservation
from queenbee.errors import InvalidInput, NotFound

pytestmark = pytest.mark.both_engines

OpenAs = Callable[[str], Hive]


def told(hive: Hive, since: str = "0", **wanted: object) -> list[tuple[str, str | None, list[str]]]:
    found = hive.changes(since, timeout_s=0, **wanted)  # type: ignore[arg-type]
    return [(each.kind, each.by, each.fields) for each in found]


def test_what_became_and_changed_comes_in_order_with_before_and_after(
    hive: Hive, reviewer: Hive
) -> None:
    hive.messages.send("reviewer", "hello")
    (lease,) = reviewer.reservations.reserve(["src/**"])
    reviewer.messages.read_unread()
    reviewer.reservations.release(["src/**"])
    sent, reserved, read, released = hive.changes(timeout_s=0)
    assert isinstance(sent.after, Message)
    assert (sent.before, sent.after.body, sent.by) == (None, "hello", "ui-engineer")
    assert (reserved.after, reserved.at) == (lease, lease.created_at)
    assert isinstance(read.before, Message)
    assert (read.before.read, read.fields, read.by) == (False, ["read", "read_at"], "reviewer")
    assert isinstance(released.after, Reservation)
    assert (released.id, released.after.status) == (lease.id, "released")
    assert released.to_dict()["before"] == lease.to_dict()


def test_a_cursor_that_is_kept_misses_nothing_and_repeats_nothing(
    hive: Hive, open_as: OpenAs
) -> None:
    seen: list[str] = []
    cursor = "0"
    for number in range(7):
        hive.messages.send("ui-engineer", f"{number}")
        with open_as("follower") as follower:  # It is started anew each time.
            for change in follower.changes(cursor, timeout_s=0):
                assert isinstance(change.after, Message)
                seen.append(change.after.body)
                cursor = change.cursor
                if number % 2:
                    break  # The rest comes the next time.
    assert seen == [str(number) for number in range(7)]
    assert list(hive.changes(hive.cursor(), timeout_s=0)) == []
    assert hive.cursor() == cursor


def test_only_what_is_wanted_comes(hive: Hive, reviewer: Hive) -> None:
    hive.reservations.reserve(["src/**"])
    reviewer.reservations.reserve(["docs/a.md"])
    reviewer.messages.send("ui-engineer", "x")
    assert told(hive, kinds=["messages"]) == told(hive)[2:]
    assert [each.by for each in hive.changes(timeout_s=0, droid="reviewer")] == ["reviewer"] * 2
    assert len(told(hive, droid="ui-engineer")) == 2  # It gets the message.
    (src,) = hive.changes(timeout_s=0, path="src/b/c.py")
    assert src.by == "ui-engineer"
    assert told(hive, issue_id="qb-1") == []
    assert [each.kind for each in hive.log(2)] == ["reservations", "messages"]
    assert [each.by for each in hive.log(1, kinds=["reservations"])] == ["reviewer"]
    assert hive.log(since_ms=hive.now_ms() + 1) == []
    with pytest.raises(InvalidInput, match="'mesages' is not a kind of record"):
        hive.changes(kinds=["mesages"])


def test_whoever_follows_gets_what_others_write_until_told_to_end(
    hive: Hive, open_as: OpenAs
) -> None:
    seen, end, is_there = [], threading.Event(), threading.Semaphore(0)

    def follow() -> None:
        with open_as("follower") as follower:
            for change in follower.changes(cancel=end):
                seen.append(change.id)
                is_there.release()

    thread = threading.Thread(target=follow)
    thread.start()
    ids = []
    for number in range(3):
        ids += [each.id for each in hive.messages.send("ui-engineer", f"{number}")]
        assert is_there.acquire(timeout=30)
    end.set()
    thread.join(30)
    assert not thread.is_alive()
    assert seen == ids


@pytest.mark.only_files
def test_what_git_and_other_programs_bring_comes_too(
    hive: Hive, beads: Path, open_as: OpenAs
) -> None:
    hive.messages.send("reviewer", "first")
    cursor = hive.cursor()
    row = {"id": "qm-x", "from": "go", "to": "ui-engineer", "body": "foreign", "rev": 1}
    write_lines(beads / "queen_messages.jsonl", *records(beads / "queen_messages.jsonl"), row)
    hive.reservations.reserve(["a"])
    assert [each.id for each in hive.changes(cursor, timeout_s=0)][-1] == "qm-x"
    assert len(told(open_as("other"), cursor)) == 2


@pytest.mark.only_files
def test_what_git_takes_away_and_brings_back_is_no_change(repo: Path, hive: Hive) -> None:
    hive.messages.send("reviewer", "committed")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "hive")
    hive.messages.send("reviewer", "kept")
    cursor = hive.cursor()
    git(repo, "stash", "-uq")
    hive.messages.send("reviewer", "next")
    git(repo, "checkout", "-q", ".")
    git(repo, "stash", "pop", "-q")
    assert len(told(hive, cursor)) == 1


@pytest.mark.only_files
def test_a_line_that_changes_nothing_is_no_change(hive: Hive, beads: Path) -> None:
    (lease,) = hive.reservations.reserve(["a"])
    cursor, ledger = hive.cursor(), beads / "queen_reservations.jsonl"
    again = {name: value for name, value in lease.to_dict().items() if name != "reason"}
    write_lines(ledger, *records(ledger), {**again, "pattern": "a", "rev": 1, "droid": lease.droid})
    write_lines(ledger, *records(ledger), dict(reversed(list(again.items()))))
    assert told(hive, cursor) == []


def test_an_issue_says_what_changed(hive: Hive) -> None:
    issue = hive.issues.new("Search", issue_id="qb-7")
    hive.issues.edit(issue, title="Find")
    hive.assignments.claim(issue)
    made, edited, claimed = hive.changes(timeout_s=0, issue_id=issue)
    assert (made.kind, made.before) == ("issues", None)
    assert edited.fields == ["title", "updated_at"] or edited.fields == ["title"]
    assert isinstance(claimed.after, Assignment)


@pytest.mark.only_files
def test_a_cursor_of_a_memory_that_is_gone_is_refused(hive: Hive, open_as: OpenAs) -> None:
    hive.messages.send("reviewer", "x")
    cursor = hive.cursor()
    hive.close()
    for each in Path(hive.layout.state_dir).glob("hive.sqlite3*"):
        each.unlink()
    with open_as("other") as anew:
        anew.messages.send("reviewer", "y")
        with pytest.raises(NotFound, match="memory that this clone no longer has"):
            anew.changes(cursor)
        assert len(told(anew)) == 2
    for wrong in ("x", "1", "", "-", f"{cursor}x", cursor.replace("-", "_")):
        with pytest.raises((InvalidInput, NotFound)):
            hive.changes(wrong)
