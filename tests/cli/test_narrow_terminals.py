"""What a terminal shows fits its width, has colors that mean something, and marks what is yours;
a program that reads the same command gets whole values.
"""

from __future__ import annotations

import re
from pathlib import Path

from hives import Clock, Queen, QuickQueen, write_lines

NOW = {"created_at": "2024-12-14T10:00:00.123456Z"}


def test_short_ids_are_last(team: Path, quick: QuickQueen) -> None:
    inbox = quick("msg", "inbox", as_="ui").out.splitlines()
    assert inbox[0].split() == ["WHEN", "FROM", "TO", "ISSUE", "SUBJECT", "ID"]
    identifier = quick("msg", "inbox", "--json", as_="ui").json[0]["id"]
    assert identifier.endswith(inbox[1].split()[-1])
    for line in (
        ("reserve", "list"),
        ("msg", "sent"),
        ("msg", "search", "hello"),
    ):
        assert quick(*line, as_="oak").out.splitlines()[0].split()[-1] == "ID", line


def test_completed_rows_show_when_they_were_completed(team: Path, quick: QuickQueen) -> None:
    quick("release", "qb-2", as_="oak")
    for line in (("issue", "assignments", "--status", "all"), ("show", "qb-3")):
        rows = [row.split("  ") for row in quick(*line, as_="ui").out.splitlines()]
        rows = [[cell.strip() for cell in row if cell.strip()] for row in rows]
        [headings] = [row for row in rows if row[:2] == ["ISSUE", "DROID"]]
        assert headings[2:5] == ["STATUS", "SINCE", "ENDED"]
        [done] = [row for row in rows if row[:3] == ["qb-3", "ui", "completed"]]
        assert re.fullmatch(r"\d+(s|ms|m) ago", done[4]), done
    assert "ENDED" in quick("issue", "assignments", "--status", "completed", as_="ui").out
    assert "ENDED" not in quick("issue", "assignments", as_="ui").out
    assert re.search(r"done +\d+\w+ ago  qb-3  issue 3  by ui", quick("status", as_="ui").out)


def test_an_assignment_that_never_ended_has_no_end(quick: QuickQueen, beads: Path) -> None:
    record = {**NOW, "issue_id": "qb-1", "droid": "ui", "assigned_by": "ui"}
    at = "2024-12-15T10:00:00Z"
    write_lines(
        beads / "queen_assignments.jsonl",
        {"id": "qa-1", **record, "status": "completed", "updated_at": at},
        {"id": "qa-2", **record, "issue_id": "qb-2", "status": "active", "updated_at": at},
    )
    shown = quick("issue", "assignments", "--status", "all", as_="ui").out.splitlines()
    end = shown[0].index("ENDED")
    ends = {line.split()[0]: line[end:].split("  ")[0].strip() for line in shown[1:]}
    assert ends["qb-2"] == "" and ends["qb-1"].endswith("ago")


def test_nothing_is_marked_for_a_program(team: Path, quick: QuickQueen) -> None:
    for line in (
        ("issues",),
        ("issue", "assignments"),
        ("reserve", "list"),
    ):
        assert "*  " not in quick(*line, as_="ui").out.replace("docs/**", ""), line


def test_what_is_set_decides_about_color_before_the_terminal_does(
    team: Path, quick: QuickQueen
) -> None:
    """`FORCE_COLOR` and `CLICOLOR_FORCE` for a pager, `NO_COLOR` above all of them."""
    red = "\x1b[31mheld\x1b[0m"
    for env in (
        {"FORCE_COLOR": "1"},
        {"FORCE_COLOR": "3", "TERM": "dumb"},
        {"CLICOLOR_FORCE": "1"},
        {"CLICOLOR_FORCE": "1", "CLICOLOR": "0"},
    ):
        assert red in quick("reserve", "check", "src/a.py", as_="ui", env=env).out, env
    for env in (
        {"FORCE_COLOR": "1", "NO_COLOR": "1"},
        {"FORCE_COLOR": "0"},
        {"FORCE_COLOR": ""},
        {"CLICOLOR": "1"},
        {"CLICOLOR_FORCE": "0"},
    ):
        assert "\x1b" not in quick("reserve", "check", "src/a.py", as_="ui", env=env).out, env


def test_json_never_has_color(team: Path, quick: QuickQueen) -> None:
    assert "\x1b" not in quick("issues", "--json", as_="ui", env={"FORCE_COLOR": "1"}).out


def test_findings_mail_and_waits_have_the_color_of_their_word(
    team: Path, quick: QuickQueen, beads: Path
) -> None:
    def shown(*line: str) -> str:
        return quick(*line, as_="ui", env={"FORCE_COLOR": "1"}).out

    assert "\x1b[36mnew\x1b[0m" in shown("msg", "inbox")
    assert "\x1b[36mwaits\x1b[0m" in shown("issues")
    with (beads / "queen_messages.jsonl").open("a") as file:
        file.write("<<<<<<< HEAD\n")
    assert "\x1b[31merror\x1b[0m" in shown("doctor")
    assert "\x1b[32mfixed\x1b[0m" in shown("doctor", "--fix")


def test_a_pipe_has_no_color(team: Path, quick: QuickQueen, queen: Queen) -> None:
    assert "\x1b" not in quick("issues", "--all", as_="ui", env={"COLUMNS": "80"}).out
    assert "\x1b" not in queen("issues", "--all", as_="ui", env={"TERM": "xterm"}).out


def test_columns_that_are_no_number_are_ignored(
    frozen: Clock, quick: QuickQueen, team: Path
) -> None:
    whole = quick("reserve", "list", as_="ui").out
    for value in ("", "0", "-3", "wide", "٣٠", "9" * 5000):
        assert quick("reserve", "list", as_="ui", env={"COLUMNS": value}).out == whole, value
