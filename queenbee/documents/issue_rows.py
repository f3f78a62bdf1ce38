"""Rows for `issues.jsonl` as Beads writes them, made from a document, again and again alike.

Pure. What a document is imported into is a list of rows to append: a new row for what is new, a
newer whole row for what changed, nothing for what did not. Beads and QueenBee both take the
newest row of an id, so that no other row is ever touched. `docs/format.md`, section "Issues".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from queenbee.core.beads import DEFAULT_PRIORITY, read_rows
from queenbee.core.text import one_line
from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.errors import InvalidInput
from queenbee.store.ledger.codec import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any, Literal

    Row = dict[str, Any]
    IdSource = Callable[[str, int], str]
    """Gives the part of an id after its prefix, for a seed and the number of the attempt."""

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID_LENGTH = 6
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_MAX_ATTEMPTS = 1_000


@dataclass(frozen=True)
class Difference:
    """Is one field that an import changes; `old` is None where it is new."""

    path: str
    old: object
    new: object


@dataclass(frozen=True)
class RowChange:
    """Is what an import does about one sprint or task, named by `key`."""

    key: str
    kind: Literal["add", "update", "keep"]
    row: Row
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class RowImport:
    """Is what an import does: a change for each sprint or task, in the document's order.

    `orphans` are the ids of beads whose sprint or task the document no longer has; they stay as
    they are.
    """

    changes: tuple[RowChange, ...]
    orphans: tuple[str, ...] = ()

    @property
    def ids(self) -> dict[str, str]:
        """The bead of each sprint or task."""
        return {change.key: change.row["id"] for change in self.changes}

    @property
    def rows(self) -> list[Row]:
        """The rows to append to `issues.jsonl`."""
        return [change.row for change in self.changes if change.kind != "keep"]

    @property
    def lines(self) -> list[bytes]:
        """The same as lines, each with its line end. Raises `InvalidInput` for one over 1 MiB."""
        return [encode(row) + b"\n" for row in self.rows]


def hashed_id(seed: str, attempt: int) -> str:
    """Returns six digits of base 36 that depend on the seed and the attempt alone.

    Two clones that import one plan before they hear of each other make the same ids, and so the
    same beads, where random ids would make each sprint twice.
    """
    from hashlib import sha256

    number = int.from_bytes(sha256(f"{seed}\0{attempt}".encode()).digest(), "big")
    digits = ""
    for _ in range(_ID_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits += _ALPHABET[digit]
    return digits


def fresh_id(prefix: str, seed: str, taken: Collection[str], id_source: IdSource) -> str:
    """Returns the first `<prefix>-<id>` of the source that is not taken. Raises `InvalidInput`."""
    if _PREFIX.fullmatch(prefix) is None:
        raise InvalidInput(
            f"{prefix!r} cannot begin an id",
            hint="a prefix is letters, digits, '_' and '-', and begins with a letter",
        )
    for attempt in range(_MAX_ATTEMPTS):
        identifier = f"{prefix}-{id_source(seed, attempt)}"
        if identifier not in taken:
            return identifier
    raise InvalidInput(f"no id of the form {prefix}-… is free after {_MAX_ATTEMPTS} attempts")


def assign_ids(
    seeds: Mapping[str, str],
    found: Mapping[str, Row | None],
    *,
    prefix: str,
    taken: Iterable[str],
    id_source: IdSource,
) -> dict[str, str]:
    """Returns the id of each key's bead: the one it has in `found`, else a fresh one.

    `seeds` has the seed of each key; no fresh id is in `taken`, and no two are alike.
    """
    used = set(taken)
    ids: dict[str, str] = {}
    for key, seed in seeds.items():
        row = found.get(key)
        ids[key] = row["id"] if row else fresh_id(prefix, seed, used, id_source)
        used.add(ids[key])
    return ids


def current_rows(rows: Iterable[Mapping[str, object]]) -> dict[str, Row]:
    """Returns the rows that count, by id: of two with one id the newer one."""
    return {identifier: dict(issue.fields) for identifier, issue in read_rows(rows).items()}


def new_row(
    identifier: str, actor: str, now: str, *, issue_type: str, assignee: str | None = None
) -> Row:
    """Returns an open issue as Beads writes it, with nothing said of the work yet."""
    return {
        "id": identifier,
        "title": "",
        "description": "",
        "status": "open",
        "priority": DEFAULT_PRIORITY,
        "issue_type": issue_type,
        **({"assignee": assignee} if assignee else {}),
        "owner": actor,
        "created_at": now,
        "created_by": actor,
        "updated_at": now,
        "labels": [],
        "dependencies": [],
        "metadata": {},
    }


def metadata_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the row's metadata, empty where it has none that is an object."""
    metadata = row.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def plan_and_sprint(row: Mapping[str, Any]) -> tuple[object, object]:
    """Returns the plan that a row's bead was made from, and its sprint there."""
    metadata = metadata_of(row)
    return metadata.get("plan_file"), metadata.get("plan_sprint_id") or metadata.get("sprint")


