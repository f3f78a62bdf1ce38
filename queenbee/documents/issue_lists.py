"""Lists of issues from elsewhere: the JSON of `gh issue list --json …`, or CSV with a header.

Pure. An issue is found again by its `external_ref`: its address, or `gh-NUMBER`, until a list says
its address. Importing a list again changes what changed there since, and never opens what was
closed here.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from queenbee.core.beads import DONE
from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.documents.issue_rows import Row, RowChange, RowImport, close_row, metadata_of, new_row
from queenbee.documents.reconcile import LONGEST_ID, change_of, fresh_id, hashed_id
from queenbee.errors import InvalidInput

SEEN = "source_updated_at"
"""In the metadata of an issue: when it had changed elsewhere, as of its last import."""
_OTHER_NAMES = {
    "body": "description", "state": "status", "type": "issue_type", "url": "external_ref",
    "createdat": "created_at", "updatedat": "updated_at", "closedat": "closed_at",
    "assignees": "assignee", "id": "number",
}  # fmt: skip
_TYPES = {"bug": "bug", "enhancement": "feature", "feature": "feature", "epic": "epic"}
_PRIORITY = re.compile(r"(?:priority\W*)?p([0-4])|priority\W*([0-4])", re.IGNORECASE)
_PARTS = re.compile(r"[;,]")
_EXAMPLE = "gh issue list --json number,title,body,state,labels,url | queen issue import -"
_EXPECTED = f"it takes JSON or CSV with a header: {_EXAMPLE}"
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""What a spreadsheet takes for a formula, unless a quote is before it."""


@dataclass(frozen=True)
class Listed:
    """One issue of a list."""

    refs: tuple[str, ...]
    """What it may be called in `external_ref`; the first one is given to a new issue."""
    title: str
    fields: Mapping[str, object]
    """Its fields as a row has them, those that the list says."""
    is_closed: bool
    closed_ms: int | None
    created_ms: int | None
    changed_at: str | None


def read_issue_list(data: bytes) -> list[Listed]:
    """Returns the issues of a list. Raises `InvalidInput`, which names the entry."""
    try:
        text = data.decode("utf-8-sig")
        entries = _of_json(text) if text.lstrip()[:1] in ("[", "{") else _of_csv(text)
    except (ValueError, RecursionError, csv.Error) as error:
        raise InvalidInput(f"this is no list of issues: {error}", hint=_EXPECTED) from error
    found = [_listed(number, entry) for number, entry in enumerate(entries, start=1)]
    ref, count = Counter(each.refs[0] for each in found).most_common(1)[0] if found else ("", 0)
    if count > 1:
        raise InvalidInput(f"the list has {ref} {count} times", hint="remove all but one")
    return found


def import_issue_list(
    listed: Sequence[Listed],
    existing: Sequence[Row],
    *,
    prefix: str,
    actor: str,
    now_ms: int,
) -> RowImport:
    """Returns the rows to add and to update so that the tracker has each issue of the list."""
    known = {row["id"] for row in existing}
    by_ref = {row["id"]: row for row in existing}
    by_ref.update((row["external_ref"], row) for row in existing if row.get("external_ref"))
    changes = []
    for at_ms, each in enumerate(listed, start=now_ms):
        old = next((by_ref[ref] for ref in each.refs if ref in by_ref), None)
        for ref in each.refs[1:]:  # Another entry of that number is another repository's.
            by_ref.pop(ref, None)
        if old is None:
            # Of the reference alone: clones that import one list make the same issues.
            source = partial(hashed_id, digits=LONGEST_ID)
            identifier = fresh_id(prefix, each.refs[0], known, source)
            known.add(identifier)
            created = format_ms(each.created_ms or at_ms)
            old_row = {**new_row(identifier, actor, created, issue_type="task"), "updated_at": None}
            changes.append(RowChange(each.refs[0], "add", _as_listed(old_row, each, at_ms)))
        elif old.get("status") == "tombstone" or not _is_news(old, each):
            changes.append(RowChange(each.refs[0], "keep", old))
        else:
            changes.append(change_of(each.refs[0], old, _as_listed(old, each, at_ms), at_ms))
    return RowImport(tuple(changes))


def _is_news(old: Row, each: Listed) -> bool:
    """Returns whether an issue may have changed since its last import: not in an older list."""
    seen, changed = metadata_of(old).get(SEEN, ""), each.changed_at
    seen_ms, changed_ms = instant_ms(seen), instant_ms(changed)
    return seen != changed and (seen_ms is None or changed_ms is None or seen_ms < changed_ms)


def _as_listed(row: Row, each: Listed, now_ms: int) -> Row:
    row = {**row, **each.fields, "title": each.title}
    if row["id"] not in each.refs:  # Else the list was made of these issues.
        if row.get("external_ref") in (None, *each.refs):
            row["external_ref"] = each.refs[0]
        if each.changed_at is not None:
            row["metadata"] = {**metadata_of(row), SEEN: each.changed_at}
    if not row.get("updated_at"):
        row["updated_at"] = format_ms(now_ms)
    if each.is_closed and row.get("status") not in DONE:
        row = close_row(row, now_ms)
        if each.closed_ms is not None:
            row["closed_at"] = format_ms(each.closed_ms)
    return row


