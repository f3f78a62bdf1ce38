"""The terminal: the width of a text, and the bar that is shown while lines are taken in."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import pytest
from hives import Queen, git, write_lines

from queenbee import Hive
from queenbee.cli import outliving, terminal
from queenbee.cli.terminal import Bar, width
from queenbee.store.memory import intake
from queenbee.store.memory.folding import Folding

pytestmark = pytest.mark.slow

IMPATIENT = (
    "from queenbee.cli import main, terminal\n"
    "from queenbee.store.memory import intake\n"
    "terminal.BAR_AFTER_S = terminal._BAR_EVERY_S = 0\n"
    "intake._CHUNK_BYTES = 20_000\n"
    "main.main()"
)
"""The command, for which each piece of a ledger takes long."""


@pytest.fixture
def large(repo: Path) -> Path:
    """A repository with many messages that this clone has not read yet."""
    rows = [
        {"id": f"qm-{n:04}", "from": "a", "to": "b", "body": f"about {n} {'x' * 400}", "rev": 1}
        for n in range(300)
    ]
    foreign = '{"id":"qm-foreign","from":"a","to":"b","body":"hello"}'
    write_lines(repo / ".beads" / "queen_messages.jsonl", *rows, foreign)
    return repo


def shown(repo: Path, *arguments: str, stderr: bool = True) -> str:
    """Returns what the impatient command prints on a terminal."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, *arguments],
        cwd=repo,
        env=Queen(repo).environment("b", {"TERM": "xterm", "NO_COLOR": "1"}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs if stderr else subprocess.DEVNULL,
    )
    os.close(theirs)
    parts = []
    while part := _read(ours):
        parts.append(part)
    os.close(ours)
    assert running.wait(timeout=60) == 0
    return b"".join(parts).decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # Linux says so of a terminal that nobody writes to any more.
        return b""


def left_of(output: str) -> list[str]:
    """Returns the lines that are left on the screen."""
    lines = []
    for line in output.replace("\r\n", "\n").split("\n"):
        cells: list[str] = []
        for part in line.split("\r"):
            cells[: len(part)] = part
        lines.append("".join(cells).rstrip())
    return lines


def test_a_bar_is_shown_during_the_build_and_removed_after_it(large: Path) -> None:
    output = shown(large, "msg", "inbox", "--limit", "1")
    assert "working [####......" in output
    assert "working [##########" in output
    assert [line.split(" ")[-1] for line in left_of(output)] == [
        "301",
        "ID",
        "eign",
        "",
    ]
    assert "working" not in shown(large, "msg", "inbox", "--limit", "1")


def test_a_rebuild_shows_the_bar_too(large: Path) -> None:
    shown(large, "msg", "inbox")
    path = large / ".beads" / "queen_messages.jsonl"
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)
    output = shown(large, "msg", "inbox", "--limit", "1")
    assert "working [######" in output
    assert "working" not in "".join(left_of(output))


def test_a_build_that_was_asked_for_shows_the_bar_too(large: Path) -> None:
    shown(large, "msg", "inbox")
    output = shown(large, "hive", "index", "rebuild")
    assert "working [" in output
    assert "working" not in "".join(left_of(output))


def test_a_program_that_reads_the_output_gets_no_bar(large: Path) -> None:
    assert "working" not in shown(large, "msg", "inbox", "--json")
    git(large, "clean", "-fdxq")
    assert "working" not in shown(large, "hive", "index", "rebuild", "--json")
    assert "working" not in shown(large, "hive", "index", "rebuild", stderr=False)


def test_a_build_of_less_than_a_second_shows_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    instants = iter((100.0, 100.5, 100.99, 101.5, 200.0, 201.0, 201.01, 202.0, 203.0))
    monkeypatch.setattr(time, "monotonic", lambda: next(instants))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    bar = Bar()
    for done in (0, 5, 9, 10):
        bar(done, 10)
    assert capsys.readouterr().err == ""
    for done in (0, 5, 6, 9, 10):
        bar(done, 10)
    drawn = capsys.readouterr().err.split("\r")
    assert [each.partition("] ")[2].strip() for each in drawn[1:3]] == [
        "50%, 1 s left",
        "90%, 0 s left",
    ]
    assert (drawn[3].strip(), drawn[4]) == ("", "")
    assert terminal.BAR_AFTER_S == 1.0


def test_without_a_terminal_long_work_writes_a_line_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    instants = iter((0.0, 9.0, 10.5, 15.0, 21.0))
    monkeypatch.setattr(time, "monotonic", lambda: next(instants))
    bar = Bar()
    for done in (0, 5, 6, 7, 8):
        bar(done, 10)
    assert capsys.readouterr().err.splitlines() == [
        "queen: still working 60%, 7 s left",
        "queen: still working 80%, 5 s left",
    ]


def test_long_work_that_cannot_be_counted_says_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "_LINE_EVERY_S", 0.01)
    said = ""
    with Bar():
        while "queen: still working 0 s\n" not in said:
            said += capfd.readouterr().err
            time.sleep(0.01)
    assert "\r" not in said


def test_what_nobody_sees_before_the_end_has_no_lines_that_only_say_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = Event()

    class Unseen(outliving.Worker):
        @property
        def is_watched(self) -> bool:
            looked.set()
            return False

    monkeypatch.setattr(outliving, "worker", Unseen(0, 0))
    monkeypatch.setattr(terminal, "_LINE_EVERY_S", 0.01)
    told: list[str] = []
    with Bar(told.append):
        assert looked.wait(60)
    assert told == []


def test_a_build_that_fails_removes_its_bar(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(intake, "_CHUNK_BYTES", 20_000)
    monkeypatch.setattr(Folding, "finish", lambda *args: 1 / 0)
    hive = Hive.open(large, droid="b", env={})
    hive.progress = lambda done, total: told.append((done, total))
    with pytest.raises(ZeroDivisionError):
        hive.messages.inbox()
    assert len(told) > 2
    assert all(done < total for done, total in told[:-1])
    assert told[-1][0] == told[-1][1]


@pytest.mark.parametrize(
    ("text", "columns"),
    [("ab", 2), ("é", 1), ("e\u0301", 1), ("日本", 4), ("a日\u0301", 3), ("", 0)],
)
def test_a_text_is_as_wide_as_a_terminal_shows_it(text: str, columns: int) -> None:
    assert width(text) == columns
