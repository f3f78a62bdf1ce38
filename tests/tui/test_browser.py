"""`queen watch --web` in a real browser: the address opens the screen, and keys alone drive it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import chromium
from hives import COMMAND, QuickQueen, write_lines

pytestmark = pytest.mark.slow


@pytest.fixture
def served(quick: QuickQueen, repo: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a screen that is served, and the process that serves it."""
    quick("init")
    row = {"id": "qb-1", "title": "Paint the [red]door[/red]", "status": "open"}
    write_lines(repo / ".beads" / "issues.jsonl", row)
    quick("claim", "qb-1", as_="ui")
    command = [*COMMAND, "--as", "human", "watch", "--web"]
    with subprocess.Popen(command, cwd=repo, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process
        finally:
            process.send_signal(signal.SIGINT)


def children(pid: int) -> list[int]:
    """Returns the processes that a process has started."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(each) for each in found.stdout.split()]


def test_keys_alone_drive_it_nothing_is_loaded_from_elsewhere_and_its_end_leaves_nothing(
    served: tuple[str, subprocess.Popen[str]], quick: QuickQueen, tmp_path: Path
) -> None:
    address, process = served
    asked: list[str] = []
    complaints: list[str] = []

    def note(message: Any) -> None:
        if message.type == "error":
            complaints.append(message.text)

    def until(true: Any, what: str) -> None:
        end_s = time.monotonic() + 60
        while not true():
            assert time.monotonic() < end_s, what
            page.wait_for_timeout(100)

    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        assert "token" not in page.url
        page.wait_for_selector("body.-first-byte", timeout=60_000)
        until(lambda: page.evaluate("document.activeElement.className").startswith("xterm"), "keys")
        screens = children(process.pid)
        assert len(screens) == 1

        def written() -> bool:
            # The text is drawn on a canvas: that a key arrived shows in the hive alone, and one
            # that came before the screen was there is lost.
            for key in ("Escape", "1", "m"):
                page.keyboard.press(key)
            page.wait_for_timeout(1_000)
            page.keyboard.type("Which red?")
            page.keyboard.press("Control+s")
            page.wait_for_timeout(2_000)
            return "Which red?" in quick("msg", "inbox", as_="ui").out

        until(written, "no message")
        page.screenshot(path=str(tmp_path / "screen.png"))
        assert complaints == []
        host = address.partition("/?")[0]
        strangers = [url for url in asked if not url.startswith((f"{host}/", "data:", "ws://127"))]
        assert strangers == []
        page.keyboard.press("q")
        page.wait_for_selector("body.-closed", timeout=60_000)
        page.reload()
        until(lambda: children(process.pid) not in ([], screens), "no new screen")
        last = children(process.pid)
        # Even one that is killed leaves no screen behind.
        os.kill(process.pid, signal.SIGKILL)
        until(lambda: not any(os.path.exists(f"/proc/{each}") for each in last), "a screen is left")
