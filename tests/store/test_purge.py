"""A purge in place: what was removed from the files is shown by no hive that is open."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from queenbee.store.index.tables import Tables

from queenbee import Hive

SECRET = "correct horse battery staple"


@pytest.fixture(params=["folded", "indexed"])
def long_lived(
    request: pytest.FixtureRequest, open_as: Callable[[str], Hive], monkeypatch: pytest.MonkeyPatch
) -> Hive:
    """A hive that has read a message to be purged, far from the end of the files."""
    if request.param == "indexed":
        pass
    hive = open_as("ui-engineer")
    hive.messages.send("api", SECRET)
    for number in range(20):
        hive.messages.send("api", f"{number} " + 400 * "x")
    assert SECRET in bodies(hive)
    return hive


def bodies(hive: Hive) -> list[str]:
    return [each.body for each in hive.messages.sent(limit=1000)]


def purge(hive: Hive, by: bytes) -> None:
    """Puts other bytes in the place of the secret, in the same files."""
    for path in (hive.layout.ledger_path("messages"), hive.layout.journal_path("messages")):
        before = os.stat(path)
        data = Path(path).read_bytes()
        with open(path, "r+b") as file:
            file.write(data.replace(SECRET.encode(), by))
            file.truncate()
        assert os.stat(path).st_ino == before.st_ino


@pytest.mark.parametrize("by", [b"*" * len(SECRET), b"", b"a longer text than it was before it"])
def test_a_long_lived_hive_does_not_show_what_was_purged(long_lived: Hive, by: bytes) -> None:
    purge(long_lived, by)
    assert SECRET not in bodies(long_lived)
    assert by.decode() in bodies(long_lived)


def test_nor_does_it_write_it_again(long_lived: Hive) -> None:
    purge(long_lived, b"*" * len(SECRET))
    long_lived.messages.send("api", "later")
    for path in (
        long_lived.layout.ledger_path("messages"),
        long_lived.layout.journal_path("messages"),
    ):
        assert SECRET.encode() not in Path(path).read_bytes()


def test_an_index_that_another_process_rebuilt_is_the_one_that_answers(
    open_as: Callable[[str], Hive], monkeypatch: pytest.MonkeyPatch
) -> None:
    hive, other = open_as("ui-engineer"), open_as("ui-engineer")
    hive.messages.send("api", "hello")
    assert bodies(hive) == ["hello"]
    held = Tables("messages", hive.layout.index_path("messages"))
    other.rebuild_indexes()
    assert held.is_gone()
    index = Tables("messages", hive.layout.index_path("messages"))
    index.db.execute("DELETE FROM records")
    assert bodies(hive) == []
