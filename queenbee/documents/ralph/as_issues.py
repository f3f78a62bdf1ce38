"""Ralph beads as issues: each file as the tracker would describe it.

Their statuses are those of Beads: `pending` is open, `completed` closed. The loop writes `blocked`
if a dependency or a gate is not met; whether that still holds, the dependency or gate says.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queenbee.core.beads import DEFAULT_PRIORITY, Issue
from queenbee.core.text import shortened
from queenbee.documents.findings import Finding, errors_in
from queenbee.documents.folders import bead_dirs, bead_notes
from queenbee.documents.ralph.bead_files import BeadFile, BeadFolders, list_beads
from queenbee.documents.ralph.ralph_bead import (
    bead_dependencies,
    bead_status,
    unmet_dependencies,
    validate_bead,
)
from queenbee.store.layout import Layout

_STATUSES = {"pending": "open", "in_progress": "in_progress", "completed": "closed"}
_SHOWN = 80
"""How many characters of the intent serve as a title."""


@dataclass(frozen=True)
class RalphBeads:
    """All Ralph beads of a hive, as read from disk."""

    folders: BeadFolders
    files: Sequence[BeadFile]
    problems: Sequence[Finding]
    by_id: Mapping[str, BeadFile]
    findings: Mapping[str, Sequence[Finding]]
    """What is wrong with each bead, by the path of its file."""
    issues: Mapping[str, Issue]

    def errors_of(self, bead: BeadFile) -> list[Finding]:
        """Returns what makes a bead invalid."""
        return errors_in(self.findings[bead.path])

    def reason_to_wait(
        self, bead_id: str, lookup: Callable[[str], Mapping[str, Any] | None], *, is_open: bool
    ) -> str | None:
        """Returns why a bead that is not completed, or whose issue `is_open` all the same, is not
        ready, or None.
        """
        bead = self.by_id[bead_id]
        if bead_status(bead.document) == "completed" and not is_open:
            return None
        errors = self.errors_of(bead)
        if errors:
            return f"it is not valid: {errors[0].path}: {errors[0].message}"
        unmet = unmet_dependencies(bead.document, lookup)
        return f"{unmet[0].bead_id} {unmet[0].reason}" if unmet else None


def read_beads(layout: Layout) -> RalphBeads:
    """Returns the beads of a hive. If two have one id, the first counts; doctor lists both."""
    folders = BeadFolders(*bead_dirs(layout), notes=bead_notes(layout))
    files, problems = list_beads(folders)
    by_id: dict[str, BeadFile] = {}
    for bead in files:
        by_id.setdefault(bead.bead_id, bead)
    return RalphBeads(
        folders,
        files,
        problems,
        by_id,
        {bead.path: validate_bead(bead.document) for bead in files},
        {bead_id: _issue(bead, layout) for bead_id, bead in by_id.items()},
    )


def _issue(bead: BeadFile, layout: Layout) -> Issue:
    document = bead.document
    title, intent, kind = (document.get(name) for name in ("title", "intent", "type"))
    words = " ".join(intent.split()) if isinstance(intent, str) else ""
    needs, status = bead_dependencies(document), bead_status(document)
    if status == "blocked" and (needs or document.get("phase_gate")):
        status = "pending"
    # The path from the root, so that every clone shows the same one.
    metadata = {"bead_file": os.path.relpath(bead.path, os.path.realpath(layout.root))}
    if "phase_gate" in document:
        metadata["phase_gate"] = document["phase_gate"]
    fields: dict[str, object] = {
        "id": bead.bead_id,
        "title": title if isinstance(title, str) and title else shortened(words, _SHOWN),
        "description": intent if isinstance(intent, str) else "",
        "status": _STATUSES.get(status, status),
        "priority": _priority(document.get("priority")),
        "issue_type": kind if isinstance(kind, str) else "task",
        "dependencies": [
            {"issue_id": bead.bead_id, "depends_on_id": need, "type": "blocks"} for need in needs
        ],
        "metadata": metadata,
    }
    return Issue(fields)


def _priority(value: object) -> int:
    # A float such as 1.0 is a whole number to JSON Schema; anything else is not valid anyway.
    usable = isinstance(value, (int, float)) and not isinstance(value, bool)
    return int(value) if usable and abs(value) < 10 else DEFAULT_PRIORITY  # type: ignore[call-overload, arg-type]
