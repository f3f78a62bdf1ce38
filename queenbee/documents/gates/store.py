"""The files of phase gates: one JSON file each, in `.claude/state/validation/` of the project.

A gate is found by the workflow and phase in its content. The folder may contain other files (the
document's schema, logs, another tool's results); they are skipped.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.text import suggested
from queenbee.documents.findings import Finding
from queenbee.documents.gates.gate import validate_gate
from queenbee.documents.gates.judgement import Verdict, judge
from queenbee.documents.json_documents import json_files, read_json, write_object
from queenbee.errors import Conflict, InvalidInput, NotFound, QueenError, StoreError, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    Lock = Callable[[], AbstractContextManager[object]]

_PREFIX = "phase_"
_NAME_MAX_BYTES = 240
"""What a file system allows, minus the suffix of a file that is being written."""


class GateMissing(StoreError):
    """A requested gate does not exist; like a failed one, it has not passed."""

    code = "gate_missing"


@dataclass(frozen=True)
class GateFile:
    """One gate and its file."""

    path: str
    document: dict[str, Any]

    @property
    def key(self) -> tuple[object, object]:
        """The workflow and the phase."""
        metadata = self.document["metadata"]
        return metadata.get("workflow_id"), metadata.get("phase_id")


def find_gate(folder: str, workflow_id: str, phase_id: str) -> GateFile:
    """Returns the gate of a phase, which is valid.

    Raises `NotFound`, or `Unreadable` if the file is corrupt, not valid, or of another major
    version, or if two files have the gate.
    """
    gates, problems = list_gates(folder)
    same = [gate for gate in gates if gate.key == (workflow_id, phase_id)]
    own = f"{_PREFIX}{workflow_id}_{phase_id}.json"
    torn = [problem for problem in problems if _name_of(problem) == own]
    if torn and not same:
        # It may be this gate: an unreadable file does not mean that there is none.
        hint = "correct or remove the file"
        raise Unreadable(torn[0].message, hint=hint, path=torn[0].path)
    if not same:
        raise NotFound(
            f"no gate of {workflow_id!r}, {phase_id!r} in {folder}",
            hint=suggested("queen gate new", workflow=workflow_id, phase=phase_id),
        )
    if len(same) > 1:
        paths = [gate.path for gate in same]
        raise Unreadable(
            f"the gate of {workflow_id!r}, {phase_id!r} is in more than one file: "
            f"{', '.join(paths)}",
            hint="remove all but one",
            paths=paths,
        )
    return _valid(same[0])


def check_gate(
    folder: str, workflow_id: str, phase_id: str, *, allow_missing: bool = False
) -> Verdict:
    """Returns the verdict on a phase; a missing or corrupt gate has never passed.

    Raises `GateMissing` and `Unreadable`. With `allow_missing` a phase without a gate has
    passed; one with a corrupt gate has not.
    """
    try:
        return judge(find_gate(folder, workflow_id, phase_id).document)
    except NotFound as error:
        if allow_missing:
            return Verdict("passed", warnings=(error.message,))
        raise GateMissing(error.message, hint=error.hint) from error


def list_gates(folder: str) -> tuple[list[GateFile], list[Finding]]:
    """Returns the gates of a folder, valid or not, and a finding for each unreadable file."""
    gates: list[GateFile] = []
    problems: list[Finding] = []
    for path in json_files(folder):
        try:
            document = read_json(path)
        except QueenError as error:
            problems.append(Finding(path, error.message))
            continue
        if isinstance(document, dict) and isinstance(document.get("metadata"), dict):
            gates.append(GateFile(path, document))
        elif _is_called_a_gate(os.path.basename(path)):
            problems.append(Finding(path, f"{path} is not a gate: it has no metadata"))
    return gates, problems


def create_gate(folder: str, document: dict[str, Any], *, lock: Lock = nullcontext) -> GateFile:
    """Writes a new gate. Raises `Conflict` if its phase has one, and `Unwritable`."""
    metadata = document["metadata"]
    workflow_id, phase_id = metadata["workflow_id"], metadata["phase_id"]
    path = os.path.join(folder, _file_name(workflow_id, phase_id))
    with lock():
        try:
            existing = find_gate(folder, workflow_id, phase_id).path
        except NotFound:
            existing = path if os.path.lexists(path) else ""
        if existing:
            raise Conflict(
                f"{existing} already exists",
                hint=suggested("queen gate status", workflow=workflow_id, phase=phase_id),
                path=existing,
            )
        write_object(path, document)
    return GateFile(path, document)


def update_gate(
    folder: str,
    workflow_id: str,
    phase_id: str,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    *,
    lock: Lock = nullcontext,
) -> GateFile:
    """Applies `change` to a gate as it is on disk now, under the lock, and returns it."""
    with lock():
        gate = find_gate(folder, workflow_id, phase_id)
        changed = change(gate.document)
        write_object(gate.path, changed)
    return GateFile(gate.path, changed)


def _valid(gate: GateFile) -> GateFile:
    findings = validate_gate(gate.document)
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        first = f"{errors[0].path}: {errors[0].message}"
        raise Unreadable(
            f"{gate.path} is not a valid gate: {first}{more}",
            hint="correct the file; for details, run: queen doctor",
            path=gate.path,
            findings=findings,
        )
    return gate


def _is_called_a_gate(name: str) -> bool:
    # The source's own validator keeps its results in `phase_…_validation.json`.
    return name.startswith(_PREFIX) and not name.endswith("_validation.json")


def _file_name(workflow_id: str, phase_id: str) -> str:
    name = f"{_PREFIX}{workflow_id}_{phase_id}.json"
    if len(name.encode()) > _NAME_MAX_BYTES:
        raise InvalidInput(f"{name[:80]}… is too long for a file name")
    return name


def _name_of(problem: Finding) -> str:
    return os.path.basename(problem.path)
