"""What a terminal shows fits its width: the parts inside."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest
from bead_files import put_bead, ralph_bead
from extent import quick_or
from hives import Queen, QuickQueen, inside, write_lines
from hypothesis import given
from hypothesis import strategies as st

from queenbee import Hive
from queenbee.cli import terminal
from queenbee.cli.main import run
from queenbee.cli.rendering import entry, paragraph, table
from queenbee.cli.terminal import MEANINGS, cut, width, wrapped
from queenbee.core.queue import Want
from queenbee.core.text import JOINERS

WIDTHS = (80, 50)

LONG = "supercalifragilistic" * 12

WIDE = "日本語のテスト🐝" * 30

STACKED = "e\u0301\u0302\u0303👩\u200d🔬" * 80

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egnp\u2066\u2028\0\x7f\u200b\nqueen: all is well\r\n"

HOSTILE = {
    "long": LONG,
    "many words": "many plain words " * 30,
    "wide": WIDE,
    "stacked": STACKED,
    "evil": EVIL * 3,
}

LISTS = (
    ("issue", "assignments"),
    ("issue", "assignments", "--status", "all"),
    ("issue", "assignments", "--status", "completed"),
    ("bead", "list"),
    ("bead", "ready"),
    ("bead", "validate", "gt-1"),
    ("reserve", "check", "held.py", "free/" + LONG),
    ("worktree", "collisions"),
    ("reserve", "conflicts"),
    ("doctor",),
    ("gate", "history", "-w", "wf_1", "-p", "phase_1"),
    ("gate", "status"),
    ("gate", "status", "-w", "wf_1", "-p", "phase_1"),
    ("gate", "show", "-w", "wf_1", "-p", "phase_1"),
    ("guard", "check", "held.py"),
    ("guard", "status"),
    ("hive", "history", "qm-1"),
    ("hive", "index", "status"),
    ("issues",),
    ("issues", "--all"),
    ("msg", "inbox"),
    ("msg", "read", "qm-1"),
    ("msg", "search", "text"),
    ("msg", "sent", "--as", "reviewer"),
    ("msg", "thread", "qb-2"),
    ("msg", "wait", "--timeout", "1s"),
    ("next",),
    ("next", "--as", "oak"),
    ("msg", "notify", "--once"),
    ("issue", "ready"),
    ("reserve", "list"),
    ("reserve", "list", "--all"),
    ("hive", "rotate"),
    ("setup", "--check"),
    ("show", "qb-1"),
    ("show", "qb-2"),
    ("hive", "stats"),
    ("status",),
    ("status", "--as", "oak"),
    ("bead", "verify", "gt-1"),
    ("issue", "wait", "--ready", "--as", "oak"),
    ("worktree", "list"),
)
"""Every list, and what else prints lines about many things."""

NOW = {"created_at": "2024-12-14T10:00:00.123456Z"}

SEEN = re.compile(r'"last_seen_at":"[^"]*"')

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def fill(quick: QuickQueen, repo: Path, text: str) -> Path:
    """Makes a hive in which every field that holds text holds this one."""
    beads = repo / ".beads"
    row = {"title": text, "description": text, "status": "open", "issue_type": text}
    write_lines(
        beads / "issues.jsonl",
        {"id": "qb-1", **row, "dependencies": [f"dep{text[:200]}"], "assignee": text},
        {"id": "qb-2", **row, "issue_type": "task", "priority": 0},
        {"id": "qb-3", **row, "issue_type": "task"},
        {"id": "qb-4", **row, "issue_type": "task", "status": "closed"},
        {"id": f"dep{text[:200]}", **row, "issue_type": "task"},
    )
    to_me = {**NOW, "from": text, "to": "ui", "issue_id": "qb-2", "importance": "urgent"}
    write_lines(
        beads / "queen_messages.jsonl",
        {"id": "qm-1", **to_me, "subject": f"text {text}", "body": f"text {text}"},
        {"id": f"qm-{text[:100]}", **to_me, "subject": text, "body": text, "importance": text},
        {"id": "qm-3", **to_me, "from": "reviewer", "to": text, "subject": text, "body": text},
    )
    lease = {**NOW, "expires_at": "2099-01-01T00:00:00Z", "status": "active", "exclusive": True}
    write_lines(
        beads / "queen_reservations.jsonl",
        {"id": f"qr-{text[:100]}", **lease, "pattern": "held.py", "droid": text, "reason": text}
        | {"issue_id": text},
        {"id": "qr-2", **lease, "pattern": text, "droid": "oak", "issue_id": "qb-2"},
        {"id": "qr-3", **lease, "pattern": "held.py", "droid": "ui", "exclusive": True},
        {"id": "qr-4", **lease, "pattern": text, "droid": "ui", "status": "released"},
    )
    given = {**NOW, "updated_at": NOW["created_at"], "droid": text, "assigned_by": text}
    write_lines(
        beads / "queen_assignments.jsonl",
        {"id": "qa-1", **given, "issue_id": "qb-1", "status": "active", "reason": text}
        | {"worktree": text},
        {"id": "qa-2", **given, "issue_id": "qb-2", "status": "active", "droid": "ui"}
        | {"worktree": text},
        {"id": "qa-3", **given, "issue_id": "qb-4", "status": "completed", "reason": text},
        {"id": "qa-4", **given, "issue_id": "qb-2", "status": "released", "reason": text},
    )
    put_bead(repo, ralph_bead("gt-1", "true", intent=text))
    phase = ("-w", "wf_1", "-p", "phase_1")
    name = text.replace("\0", "")[:200]
    assert quick("gate", "new", *phase, "--name", name, as_="ui").code == 0
    missing = "free/" + name.replace("/", "").replace("\n", "")[:60]
    quick("gate", "add-rule", *phase, "--exists", missing, as_="ui")
    assert quick("gate", "run", *phase, as_="ui").code == 1
    return repo


@pytest.fixture
def crowded(quick: QuickQueen, repo: Path) -> Path:
    """A hive that is full of text of every kind."""
    return fill(quick, repo, EVIL + WIDE[:40] + STACKED[:60] + " many plain words" * 9 + LONG)


def on_a_terminal(tree: Path, columns: int, *arguments: str, **env: str) -> str:
    """Returns what the command prints on a terminal of this width. It runs in this process."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # Linux says so of a terminal that nobody writes to any more.
            while part := os.read(ours, 65_536):
                shown.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    wanted = {"QUEEN_DROID": "ui", "QUEEN_DURABILITY": "buffered", "TERM": "xterm", **env}
    errors = io.StringIO()
    with (
        open(theirs, "w", encoding="utf-8", newline="\n") as written,
        pytest.MonkeyPatch.context() as patch,
        inside(tree, wanted),
        redirect_stdout(written),
        redirect_stderr(errors),
    ):
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        code = run(list(arguments))
    reader.join()
    os.close(ours)
    assert code in (0, 1), errors.getvalue()
    return b"".join(shown).decode().replace("\r\n", "\n")


