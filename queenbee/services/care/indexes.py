"""`queen index`: the disposable indexes, and the one that the records document describes."""

from __future__ import annotations

import json
import os

from queenbee.store.documents import write_document
from queenbee.store.files import START, read_after, size_of, split_lines
from queenbee.store.ledger.codec import Unusable, decoder, is_migration
from queenbee.store.opening import INDEX_FROM_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.services.hive import Hive

_GROUPS = {
    "messages": {"by_to": "to", "by_issue": "issue_id", "by_thread": "thread_id"},
    "assignments": {"by_droid": "droid", "by_issue": "issue_id", "by_status": "status"},
    "reservations": {"by_droid": "droid", "by_issue": "issue_id", "by_status": "status"},
}


def status(hive: Hive) -> list[dict[str, object]]:
    """Returns for each ledger whether it is large enough for an index, and the index's state."""
    rows: list[dict[str, object]] = []
    for kind in hive.kinds():
        path = hive.layout.index_path(kind)
        size = hive.ledger(kind).size_bytes()
        state = "not needed"
        if size >= INDEX_FROM_BYTES:
            state = "used" if os.path.exists(path) else "absent"
        rows.append(
            {
                "kind": kind,
                "ledger_bytes": size,
                "from_bytes": INDEX_FROM_BYTES,
                "index": path,
                "index_bytes": size_of(path),
                "state": state,
            }
        )
    return rows


def rebuild(hive: Hive) -> list[dict[str, object]]:
    """Throws every index away and builds those anew that their ledgers' sizes call for."""
    hive.rebuild_indexes()
    return status(hive)


def export(hive: Hive) -> list[str]:
    """Writes `queen_<kind>.idx.json` beside each ledger and returns their paths.

    `spec` section "Indexes": `by_id` gives the number (from 1) of the newest line of an id in
    the tracked file; the others give ids by the value of a field.
    """
    made = []
    for kind in hive.kinds():
        ledger = hive.layout.ledger_path(kind)
        if not os.path.exists(ledger):
            continue
        path = ledger.removesuffix(".jsonl") + ".idx.json"
        document = {"by_id": _line_numbers(ledger), **_groups(hive, kind)}
        write_document(path, json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n")
        made.append(path)
    return made


def _groups(hive: Hive, kind: str) -> dict[str, dict[str, list[str]]]:
    groups: dict[str, dict[str, list[str]]] = {}
    for name, column in _GROUPS.get(kind, {}).items():
        groups[name] = {}
        for identifier, value in sorted(
            (str(row[0]), row[1])
            for row in hive.state(kind).project(("id", column), {})
            if isinstance(row[1], str)
        ):
            groups[name].setdefault(str(value), []).append(identifier)
    return groups


def _line_numbers(path: str) -> dict[str, int]:
    numbers: dict[str, int] = {}
    chunk = read_after(path, START)
    decode = decoder(len(chunk.lines))
    for number, raw in enumerate((chunk.lines + chunk.rest).split(b"\n"), start=1):
        for line in split_lines(raw):
            try:
                fields = decode(line)
            except Unusable:
                continue
            if not is_migration(fields):
                numbers[str(fields["id"])] = number
    return numbers
