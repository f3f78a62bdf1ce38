"""Edits of a sprint bead's metadata, each checked by the schema before anything is written.

Pure. What happened to a bead is not edited but recorded: `executions`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from difflib import get_close_matches
from typing import Any

from queenbee.core.row_edits import later_than
from queenbee.core.text import suggested
from queenbee.documents.findings import Finding, errors_in, in_short
from queenbee.documents.issue_rows import Row, metadata_of
from queenbee.documents.sprints.sprint_bead import check_bead, is_sprint_bead, metadata_fields
from queenbee.errors import InvalidInput

RECORDED = {
    "dev_agent_executions": "dev",
    "qa_agent_executions": "qa",
    "attempt_count": "dev",
    "scrum_result": "result",
    "pr_url": "pr",
    "pr_number": "pr",
}
"""What `queen bead record` writes, with the word for it."""


def edit_metadata(bead: Row, changes: Mapping[str, str], *, now_ms: int) -> Row:
    """Returns a sprint bead with new values of fields of its metadata.

    A value is JSON if the schema accepts it as that, and a text otherwise; `null` is no value.
    Raises `InvalidInput` for another issue, a field that is recorded, one that is probably
    misspelled, and a value that makes the bead invalid.
    """
    bead_id = str(bead.get("id"))
    if not is_sprint_bead(bead):
        hint = suggested("queen show", bead_id)
        raise InvalidInput(f"{bead_id} is not a sprint bead", hint=hint)
    changed = bead
    for name, text in changes.items():
        _refuse_name(bead_id, name, metadata_of(bead))
        changed = _set(changed, name, text)
    return changed if changed == bead else changed | {"updated_at": later_than(bead, now_ms)}


def _set(bead: Row, name: str, text: str) -> Row:
    found: list[Finding] = []
    values: list[Any] = [text]
    with suppress(ValueError):
        values.insert(0, json.loads(text))
    for value in values:
        changed = deepcopy(bead)
        changed["metadata"] = {**metadata_of(changed), name: value}
        before = check_bead(bead)
        found = [each for each in errors_in(check_bead(changed)) if each not in before]
        if not found:
            return changed
    message = f"{bead.get('id')} would not be valid: {in_short(found)}"
    raise InvalidInput(message, hint="queen bead schema sprint", findings=found)


def _refuse_name(bead_id: str, name: str, had: Mapping[str, Any]) -> None:
    if name in RECORDED:
        hint = f"{suggested('queen bead record', RECORDED[name], bead_id)} -"
        raise InvalidInput(f"metadata.{name} is not set, but recorded", hint=hint)
    known = {*metadata_fields(), *had}
    meant = [] if name in known else get_close_matches(name, known, n=1, cutoff=0.8)
    if meant or not name:
        hint = f"did you mean metadata.{meant[0]}?" if meant else "--set metadata.NAME=VALUE"
        raise InvalidInput(f"metadata.{name} is not a field of a sprint bead", hint=hint)
