"""What is kept of a run of checks: its record, as the ledger of verifications has it, and its
evidence, as files beside the ledger. docs/checks.md.

On disk a record may have more fields, and one that another tool wrote may lack some:
`recorded_results` returns those that can be used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

from queenbee.checks.check import CheckResult, described
from queenbee.core.text import shortened
from queenbee.core.timestamps import format_ms
from queenbee.errors import Unwritable
from queenbee.store import safe_open
from queenbee.store.whole_files import write_document

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
    """Returns the record of one run; `evidence` has the file of each result, or None."""
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
        "name": _valid(result.name, chars[0]),
        "status": result.status,
        "severity": result.check.severity,
        "exit_code": result.exit_code,
        "duration_s": round(result.duration_s, 3),
        "reason": _valid(result.reason, chars[1]),
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


def _valid(text: str, most: int) -> str:
    """Returns the text, cut, as valid UTF-8: JSON may have half a surrogate pair."""
    return shortened(text, most).encode(errors="replace").decode()


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


FAILURES_MAX_CHARS = 256 * 1024
_SHOWN_CHARS = 2_000
"""Kept of each stream of a failed check: the end of a test run says what was wrong."""

_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
_SLUG_LENGTH = 60


class EvidenceOfRun:
    """The evidence of one run: a folder with one file for each check that ran.

    A new evidence folder gets a `.gitignore`: to track outputs, remove that file. Raises
    `Unwritable`.
    """

    def __init__(self, evidence_dir: str, subject_id: str, started_ms: int) -> None:
        self._above = _above(evidence_dir)
        self._folder = _new_folder(os.path.abspath(evidence_dir), slug(subject_id), started_ms)
        self.paths: list[str | None] = []
        """The file of each result, None for a skipped one.

        A path begins with the evidence folder's own name, so that it is relative to the ledger.
        """

    def add(self, result: CheckResult) -> str | None:
        """Writes the file of the next result, and returns its path. Raises `Unwritable`."""
        path = None
        if result.status != "skipped":
            name = f"{len(self.paths) + 1:02d}-{slug(result.name)}.log"
            file = os.path.join(self._folder, name)
            write_document(file, _log(result))
            path = os.path.relpath(file, self._above)
        self.paths.append(path)
        return path


def missing_evidence(results: Iterable[ResultRecord], evidence_dir: str) -> list[str]:
    """Returns the names of the checks whose evidence is missing or empty."""
    above = _above(evidence_dir)
    return [
        result["name"]
        for result in results
        if not result["evidence"] or not _has_content(os.path.join(above, result["evidence"]))
    ]


def failures_text(results: Sequence[CheckResult]) -> str:
    """Returns what failed, why, and the end of its output, for the next attempt."""
    parts = []
    for result in results:
        if result.status == "failed":
            parts.append(f"## {result.name}\n{result.reason}\n")
            parts += [
                f"{title}:\n{stream.text()[-_SHOWN_CHARS:].strip()}\n"
                for title, stream in (
                    ("standard output", result.stdout),
                    ("standard error", result.stderr),
                )
                if stream.total_bytes
            ]
    return _valid("\n".join(parts), FAILURES_MAX_CHARS)


def write_failures(evidence_dir: str, subject_id: str, failures: str) -> str:
    """Replaces the file that says what failed, for the next attempt; returns its path."""
    _make_evidence_dir(os.path.abspath(evidence_dir))
    path = os.path.join(os.path.abspath(evidence_dir), slug(subject_id), "failures.txt")
    write_document(path, failures.encode(errors="replace"))
    return path


def slug(text: str) -> str:
    """Returns a safe file name that still resembles the name it was made from."""
    safe = "".join(char if char in _SAFE else "-" for char in text[:_SLUG_LENGTH])
    return safe.lstrip(".") or "-"


def _above(evidence_dir: str) -> str:
    return os.path.dirname(os.path.abspath(evidence_dir))


def _new_folder(evidence_dir: str, subject: str, started_ms: int) -> str:
    stamp = format_ms(started_ms).replace(":", "").replace("-", "")
    base = os.path.join(evidence_dir, subject, stamp)
    try:
        _make_evidence_dir(evidence_dir)
        safe_open.make_folder(os.path.dirname(base))
        for number in range(1, 1000):
            folder = base if number == 1 else f"{base}-{number}"
            try:
                safe_open.make_new_folder(folder)
            except FileExistsError:
                # Two runs started in one millisecond.
                continue
            return folder
    except OSError as error:
        reason = f"{base} cannot be written: {error.strerror}"
        raise Unwritable(reason, path=base) from error
    raise Unwritable(f"{base} cannot be written: a thousand runs began at once", path=base)


def _make_evidence_dir(evidence_dir: str) -> None:
    if os.path.isdir(evidence_dir):
        return
    try:
        safe_open.make_folder(evidence_dir)
        ignore = os.path.join(evidence_dir, ".gitignore")
        safe_open.write(ignore, b"*\n", os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        # Another run created it at the same moment.
        return
    except OSError as error:
        reason = f"{evidence_dir} cannot be written: {error.strerror}"
        raise Unwritable(reason, path=evidence_dir) from error


def _log(result: CheckResult) -> bytes:
    head = [
        f"check: {result.name}",
        f"what: {described(result.check)}",
        f"status: {result.status}",
        f"reason: {result.reason}",
        f"exit code: {result.exit_code}",
        f"duration: {result.duration_s:.3f} s",
    ]
    parts = ["\n".join(head).encode(errors="replace")]
    for title, stream in (("standard output", result.stdout), ("standard error", result.stderr)):
        parts.append(f"\n--- {title}, {stream.total_bytes:,} bytes ---\n".encode())
        parts.append(stream.data())
    return b"".join(parts)


def _has_content(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0
    except (OSError, ValueError):
        return False
