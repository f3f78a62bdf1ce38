"""A process that forks: the child holds no lock, and has a hive of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from live_processes import child

from queenbee import Hive
from queenbee.errors import Busy


def test_a_write_that_was_forked_is_the_parents_alone(hive: Hive) -> None:
    def in_child() -> None:
        with pytest.raises(Busy, match="forked during a write"):
            tx.__exit__(None, None, None)
        assert [each.body for each in hive.messages.sent()] == []

    tx = hive.transaction()
    with tx:
        tx.create("messages", {"from": "ui-engineer", "to": "api", "body": "once"})
        with child(in_child):
            pass
    assert [each.body for each in hive.messages.sent()] == ["once"]


def test_a_hive_is_used_by_both_after_a_fork(hive: Hive) -> None:
    hive.messages.send("api", "before")
    hive.reservations.reserve(["src/a.py"])

    def in_child() -> None:
        hive.messages.send("api", "from the child")
        assert len(hive.messages.sent()) == 2
        hive.reservations.reserve(["src/b.py"])
        assert len(hive.reservations.find()) == 2

    with child(in_child):
        hive.messages.send("api", "from the parent")
    assert {each.body for each in hive.messages.sent()} == {
        "before", "from the child", "from the parent",
    }  # fmt: skip
    assert len(hive.reservations.find()) == 2


@pytest.mark.parametrize("busy", ["_minting", "_writing"])
def test_a_fork_while_another_thread_is_at_work_does_not_hang(hive: Hive, busy: str) -> None:
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        with getattr(hive, busy):
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait(10)
    with child(lambda: hive.messages.send("api", "from the child")):
        leave.set()
    thread.join()


def two(hive: Hive) -> None:
    """Sends two messages: the second one needs a memory that has the first one."""
    for number in (1, 2):
        hive.messages.send("api", f"message {number} from the child")


class TestAForkWhileAThreadWrites:
    """SQLite forbids to use a connection of the parent: the child opens the memory itself."""

    @pytest.fixture
    def busy(self, hive: Hive) -> Iterator[Hive]:
        """A hive that a thread is writing to, which ends half a second after the fork began."""
        hive.messages.send("api", "before the fork")
        entered = threading.Event()

        def work() -> None:
            with hive.engine.memory.database.turn():
                entered.set()
                time.sleep(0.5)

        thread = threading.Thread(target=work)
        thread.start()
        entered.wait(10)
        yield hive
        thread.join()

    def test_does_not_stop_the_child(self, busy: Hive) -> None:
        with child(lambda: two(busy)):
            busy.messages.send("api", "from the parent")
        assert len(busy.messages.sent()) == 4

    def test_nor_one_that_opens_the_hive_itself(self, busy: Hive) -> None:
        tree = busy.layout.tree
        with child(lambda: two(Hive.open(tree, droid="reviewer"))):
            pass
        assert len(busy.state("messages").select({})) == 3
