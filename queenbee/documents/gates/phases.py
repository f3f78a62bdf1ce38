"""Which gates hold an issue back: those of the phases before its own, and those that it names.

`docs/gates.md`, section "What a gate holds back".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from queenbee.documents.findings import errors_in, in_short
from queenbee.documents.gates.gate import validate_gate
from queenbee.documents.gates.gate_files import BrokenFile, GateFile, list_gates
from queenbee.documents.gates.judgement import judge
from queenbee.documents.issue_rows import metadata_of

_PHASE = re.compile(r"(?:phase[_-]?)?0*([0-9]+)([a-z]*)(?:[_-].*)?", re.DOTALL)


@dataclass(frozen=True)
class GateState:
    """One gate as the next phase sees it: if it is missing or unreadable, it has not passed."""

    workflow_id: str
    phase_id: str
    status: str
    passed: bool
    blocking: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Why nothing after it is ready."""
        return f"gate {self.workflow_id}/{self.phase_id} has not passed: it is {self.status}"

    def to_dict(self) -> dict[str, object]:
        """Returns the state as plain values."""
        return {**asdict(self), "blocking": list(self.blocking)}


class PhaseGates:
    """All gates of a hive, to find what holds an issue back."""

    def __init__(self, states: Iterable[GateState], broken: Iterable[BrokenFile] = ()) -> None:
        self._states: dict[str, list[GateState]] = {}
        for state in states:
            self._states.setdefault(state.workflow_id, []).append(state)
        self._broken = tuple(broken)

    def before(self, fields: Mapping[str, Any]) -> list[GateState]:
        """Returns the gates that must have passed before anyone works on an issue."""
        metadata = metadata_of(fields)
        found = {(gate.workflow_id, gate.phase_id): gate for gate in self._of_plan(metadata)}
        for workflow_id, phase_id in declared_gates(metadata.get("phase_gate")):
            found[workflow_id, phase_id] = self._named(workflow_id, phase_id)
        return list(found.values())

    def _named(self, workflow_id: str, phase_id: str) -> GateState:
        same = [one for one in self._states.get(workflow_id, ()) if one.phase_id == phase_id]
        torn = any(file.may_be(workflow_id, phase_id) for file in self._broken)
        if torn or len(same) > 1:
            return GateState(workflow_id, phase_id, "unreadable", passed=False)
        return same[0] if same else GateState(workflow_id, phase_id, "missing", passed=False)

    def _of_plan(self, metadata: Mapping[str, Any]) -> Iterable[GateState]:
        phase = phase_number(str(metadata.get("phase") or ""))
        if phase is None:
            return
        for workflow_id in workflows_of(metadata):
            names = {one.phase_id for one in self._states.get(workflow_id, ())}
            for file in self._broken:
                names |= file.phases_of(workflow_id)
            numbers = [(number, n) for n in names if (number := phase_number(n)) is not None]
            for number, phase_id in sorted(numbers):
                if precedes(number, phase):
                    yield self._named(workflow_id, phase_id)


def read_gates(folder: str) -> PhaseGates:
    """Returns the gates in a folder; one that is not valid has not passed."""
    gates, broken = list_gates(folder)
    return PhaseGates([_state(gate) for gate in gates], broken)


def workflows_of(metadata: Mapping[str, Any]) -> list[str]:
    """Returns the workflow ids of the gates of a bead's plan."""
    named, plan = metadata.get("workflow_id"), metadata.get("plan_file")
    found = [named] if isinstance(named, str) and named else []
    if isinstance(plan, str) and plan:
        found.append(plan_workflow(plan))
    return list(dict.fromkeys(found))


def plan_workflow(plan_file: str) -> str:
    """Returns the workflow id of a plan's gates: `accounts` for `plans/accounts.md`."""
    return os.path.splitext(os.path.basename(plan_file))[0]


def phase_number(phase_id: str) -> tuple[int, str] | None:
    """Returns the number and letters of a phase, or None for an id without a number."""
    match = _PHASE.fullmatch(phase_id)
    # No plan has a phase of more digits, and `int` refuses 4,300 of them.
    return (int(match[1]), match[2]) if match is not None and len(match[1]) <= 9 else None


def precedes(phase: tuple[int, str], other: tuple[int, str]) -> bool:
    """Returns whether a phase comes before another, by number or as its parent track."""
    if phase[0] != other[0]:
        return phase[0] < other[0]
    return phase[1] != other[1] and other[1].startswith(phase[1])


def declared_gates(value: object) -> list[tuple[str, str]]:
    """Returns (workflow, phase) for each gate that a `phase_gate` names: a text, or a list."""
    names = value if isinstance(value, list) else [value]
    return [
        (workflow_id, phase_id)
        for name in names
        if isinstance(name, str)
        for workflow_id, slash, phase_id in [name.partition("/")]
        if slash and workflow_id and phase_id
    ]


def _state(gate: GateFile) -> GateState:
    workflow_id, phase_id = gate.key
    errors = errors_in(validate_gate(gate.document))
    if errors:
        first = in_short(errors[:1])
        return GateState(workflow_id, phase_id, "not valid", passed=False, blocking=(first,))
    verdict = judge(gate.document)
    return GateState(workflow_id, phase_id, verdict.status, verdict.passed, verdict.blocking)
