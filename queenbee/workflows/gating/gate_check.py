"""Whether a phase has passed, and what its gate is doing: `queen gate check` and `gate hook`.

Apart from `gates`, which can also make gates and reads plans: an agent's hook calls this often.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from queenbee.documents.folders import gates_dir
from queenbee.documents.gates import gate_files
from queenbee.documents.gates.judgement import Document, Verdict, latest_results, rules_of
from queenbee.errors import NotFound
from queenbee.workflows.complete_hive import Hive
from queenbee.workflows.locks import gate_is_running


@dataclass(frozen=True, slots=True)
class GateCheck:
    """The verdict on a phase; `run` says what its attempt is doing, if it has not ended."""

    verdict: Verdict
    run: str | None = None

    @property
    def reasons(self) -> list[str]:
        """Why the phase has not passed, the state of its run first."""
        return [*([self.run] if self.run else []), *self.verdict.blocking]


def check_hive_gate(
    hive: Hive, workflow_id: str, phase_id: str, *, allow_missing: bool = False
) -> GateCheck:
    """Returns whether a phase of a hive has passed. Raises as `documents.gates.check_gate`."""
    folder = gates_dir(hive.layout)
    verdict = gate_files.check_gate(folder, workflow_id, phase_id, allow_missing=allow_missing)
    run = None
    if not verdict.passed:
        with suppress(NotFound):  # It was removed in between.
            run = state_of_run(hive, gate_files.find_gate(folder, workflow_id, phase_id).document)
    return GateCheck(verdict, run)


def state_of_run(hive: Hive, document: Document) -> str | None:
    """Returns a sentence about the attempt of a gate that is in progress, else None."""
    if document["status"]["current_status"] != "in_progress":
        return None
    metadata = document["metadata"]
    running = gate_is_running(hive, metadata["workflow_id"], metadata["phase_id"])
    what = "a run goes on" if running else "its last run did not finish"
    ended = f"{len(latest_results(document))} of {len(rules_of(document))} rules have a result"
    return f"{what}: {ended}"
