"""Which process an agent is: known once two events have met it, and gone when it has ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from queenbee import Hive
from queenbee.store.droids import agent_processes, liveness

pytestmark = pytest.mark.linux


def note_from(hive: Hive, *, times: int) -> None:
    """Notes the agent of `fern` in hooks that another process starts, which then ends."""
    program = (
        "import subprocess, sys\n"
        'hook = "import sys; from queenbee import Hive; "\n'
        'hook += "from queenbee.store.droids import agent_processes;"\n'
        "hook += \" agent_processes.note(Hive.open(sys.argv[1]).layout, 'fern')\"\n"
        f"for _ in range({times}): subprocess.run([sys.executable, '-c', hook, sys.argv[1]])\n"
    )
    subprocess.run([sys.executable, "-c", program, hive.layout.tree], check=True)


def test_an_agent_that_two_events_have_met_is_known_to_be_gone(hive: Hive) -> None:
    hive.reservations.reserve(["a.py"])
    note_from(hive, times=2)
    assert agent_processes.is_gone(hive.layout, "fern")


def test_a_runner_of_one_event_is_no_agent(hive: Hive) -> None:
    hive.reservations.reserve(["a.py"])
    note_from(hive, times=1)
    note_from(hive, times=1)
    assert not agent_processes.is_gone(hive.layout, "fern")


def test_an_agent_that_runs_is_not_gone(hive: Hive) -> None:
    hive.reservations.reserve(["a.py"])
    agent_processes.note(hive.layout, "fern")
    agent_processes.note(hive.layout, "fern")
    assert not agent_processes.is_gone(hive.layout, "fern")


def test_a_process_of_another_machine_or_with_a_number_used_again(hive: Hive) -> None:
    path = Path(hive.layout.state_dir) / "clients" / "fern"
    path.parent.mkdir(parents=True)
    place = liveness.caller().partition(" ")[0]
    path.write_text("elsewhere/pid:[1] 999999 1 again")
    assert not agent_processes.is_gone(hive.layout, "fern")
    path.write_text(f"{place} {os.getpid()} 1 again")  # Ours began later than that.
    assert agent_processes.is_gone(hive.layout, "fern")
