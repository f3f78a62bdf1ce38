"""The evidence of a run of checks: what they printed, as files beside the ledger."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.checks.check import described
from queenbee.checks.verification import shortened
from queenbee.core.timestamps import format_ms
from queenbee.errors import Unwritable
from queenbee.store import safe_open
from queenbee.store.documents import write_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queenbee.checks.check import CheckResult, Output
    from queenbee.checks.verification import ResultRecord

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
                f"{title}:\n{_ending(stream)}\n"
                for title, stream in (
                    ("standard output", result.stdout),
                    ("standard error", result.stderr),
                )
                if stream.total_bytes
            ]
    return shortened("\n".join(parts), FAILURES_MAX_CHARS)


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


def _ending(stream: Output) -> str:
    return stream.text()[-_SHOWN_CHARS:].strip()


def _has_content(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0
    except (OSError, ValueError):
        return False
