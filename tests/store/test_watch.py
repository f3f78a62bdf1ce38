"""Waiting for a file: by events, by looking where there are none, never past the deadline."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from queenbee.store import watch
from queenbee.store.watch import wait_for_change


@pytest.fixture(params=["events", "polling"])
def way(request, monkeypatch):
    """Both ways of waiting, under the same expectations."""
    if request.param == "polling":
        monkeypatch.setattr(watch, "_wait_for_events", lambda wait, folders: None)
    return request.param


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "ledger"
    path.write_text("")
    return path


def stamp_of(path):
    return lambda: path.stat().st_size if path.exists() else -1


def test_a_change_that_was_made_before_the_call_is_seen_at_once(file, way):
    stamp = stamp_of(file)
    before = stamp()
    file.write_text("x")
    assert wait_for_change(stamp, before, [str(file)], time.monotonic() + 60)


def test_a_change_wakes_the_waiter(file, way):
    stamp = stamp_of(file)
    writer = threading.Timer(0.05, file.write_text, ["x"])
    writer.start()
    assert wait_for_change(stamp, stamp(), [str(file)], time.monotonic() + 60)
    writer.join()


def test_a_file_that_is_replaced_wakes_the_waiter(file, way):
    stamp = stamp_of(file)
    other = file.with_name("other")
    other.write_text("longer")
    writer = threading.Timer(0.05, os.replace, [other, file])
    writer.start()
    assert wait_for_change(stamp, stamp(), [str(file)], time.monotonic() + 60)
    writer.join()


def test_a_change_while_the_watch_begins_is_seen(file, monkeypatch):
    """Neither the look before it nor an event shows it."""
    looks = []

    def stamp():
        looks.append(file.stat().st_size)
        if len(looks) == 1:
            file.write_text("x")
        return looks[-1]

    monkeypatch.setattr(watch, "_TRUST_S", 3600)
    assert wait_for_change(stamp, 0, [str(file)], time.monotonic() + 60)
    assert looks[:2] == [0, 1]


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="asks /proc")
def test_no_thread_and_no_open_file_is_left_behind(file, way):
    files = set(os.listdir("/proc/self/fd"))
    threads = set(os.listdir("/proc/self/task"))
    stamp = stamp_of(file)
    before = stamp()
    for _ in range(3):
        assert not wait_for_change(stamp, before, [str(file)], time.monotonic() + 0.01)
    # The kernel ends the thread of a watch that is closed; it is awaited, not timed.
    while not set(os.listdir("/proc/self/task")) <= threads:
        time.sleep(0.001)
    assert set(os.listdir("/proc/self/fd")) <= files


def test_the_deadline_ends_the_wait(file, way):
    stamp = stamp_of(file)
    assert not wait_for_change(stamp, stamp(), [str(file)], time.monotonic() + 0.05)


def test_a_folder_that_does_not_exist_is_waited_for_by_looking(tmp_path, way):
    path = tmp_path / "not" / "there"
    stamp = stamp_of(path)
    assert not wait_for_change(stamp, stamp(), [str(path)], time.monotonic() + 0.05)


def test_what_watchdog_logs_is_not_printed() -> None:
    """It complains when it is stopped at the wrong moment; a program that logs still gets it."""
    script = (
        "import logging, queenbee.store.watch;"
        "logging.getLogger('watchdog.observers.inotify').error('the thread is inactive')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stderr == b""
