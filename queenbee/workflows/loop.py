"""The loop over a hive's Ralph bead: what `queen bead run` calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from queenbee.checks.runner import CheckRunner
from queenbee.documents.ralph.bead_files import BeadFile
from queenbee.documents.ralph.bead_loop import RunOutcome, run_bead
from queenbee.documents.ralph.verify import (
    checks_to_run,
    describe_checks,
    refuse_completed,
    seen_checks,
    unmet_of,
)
from queenbee.services.assignments import taken
from queenbee.workflows.complete_hive import Hive
from queenbee.workflows.completing import end
from queenbee.workflows.locks import run_lock
from queenbee.workflows.running import (
    Watcher,
    bead_folders,
    check_runner,
    require_ralph_bead,
    waits_for,
)


def run(
    hive: Hive,
    name: str,
    agent_command: Callable[[], str],
    *,
    env: Mapping[str, str],
    on_progress: Watcher | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> RunOutcome:
    """Runs the loop over a Ralph bead (the agent, then the checks), and returns how it ended.

    A bead of the hive is claimed for the actor first, and its assignment is completed at the end;
    the actor keeps one that failed. A file from elsewhere is not claimed. Raises `NotFound`,
    `Taken`, `NoActor`, `Busy` while another loop runs over the bead, and what the loop raises.
    """
    runner = check_runner(hive, env, on_progress=on_progress, tell=tell)
    with run_lock(hive, require_ralph_bead(hive, name).bead_id):
        # Read again: only under the lock can no other loop change it.
        return _run(hive, require_ralph_bead(hive, name), agent_command, runner)


def checks_of_loop(hive: Hive, name: str) -> list[str]:
    """Returns a line for each check after the agent's work. Raises as `run` does."""
    return describe_checks(require_ralph_bead(hive, name), hive.layout.settings.bead_shell)


def _run(
    hive: Hive, bead: BeadFile, agent_command: Callable[[], str], runner: CheckRunner
) -> RunOutcome:
    folders, waits = bead_folders(hive), waits_for(hive)
    if not bead.in_row and os.path.dirname(bead.path) not in folders.all():
        return run_bead(bead, agent_command, runner, folders, waits_for=waits)
    refuse_completed(bead)
    checks_to_run(bead, hive.layout.settings.bead_shell)
    holder = hive.assignments.active(bead.bead_id)
    if holder is not None and holder.droid != hive.actor:
        raise taken(holder, hive.now_ms())
    if not unmet_of(bead, folders, waits):
        seen_checks(bead, runner.consent)
        hive.assignments.claim(bead.bead_id)
    outcome = run_bead(bead, agent_command, runner, folders, waits_for=waits)
    # If the agent completed the bead itself, the assignment has ended already.
    if outcome.status == "completed" and hive.assignments.active(bead.bead_id) is not None:
        for note in end(hive, bead.bead_id, outcome.message).notes:
            runner.tell(note)
    return outcome
