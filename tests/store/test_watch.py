"""Waiting for a change: seen if it was made before or while waiting, never past the deadline."""

from __future__ import annotations

import os
import threading
import time

import pytest

from queenbee.store.files import wait_for_change


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "ledger"
    path.write_text("")
    return path


def stamp_of(path):
    return lambda: path.stat().st_size if path.exists() else -1


def test_a_change_that_was_made_before_the_call_is_seen_at_once(file):
    stamp = stamp_of(file)
    before = stamp()
    file.write_text("x")
    assert wait_for_change(stamp, before, time.monotonic() + 60)


def test_a_change_wakes_the_waiter(file):
    stamp = stamp_of(file)
    writer = threading.Timer(0.05, file.write_text, ["x"])
    writer.start()
    assert wait_for_change(stamp, stamp(), time.monotonic() + 60)
    writer.join()


def test_a_file_that_is_replaced_wakes_the_waiter(file):
    stamp = stamp_of(file)
    other = file.with_name("other")
    other.write_text("longer")
    writer = threading.Timer(0.05, os.replace, [other, file])
    writer.start()
    assert wait_for_change(stamp, stamp(), time.monotonic() + 60)
    writer.join()


def test_the_deadline_ends_the_wait(file):
    stamp = stamp_of(file)
    assert not wait_for_change(stamp, stamp(), time.monotonic() + 0.05)