def too_long(shown: str, columns: int) -> list[str]:
    """Returns the lines that do not fit."""
    plain = ESCAPES.sub("", shown)
    assert "\x1b" not in plain
    return [line for line in plain.split("\n") if width(line) > columns]


@pytest.mark.slow
@pytest.mark.parametrize("columns", WIDTHS)
def test_no_line_is_longer_than_the_terminal(crowded: Path, columns: int) -> None:
    for line in LISTS:
        shown = on_a_terminal(crowded, columns, *line)
        assert shown.strip(), line
        assert too_long(shown, columns) == [], line


@pytest.mark.some(2)
@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_whatever_the_text_and_the_width(quick: QuickQueen, repo: Path, kind: str) -> None:
    fill(quick, repo, HOSTILE[kind])
    for columns in (2, 20, 50, 80)[:: quick_or(1, quick=2)]:
        for line in (each for each in LISTS if "wait" not in each):
            shown = quick(*line, as_="ui", env={"COLUMNS": str(columns)}).out
            assert too_long(shown, columns) == [], (columns, line)


def test_programs_get_whole_values(crowded: Path, quick: QuickQueen) -> None:
    shown = quick("reserve", "list", as_="ui").out
    assert "*" not in shown.split("\n")[1][:1]
    assert all(heading in shown for heading in ("MODE", "LEFT", "ISSUE", "REASON"))
    assert not too_long(quick("reserve", "list", as_="ui", env={"COLUMNS": "50"}).out, 50)


@pytest.mark.slow
def test_what_is_yours_is_marked(team: Path) -> None:
    for line in (
        ("issues",),
        ("issue", "assignments"),
        ("reserve", "list"),
    ):
        shown = ESCAPES.sub("", on_a_terminal(team, 80, *line)).splitlines()
        marked = [each for each in shown if each.startswith("*  ")]
        assert len(marked) == 1 and ("ui" in marked[0].split()), line
        others = ESCAPES.sub("", on_a_terminal(team, 80, *line, "--as", "elm"))
        assert not re.search(r"^\*", others, re.MULTILINE), line
        assert others.splitlines()[0][0] != " ", line


@pytest.mark.slow
def test_a_color_says_what_the_word_says(team: Path) -> None:
    issues = on_a_terminal(team, 80, "issues", "--all")
    for code, word in ((33, "active"), (32, "ready"), (2, "done"), (33, "*")):
        assert f"\x1b[{code}m{word}\x1b[0m" in issues
    assert "\x1b[31mheld\x1b[0m" in on_a_terminal(team, 80, "reserve", "check", "src/a.py")
    assert "\x1b[32mfree\x1b[0m" in on_a_terminal(team, 80, "reserve", "check", "other")
    status = on_a_terminal(team, 80, "status")
    assert "\x1b[32mready\x1b[0m" in status and "\x1b[2mdone\x1b[0m" in status
    ended = on_a_terminal(team, 80, "issue", "assignments", "--status", "completed")
    assert "\x1b[2mcompleted\x1b[0m" in ended


@pytest.mark.slow
@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_nobody_gets_color_who_does_not_want_it(team: Path, env: dict[str, str]) -> None:
    for line in (
        ("issues", "--all"),
        ("reserve", "check", "src/a.py"),
        ("status",),
        ("reserve", "list"),
    ):
        assert "\x1b" not in on_a_terminal(team, 80, *line, **env)


