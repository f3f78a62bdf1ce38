"""The two checks of files: does a path exist, and does a file contain every pattern."""

from __future__ import annotations

import json
import os
import stat
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from queenbee.checks import content
from queenbee.checks.processes import Program, run_process
from queenbee.core.timestamps import format_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from queenbee.checks.check import Pattern
    from queenbee.checks.processes import Interrupts

MAX_PATTERNS = 500
"""With 200 characters of each line, the answer fits what is kept of an output."""

MAX_PATTERN_BYTES = 64 * 1024
"""The patterns are one argument of a program; Linux allows 128 KiB for one."""

_QUOTED_CHARS = 200
_TYPES = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"))


@dataclass(frozen=True)
class Look:
    """What was found; `details` are those of `spec/4`."""

    status: Literal["passed", "failed", "interrupted"]
    reason: str
    duration_s: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)


def look_for_file(path: str, wanted: str) -> Look:
    """Returns whether there is a `file`, a `directory` or `any`thing at the path."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        reason = f"File not found: {path}" if missing else f"{path} cannot be looked at: {error}"
        number = getattr(error, "errno", None)
        return Look("failed", reason, details={"file_path": path, "errno": number})
    details = {
        "file_size_bytes": status.st_size,
        "file_modified_at": format_ms(status.st_mtime_ns // 1_000_000),
        "permissions": stat.filemode(status.st_mode)[1:],
    }
    actual = next((name for test, name in _TYPES if test(status.st_mode)), "special file")
    if wanted not in ("any", actual):
        reason = f"{path} is a {actual}, expected a {wanted}"
        return Look("failed", reason, details=details | {"file_path": path})
    return Look("passed", f"File {path} exists", details=details)


def search_file(
    path: str,
    patterns: tuple[Pattern, ...],
    *,
    env: Mapping[str, str],
    timeout_s: float,
    on_tick: Callable[[float, str], None],
    interrupts: Interrupts,
) -> Look:
    """Returns whether every pattern occurs in the file, searched in its own process.

    Regular expressions are Python's, and `^` and `$` match at the ends of a line. ADR 0012.
    """
    asked = json.dumps([[one.text, one.literal, one.case_sensitive] for one in patterns])
    if len(asked) > MAX_PATTERN_BYTES or len(patterns) > MAX_PATTERNS:
        limits = f"{MAX_PATTERNS} patterns, or {MAX_PATTERN_BYTES:,} bytes of them"
        return Look("failed", f"more than {limits}")
    # -I and -S: this interpreter imports nothing from the project that is checked.
    argv = [sys.executable, "-I", "-S", content.__file__, path, asked]
    program = Program(argv, "/", env, timeout_s)
    done = run_process(program, on_tick=on_tick, interrupts=interrupts)
    if done.ended == "interrupted":
        return Look("interrupted", "interrupted", done.duration_s)
    if done.ended == "exited" and done.exit_code == 0:
        answer = json.loads(done.stdout.data())
        problem = answer.get("problem")
    elif done.ended == "timed_out":
        problem = f"timed out after {timeout_s:.3g} s"
    else:
        problem = done.problem or f"the search ended with exit code {done.exit_code}"
    if problem:
        reason = f"{path} cannot be searched: {problem}"
        return Look("failed", reason, done.duration_s, {"file_path": path})
    return _matched(path, patterns, answer["matches"], done.duration_s)


def _matched(
    path: str, patterns: tuple[Pattern, ...], matches: list[list[Any]], duration_s: float
) -> Look:
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
        reason = f"missing from {path}: {', '.join(complaints)}"
        return Look("failed", reason, duration_s, details | {"file_path": path})
    reason = f"{len(found)} of {len(patterns)} patterns occur in {path}"
    return Look("passed", reason, duration_s, details)
