"""A purge: what was removed from ledger and memory is shown by no hive that is open."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from raw_files import remembered

from queenbee import Hive

SECRET = "correct horse battery staple"


@pytest.fixture
def long_lived(hive: Hive) -> Hive:
    """A hive that has read a message to be purged, far from the end of the ledger."""
    hive.messages.send("api", SECRET)
    for number in range(20):
        hive.messages.send("api", f"{number} " + 400 * "x")
    assert SECRET in bodies(hive)
    return hive


def bodies(hive: Hive) -> list[str]:
    return [each.body for each in hive.messages.sent(limit=1000)]


def purge(hive: Hive, by: bytes) -> None:
    """Puts other bytes in the place of the secret, in the same file, and deletes the memory."""
    path = hive.layout.ledger_path("messages")
    before = os.stat(path)
    data = Path(path).read_bytes()
    with open(path, "r+b") as file:
        file.write(data.replace(SECRET.encode(), by))
        file.truncate()
    assert os.stat(path).st_ino == before.st_ino
    for each in Path(hive.layout.state_dir).glob("hive.sqlite3*"):
        each.unlink()


@pytest.mark.parametrize("by", [b"*" * len(SECRET), b"", b"a longer text than it was before it"])
def test_a_long_lived_hive_does_not_show_what_was_purged(long_lived: Hive, by: bytes) -> None:
    purge(long_lived, by)
    assert SECRET not in bodies(long_lived)
    assert by.decode() in bodies(long_lived)


def test_nor_does_it_write_it_again(long_lived: Hive) -> None:
    purge(long_lived, b"*" * len(SECRET))
    long_lived.messages.send("api", "later")
    assert SECRET.encode() not in Path(long_lived.layout.ledger_path("messages")).read_bytes()
    assert not any(
        SECRET.encode() in line for line in remembered(long_lived.layout.state_dir, "messages")
    )
    for path in Path(long_lived.layout.state_dir).glob("hive.sqlite3*"):
        assert SECRET.encode() not in path.read_bytes()


def test_what_another_program_overwrites_in_place_is_shown_as_it_is(hive: Hive) -> None:
    """At the same size, far from the end, and before a write has recorded it."""
    path = Path(hive.layout.ledger_path("messages"))
    rows = [("m-0", "once"), *((f"m-{number}", 400 * "x") for number in range(1, 20))]
    lines = [
        json.dumps({"id": key, "rev": 1, "from": "ui-engineer", "to": "api", "body": body}) + "\n"
        for key, body in rows
    ]
    path.write_text("".join(lines))
    assert "once" in bodies(hive)
    with path.open("r+b") as file:
        file.write("".join(lines).replace("once", "then").encode())
    assert {"then", "once"} & {*bodies(hive)} == {"then"}
