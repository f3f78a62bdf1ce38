"""The files of those who wait: in order, seen while their process lives, and removed after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from queenbee.errors import Unwritable
from queenbee.store.waiting_line import enter, is_live, live, names

_ENTER = """
import sys
from queenbee.store.waiting_line import enter
entry = enter(sys.argv[1], {"droid": "child"}, 1_000)
print(entry.name, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "queue")


def droids(folder: str) -> list[object]:
    return [fields["droid"] for _, fields in live(folder)]


def start(folder: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", _ENTER, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    return child


def test_nobody_waits_where_nobody_has_waited(folder: str) -> None:
    assert (names(folder), droids(folder)) == ([], [])


def test_the_order_is_that_of_entering_whatever_the_clock_says(folder: str) -> None:
    entries = [enter(folder, {"droid": str(n)}, now_ms) for n, now_ms in enumerate((9, 5, 9, 1))]
    assert droids(folder) == ["0", "1", "2", "3"]
    assert [entry.name for entry in entries] == names(folder)


def test_who_leaves_is_out_of_the_line(folder: str) -> None:
    first, second = (enter(folder, {"droid": each}, 1) for each in ("a", "b"))
    first.leave()
    first.leave()
    assert droids(folder) == ["b"]
    assert not is_live(folder, first.name) and is_live(folder, second.name)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_is_killed_is_out_of_the_line_at_once(
    folder: str, how: signal.Signals
) -> None:
    child = start(folder)
    assert droids(folder) == ["child"]
    child.send_signal(how)
    child.communicate()
    assert len(names(folder)) == 1
    assert not is_live(folder, names(folder)[0])
    assert droids(folder) == []
    assert names(folder) == []  # Whoever looks removes it.


def test_a_process_that_is_stopped_keeps_its_place(folder: str) -> None:
    child = start(folder)
    child.send_signal(signal.SIGSTOP)
    try:
        assert droids(folder) == ["child"]
    finally:
        child.kill()
        child.communicate()


def test_looking_does_not_make_the_dead_seem_alive(folder: str) -> None:
    child = start(folder)
    child.kill()
    child.communicate()
    [name] = names(folder)
    looks = [os.open(os.path.join(folder, name), os.O_RDONLY) for _ in range(2)]
    import fcntl

    fcntl.flock(looks[0], fcntl.LOCK_SH)  # Another process that looks at this moment.
    assert not is_live(folder, name)
    for fd in looks:
        os.close(fd)


def test_links_and_strange_files_are_not_followed_and_not_waited_for(
    folder: str, tmp_path: Path
) -> None:
    other = tmp_path / "mine"
    other.write_text("keep me")
    keep = enter(folder, {"droid": "a"}, 1)
    link = Path(folder, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
    link.symlink_to(other)
    os.mkfifo(Path(folder, "7ZZZZZZZZZZZZZZZZZZZZZZZZY"))
    Path(folder, "notes.txt").write_text("not ours")
    assert droids(folder) == ["a"]
    assert other.read_text() == "keep me"
    assert sorted(os.listdir(folder)) == sorted([keep.name, "notes.txt"])


def test_a_link_in_place_of_the_folder_removes_nothing_elsewhere(
    folder: str, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    victim = elsewhere / "01KE9V6PX3T2MZ8Y4C7W5A1B9D"
    victim.write_text("{}")
    os.makedirs(os.path.dirname(folder))
    os.symlink(elsewhere, folder)
    assert droids(folder) == []
    assert victim.exists()


def test_a_place_that_cannot_be_taken_is_refused(folder: str) -> None:
    os.makedirs(os.path.dirname(folder))
    Path(folder).write_text("a file")
    with pytest.raises(Unwritable, match="nobody can wait"):
        enter(folder, {}, 1)


def test_what_a_process_left_before_it_had_a_name_is_removed_later(folder: str) -> None:
    enter(folder, {"droid": "a"}, 1)
    left, fresh = Path(folder, ".entry.1.tmp"), Path(folder, ".entry.2.tmp")
    left.touch()
    fresh.touch()
    os.utime(left, (0, 0))
    assert droids(folder) == ["a"]
    assert (left.exists(), fresh.exists()) == (False, True)
