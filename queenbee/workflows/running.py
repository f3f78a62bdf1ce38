"""Runs the checks of a hive's beads and gates once: for `queen bead verify` and `queen gate run`.

Checks run at the top of the current working tree; beads, gates, evidence and records belong to
the hive, whatever the worktree. No program runs under the hive's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, cast

from queenbee.checks.consent import Consent
from queenbee.checks.executing import Progress
from queenbee.checks.runner import CheckRunner
from queenbee.checks.verification import VerificationRecord
from queenbee.core.beads import Issue, is_sprint_bead
from queenbee.documents.folders import bead_dirs, bead_notes, evidence_dir, gates_dir
from queenbee.documents.gates import gate_run as gate_run
from queenbee.documents.gates.gate_run import GateRun
from queenbee.documents.ralph.bead_files import BeadFile, BeadFolders, read_bead
from queenbee.documents.ralph.ralph_bead import Unmet, unmet_dependencies
from queenbee.documents.ralph.verify import WaitsFor, describe_checks, verify_bead
from queenbee.documents.sprints.executions import describe_judges, has_history, sprint_verdict
from queenbee.errors import InvalidInput
from queenbee.store.git_files.host_tokens import without_tokens
from queenbee.workflows.complete_hive import Hive
from queenbee.workflows.document_answers import may_be_bead
from queenbee.workflows.locks import documents_lock, gate_runs
from queenbee.workflows.verifications import recorder, without_secrets

Watcher = Callable[[Progress], None]


def verify(
    hive: Hive, name: str, *, env: Mapping[str, str], on_progress: Watcher | None = None
) -> VerificationRecord:
    """Returns the record of one run of a bead's checks; nothing else about the bead changes.

    `name` is an id, or the path of a Ralph bead. Raises `NotFound`, or `InvalidInput` for an
    issue without checks.
    """
    bead = find_ralph_bead(hive, name)
    if bead is None:
        return judge_sprint(hive, _with_judgements(hive, name))
    runner = check_runner(hive, env, on_progress=on_progress)
    return verify_bead(bead, runner, bead_folders(hive)).record


def run_gate(
    hive: Hive,
    workflow_id: str,
    phase_id: str,
    *,
    env: Mapping[str, str],
    again: bool = False,
    on_progress: Watcher | None = None,
) -> GateRun:
    """Returns the result of all rules of a gate. Raises as `documents.gates.run.run_gate` does.

    The setting `gate_results` limits how many results of a rule the gate keeps.
    """
    with gate_runs(hive, workflow_id, phase_id):
        return gate_run.run_gate(
            gates_dir(hive.layout),
            workflow_id,
            phase_id,
            check_runner(hive, env, on_progress=on_progress),
            lock=documents_lock(hive),
            again=again,
            max_results_per_rule=hive.layout.settings.gate_results,
            clean=without_secrets(hive),
        )


def checks_of(hive: Hive, name: str) -> list[str]:
    """Returns a line for each check that `verify` would run. Raises as that does."""
    bead = find_ralph_bead(hive, name)
    if bead is not None:
        return describe_checks(bead, hive.layout.settings.bead_shell)
    return describe_judges(_with_judgements(hive, name).fields)


def find_ralph_bead(hive: Hive, name: str) -> BeadFile | None:
    """Returns the Ralph bead with an id, or in a file, or None if no bead has the id."""
    if os.sep in name or (name.endswith(".json") and os.path.exists(name)):
        return read_bead(name)
    return hive.documents.find_bead(name)


def require_ralph_bead(hive: Hive, name: str) -> BeadFile:
    """Returns the same bead. Raises `NotFound`, or `InvalidInput` for an issue without a bead."""
    bead = find_ralph_bead(hive, name)
    if bead is None:
        issue = hive.issues.get(name)
        raise InvalidInput(
            f"{issue.id} has no Ralph bead, so there are no checks to run an agent against",
            hint=_where_to_write_one(hive, issue.id),
        )
    return bead


def check_runner(
    hive: Hive,
    env: Mapping[str, str],
    *,
    on_progress: Watcher | None = None,
    tell: Callable[[str], None] = lambda _: None,
    tree: str | None = None,
) -> CheckRunner:
    """Returns the runner of a hive's checks; of `env`, the caller's whole environment, it has all
    but tokens, which a row must not ask for.

    Raises `UnknownDroid` for an unknown actor: its runs could not be recorded.
    """
    return CheckRunner(
        cwd=tree or hive.layout.tree,
        env=without_tokens(env, hive.layout.common_dir),
        evidence_dir=evidence_dir(hive.layout),
        now_ms=hive.now_ms,
        record=recorder(hive),
        consent=Consent.of(hive),
        on_progress=on_progress,
        tell=tell,
    )


def bead_folders(hive: Hive) -> BeadFolders:
    """Returns the folders of a hive's beads, with the lock that guards their rewriting."""
    notes = bead_notes(hive.layout)
    return BeadFolders(*bead_dirs(hive.layout), lock=documents_lock(hive), notes=notes)


def waits_for(hive: Hive) -> WaitsFor:
    """Returns a function that lists what a Ralph bead waits for: beads, issues and gates."""

    def waits(document: Mapping[str, Any]) -> list[Unmet]:
        return unmet_dependencies(document, hive.documents.lookup) + _closed_gates(hive, document)

    return waits


def has_judgements(issue: Issue) -> bool:
    """Returns whether an issue is a sprint bead with a recorded attempt."""
    return may_be_bead(issue) and has_history(issue.fields)


def judge_sprint(
    hive: Hive, issue: Issue, *, unverified_because: str | None = None
) -> VerificationRecord:
    """Records the judgements of a sprint bead's agents, or the reason not to ask for them."""
    record = cast("VerificationRecord", sprint_verdict(dict(issue.fields), now_ms=hive.now_ms()))
    if unverified_because is not None:
        record |= {"verdict": "not_verified", "results": [], "reason": unverified_because}
    return recorder(hive)(record)


def _with_judgements(hive: Hive, issue_id: str) -> Issue:
    issue = hive.issues.get(issue_id)
    kind = "is a sprint bead and has" if is_sprint_bead(issue.fields) else "has"
    if not has_judgements(issue):
        raise InvalidInput(
            f"{issue_id} {kind} no checks: no dod, no Ralph bead with this id, no recorded attempt",
            hint=_where_to_write_one(hive, issue_id),
            issue_id=issue_id,
        )
    return issue


def _where_to_write_one(hive: Hive, issue_id: str) -> str:
    # The full path: a linked worktree may have a `.beads/` of its own, where beads are not read.
    path = os.path.join(bead_dirs(hive.layout)[1], f"{issue_id}.json")
    return f"write its Definition of Done to {path}; for the schema: queen bead schema ralph"


def _closed_gates(hive: Hive, document: Mapping[str, Any]) -> list[Unmet]:
    if "phase_gate" not in document:
        return []
    fields = {"metadata": {"phase_gate": document["phase_gate"]}}
    return [
        Unmet(
            f"{gate.workflow_id}/{gate.phase_id}", f"is a gate that has not passed: {gate.status}"
        )
        for gate in hive.documents.gates().before(fields)
        if not gate.passed
    ]
