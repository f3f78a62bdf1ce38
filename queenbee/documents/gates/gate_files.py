"""The files of phase gates: one JSON file each, in `.claude/state/validation/` of the project.

A gate is found by the workflow and phase in its content; other files are skipped. A file that
cannot be read stands only for the gate that its name, or what is left of its content, says it is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product
from typing import Any

from queenbee.documents.findings import errors_in, in_short
from queenbee.documents.gates.gate import gate_schema, validate_gate
from queenbee.documents.gates.judgement import Verdict, gate_options, judge
from queenbee.documents.json_documents import Lock, read_folder, rewrite_object, write_object
from queenbee.errors import Conflict, InvalidInput, NotFound, QueenError, StoreError, Unreadable
from queenbee.store.whole_files import read_document

SCHEMA_FILE = "validation_schema.json"
"""Where the document has the schema: beside the gates."""
_PREFIX = "phase_"
_RESULTS = "_validation.json"
_NAME_MAX_BYTES = 240
"""What a file system allows, minus the suffix of a file that is being written."""

_ID = re.compile(rb'"(workflow_id|phase_id)"\s*:\s*("(?:[^"\\\x00-\x1f]|\\.){1,400}")')


class GateMissing(StoreError):
    """A requested gate does not exist; like a failed one, it has not passed."""

    code = "gate_missing"


@dataclass(frozen=True)
class GateFile:
    """One gate and its file."""

    path: str
    document: dict[str, Any]

    @property
    def key(self) -> tuple[str, str]:
        """The workflow and the phase."""
        metadata = self.document["metadata"]
        return metadata["workflow_id"], metadata["phase_id"]


@dataclass(frozen=True)
class BrokenFile:
    """A file that should be a gate but cannot be read as one.

    `keys` are the workflows and phases that are left in its content: none if it is torn before
    them, several if it has conflict markers.
    """

    path: str
    message: str
    keys: frozenset[tuple[str, str]] = frozenset()

    def may_be(self, workflow_id: str, phase_id: str) -> bool:
        """Returns whether this is the file of a gate, by its content or its whole name."""
        key = workflow_id, phase_id
        return key in self.keys or (self._name_counts and self._stem == _stem(*key))

    def phases_of(self, workflow_id: str) -> set[str]:
        """Returns the phases of a workflow whose gate this file may be."""
        found = {phase for workflow, phase in self.keys if workflow == workflow_id}
        begins = _stem(workflow_id, "")
        if self._name_counts and self._stem.startswith(begins):
            found.add(self._stem.removeprefix(begins))
        return found

    @property
    def _stem(self) -> str:
        return os.path.splitext(os.path.basename(self.path))[0]

    @property
    def _name_counts(self) -> bool:
        # `phase_a_2_1` is phase 1 of `a_2`, or phase `2_1` of `a`: if the content says which, the
        # name does not stand for the other.
        return not any(_stem(*key) == self._stem for key in self.keys)


def find_gate(folder: str, workflow_id: str, phase_id: str) -> GateFile:
    """Returns the gate of a phase, which is valid.

    Raises `NotFound`, or `Unreadable` if the file is corrupt, not valid, or of another major
    version, or if two files have the gate.
    """
    gates, broken = list_gates(folder)
    same = [gate for gate in gates if gate.key == (workflow_id, phase_id)]
    torn = [file for file in broken if file.may_be(workflow_id, phase_id)]
    if torn:
        # An unreadable file does not mean that there is no gate, or that another has the truth.
        hint = "correct or remove the file"
        raise Unreadable(torn[0].message, hint=hint, path=torn[0].path)
    if not same:
        raise NotFound(
            f"no gate of {workflow_id!r}, {phase_id!r} in {folder}",
            hint=f"queen gate new {gate_options(workflow_id, phase_id)}",
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


def list_gates(folder: str) -> tuple[list[GateFile], list[BrokenFile]]:
    """Returns the gates of a folder, valid or not, and the files that should be gates but are not.

    A gate that is not valid still has a workflow and a phase.
    """
    gates: list[GateFile] = []
    broken: list[BrokenFile] = []
    for path, document in read_folder(folder):
        if isinstance(document, QueenError):
            broken.append(BrokenFile(path, document.message, _keys_left_in(path)))
            continue
        metadata = document.get("metadata") if isinstance(document, dict) else None
        ids, name = _ids(metadata), os.path.basename(path)
        if len(ids) == 2:
            gates.append(GateFile(path, document))
        elif ids or (name.startswith(_PREFIX) and not name.endswith(_RESULTS)):
            lacks = "workflow_id and phase_id" if isinstance(metadata, dict) else "metadata"
            broken.append(BrokenFile(path, f"{path} is not a gate: it has no {lacks}"))
    return gates, broken


def validator_results(folder: str) -> list[tuple[str, str]]:
    """Returns the files in which the source's own validator keeps its results, and their status."""
    return [
        (path, str(document.get("validation_status", "no status")))
        for path, document in read_folder(folder)
        if path.endswith(_RESULTS)
        and isinstance(document, dict)
        and len(_ids(document.get("metadata"))) < 2
    ]


