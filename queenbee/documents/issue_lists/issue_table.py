"""Issues as a table for spreadsheets: CSV with a header, in which nothing is a formula."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""What a spreadsheet takes for a formula, unless a quote is before it."""
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


def left_out(rows: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Returns what a table of these issues lacks: the fields, and how many issues have each."""
    return Counter(
        name for row in rows for name, value in row.items()
        if name not in COLUMNS and value not in (None, "", [], {})
    )  # fmt: skip


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    text = ", ".join(map(str, value)) if isinstance(value, list) else text
    return f"'{text}" if FORMULA.match(text) else text
