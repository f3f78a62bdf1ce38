"""`queen sync --watch`: exchanges until it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from hives import COMMAND, QuickQueen
from sync_worlds import PATIENCE_S, World, there, until

from queenbee.errors import Busy
from queenbee.git.remote import alongside
from queenbee.git.remote.alongside import State, watch
from queenbee.git.remote.syncing import sync
from queenbee.services import unasked


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(alongside, "LOOK_S", 0.05)
    monkeypatch.setattr(alongside, "LONGEST_LOOK_S", 0.5)
    world = World(tmp_path)
    for name in ("ada", "bob"):
        world.clone(name)
    return world


class Watcher:
    """A watch in a thread of this process."""

    def __init__(self, world: World, name: str) -> None:
        self.states: list[dict[str, object]] = []
        self.error: Exception | None = None
        self._stop = threading.Event()
        self._hive = world.hive(name)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            watch(self._hive, stopped=self._stop.is_set, show=self._show)
        except Exception as error:
            self.error = error

    def _show(self, state: State) -> None:
        self.states.append(asdict(state))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        assert self.error is None, self.error


@pytest.fixture
def ada(two: World) -> Iterator[Watcher]:
    watcher = Watcher(two, "ada")
    yield watcher
    watcher.stop()


class TestWatch:
    def test_sends_what_is_written_and_takes_in_what_others_push(
        self, two: World, ada: Watcher
    ) -> None:
        two.hive("ada").assignments.claim("shop-1")
        until(lambda: there(two) == {"shop-1"})
        two.hive("bob").assignments.claim("shop-2")
        sync(two.hive("bob"))
        until(lambda: len(two.hive("ada").assignments.find()) == 2)
        until(lambda: ada.states and ada.states[-1]["taken"] == 1)
        assert ada.states[-1]["sent"] == 1

    def test_goes_on_through_a_time_without_the_remote(self, two: World, ada: Watcher) -> None:
        two.hive("ada").assignments.claim("shop-1")
        until(lambda: ada.states and there(two) == {"shop-1"})
        two.cut()
        two.hive("ada", "dora").assignments.claim("shop-2")
        until(lambda: ada.states[-1]["away"])
        # It says so once, not at each attempt.
        said = len(ada.states)
        time.sleep(0.5)
        assert len(ada.states) == said
        two.heal()
        until(lambda: there(two) == {"shop-1", "shop-2"})
        until(lambda: ada.states[-1]["away"] is None)

    def test_sends_what_commands_write(self, two: World, ada: Watcher) -> None:
        layout = two.hive("ada").layout
        until(lambda: unasked.is_watched(layout))
        two.settings("ada", '[sync]\nwhen = "write"\n')
        unasked.allow(two.hive("ada").layout)
        started = len(ada.states)
        assert QuickQueen(two.folder / "ada")("claim", "shop-1", "--new", "--as", "ada").code == 0
        until(lambda: there(two) == {"shop-1"})
        until(lambda: not unasked.is_asked(two.hive("ada").layout))
        until(lambda: len(ada.states) > started)  # The watch sent it, not the command.

    def test_runs_once_on_a_machine(
        self, two: World, ada: Watcher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        layout = two.hive("ada").layout
        # Before it has its folder, nobody could tell.
        until(lambda: unasked.is_watched(layout))
        monkeypatch.setattr(alongside, "_TURN_S", 0.0)
        with pytest.raises(Busy):
            watch(two.hive("ada"), stopped=lambda: True, show=lambda _: None)


class TestTheCommand:
    @pytest.fixture
    def run(self, two: World) -> Iterator[Callable[[], subprocess.Popen[str]]]:
        started: list[subprocess.Popen[str]] = []

        def start() -> subprocess.Popen[str]:
            started.append(
                subprocess.Popen(
                    [*COMMAND, "sync", "--watch"],
                    cwd=two.folder / "ada",
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "QUEEN_DURABILITY": "buffered"},
                )
            )
            return started[-1]

        yield start
        for each in started:
            each.kill()
            each.communicate()

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_stops_cleanly_at_a_signal(
        self, two: World, run: Callable[[], subprocess.Popen[str]], number: signal.Signals
    ) -> None:
        process = run()
        two.hive("ada").assignments.claim("shop-1")
        until(lambda: there(two) == {"shop-1"})
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
        assert "queenbee/hive of origin: 0 lines taken in, 1 sent" in out.splitlines()
        assert not unasked.is_watched(two.hive("ada").layout)

    def test_killed_at_any_moment_leaves_everything_to_the_next(
        self, two: World, run: Callable[[], subprocess.Popen[str]]
    ) -> None:
        wanted = set()
        for number in range(6):
            process = run()
            until(lambda: unasked.is_watched(two.hive("ada").layout))
            for part in ("a", "b"):
                two.hive("ada", f"d{number}{part}").assignments.claim(f"shop-{number}{part}")
                wanted.add(f"shop-{number}{part}")
            time.sleep(0.05 * number)
            process.kill()
            process.wait()
        sync(two.hive("ada"))
        assert there(two) == wanted
        ids = [line["id"] for line in two.lines()]
        assert len(ids) == len(set(ids))

    def test_goes_without_setup(self, two: World) -> None:
        assert QuickQueen(two.folder / "ada")("sync", "setup", "--watch").code == 2
