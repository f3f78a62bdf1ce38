"""From the bytes of a list to its entries, and to the source that they show.

Pure. An entry is an object with lower-case names. JSON may be one value or one to a line, and has
its list at the top or below the names that APIs put around it; a table is CSV, or has tabs.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from queenbee.core.text import shortened
from queenbee.documents.issue_lists.boards import BOARDS
from queenbee.documents.issue_lists.issue_table import FORMULA
from queenbee.documents.issue_lists.sources import BY_NAME, SOURCES, WHOLE, Source
from queenbee.documents.issue_lists.texts import read_text
from queenbee.documents.json_documents import parse_json
from queenbee.errors import InvalidInput, Unreadable

Entry = Mapping[str, Any]

EXAMPLE = (
    "gh issue list --state all --limit 5000 --json number,title,body,state,stateReason,labels,"
    "assignees,url,createdAt,updatedAt,closedAt | queen issue import -"
)
MOST_BYTES = 64 * 1024 * 1024
MOST_ENTRIES = 100_000
_AROUND = (
    "data", "repository", "project", "team", "issues", "nodes", "edges", "items", "values",
    "result", "tickets", "records",
)  # fmt: skip
"""What APIs and clients put around a list."""


@dataclass
class Entries:
    """The entries of a list, and what of it was not taken for one, by name."""

    source: Source
    entries: list[Entry]
    left_out: Counter[str] = field(default_factory=Counter)


def read_entries(data: bytes, name: str, insisted: str | None, titles: Sequence[str]) -> Entries:
    """Returns the entries of a list. `name` is its file's; `titles` are columns that hold titles
    because somebody says so. Raises `InvalidInput`.
    """
    if insisted is not None and insisted not in BY_NAME:
        known = ", ".join(sorted(BY_NAME))
        raise InvalidInput(f"{insisted!r} is not a source of issues", hint=f"one of: {known}")
    if len(data) > MOST_BYTES:
        raise InvalidInput(
            f"the list has more than {MOST_BYTES:,} bytes", hint="import it in parts"
        )
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
        found = _read(text, name, insisted, titles)
    except (ValueError, RecursionError, csv.Error, Unreadable) as error:
        why = f"this is no list of issues: {error}"
        raise InvalidInput(why, hint=f"queen issue import --help; such as: {EXAMPLE}") from error
    if len(found.entries) > MOST_ENTRIES:
        raise InvalidInput(f"the list has more than {MOST_ENTRIES:,} issues", hint="import parts")
    return found


def _read(text: str, name: str, insisted: str | None, titles: Sequence[str]) -> Entries:
    begin = text.lstrip()[:1]
    if begin in ("[", "{") and not text.lstrip().startswith(("[ ]", "[x]")):
        return _of_json(text, insisted)
    # First the table: its cells may hold check lists.
    found = None if _is_table(text, insisted, titles) else read_text(text, name, insisted)
    if found is not None:
        return Entries(BY_NAME[found[0]], [*found[1]])
    return _of_table(text, insisted, titles)


def _of_json(text: str, insisted: str | None) -> Entries:
    value = _parsed(text)
    for source, is_board, entries_of in BOARDS:
        if insisted in (None, source) and is_board(value):
            return Entries(BY_NAME[source], [*entries_of(value)])
    entries = [_flat(each) for each in _inside(value)]
    requests = [each for each in entries if each.get("pull_request")]
    # Beads puts memories and headers beside issues.
    issues = [each for each in entries if "_schema" not in each and each.get("_type") in _ISSUES]
    listed = [each for each in issues if not each.get("pull_request")]
    left_out = Counter({"pull requests": len(requests)} if requests else {})
    names = set().union(*map(set, listed[:100]))
    return Entries(_source(names, insisted), listed, left_out)


_ISSUES = (None, "issue")
_SEVERAL = re.compile(r"[}\]]\s*[\[{]")
_BETWEEN = re.compile(r"[\s,]*")


def _parsed(text: str) -> Any:
    """Returns the JSON value, or a list of those that follow each other: one a line, or the pages
    of an API. Raises `Unreadable`.
    """
    if _SEVERAL.search(text) is None:
        return parse_json(text.encode(errors="surrogatepass"), "it")
    decoder, found, begin = json.JSONDecoder(), list[Any](), 0
    text = text.strip()
    while begin < len(text):
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            end = len(text)  # It is said where and why.
        name = f"value {len(found) + 1}" if begin or end < len(text) else "it"
        found.append(parse_json(text[begin:end].encode(errors="surrogatepass"), name))
        between = _BETWEEN.match(text, end)
        begin = between.end() if between else end
    if len(found) == 1:
        return found[0]
    return [inner for each in found for inner in (each if isinstance(each, list) else [each])]


def _inside(value: Any) -> list[Any]:
    """Returns the list inside of what is around it; an object without one is its only entry."""
    while isinstance(value, dict):
        inner = next(
            (value[each] for each in _AROUND if isinstance(value.get(each), dict | list)), None
        )
        if inner is None or "title" in value:
            return [value]
        value = inner
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError("an entry is not a JSON object")
    # Several pages, one after the other, are a list of lists.
    return [
        each.get("node", each) if isinstance(each.get("node"), dict) else each for each in value
    ]


def _flat(entry: Mapping[str, Any]) -> Entry:
    """Returns an entry with lower-case names, and with what Jira and projects have inside of it."""
    inner = {**_object(entry.get("content")), **_object(entry.get("fields"))}
    return {str(key).strip().lower(): value for key, value in {**inner, **entry}.items()}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _of_table(text: str, insisted: str | None, titles: Sequence[str]) -> Entries:
    if not text.strip():
        raise ValueError("it is empty")
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    separator, names = _header(text)
    rows = csv.reader(io.StringIO(text.lstrip("\r\n"), newline=""), delimiter=separator)
    header = [each.strip().lower() for each in next(rows)]
    source = _source(names, insisted)
    if not _has_title(names, [*titles, *source.names("title")]) and source.name != WHOLE:
        shown = shortened(", ".join(each for each in header if each), 200)
        if len(header) == 1 and not text.lstrip().startswith('"'):
            raise ValueError("it has no item such as '- [ ] Fix the login form', and no columns")
        raise ValueError(f"the header has no column title; it has {shown}; --map 'NAME=title'")
    entries = [_of_row(header, row) for row in rows]
    return Entries(source, [each for each in entries if each])


def _is_table(text: str, insisted: str | None, titles: Sequence[str]) -> bool:
    """Returns whether the first line is a header: that of a known source, or with a title."""
    separator, names = _header(text)
    is_shown = any(_shows(each, names) for each in SOURCES)
    return is_shown or (separator in text.split("\n", 1)[0] and _has_title(names, titles))


def _header(text: str) -> tuple[str, set[str]]:
    """Returns what separates the columns, and their names, with `tab` if it is that."""
    first = text.lstrip("\r\n").split("\n", 1)[0]
    separator = "\t" if "\t" in first else ";" if first.count(";") > first.count(",") else ","
    row = next(csv.reader([first.rstrip("\r")], delimiter=separator), [])
    names = {each.strip().lower() for each in row}
    return separator, names | ({"tab"} if separator == "\t" else set())


def _of_row(header: Sequence[str], row: Iterable[str]) -> Entry:
    """Returns a row as an entry; a column that is there several times has a list."""
    entry: dict[str, Any] = {}
    for name, value in zip(header, map(_without_quote, row), strict=False):
        if name and value.strip():
            known = entry.get(name)
            several = [*known, value] if isinstance(known, list) else [known, value]
            entry[name] = value if known is None else several
    return entry


def _without_quote(value: str) -> str:
    return value[1:] if value[:1] == "'" and FORMULA.match(value, 1) else value


def _source(names: set[str], insisted: str | None) -> Source:
    """Returns the source that these names show, the first in the table."""
    if insisted is not None:
        return BY_NAME[insisted]
    shown = (each for each in SOURCES if _shows(each, names))
    return next(shown, BY_NAME["list"])


def _shows(source: Source, names: set[str]) -> bool:
    return any(names.issuperset(mark.split(" | ")) for mark in source.marks)


def _has_title(names: set[str], titles: Sequence[str]) -> bool:
    return not names.isdisjoint(["title", *titles])
