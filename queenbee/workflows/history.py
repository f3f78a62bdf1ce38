"""What happened to a sprint bead (attempts, judgements, results), added to its row."""

from __future__ import annotations

from queenbee.documents.issue_rows import current_rows
from queenbee.documents.sprints import history as sprint_history
from queenbee.errors import InvalidInput
from queenbee.store.issues_file import read_rows_exactly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from queenbee.documents.issue_rows import Row
    from queenbee.workflows.hive import Hive

    What = Literal["dev", "qa", "result", "pr"]

_OF_JSON = {
    "dev": sprint_history.record_dev_execution,
    "qa": sprint_history.record_qa_execution,
    "result": sprint_history.record_scrum_result,
}


def record_history(hive: Hive, what: What, bead_id: str, text: str) -> Row:
    """Returns the row of a sprint bead with one more entry of its history.

    `text` is the entry as a JSON object, or the address of a pull request. The same entry again
    changes nothing. Raises `NotFound`, `InvalidInput`, `InvalidRecord`, or `NoAttemptLeft`.
    """
    entry = _entry(what, text)
    # Before the lock: loading the models takes longer than all that happens under it, and the
    # patterns of an `output_schema`, which comes from anyone, may take for ever.
    row = _row(hive, bead_id)
    changed = _changed(row, what, entry, hive.now_ms())
    with hive.transaction() as tx:
        current = _row(hive, bead_id)
        if current != row:
            changed = _changed(current, what, entry, tx.now_ms)
        if changed != current:
            tx.append_issue(changed)
    return changed


def _changed(row: Row, what: What, entry: dict[str, Any], now_ms: int) -> Row:
    if what == "pr":
        number = entry.get("pr_number")
        return sprint_history.record_pull_request(
            row, entry["pr_url"], number=number, now_ms=now_ms
        )
    return _OF_JSON[what](row, entry, now_ms=now_ms)


def _row(hive: Hive, bead_id: str) -> Row:
    hive.issues.get(bead_id)
    row = current_rows(read_rows_exactly(hive.layout.issues_path)).get(bead_id)
    if row is None:
        raise InvalidInput(
            f"{bead_id} is a Ralph bead: its history is what queen run and queen verify write",
            hint=f"queen verify {bead_id}",
            bead_id=bead_id,
        )
    return row


def _entry(what: What, text: str) -> dict[str, Any]:
    if what == "pr" and not text.lstrip().startswith("{"):
        return {"pr_url": text.strip()}
    from queenbee.documents.json_documents import parse_json
    from queenbee.errors import Unreadable

    try:
        entry = parse_json(text.encode(), "the entry")
    except (Unreadable, UnicodeEncodeError) as error:
        raise InvalidInput(f"the entry cannot be read: {error}") from error
    if not isinstance(entry, dict):
        raise InvalidInput("the entry must be a JSON object")
    if what == "pr" and not (
        isinstance(entry.get("pr_url"), str) and type(entry.get("pr_number", 1)) is int
    ):
        raise InvalidInput("pr_url must be a text, and pr_number a whole number")
    return entry
