"""The four types of rules: the check that each makes, and what the gate keeps of its result."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from queenbee.checks.check import (
    DEFAULT_TIMEOUT_S,
    LONGEST_S,
    Check,
    Command,
    ContentMatch,
    Expectation,
    FileExists,
    Pattern,
    Script,
    Unknown,
)
from queenbee.core.timestamps import format_ms
from queenbee.documents.fields import named_environment
from queenbee.documents.gates.rule_fields import patterns_of, spelled
from queenbee.documents.json_documents import parse_json
from queenbee.errors import Unreadable

if TYPE_CHECKING:
    from typing import Any, Literal

    from queenbee.checks.check import CheckResult, Output
    from queenbee.documents.gates.judgement import GateError, RuleResult

CONTENT_TIMEOUT_S = 30
"""A search that takes longer probably never ends."""

_SHOWN_CHARS = 4_000
"""Kept of each stream in a result, since every check reads the file. The evidence has it all."""

_COUNT = re.compile(r"(\d{1,9}) (passed|failed|skipped|errors?)\b")


def rule_check(rule: dict[str, Any]) -> Check:
    """Returns the check of a valid rule."""
    config = rule["rule_config"]
    what = _what(rule["rule_type"], config)
    content = isinstance(what, ContentMatch)
    timeout_s = config.get("timeout_seconds") or (
        CONTENT_TIMEOUT_S if content else DEFAULT_TIMEOUT_S
    )
    return Check(
        name=rule.get("rule_name") or rule["rule_id"],
        what=what,
        expect=Expectation(int(config.get("expected_exit_code") or 0)),
        timeout_s=min(timeout_s, LONGEST_S),
        severity="warning" if rule.get("severity", "error") == "warning" else "error",
        # All rules run, even after one has failed.
        on_failure="continue",
        cwd=config.get("working_directory"),
        environment=named_environment(config.get("env")),
    )


def judged(result: CheckResult) -> CheckResult:
    """Returns the result as the script itself reports it: JSON with a `status` in its output.

    The exit code counts in any case; a script can only turn a pass into something else.
    """
    report = _report(result)
    if report is None or result.status != "passed" or report.get("status") == "passed":
        return result
    status = report.get("status")
    reason = str(report.get("message") or f"the script says {status!r}")[:_SHOWN_CHARS]
    return replace(result, status="skipped" if status == "skipped" else "failed", reason=reason)


def gate_result(
    rule: dict[str, Any], result: CheckResult, *, result_id: str, now_ms: int, evidence: str | None
) -> RuleResult:
    """Returns what the gate keeps of a rule's result; an interrupted one is `skipped`."""
    details = dict(result.details)
    if isinstance(result.check.what, (Command, Script)) and result.status != "skipped":
        details = _program_details(result)
    if evidence is not None:
        details["evidence"] = evidence
    return {
        "result_id": result_id,
        "rule_id": rule["rule_id"],
        "validated_at": format_ms(now_ms),
        "status": "skipped" if result.status == "interrupted" else result.status,
        "message": _message(result),
        "details": details,
    }


def gate_error(rule: dict[str, Any], result: RuleResult, *, error_id: str) -> GateError:
    """Returns the entry of `status.errors` for a failed result."""
    severity = rule.get("severity", "error")
    context = {
        "rule_id": rule["rule_id"],
        "rule_type": rule["rule_type"],
        "severity": severity,
    }
    context |= {
        name: result["details"][name]
        for name in ("file_path", "errno")
        if name in result["details"]
    }
    if severity == "warning":
        context["note"] = "This is a warning-level error and does not block phase completion"
    return {
        "error_id": error_id,
        "timestamp": result["validated_at"],
        "message": result["message"],
        "context": context,
    }


def _what(
    rule_type: str, config: dict[str, Any]
) -> Command | Script | FileExists | ContentMatch | Unknown:
    if rule_type == "file_exists":
        # The document says "a file exists"; the validator's spelling means anything.
        file_type: Literal["file", "directory", "any"] = config.get("type") or (
            "file" if "file_path" in config else "any"
        )
        return FileExists(spelled(config, "file_path", "path"), file_type)
    if rule_type == "content_match":
        patterns = tuple(Pattern(*one) for one in patterns_of(config))
        return ContentMatch(spelled(config, "file_path", "path"), patterns)
    if rule_type == "test_pass":
        return Command(spelled(config, "test_command", "command"))
    if rule_type == "custom":
        args = spelled(config, "args", "script_args") or []
        return Script(config["script_path"], tuple(args))
    # From a later minor version.
    return Unknown(rule_type)


def _report(result: CheckResult) -> dict[str, Any] | None:
    if not isinstance(result.check.what, Script) or result.stdout.left_out_bytes:
        return None
    try:
        report = parse_json(result.stdout.data(), "its output")
    except Unreadable:
        return None
    return report if isinstance(report, dict) and "status" in report else None


def _program_details(result: CheckResult) -> dict[str, Any]:
    details: dict[str, Any] = {
        "exit_code": result.exit_code,
        "duration_seconds": round(result.duration_s, 2),
        "stdout": _shown(result.stdout),
        "stderr": _shown(result.stderr),
    }
    summary = _test_summary(result)
    if summary:
        details["test_summary"] = summary
    report = _report(result)
    if report is not None:
        details["script_output"] = report
    return details


def _test_summary(result: CheckResult) -> dict[str, int] | None:
    line = _summary_line(result)
    if not line:
        return None
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for number, noun in _COUNT.findall(line):
        counts["failed" if noun.startswith("error") else noun] += int(number)
    return counts | {"total": sum(counts.values())}


def _summary_line(result: CheckResult) -> str:
    """Returns the last line that counts tests; pytest and others end with one."""
    if not isinstance(result.check.what, Command):
        return ""
    lines = result.stdout.text()[-_SHOWN_CHARS:].splitlines()
    return next((line.strip("= ") for line in reversed(lines) if _COUNT.search(line)), "")


def _message(result: CheckResult) -> str:
    line = _summary_line(result)
    if line and result.status == "passed":
        return f"Tests passed: {line[:200]}"
    if line and result.status == "failed":
        return f"{result.reason} ({line[:200]})"
    return result.reason


def _shown(stream: Output) -> str:
    text = stream.text()
    return text if len(text) <= _SHOWN_CHARS else "[…] " + text[-_SHOWN_CHARS:]
