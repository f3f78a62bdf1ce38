"""Standard streams that are closed or full: the hook ends with 0 and says nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hives import Queen

HOOK = f"{sys.executable} -P -m queenbee.hook.main"
EVENT = {
    "hook_event_name": "PreToolUse",
    "session_id": "s",
    "tool_name": "Write",
    "tool_input": {"file_path": "src/app.py"},
}


@pytest.mark.some(5)
@pytest.mark.parametrize(
    "streams",
    [
        "<&-",
        ">&-",
        "2>&-",
        "<&- >&- 2>&-",
        "> /dev/full",
        "2> /dev/full",
        "> /dev/full 2> /dev/full",
    ],
)
@pytest.mark.parametrize("broken", [False, True], ids=["held", "unreadable"])
@pytest.mark.linux
def test_the_hook_ends_with_0(
    tree: Path, beads: Path, queen: Queen, streams: str, broken: bool
) -> None:
    queen("reserve", "src/**", as_="reviewer")
    if broken:
        (beads / "queen_reservations.jsonl").unlink()
        (beads / "queen_reservations.jsonl").mkdir()
    event = json.dumps({**EVENT, "cwd": str(tree)})
    ran = subprocess.run(
        ["sh", "-c", f"{HOOK} {streams}"], cwd=tree, input=event, capture_output=True, text=True
    )
    assert ran.returncode == 0
    assert "Traceback" not in ran.stderr + ran.stdout


def test_the_guard_of_a_push_with_closed_input_says_nothing_is_pushed(
    tree: Path, queen: Queen
) -> None:
    queen("reserve", "src/**", as_="reviewer")
    command = f"{sys.executable} -P -c 'from queenbee.cli.main import main; main()'"
    ran = subprocess.run(
        ["sh", "-c", f"{command} guard check --pre-push origin <&-"],
        cwd=tree,
        env={**os.environ, "QUEEN_DROID": "mo"},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
