"""What people see of the queue: in the list, in a refusal, and while they wait."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import COMMAND, Clock, Queen, QuickQueen, write_lines
from waiters import waits

from queenbee import Hive


def test_the_list_shows_who_waits_for_what(
    quick: QuickQueen, open_as: Callable[[str], Hive]
) -> None:
    quick("reserve", "src/a.py", as_="ui")
    with (
        waits(open_as("birch"), "src/**", "docs/**", wait_s=10**9),
        waits(open_as("oak"), "docs/x", exclusive=False, wait_s=10**9),
    ):
        shown, listed = quick("reserve", "list").out, quick("reserve", "list", "--json").json
    lines = [line.split("  ") for line in shown.splitlines()]
    rows = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert rows[3] == ["WAITING", "FOR", "MODE", "SINCE", "BEHIND"]
    assert rows[4][:3] == ["birch", "src/**, docs/**", "exclusive"]
    assert [rows[5][0], rows[5][1], rows[5][2], rows[5][4]] == ["oak", "docs/x", "shared", "birch"]
    [lease] = listed
    [waiter] = lease["waiters"]
    assert (waiter["droid"], waiter["patterns"]) == ("birch", ["src/**", "docs/**"])


def test_the_issues_show_for_whom_they_are_held(quick: QuickQueen, beads: Path) -> None:
    rows = [{"id": f"qb-{n}", "title": "about `Parser`", "status": "open"} for n in range(4)]
    write_lines(
        beads / "issues.jsonl", *rows, {"id": "qb-9", "title": "something else", "status": "open"}
    )
    assert quick("next", as_="ui").code == 0
    shown = [line.split()[2:-2] for line in quick("issues", as_="api").out.splitlines()[1:6]]
    held = ["ready", "held", "for", "ui"]
    assert shown == [["active", "ui"], held, held, held, ["ready"]], shown


def test_nobody_in_the_line_is_not_mentioned(quick: QuickQueen) -> None:
    quick("reserve", "src/a.py", as_="ui")
    assert "WAITING" not in quick("reserve", "list").out
    assert "waiters" not in quick("reserve", "list", "--json").json[0]


def test_a_refusal_says_ones_place(quick: QuickQueen, open_as: Callable[[str], Hive]) -> None:
    quick("reserve", "src/a.py", as_="ui")
    with waits(open_as("birch"), "src/**", wait_s=10**9):
        refused = quick("reserve", "src/a.py", as_="oak")
        as_json = quick("reserve", "src/a.py", "--json", as_="oak").error
    assert (refused.code, "2nd in line after birch" in refused.err) == (5, True)
    assert (as_json["place"], as_json["ahead"][0]["droid"]) == (2, "birch")


def test_what_is_ready_for_those_who_waited_longer_is_taken_care_of(
    quick: QuickQueen, repo: Path, beads: Path, open_as: Callable[[str], Hive]
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    with waits(open_as("birch"), any_issue=True, wait_s=10**9):
        shown = quick("next", as_="oak")
    assert shown.code == 1
    assert shown.out.splitlines()[:2] == [
        "Nothing is ready for you, because what is ready goes to birch: 0 of 1 done, 1 ready",
        "  qb-1  x  (taken care of: birch has waited longer and will get it)",
    ]


def test_nothing_goes_to_those_who_wait_if_nothing_is_ready(
    quick: QuickQueen, repo: Path, beads: Path, open_as: Callable[[str], Hive]
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    quick("claim", "qb-1", as_="cedar")
    with waits(open_as("birch"), any_issue=True, wait_s=10**9):
        shown = quick("next", as_="oak")
    assert shown.out.splitlines()[0] == "Nothing is ready for you: 0 of 1 done, 1 active"


def on_a_terminal(tree: Path, *arguments: str, **env: str) -> str:
    """Returns what the command prints on standard error, where that is a terminal."""
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=tree,
        env={**os.environ, "COLUMNS": "80", **env},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        timeout=60,
    )
    os.close(theirs)
    told = b""
    try:
        while chunk := os.read(ours, 4096):
            told += chunk
    except OSError:
        pass
    os.close(ours)
    assert done.returncode == 6
    return told.decode()


@pytest.mark.slow
def test_a_wait_shows_a_line_of_progress_on_a_terminal(queen: Queen, repo: Path) -> None:
    queen("reserve", "a.py", as_="ui")
    wait = ("reserve", "a.py", "--wait", "1s")
    told = on_a_terminal(repo, *wait, QUEEN_DROID="oak")
    line = told.split("\r\x1b[K")[1]
    assert line.startswith("waiting for a.py (0s of 1s): a.py is held by ui, ")
    assert told.split("\r\x1b[K")[-1].startswith("queen: timed out after 1s")
    assert len(line) < 80
    assert "waiting" not in on_a_terminal(repo, *wait, "--json", QUEEN_DROID="oak")
    assert "waiting" not in queen(*wait, as_="oak").err


def test_who_is_silent_with_the_last_issue_is_named_wherever_somebody_waits_for_it(
    quick: QuickQueen, beads: Path, frozen: Clock
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "Last", "status": "open"})
    quick("claim", "qb-1", as_="fern")
    frozen.advance(16 * 60)
    silent = "last seen 16m ago"
    assert f"qb-1  Last  (fern has it, {silent})" in quick("next", as_="amber").out
    timed_out = quick("next", "--wait", "1s", as_="amber")
    assert timed_out.code == 6
    assert f"no issue is ready for you (fern has one, {silent})" in timed_out.err
    assert f"fern: qb-1 Last, {silent}" in quick("status", as_="amber").out
    nudged = quick("msg", "nudge", "fern", as_="amber")
    assert "queen issue assign qb-1 amber --force" in nudged.out
    moved = quick("issue", "assign", "qb-1", "amber", "--reassign", as_="amber")
    assert moved.code == 0
    [_, ended] = quick(
        "issue", "assignments", "--issue", "qb-1", "--status", "all", as_="amber"
    ).out.split("\n")[:2]
    assert ended.split()[:3] == ["qb-1", "fern", "reassigned"]
    assert ended.split()[-1] == "amber"