def blocked_by(row: Mapping[str, Any]) -> list[str]:
    """Returns the ids that a row waits for; only dependencies of type `blocks` order work."""
    dependencies = row.get("dependencies")
    entries = dependencies if isinstance(dependencies, list) else []
    return [target for entry in entries if (target := _blocker(entry)) is not None]


def merge_dependencies(
    row: Mapping[str, Any], needs: Sequence[str], ours: Collection[str], *, now: str, actor: str
) -> list[Any]:
    """Returns the row's dependencies, made to wait for `needs` among the beads in `ours`.

    Entries of other types, and those that wait for beads of elsewhere, are somebody's own and
    stay; so does an entry that already says what is wanted, with its time and author.
    """
    dependencies = row.get("dependencies")
    entries = dependencies if isinstance(dependencies, list) else []
    kept = [
        entry
        for entry in entries
        if (target := _blocker(entry)) is None or target not in ours or target in needs
    ]
    present = {_blocker(entry) for entry in kept}
    added = [
        {
            "issue_id": row["id"],
            "depends_on_id": need,
            "type": "blocks",
            "created_at": now,
            "created_by": actor,
        }
        for need in needs
        if need not in present
    ]
    return [*kept, *added]


def change_of(key: str, old: Row | None, new: Row, now_ms: int) -> RowChange:
    """Returns the change from one row to the next; an unchanged row is kept, its time included.

    An update is later than the row it replaces even where the clock went back.
    """
    if old is None:
        return RowChange(key, "add", new)
    differences = tuple(
        difference for difference in _differences(old, new) if difference.path != "updated_at"
    )
    if not differences:
        return RowChange(key, "keep", old)
    stamped = {**new, "updated_at": _later_than(old, now_ms)}
    return RowChange(key, "update", stamped, differences)


def close_row(row: Row, now_ms: int) -> Row:
    """Returns the row closed, and later than it was even where the clock went back."""
    now = _later_than(row, now_ms)
    return {**row, "status": "closed", "closed_at": now, "updated_at": now}


def render_differences(found: RowImport) -> str:
    """Returns what an import would do, one line for each bead and for each field that changes."""
    lines: list[str] = []
    signs = {"add": "+", "update": "~", "keep": "="}
    for change in found.changes:
        lines.append(
            f"{signs[change.kind]} {change.row['id']}  {change.key}  {change.row['title']}"
        )
        for difference in change.differences:
            old, new = _brief(difference.old), _brief(difference.new)
            lines.append(f"    {difference.path}: {old} → {new}")
    lines += [
        f"? {orphan}  is no longer in the document; it stays as it is" for orphan in found.orphans
    ]
    return "".join(f"{one_line(line)}\n" for line in lines)


def _later_than(row: Mapping[str, Any], now_ms: int) -> str:
    before = [instant_ms(row.get(name)) for name in ("updated_at", "created_at")]
    latest = max((stamp for stamp in before if stamp is not None), default=now_ms - 1)
    return format_ms(max(now_ms, latest + 1))


def _blocker(entry: object) -> str | None:
    if isinstance(entry, str):
        return entry or None
    if not isinstance(entry, dict):
        return None
    kind = entry.get("type") or entry.get("dependency_type") or "blocks"
    target = entry.get("depends_on_id") or entry.get("id")
    return target if kind == "blocks" and isinstance(target, str) else None


def _differences(old: Row, new: Row, path: str = "") -> Iterable[Difference]:
    for name in [*new, *(name for name in old if name not in new)]:
        before, after = old.get(name), new.get(name)
        if path == "" and name == "metadata" and isinstance(before, dict):
            yield from _differences(before, after or {}, "metadata.")
        elif before != after and not (_is_empty(before) and _is_empty(after)):
            yield Difference(f"{path}{name}", before, after)


def _is_empty(value: object) -> bool:
    # Beads leaves an empty field out when it writes a row.
    return value is None or value in ("", [], {})


def _brief(value: object) -> str:
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:99]}…"
