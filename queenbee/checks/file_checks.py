"""The two checks of files: does a path exist, and does a file contain every pattern."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Mapping
from typing import Any

from queenbee.checks import content
from queenbee.checks.check import Check, CheckResult, Pattern
from queenbee.checks.processes import ProcessResult, Program
from queenbee.core.command_lines import command_line
from queenbee.core.timestamps import format_ms

MAX_PATTERNS = 500
"""With 200 characters per line, the answer fits within the kept part of an output."""

MAX_PATTERN_BYTES = 64 * 1024
"""The patterns are one argument of a program; Linux allows 128 KiB for one."""

_QUOTED_CHARS = 200
_TYPES = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"))


def look_for_file(check: Check, path: str, wanted: str) -> CheckResult:
    """Returns whether there is a `file`, a `directory` or `any`thing at the path.

    The result's details here and below are those of `spec/4-phase-gate.md`.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        reason = f"File not found: {path}" if missing else f"{path} cannot be looked at: {error}"
        number = getattr(error, "errno", None)
        details = {"file_path": path, "errno": number}
        return CheckResult(check, "failed", reason, details=details)
    details = {
        "file_size_bytes": status.st_size,
        "file_modified_at": format_ms(status.st_mtime_ns // 1_000_000),
        "permissions": stat.filemode(status.st_mode)[1:],
    }
    actual = next((name for test, name in _TYPES if test(status.st_mode)), "special file")
    if wanted not in ("any", actual):
        reason = f"{path} is a {actual}, expected a {wanted}"
        return CheckResult(check, "failed", reason, details=details | {"file_path": path})
    return CheckResult(check, "passed", f"File {path} exists", details=details)


def search_file(
    check: Check,
    path: str,
    patterns: tuple[Pattern, ...],
    *,
    env: Mapping[str, str],
    timeout_s: float,
    run: Callable[[Program], ProcessResult],
) -> CheckResult:
    """Returns whether every pattern occurs in the file; `run` runs the program that searches it.

    Regular expressions are Python's, and `^` and `$` match at the ends of a line. ADR 0012.
    """
    asked = json.dumps([[one.text, one.literal, one.case_sensitive] for one in patterns])
    if len(asked) > MAX_PATTERN_BYTES or len(patterns) > MAX_PATTERNS:
        limits = f"{MAX_PATTERNS} patterns, or {MAX_PATTERN_BYTES:,} bytes of them"
        return CheckResult(check, "failed", f"more than {limits}")
    # -I and -S: this interpreter imports nothing from the project that is checked.
    argv = command_line(sys.executable, "-I", "-S", values=[content.__file__, path, asked])
    done = run(Program(argv, "/", env, timeout_s))
    if done.ended == "interrupted":
        return CheckResult(check, "interrupted", "interrupted", duration_s=done.duration_s)
    if done.ended == "exited" and done.exit_code == 0:
        answer = json.loads(done.stdout.data())
        problem = answer.get("problem")
    elif done.ended == "timed_out":
        problem = f"timed out after {timeout_s:.3g} s"
    else:
        problem = done.problem or f"the search ended with exit code {done.exit_code}"
    if problem:
        reason, details = f"{path} cannot be searched: {problem}", {"file_path": path}
    else:
        reason, details = _matched(path, patterns, answer["matches"])
    return CheckResult(
        check,
        "failed" if "file_path" in details else "passed",
        reason,
        duration_s=done.duration_s,
        details=details,
    )


def _matched(
    path: str, patterns: tuple[Pattern, ...], matches: list[list[Any]]
) -> tuple[str, dict[str, Any]]:
    """Returns the reason and the details; `file_path` is among them if a pattern is missing."""
    found, missing, complaints = [], [], []
    for pattern, (line_number, line, problem) in zip(patterns, matches, strict=True):
        if line_number is not None:
            where = {"pattern": pattern.text, "line_number": line_number, "matched_text": line}
            found.append(where)
            continue
        missing.append(pattern.text)
        kind = " (as plain text)" if pattern.literal else ""
        complaints.append(f"{pattern.text[:_QUOTED_CHARS]!r}{f' {problem}' if problem else kind}")
    details = {
        "matched_patterns": found,
        "total_patterns": len(patterns),
        "matched_count": len(found),
        "missing_patterns": missing,
    }
    if missing:
        return f"missing from {path}: {', '.join(complaints)}", details | {"file_path": path}
    return f"{len(found)} of {len(patterns)} patterns occur in {path}", details
