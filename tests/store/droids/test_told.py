"""What a droid was told: when a command has to look at the messages at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from queenbee import Hive
from queenbee.store.droids.told import Told

LINE = '{"id":"qm-%d","from":"%s","to":"%s","subject":"ui","rev":1}\n'


@pytest.fixture
def told(open_as: Callable[[str], Hive]) -> Told:
    hive = open_as("ui")
    hive.messages.send("api", "for a start", new=True)
    found = Told(hive.layout, "ui", hive.engine)
    found.saw_mail(found.new_mail())
    assert found.new_mail() is None
    return found


class TestNewMail:
    @pytest.mark.parametrize("to", ["api", "ui2"])
    def test_between_others_is_none(
        self, told: Told, open_as: Callable[[str], Hive], to: str
    ) -> None:
        for number in range(3):
            open_as("reviewer").messages.send(to, f"about ui, {number}", new=True)
        assert told.new_mail() is None

    @pytest.mark.parametrize("to", ["ui", "@all"])
    def test_after_mail_between_others_is_noticed(
        self, told: Told, open_as: Callable[[str], Hive], to: str
    ) -> None:
        open_as("reviewer").messages.send("api", "for you")
        open_as("reviewer").messages.send(to, "for you")
        assert told.new_mail() is not None

    @pytest.mark.parametrize("ours", ['"to": "ui"', '"to":"\\u0075i"'])
    def test_of_other_programs_is_noticed_in_the_ledger_alone(
        self, told: Told, beads: Path, ours: str
    ) -> None:
        with (beads / "queen_messages.jsonl").open("a") as file:
            file.write(LINE % (1, "x", "y"))
            file.flush()
            assert told.new_mail() is None
            file.write((LINE % (2, "x", "y")).replace('"to":"y"', ours))
        assert told.new_mail() is not None

    def test_in_a_file_that_git_rewrote_may_be_anything(self, told: Told, beads: Path) -> None:
        path = beads / "queen_messages.jsonl"
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
        path.with_suffix(".old").write_bytes(b"")  # The inode may be used again; the size is not.
        path.write_bytes(b"")
        assert told.new_mail() is not None