def create_gate(folder: str, document: dict[str, Any], *, lock: Lock = nullcontext) -> GateFile:
    """Writes a new gate, and the schema beside it if there is none.

    Raises `Conflict` if its phase has one, and `Unwritable`.
    """
    metadata = document["metadata"]
    workflow_id, phase_id = metadata["workflow_id"], metadata["phase_id"]
    name = f"{_stem(workflow_id, phase_id)}.json"
    if len(name.encode()) > _NAME_MAX_BYTES:
        raise InvalidInput(f"{name[:80]}… is too long for a file name")
    path = os.path.join(folder, name)
    with lock():
        try:
            existing = find_gate(folder, workflow_id, phase_id).path
        except NotFound:
            existing = path if os.path.lexists(path) else ""
        if existing:
            raise Conflict(
                f"{existing} already exists",
                hint=f"queen gate status {gate_options(workflow_id, phase_id)}",
                path=existing,
            )
        schema = os.path.join(folder, SCHEMA_FILE)
        if not os.path.lexists(schema):
            write_object(schema, gate_schema())
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
    """Applies `change` to a gate as it is on disk now, under the lock, and returns it.

    The file stays as it is if `change` returns its argument.
    """
    with lock():
        gate = find_gate(folder, workflow_id, phase_id)
        changed = change(gate.document)
        if changed is not gate.document:
            rewrite_object(os.path.abspath(gate.path), changed)
    return GateFile(gate.path, changed)


def _valid(gate: GateFile) -> GateFile:
    findings = validate_gate(gate.document)
    errors = errors_in(findings)
    if errors:
        raise Unreadable(
            f"{gate.path} is not a valid gate: {in_short(errors)}",
            hint="correct the file; for details, run: queen doctor",
            path=gate.path,
            findings=findings,
        )
    return gate


def _ids(metadata: object) -> list[str]:
    """Returns the workflow and the phase, as far as they are texts."""
    if not isinstance(metadata, dict):
        return []
    values = [metadata.get("workflow_id"), metadata.get("phase_id")]
    return [value for value in values if isinstance(value, str) and value]


def _keys_left_in(path: str) -> frozenset[tuple[str, str]]:
    """Returns each workflow and phase that the bytes of an unusable file still name."""
    found: dict[bytes, set[str]] = {b"workflow_id": set(), b"phase_id": set()}
    try:
        for name, text in _ID.findall(read_document(path)):
            found[name].add(json.loads(text))
    except (QueenError, ValueError):
        return frozenset()
    return frozenset(product(found[b"workflow_id"], found[b"phase_id"]))


def _stem(workflow_id: str, phase_id: str) -> str:
    return f"{_PREFIX}{workflow_id}_{phase_id}"
