"""A Ralph bead in a row of the tracker: its Definition of Done is in `dod` or `metadata.dod`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.beads import DONE, definition_of_done
from queenbee.documents.issue_rows import metadata_of
from queenbee.documents.ralph.bead_files import BeadFile

if TYPE_CHECKING:
    from collections.abc import Mapping


def bead_in_row(row: Mapping[str, object], path: str) -> BeadFile | None:
    """Returns the bead in a row of the tracker's file at `path`, valid or not, or None.

    What the row waits for is the tracker's to say. Nothing is written to it: its runs are in the
    ledger of verifications, and a loop over it starts with its first attempt.
    """
    dod = definition_of_done(row)
    if dod is None:
        return None
    beside = {**metadata_of(row), **row}
    more = {
        name: beside[name]
        for name in ("intent", "constraints", "phase_gate", "ralph_meta")
        if beside.get(name) is not None
    }
    intent = row.get("description") or row.get("title") or str(row.get("id"))
    status = "completed" if row.get("status") in DONE else "pending"
    document = {"id": row.get("id"), "intent": intent, **more, "dod": dod, "status": status}
    return BeadFile(str(row.get("id")), path, document, in_row=True)
