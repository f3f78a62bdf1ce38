"""Findings: what a validator returns, all of a document's at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal

MAX_FINDINGS = 1_000
"""Findings per list: ten megabytes of nonsense must not become gigabytes of messages."""


@dataclass(frozen=True)
class Finding:
    """One error or oddity of a document.

    `path` says where in the document it is (`rules[0].rule_config`; empty for the whole
    document), `line` where in a text, from 1. Only errors make the document invalid.
    """

    path: str
    message: str
    severity: Literal["error", "warning"] = "error"
    hint: str | None = None
    line: int | None = None

    def to_dict(self) -> dict[str, object]:
        """Returns the finding as plain values."""
        return {
            "severity": self.severity,
            "path": self.path,
            "line": self.line,
            "message": self.message,
            "hint": self.hint,
        }


def errors_in(findings: Iterable[Finding]) -> list[Finding]:
    """Returns the findings that make a document invalid."""
    return [finding for finding in findings if finding.severity == "error"]


def in_short(findings: Sequence[Finding], path: str = "") -> str:
    """Returns the first finding, without `path` before its own, and how many more there are."""
    at = findings[0].path.removeprefix(path).lstrip(".")
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return (f"{at}: " if at else "") + findings[0].message + more


def first_findings(found: Iterator[Finding], path: str) -> list[Finding]:
    """Returns the first findings about a list; if there are more, the last one says so."""
    first = list(islice(found, MAX_FINDINGS))
    for more in found:
        invalid = any(each.severity == "error" for each in chain(first, [more], found))
        message = f"has more than these {MAX_FINDINGS:,} problems"
        return [*first, Finding(path, message, "error" if invalid else "warning")]
    return first
