"""`queen hive index` and `queen hive stats`: what the memory has, the indexes that the records
document describes, and how large the ledgers are and how fast they grow.
"""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING

from queenbee.core.kinds import kind_of
from queenbee.core.timestamps import instant_ms
from queenbee.errors import NotFound
from queenbee.store.codec import Unusable, decoder, is_migration
from queenbee.store.files import START, read_after, size_of, split_lines, stamp_of, wait_for_change
from queenbee.store.memory.archive import Archive
from queenbee.store.whole_files import read_document, write_document

if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.services.open_store import Store


_IGNORED = "queen_*.idx.json"
_WEEK_MS = 7 * 86_400_000


def status(store: Store) -> list[dict[str, object]]:
    """Returns for each kind the size of its ledger, how many lines and records the memory has of
    it, and where the memory is.
    """
    database = store.engine.memory.database
    return [
        {
            "kind": kind,
            "ledger_bytes": size_of(store.layout.ledger_path(kind)),
            "lines": database.ask("SELECT count(*) FROM lines WHERE kind = ?", kind)[0][0],
            "records": records,
            "memory": database.path,
            "memory_bytes": database.size_bytes(),
        }
        # To count the records takes up the lines.
        for kind, records in ((each, store.state(each).count({})) for each in store.kinds())
    ]


def rebuild(store: Store) -> list[dict[str, object]]:
    """Folds every record anew, from the lines."""
    store.rebuild_memory()
    return status(store)


def export(store: Store) -> list[str]:
    """Writes `queen_<kind>.idx.json` beside each ledger and returns their paths.

    Git ignores them: each clone makes its own. `spec` section "Indexes": `by_id` gives the line
    number (from 1) of the newest line of an id in the tracked file; the others list ids by the
    value of a field.
    """
    made = []
    _let_git_ignore_them(store)
    for kind in store.kinds():
        ledger = store.layout.ledger_path(kind)
        if not os.path.exists(ledger):
            continue
        path = ledger.removesuffix(".jsonl") + ".idx.json"
        document = {"by_id": _line_numbers(ledger), **_groups(store, kind)}
        write_document(path, json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n")
        made.append(path)
    return made


def keep_exported(store: Store, told: Callable[[list[str]], None]) -> None:
    """Exports now and after every change of a ledger, and passes the paths to `told`.

    Returns only by an exception, such as `KeyboardInterrupt`.
    """
    while True:
        before = _stamps(store)
        told(export(store))
        wait_for_change(lambda: _stamps(store), before, math.inf)


def _stamps(store: Store) -> list[tuple[object, ...]]:
    return [stamp_of(store.layout.ledger_path(kind)) for kind in store.kinds()]


def _let_git_ignore_them(store: Store) -> None:
    path = os.path.join(store.layout.beads_dir, ".gitignore")
    try:
        text = read_document(path).decode(errors="surrogateescape")
    except NotFound:
        text = ""
    if _IGNORED not in (line.strip() for line in text.split("\n")):
        newline = "" if not text or text.endswith("\n") else "\n"
        whole = f"{text}{newline}{_IGNORED}\n"
        write_document(path, whole.encode(errors="surrogateescape"))


def _groups(store: Store, kind: str) -> dict[str, dict[str, list[str]]]:
    groups: dict[str, dict[str, list[str]]] = {}
    for name, column in kind_of(kind).exported.items():
        groups[name] = {}
        for identifier, value in sorted(
            (str(row[0]), row[1])
            for row in store.state(kind).project(("id", column), {})
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


def statistics(store: Store) -> list[dict[str, object]]:
    """Returns for each ledger: `kind`, `records`, `size_bytes` of the tracked file, `archive_bytes`
    and the number of `segments` of its archive, `last_week` (records created in it), `unusable`
    lines, and `memory_bytes` of the one file for all kinds.
    """
    return [_of_kind(store, kind) for kind in store.kinds()]


def _of_kind(store: Store, kind: str) -> dict[str, object]:
    state = store.state(kind)
    created = [instant_ms(value) or 0 for (value,) in state.project(("created_at",), {})]
    segments = Archive(store.layout.ledger_path(kind)).listing()
    since_ms = store.now_ms() - _WEEK_MS
    return {
        "kind": kind,
        "records": len(created),
        "last_week": sum(1 for instant in created if instant >= since_ms),
        "size_bytes": size_of(store.layout.ledger_path(kind)),
        "memory_bytes": store.engine.memory.database.size_bytes(),
        "archive_bytes": sum(size for _, size, _ in segments.values()),
        "segments": len(segments),
        "unusable": state.unusable,
    }