@pytest.mark.slow
@pytest.mark.parametrize("env", [{"CLICOLOR": "0"}, {"FORCE_COLOR": "0"}], ids=str)
def test_a_terminal_that_is_told_so_has_no_color(team: Path, env: dict[str, str]) -> None:
    assert "\x1b" not in on_a_terminal(team, 80, "issues", "--all", **env)


def test_a_word_has_one_meaning_and_each_meaning_a_symbol_of_its_own() -> None:
    words = [word for each in MEANINGS for word in each.words]
    assert len(words) == len(set(words))
    assert len({each.symbol for each in MEANINGS}) == len(MEANINGS)
    colors = {"red", "green", "yellow", "cyan", "dim"}
    assert {each.color for each in MEANINGS} == colors


@pytest.mark.slow
def test_json_is_the_same_on_a_terminal(crowded: Path, queen: Queen) -> None:
    for line in (
        ("issues",),
        ("reserve", "list"),
        ("issue", "assignments", "--status", "all"),
    ):
        shown = on_a_terminal(crowded, 50, *line, "--json")
        assert SEEN.sub("", shown) == SEEN.sub("", queen(*line, "--json", as_="ui").out)


@pytest.mark.slow
def test_the_text_of_others_has_no_color(quick: QuickQueen, repo: Path, beads: Path) -> None:
    row = {"id": "qb-1", "title": "failed", "status": "open", "issue_type": "task"}
    write_lines(beads / "issues.jsonl", row)
    shown = on_a_terminal(repo, 80, "issues")
    assert "failed" in shown and "\x1b[31m" not in shown


def test_those_who_wait_fit_too(
    quick: QuickQueen, open_as: Callable[[str], Hive], beads: Path
) -> None:
    quick("reserve", "src/a.py", as_="ui")
    want = Want(["src/**", *(f"docs/{LONG[:60]}{n}" for n in range(3))])
    with open_as("birch").queue.register(want, 10**9):
        shown = quick("reserve", "list", as_="birch", env={"COLUMNS": "50"}).out
    assert "WAITING" in shown and too_long(shown, 50) == []
    assert any(line.startswith("*  birch") for line in shown.splitlines())


def test_an_old_encoding_measures_what_it_shows(queen: Queen, beads: Path) -> None:
    row = {"title": WIDE, "status": "open", "issue_type": "task"}
    write_lines(beads / "issues.jsonl", *({"id": f"qb-{n}", **row} for n in range(3)))
    env = {"COLUMNS": "50", "PYTHONIOENCODING": "ascii"}
    for line in (("issues",), ("status",), ("next",)):
        shown = queen(*line, as_="ui", env=env).out
        assert "\\u65e5" in shown and too_long(shown, 50) == []


def test_a_terminal_of_unknown_width_has_80_columns(crowded: Path) -> None:
    assert too_long(on_a_terminal(crowded, 0, "reserve", "list", "--all"), 80) == []


def test_text_is_cut_before_a_column_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    headings, row = ["NAME", "KIND", "TITLE", "ID"], ["a-name", "a-kind", "t" * 40, "5W6X"]
    shown = {}
    for size in (80, 40, 26):
        monkeypatch.setenv("COLUMNS", str(size))
        table(headings, [row], empty="", text=["TITLE"], spare=["KIND"])
        shown[size] = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert shown[80][1] == row
    assert shown[40][1] == ["a-name", "a-kind", "t" * 17 + "…", "5W6X"]
    assert shown[26] == [["NAME", "TITLE", "ID"], ["a-name", "t" * 11 + "…", "5W6X"]]


any_text = st.text(st.characters(exclude_categories=["Cs", "Cc"])) | st.sampled_from(
    [LONG, WIDE, STACKED]
)


@given(any_text, st.integers(0, 90))
def test_a_cut_text_fits_and_begins_as_the_whole(text: str, most: int) -> None:
    short = cut(text, most)
    assert width(short) <= most
    assert short == text or (width(text) > most and text.startswith(short.removesuffix("…")))


@given(any_text, st.integers(2, 90))
def test_a_wrapped_text_fits_and_loses_only_blanks(text: str, most: int) -> None:
    lines = list(wrapped(text, most))
    assert all(width(line) <= most for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert len(lines) <= 1 + len(text)


@given(any_text, any_text, any_text, st.integers(20, 90))
def test_an_entry_fits(before: str, text: str, after: str, most: int) -> None:
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(most))
        patch.setattr(terminal.click, "echo", lambda line, **_: said.append(line))
        entry(f"  {before.strip()}  ", text, after)
        paragraph(text, "    ")
    assert all(width(line) <= most for line in said)


def test_a_character_stays_with_its_marks() -> None:
    assert cut("e\u0301e\u0301e\u0301", 2) == "e\u0301…"
    assert cut("日本語", 5) == "日本…"
    assert cut("日本語", 4) == "日…"
    assert all(char not in JOINERS for char in cut("ab", 1))
