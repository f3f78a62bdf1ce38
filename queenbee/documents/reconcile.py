"""Brings the tracker's rows up to date with a document: one bead for each of its items.

Pure, and shared by plans and sessions. Importing the same document again changes nothing. A bead
keeps what its document does not mention: other dependencies, unknown keys, and its history.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queenbee._hashing import sha256
from queenbee.core.beads import DONE
from queenbee.core.row_edits import later_than
from queenbee.core.timestamps import format_ms
from queenbee.documents.issue_rows import (
    Difference,
    Row,
    RowChange,
    RowImport,
    link_of,
)
from queenbee.errors import InvalidInput

IdSource = Callable[[str, int], str]
"""Returns the part of an id after its prefix, for a seed and the number of the attempt."""

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
DEFAULT_PREFIX = "bd"
_ID_LENGTH = 6
LONGEST_ID = 8
"""Beads takes what is longer for a word."""
_MOST_CLASHES = 1e-5
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_MAX_ATTEMPTS = 1_000


def usual_prefix(ids: Iterable[str]) -> str:
    """Returns the most common prefix of the tracker's ids, or `bd` if there is none."""
    prefixes = Counter(each.rpartition("-")[0] for each in ids)
    del prefixes[""]
    return prefixes.most_common(1)[0][0] if prefixes else DEFAULT_PREFIX


def hashed_id(seed: str, attempt: int, *, digits: int = _ID_LENGTH) -> str:
    """Returns digits of base 36 that depend only on the seed and the attempt.

    Two clones that import one plan independently make the same ids, and so the same beads;
    random ids would make each sprint twice.
    """
    number = int.from_bytes(
        sha256(f"{seed}\0{attempt}".encode(errors="surrogatepass")).digest(), "big"
    )
    text = ""
    for _ in range(digits):
        number, digit = divmod(number, len(_ALPHABET))
        text += _ALPHABET[digit]
    return text


def digits_for(count: int) -> int:
    """Returns how many digits random ids need, so that among so many issues, made in any number of
    clones, hardly any two get the same: below 1 in 50,000 up to 7,500 issues.
    """
    for digits in range(_ID_LENGTH, LONGEST_ID):
        if count * count <= 2 * len(_ALPHABET) ** digits * _MOST_CLASHES:
            return digits
    return LONGEST_ID


@dataclass(frozen=True)
class Item:
    """A sprint or task that needs a bead, and the items and beads that it waits for.

    `names` is the id that the document itself gives the item, such as a plan's annotation: no
    other item gets it.

    `row` returns the bead's whole row, given its current row (None for a new bead), its id and the
    time in ms. Dependencies are added here.
    """

    key: str
    needs: Sequence[str]
    row: Callable[[Row | None, str, int], Row]
    names: str | None = None


@dataclass(frozen=True)
class Source:
    """The document that is imported: its name in the seeds of ids, the actor and the time."""

    name: str
    prefix: str
    actor: str
    now_ms: int


def match_rows(known: Mapping[str, Row], key_of: Callable[[Row], str | None]) -> dict[str, Row]:
    """Returns the bead of each key; `key_of` returns None for rows of other documents.

    If two clones each made a bead, the older one is used, since others know it.
    """
    found: dict[str, Row] = {}
    for row in sorted(known.values(), key=lambda row: (str(row.get("created_at")), row["id"])):
        key = key_of(row)
        if key is not None and row.get("status") != "tombstone":
            found.setdefault(key, row)
    return found


def reconcile(
    items: Sequence[Item],
    source: Source,
    *,
    known: Mapping[str, Row],
    found: Mapping[str, Row],
    own: Collection[str],
) -> RowImport:
    """Returns the rows to add and to update, so that each item has its bead.

    `known` are the tracker's rows by id, `found` the current bead of each item, and `own` the
    ids of all beads of the document, including items that it no longer has: nothing must wait
    for those. Raises `InvalidInput` for a prefix that cannot begin an id.
    """
    ids = _assign_ids(items, source, found, known)
    ours = {*ids.values(), *own}
    changes = []
    # Lists of issues are sorted by age: each bead is a little younger than the item before it.
    for at_ms, item in enumerate(items, start=source.now_ms):
        old = found.get(item.key)
        row = item.row(old, ids[item.key], at_ms)
        needs = [ids.get(need, need) for need in item.needs]
        links = [(need, "blocks") for need in needs]
        row["dependencies"] = merge_dependencies(
            row, links, ours, now=format_ms(at_ms), actor=source.actor
        )
        changes.append(change_of(item.key, old, row, at_ms))
    orphans = sorted(
        identifier
        for identifier in ours.difference(ids.values())
        if known[identifier].get("status") not in DONE
    )
    return RowImport(tuple(changes), tuple(orphans))


