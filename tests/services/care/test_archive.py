"""Closed records move to the archive by themselves, and every service finds them as before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hives import Clock, records, write_lines

from queenbee import Hive
from queenbee.errors import Busy, Unwritable
from queenbee.services import archiving
from queenbee.services.care import doctor

DAY_S = 86_400


def settle(beads: Path, *lines: str) -> None:
    (beads / "queen.toml").write_text("\n".join(lines) + "\n")


def archived(beads: Path, kind: str) -> list[str]:
    """Returns the ids of the archived lines of a kind."""
    paths = sorted((beads / "archive").glob(f"queen_{kind}.*.jsonl"))
    return [record["id"] for path in paths for record in records(path)]


def left(beads: Path, kind: str) -> list[str]:
    return [record["id"] for record in records(beads / f"queen_{kind}.jsonl")]


class TestWhatIsClosed:
    def test_an_assignment_when_it_ended(self, hive: Hive, clock: Clock, beads: Path) -> None:
        done, open_ = hive.assignments.claim("qb-1"), hive.assignments.claim("qb-2")
        hive.assignments.complete("qb-1")
        clock.advance(DAY_S)
        assert hive.rotate()["assignments"].records == 1
        assert archived(beads, "assignments") == [done.id] * 2
        assert left(beads, "assignments") == [open_.id]

    def test_a_lease_when_it_was_released_or_ran_out(
        self, hive: Hive, clock: Clock, beads: Path
    ) -> None:
        released, ran_out, live = (
            hive.reservations.reserve([pattern], ttl_s=ttl_s)[0].id
            for pattern, ttl_s in (("a/**", 30 * DAY_S), ("b/**", 60), ("c/**", 2 * DAY_S))
        )
        hive.reservations.release(["a/**"])
        clock.advance(DAY_S + 60)
        hive.rotate()
        assert archived(beads, "reservations") == [released, released, ran_out]
        assert left(beads, "reservations") == [live]

    def test_a_message_a_day_after_its_last_change(
        self, hive: Hive, reviewer: Hive, clock: Clock, beads: Path
    ) -> None:
        quiet = hive.messages.send("reviewer", "one")[0].id
        read = hive.messages.send("reviewer", "two")[0].id
        clock.advance(DAY_S)
        reviewer.messages.mark_read([read])
        hive.rotate()
        assert archived(beads, "messages") == [quiet]
        assert left(beads, "messages") == [read, read]

    def test_not_before_the_setting_says(self, hive: Hive, clock: Clock, beads: Path) -> None:
        hive.messages.send("reviewer", "one")
        clock.advance(DAY_S - 1)
        assert hive.rotate()["messages"].records == 0
        assert hive.rotate(older_than_s=DAY_S - 1)["messages"].records == 1

    def test_a_kind_that_we_do_not_know_never_is(self, hive: Hive, beads: Path) -> None:
        write_lines(beads / "queen_votes.jsonl", {"id": "qx-1", "rev": 1})
        assert hive.rotate(older_than_s=0)["votes"].records == 0
        assert left(beads, "votes") == ["qx-1"]

    def test_nothing_makes_a_ledger_where_there_is_none(self, hive: Hive, beads: Path) -> None:
        hive.rotate()
        assert not (beads / "queen_reservations.jsonl").exists()


class TestAfterwards:
    @pytest.fixture
    def message(self, hive: Hive, clock: Clock) -> str:
        """A message that was archived."""
        sent = hive.messages.send("reviewer", "the tax is in", issue_id="qb-1")[0].id
        clock.advance(DAY_S)
        hive.rotate()
        return sent

    def test_a_message_is_listed_read_answered_found_and_deleted(
        self, reviewer: Hive, message: str
    ) -> None:
        assert [each.id for each in reviewer.messages.inbox(unread=True)] == [message]
        assert [found.message.id for found in reviewer.messages.search("tax")] == [message]
        reviewer.messages.mark_read([message])
        assert reviewer.messages.inbox(unread=True) == []
        answer = reviewer.messages.reply(message, "good")
        assert [each.id for each in reviewer.messages.thread(message)] == [message, answer.id]
        assert [revision.rev for revision in reviewer.history(message)] == [1, 2]
        reviewer.messages.delete(message)
        assert reviewer.messages.inbox() == []

    def test_a_cursor_that_was_archived_misses_nothing_and_repeats_nothing(
        self, hive: Hive, reviewer: Hive, clock: Clock
    ) -> None:
        first, second, third = (hive.messages.send("reviewer", text)[0].id for text in "abc")
        clock.advance(DAY_S)
        reviewer.messages.mark_read([second])
        hive.rotate()
        late = hive.messages.send("reviewer", "d")[0].id
        assert [each.id for each in reviewer.messages.since(first)] == [second, third, late]

    def test_an_ended_claim_still_has_its_history(self, hive: Hive, clock: Clock) -> None:
        claimed = hive.assignments.claim("qb-1").id
        hive.assignments.complete("qb-1", reason="tax is in")
        clock.advance(DAY_S)
        hive.rotate()
        [found] = hive.assignments.find(status="all")
        assert (found.id, found.status, found.reason) == (claimed, "completed", "tax is in")

    def test_numbers_in_the_statistics_stay(
        self, hive: Hive, message: str, open_as: Callable[[str], Hive]
    ) -> None:
        from queenbee.services.care.indexes import statistics

        [row] = [each for each in statistics(open_as("x")) if each["kind"] == "messages"]
        assert (row["records"], row["segments"], row["size_bytes"]) == (1, 1, 0)
        assert row["archive_bytes"] > 100


class TestByItself:
    @pytest.fixture
    def small(self, beads: Path, clock: Clock, open_as: Callable[[str], Hive]) -> Hive:
        """A hive whose ledgers are rotated from 1 KiB on, with two old messages."""
        settle(beads, 'rotate_at = "1KiB"')
        hive = open_as("ui-engineer")
        for text in ("one", "two"):
            hive.messages.send("reviewer", text * 100)
        clock.advance(DAY_S)
        return hive

    def test_a_writer_rotates_a_ledger_that_has_grown_large(self, small: Hive, beads: Path) -> None:
        assert archived(beads, "messages") == []
        small.messages.send("reviewer", "three" * 100)
        assert len(archived(beads, "messages")) == 2
        assert len(small.messages.sent()) == 3

    def test_a_reader_never_does(self, small: Hive, beads: Path) -> None:
        with (beads / "queen_messages.jsonl").open("ab") as file:
            file.write(b'{"id":"qm-1","created_at":"2024-01-01T00:00:00Z","rev":1}\n' * 20)
        small.messages.sent()
        assert not (beads / "archive").exists()

    def test_where_nothing_is_closed_it_is_tried_again_once_the_ledger_has_grown(
        self, small: Hive, beads: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock.advance(-DAY_S)
        tried = []
        rotate = archiving.rotate

        def counted(*args: Any, **more: Any) -> object:
            tried.append(1)
            return rotate(*args, **more)

        monkeypatch.setattr(archiving, "rotate", counted)
        for _ in range(12):
            small.messages.send("reviewer", "x" * 80)
        assert archived(beads, "messages") == []
        assert 0 < len(tried) < 6

    def test_a_process_that_waited_does_not_rotate_again(self, small: Hive, beads: Path) -> None:
        small.messages.send("reviewer", "three" * 100)
        before = archived(beads, "messages")
        done = archiving.rotate(small, "messages", older_than_s=0, due_at=1024)
        assert (done.records, archived(beads, "messages")) == (0, before)

    def test_where_it_cannot_be_written_the_command_says_what_to_grant(
        self, small: Hive, beads: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(path: str, _data: bytes) -> None:
            raise Unwritable(f"{path} cannot be written: Permission denied", path=path)

        monkeypatch.setattr(archiving.rotation, "create_document", refuse)
        with pytest.raises(Unwritable) as refused:
            small.rotate()
        assert str(beads) in str(refused.value.hint)

    def test_not_where_the_setting_says_off(
        self, beads: Path, clock: Clock, open_as: Callable[[str], Hive]
    ) -> None:
        settle(beads, 'rotate_at = "off"', 'archive_after = "0s"')
        hive = open_as("ui-engineer")
        for _ in range(20):
            hive.messages.send("reviewer", "x" * 100)
        assert not (beads / "archive").exists()

    def test_not_where_it_would_take_seconds(
        self, small: Hive, beads: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(archiving, "MOST_BYTES", 1024)
        small.messages.send("reviewer", "three" * 100)
        assert not (beads / "archive").exists()
        monkeypatch.setattr(doctor, "MOST_BYTES", 1024)
        [finding] = [each for each in doctor.examine(small) if each.code == "large"]
        assert finding.hint == "queen hive rotate"

    def test_what_keeps_it_from_it_does_not_touch_the_write(
        self, small: Hive, beads: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def busy(*_args: object, **_more: object) -> None:
            raise Busy("another one is at it")

        monkeypatch.setattr(archiving, "rotate", busy)
        small.messages.send("reviewer", "three" * 100)
        assert len(left(beads, "messages")) == 3
