"""One hive shared by threads: no double grant, no half-built state, no lost write."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import records, write_lines

from queenbee import Hive
from queenbee.core.fold import Table
from queenbee.errors import Held, Taken

pytestmark = pytest.mark.both_engines(thorough=True)

Opener = Callable[[str], Hive]
THREADS = 6


def together(work: Callable[[int], None], count: int = THREADS) -> None:
    """Runs the work in several threads that begin at once; their errors are raised here."""
    barrier, failures = threading.Barrier(count), list[BaseException]()

    def each(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=each, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    if failures:
        raise failures[0]


class Rendezvous:
    """Makes one thread halt in the middle of something until another has had its chance."""

    def __init__(self) -> None:
        self.halfway = threading.Event()
        self.answered = threading.Event()
        self._first = True

    def pause(self) -> None:
        if self._first:
            self._first = False
            self.halfway.set()
            # Not for ever: where the other one is made to wait for us, that is the point.
            self.answered.wait(timeout=0.2)

    def ask(self, question: Callable[[], object]) -> object:
        assert self.halfway.wait(timeout=10), "nothing was halted halfway"
        answer = question()
        self.answered.set()
        return answer


def test_threads_that_send_at_once_lose_nothing(hive: Hive, beads: Path) -> None:
    together(lambda number: [hive.messages.send("reviewer", f"{number}") for _ in range(10)])
    rows = records(beads / "queen_messages.jsonl")
    assert len({row["id"] for row in rows}) == THREADS * 10
    assert len(hive.messages.sent()) == THREADS * 10


def test_threads_of_several_droids_never_hold_the_same_file(hive: Hive, open_as: Opener) -> None:
    hives = [open_as(f"droid-{number}") for number in range(THREADS)]
    won = list[tuple[int, int]]()

    def race(number: int) -> None:
        for turn in range(8):
            try:
                hives[number].reservations.reserve([f"src/{turn}/*.py"])
                won.append((turn, number))
            except Held:
                pass

    together(race)
    assert sorted(turn for turn, _ in won) == list(range(8))


def test_threads_that_claim_through_one_hive_all_get_the_one_assignment(
    hive: Hive, beads: Path
) -> None:
    ids = set[str]()
    together(lambda number: ids.add(hive.assignments.claim("qb-1").id))
    assert len(ids) == 1
    assert len(records(beads / "queen_assignments.jsonl")) == 1


def test_threads_of_several_droids_have_one_winner(open_as: Opener) -> None:
    hives = [open_as(f"droid-{number}") for number in range(THREADS)]
    won = list[str]()

    def race(number: int) -> None:
        try:
            won.append(hives[number].assignments.claim("qb-1").droid)
        except Taken as refusal:
            assert str(refusal.holder).startswith("droid-")

    together(race)
    assert len(won) == 1


@pytest.mark.only_files  # It rewrites a file.
def test_nobody_is_answered_from_records_that_are_half_read(
    hive: Hive, beads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = hive.messages.send("reviewer", "x")[0]
    meeting, add, answers = Rendezvous(), Table.add, list[object]()

    def slow_add(table: Table, *args: object, **kwargs: object) -> str:
        meeting.pause()
        return add(table, *args, **kwargs)  # type: ignore[arg-type]

    state = hive.state("messages")
    path = beads / "queen_messages.jsonl"
    line = path.read_bytes()
    path.unlink()
    write_lines(path, {"id": "qm-0", "body": "rewritten"}, line.strip())
    monkeypatch.setattr(Table, "add", slow_add)

    def work(number: int) -> None:
        if number == 0:
            hive.messages.sent()
        else:
            answers.append(meeting.ask(lambda: (state.get(sent.id) or {}).get("body")))

    together(work, 2)
    assert answers == ["x"]