def _of_json(text: str) -> list[Mapping[str, Any]]:
    found = json.loads(text)
    entries: list[Mapping[str, Any]] = found if isinstance(found, list) else [found]
    if not all(isinstance(each, dict) for each in entries):
        raise ValueError("an entry is not a JSON object")
    return entries


def _of_csv(text: str) -> list[Mapping[str, Any]]:
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.DictReader(io.StringIO(text, newline=""))
    if "title" not in {name.strip().lower() for name in reader.fieldnames or ()}:
        raise ValueError("the header has no column title" if text.strip() else "it is empty")
    return [
        {key: _without_quote(value) for key, value in row.items() if key and value}
        for row in reader
    ]


def _without_quote(value: object) -> object:
    is_quoted = isinstance(value, str) and value[:1] == "'" and _FORMULA.match(value, 1)
    return value[1:] if is_quoted and isinstance(value, str) else value


def _listed(number: int, entry: Mapping[str, Any]) -> Listed:
    said: dict[str, Any] = {}
    for name, value in entry.items():
        plain = name.strip().lower()
        said.setdefault(_OTHER_NAMES.get(plain, plain), value)
    title = said.get("title")
    if not isinstance(title, str) or not title.strip():
        raise InvalidInput(f"entry {number} of the list has no title", hint=_EXAMPLE)
    refs = [*_refs(said)]
    if not refs:
        raise InvalidInput(
            f"entry {number} of the list ({title!r}) has neither a number nor an address",
            hint="add number or url, or a column external_ref: by these an issue is found again",
        )
    labels = _names(said.get("labels"))
    changed_at = said.get("updated_at")
    return Listed(
        tuple(refs),
        " ".join(title.split()),
        _fields(said, labels),
        is_closed=str(said.get("status", "")).lower() in ("closed", "done", "completed"),
        closed_ms=instant_ms(said.get("closed_at")),
        created_ms=instant_ms(said.get("created_at")),
        changed_at=changed_at if isinstance(changed_at, str) and changed_at else None,
    )


def _refs(said: Mapping[str, Any]) -> Iterator[str]:
    ref, number = said.get("external_ref"), said.get("number")
    if isinstance(ref, str) and ref.strip():
        yield ref.strip()
    if isinstance(number, int | str) and not isinstance(number, bool) and str(number).strip():
        plain = str(number).strip().lstrip("#")
        yield f"gh-{plain}" if plain.isdecimal() else plain


def _fields(said: Mapping[str, Any], labels: Sequence[str]) -> dict[str, object]:
    fields: dict[str, object] = {}
    if isinstance(said.get("description"), str):
        fields["description"] = said["description"]
    if "labels" in said:
        fields["labels"] = list(labels)
    assignees = _names(said.get("assignee"))
    if assignees:
        fields["assignee"] = assignees[0]
    kinds = [said.get("issue_type"), *labels]
    kind = next((found for each in kinds if (found := _TYPES.get(str(each).lower()))), None)
    if kind is not None:
        fields["issue_type"] = kind
    urgent = [_PRIORITY.fullmatch(str(each).strip()) for each in labels]
    urgent.insert(0, re.fullmatch(r"P?()([0-4])", str(said.get("priority")), re.IGNORECASE))
    if match := next((each for each in urgent if each), None):
        fields["priority"] = int(match[1] or match[2])
    return fields


def _names(value: object) -> list[str]:
    """Returns the names in a list of texts or of objects with a name, or in a text with commas."""
    if isinstance(value, str):
        return [each.strip() for each in _PARTS.split(value) if each.strip()]
    found = []
    for each in value if isinstance(value, list) else [value]:
        name = each.get("name") or each.get("login") if isinstance(each, dict) else each
        if isinstance(name, str) and name:
            found.append(name)
    return found


COLUMNS = (
    "id", "title", "status", "priority", "issue_type", "assignee", "labels", "external_ref",
    "created_at", "updated_at", "closed_at", "description",
)  # fmt: skip


def as_csv(rows: Sequence[Mapping[str, Any]], shown: Callable[[str], str] = str) -> str:
    """Returns issues as CSV with a header; no value is a formula. `shown` gives a value as a
    terminal is to show it.
    """
    text = io.StringIO(newline="")
    plain = csv.writer(text, lineterminator="\n")
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    plain.writerow(COLUMNS)
    for row in rows:
        values = [shown(_cell(row.get(name))) for name in COLUMNS]
        # The writer takes a carriage return for no end of a line; readers do.
        (quoting if any("\r" in each for each in values) else plain).writerow(values)
    return text.getvalue()


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    text = ", ".join(_names(value)) if isinstance(value, list) else text
    return f"'{text}" if _FORMULA.match(text) else text
