"""The record of a run of checks, as the ledger of verifications keeps it. docs/checks.md.

On disk a record may have more fields, and one that another tool wrote may lack some:
`recorded_results` returns those that can be used.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from queenbee.core.timestamps import format_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.checks.check import CheckResult

_CHARS = ((200, 2_000), (80, 200), (80, 20))
"""Limits of a check's name and reason in the record: less room, fewer characters."""

_RESULTS_BYTES = 960 * 1024
"""Out of a line's 1 MiB; with the shortest texts, the results of the most checks fit."""


class ResultRecord(TypedDict):
    """What a record keeps of one check; `evidence` is a path beside the ledger, or None."""

    name: str
    status: str
    severity: str
    exit_code: int | None
    duration_s: float
    reason: str
    evidence: str | None


class VerificationRecord(TypedDict):
    """One run of the checks of a bead or a gate; the ledger adds the fields of every record."""

    id: NotRequired[str]
    created_at: NotRequired[str]
    rev: NotRequired[int]
    droid: NotRequired[str | None]
    subject_kind: Literal["bead", "gate"]
    subject_id: str
    attempt: int
    started_at: str
    finished_at: str
    verdict: str
    results: list[ResultRecord]
    reason: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Subject:
    """What a run of checks is about: a bead or a gate, and the attempt at it."""

    kind: Literal["bead", "gate"]
    subject_id: str
    attempt: int


def verification_record(
    subject: Subject,
    times_ms: tuple[int, int],
    verdict: str,
    results: Sequence[CheckResult] = (),
    evidence: Sequence[str | None] = (),
) -> VerificationRecord:
    """Returns the record of one run, from its start to its end; `evidence` has the file of each
    result, or None.
    """
    return {
        "subject_kind": subject.kind,
        "subject_id": subject.subject_id,
        "attempt": subject.attempt,
        "started_at": format_ms(times_ms[0]),
        "finished_at": format_ms(times_ms[1]),
        "verdict": verdict,
        "results": _result_records(results, evidence),
    }


def result_record(
    result: CheckResult, evidence: str | None, chars: tuple[int, int] = _CHARS[0]
) -> ResultRecord:
    """Returns what a record keeps of one check; `chars` limits its name and reason."""
    return {
        "name": shortened(result.name, chars[0]),
        "status": result.status,
        "severity": result.check.severity,
        "exit_code": result.exit_code,
        "duration_s": round(result.duration_s, 3),
        "reason": shortened(result.reason, chars[1]),
        "evidence": evidence,
    }


def recorded_results(record: Mapping[str, object]) -> list[ResultRecord]:
    """Returns the results of a record from the ledger that name their evidence."""
    results = record.get("results")
    return [
        {"name": "?", **result}  # type: ignore[typeddict-item]
        for result in (results if isinstance(results, list) else ())
        if isinstance(result, dict) and isinstance(result.get("evidence"), str)
    ]


def shortened(text: str, limit: int) -> str:
    """Returns the text, cut, as valid UTF-8: JSON may have half a surrogate pair."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return cut.encode(errors="replace").decode()


def _result_records(
    results: Sequence[CheckResult], evidence: Sequence[str | None]
) -> list[ResultRecord]:
    """Returns what the record keeps of each check, shortened if many are long."""
    for chars in _CHARS:
        records = [
            result_record(result, file, chars)
            for result, file in zip(results, evidence, strict=True)
        ]
        if len(json.dumps(records)) <= _RESULTS_BYTES:
            break
    return records