def merge_dependencies(
    row: Mapping[str, Any],
    needs: Collection[tuple[str, str]],
    ours: Collection[str],
    *,
    now: str,
    actor: str,
    kinds: Collection[str] = ("blocks",),
) -> list[Any]:
    """Returns the row's dependencies, changed to be `needs` among the beads in `ours`, each with
    its type.

    Entries of other types than `kinds`, and for other documents' beads, stay, since this document
    did not make them. An entry that is already right keeps its time and author.
    """
    dependencies = row.get("dependencies")
    entries = dependencies if isinstance(dependencies, list) else []
    kept = [
        entry
        for entry in entries
        if (link := link_of(entry)) is None
        or link[0] not in ours
        or link[1] not in kinds
        or link in needs
    ]
    present = {link_of(entry) for entry in kept}
    added = [
        {
            "issue_id": row["id"],
            "depends_on_id": need,
            "type": kind,
            "created_at": now,
            "created_by": actor,
        }
        for need, kind in needs
        if (need, kind) not in present
    ]
    return [*kept, *added]


def fresh_id(prefix: str, seed: str, taken: Collection[str], id_source: IdSource) -> str:
    """Returns the first `<prefix>-<id>` of the source that is not taken. Raises `InvalidInput`."""
    if _PREFIX.fullmatch(prefix) is None:
        raise InvalidInput(
            f"{prefix!r} cannot be the prefix of an id",
            hint="a prefix consists of letters, digits, '_' and '-', and starts with a letter",
        )
    for attempt in range(_MAX_ATTEMPTS):
        identifier = f"{prefix}-{id_source(seed, attempt)}"
        if identifier not in taken:
            return identifier
    raise InvalidInput(f"no id of the form {prefix}-… is free after {_MAX_ATTEMPTS} attempts")


def _assign_ids(
    items: Sequence[Item], source: Source, found: Mapping[str, Row], known: Mapping[str, Row]
) -> dict[str, str]:
    """Returns the id of each item's bead: its own, or a new one."""
    named = {item.names for item in items if item.names is not None}
    used = named.union(known)
    ids: dict[str, str] = {}
    for item in items:
        row = found.get(item.key)
        if item.names is not None and item.names not in known:
            used.discard(item.names)
        seed = f"{source.name}\n{item.key}"
        ids[item.key] = row["id"] if row else fresh_id(source.prefix, seed, used, hashed_id)
        used.add(ids[item.key])
    return ids


def change_of(key: str, old: Row | None, new: Row, now_ms: int) -> RowChange:
    """Returns the change from one row to the next; an unchanged row keeps its time.

    An update has a later time than the row it replaces, even if the clock went back.
    """
    if old is None:
        return RowChange(key, "add", new)
    differences = tuple(each for each in _differences(old, new) if each.path != "updated_at")
    if not differences:
        return RowChange(key, "keep", old)
    stamped = {**new, "updated_at": later_than(old, now_ms)}
    return RowChange(key, "update", stamped, differences)


def _differences(old: Row, new: Row, path: str = "") -> Iterator[Difference]:
    for name in [*new, *(name for name in old if name not in new)]:
        before, after = old.get(name), new.get(name)
        if path == "" and name == "metadata" and isinstance(before, dict):
            yield from _differences(before, after or {}, "metadata.")
        elif before != after and not (_is_empty(before) and _is_empty(after)):
            yield Difference(f"{path}{name}", before, after)


def _is_empty(value: object) -> bool:
    # Beads omits empty fields when it writes a row.
    return value is None or value in ("", [], {})
