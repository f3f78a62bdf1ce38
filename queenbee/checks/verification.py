"""What is kept of a run of checks: one record for the ledger, and the outputs as files beside it.

The record is a plain dict; whoever calls hands it to the `queen_verifications.jsonl` ledger.
"""

from __future__ import annotations

import json
import os

from queenbee.checks.engine import described
from queenbee.core.timestamps import format_ms
from queenbee.errors import Unwritable
from queenbee.store.documents import write_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    from queenbee.checks.engine import CheckResult
    from queenbee.checks.processes import Output

FAILURES_MAX_CHARS = 256 * 1024
_SHOWN_CHARS = 2_000
"""Of each stream of a failed check: the end of a test run says what was wrong."""

_CHARS = ((200, _SHOWN_CHARS), (80, 200), (80, 20))
"""Of a check's name and reason in the record, the fewer the less there is room for."""

_RESULTS_BYTES = 960 * 1024
"""Of a line's 1 MiB; in the fewest characters, the most checks of the worst kind fit."""

_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
_SLUG_LENGTH = 60


def verification_record(
    *,
    subject_kind: Literal["bead", "gate"],
    subject_id: str,
    attempt: int,
    started_ms: int,
    finished_ms: int,
    verdict: str,
    results: Sequence[CheckResult],
    evidence: Sequence[str | None],
) -> dict[str, Any]:
    """Returns the record of one run; `evidence` has the file of each result, or None."""
    return {
        "subject_kind": subject_kind,
        "subject_id": subject_id,
        "attempt": attempt,
        "started_at": format_ms(started_ms),
        "finished_at": format_ms(finished_ms),
        "verdict": verdict,
        "results": _result_records(results, evidence),
    }


def _result_records(
    results: Sequence[CheckResult], evidence: Sequence[str | None]
) -> list[dict[str, Any]]:
    """Returns what a record says of each check, in fewer words where many have much to say."""
    for chars in _CHARS:
        told = [
            result_record(result, file, chars)
            for result, file in zip(results, evidence, strict=True)
        ]
        if len(json.dumps(told)) <= _RESULTS_BYTES:
            break
    return told


def result_record(
    result: CheckResult, evidence: str | None, chars: tuple[int, int] = _CHARS[0]
) -> dict[str, Any]:
    """Returns what a record says of one check, its name and its reason in so many characters."""
    return {
        "name": _shortened(result.name, chars[0]),
        "status": result.status,
        "severity": result.check.severity,
        "exit_code": result.exit_code,
        "duration_s": round(result.duration_s, 3),
        "reason": _shortened(result.reason, chars[1]),
        "evidence": evidence,
    }


def write_evidence(
    evidence_dir: str,
    subject_id: str,
    started_ms: int,
    results: Sequence[CheckResult],
) -> list[str | None]:
    """Writes one file for each check that ran; returns their paths, None for a skipped one.

    The paths begin with the evidence folder's own name: they are read beside the ledger. The
    folder gets a `.gitignore` when it is made, so that outputs are tracked only by those who
    remove it. Raises `Unwritable`.
    """
    run = _new_folder(evidence_dir, slug(subject_id), started_ms)
    paths: list[str | None] = []
    for number, result in enumerate(results, 1):
        if result.status == "skipped":
            paths.append(None)
            continue
        path = os.path.join(run, f"{number:02d}-{slug(result.name)}.log")
        write_document(path, _log(result))
        paths.append(os.path.relpath(path, _above(evidence_dir)))
    return paths


def missing_evidence(record: Mapping[str, Any], evidence_dir: str) -> list[str]:
    """Returns the checks of a record whose evidence is not there, or is empty."""
    above = _above(evidence_dir)
    return [
        result["name"]
        for result in record["results"]
        if not result["evidence"] or not _has_content(os.path.join(above, result["evidence"]))
    ]


def failures_text(results: Sequence[CheckResult]) -> str:
    """Returns what failed, why, and the end of its output: what the next attempt needs to know."""
    parts = []
    for result in results:
        if result.status == "failed":
            parts.append(f"## {result.name}\n{result.reason}\n")
            parts += [
                f"{title}:\n{_ending(stream)}\n"
                for title, stream in (
                    ("standard output", result.stdout),
                    ("standard error", result.stderr),
                )
                if stream.total_bytes
            ]
    return _shortened("\n".join(parts), FAILURES_MAX_CHARS)


def write_failures(evidence_dir: str, subject_id: str, failures: str) -> str:
    """Replaces the file that tells the next attempt what failed; returns its path."""
    _make_evidence_dir(evidence_dir)
    path = os.path.join(os.path.abspath(evidence_dir), slug(subject_id), "failures.txt")
    write_document(path, failures.encode(errors="replace"))
    return path


def slug(text: str) -> str:
    """Returns a name for a file that still shows what it was made from."""
    safe = "".join(char if char in _SAFE else "-" for char in text[:_SLUG_LENGTH])
    return safe.lstrip(".") or "-"


def _above(evidence_dir: str) -> str:
    return os.path.dirname(os.path.abspath(evidence_dir))


def _new_folder(evidence_dir: str, subject: str, started_ms: int) -> str:
    stamp = format_ms(started_ms).replace(":", "").replace("-", "")
    base = os.path.join(evidence_dir, subject, stamp)
    try:
        _make_evidence_dir(evidence_dir)
        os.makedirs(os.path.dirname(base), exist_ok=True)
        for number in range(1, 1000):
            folder = base if number == 1 else f"{base}-{number}"
            try:
                os.mkdir(folder)
            except FileExistsError:
                # Two runs began in one millisecond.
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
        os.makedirs(evidence_dir, exist_ok=True)
        with open(os.path.join(evidence_dir, ".gitignore"), "x", encoding="utf-8") as file:
            file.write("*\n")
    except FileExistsError:
        # Another run made it at the same moment.
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


def _ending(stream: Output) -> str:
    return stream.text()[-_SHOWN_CHARS:].strip()


def _shortened(text: str, limit: int) -> str:
    """Returns the text, cut, as UTF-8 can hold it: JSON may have half a surrogate pair."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return cut.encode(errors="replace").decode()


def _has_content(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0
    except (OSError, ValueError):
        return False
