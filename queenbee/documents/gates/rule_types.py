"""The four types of rules: their fields, the check that each makes, and what the gate keeps of its
result.

The field names of the source's own validator are read too: `path` with `type`, `pattern` with
`match_type` and `case_sensitive`, `command` with `working_directory`, and `script_args`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from queenbee.checks.check import (
    DEFAULT_TIMEOUT_S,
    MAX_CHECKS,
    Check,
    CheckResult,
    Command,
    ContentMatch,
    Expectation,
    FileExists,
    Pattern,
    Script,
    Unknown,
)
from queenbee.checks.output import LONGEST_S, Output
from queenbee.core.timestamps import format_ms
from queenbee.documents.fields import environment_findings, named_environment
from queenbee.documents.findings import Finding, errors_in
from queenbee.documents.gates.judgement import Document
from queenbee.documents.json_documents import parse_json
from queenbee.documents.schema import is_whole, member_path
from queenbee.errors import Unreadable

_SPELLINGS = {
    "file_exists": (("file_path", "path"),),
    "content_match": (("file_path", "path"), ("patterns", "pattern")),
    "test_pass": (("test_command", "command"),),
    "custom": (("script_path",),),
}
"""The required fields of each type, in the document's spelling and then its validator's."""


def rules_findings(rules: list[dict[str, Any]], path: str) -> list[Finding]:
    """Returns what is wrong with rules that fit the schema."""
    if len(rules) > MAX_CHECKS:
        return [Finding(path, f"has {len(rules):,} rules; a gate can have at most {MAX_CHECKS}")]
    return [
        finding
        for number, rule in enumerate(rules)
        for finding in rule_findings(rule, f"{path}[{number}]")
    ]


def rule_findings(rule: dict[str, Any], path: str) -> list[Finding]:
    """Returns what is wrong with the `rule_config` of a rule that fits the schema."""
    config, where = rule["rule_config"], member_path(path, "rule_config")
    found = []
    for names in _SPELLINGS.get(rule["rule_type"], ()):
        found += _required(config, names, where)
    for name, (is_right, message) in _OPTIONAL.get(rule["rule_type"], {}).items():
        if config.get(name) is not None and not is_right(config[name]):
            found.append(Finding(member_path(where, name), message))
    found += environment_findings(config.get("env"), member_path(where, "env"))
    if not errors_in(found):
        odd = bad_patterns(rule, path)
        found += [replace(finding, severity="warning") for finding in odd]
    return found


def bad_patterns(rule: dict[str, Any], path: str) -> list[Finding]:
    """Returns an error for each regular expression of a rule that Python cannot use.

    Another tool's gate may use another dialect and have passed there; such a rule can never pass
    here.
    """
    config = rule["rule_config"]
    if rule["rule_type"] != "content_match":
        return []
    name = "patterns" if "patterns" in config else "pattern"
    return [
        Finding(f"{path}.rule_config.{name}", f"{text[:60]!r} can never match: {problem}")
        for text, literal, _ in patterns_of(config)
        if not literal and (problem := _regex_problem(text))
    ]


def spelled(config: dict[str, Any], name: str, other: str) -> Any:
    """Returns the value of a field under the document's name, or its validator's."""
    return config.get(name, config.get(other))


def patterns_of(config: dict[str, Any]) -> list[tuple[str, bool, bool]]:
    """Returns each pattern of a valid `content_match`, whether it is plain text, and whether case
    matters.

    The document's `patterns` are regular expressions; the validator's `pattern` is plain text
    unless `match_type` says otherwise.
    """
    many = "patterns" in config
    texts = config["patterns"] if many else [config["pattern"]]
    literal = (config.get("match_type") or ("regex" if many else "contains")) != "regex"
    case_sensitive = config.get("case_sensitive") is not False
    return [(text, literal, case_sensitive) for text in texts]


def _required(config: dict[str, Any], names: tuple[str, ...], where: str) -> list[Finding]:
    given = [name for name in names if name in config]
    if not given:
        return [Finding(member_path(where, names[0]), "is required, but missing")]
    found = []
    for name in given:
        value, path = config[name], member_path(where, name)
        if name == "patterns":
            if not (_is_texts(value) and value and all(value)):
                found.append(Finding(path, "must be a list of at least one pattern"))
        elif not _is_text(value):
            found.append(Finding(path, "must be a string that is not empty and contains no NUL"))
        elif name in ("file_path", "path", "script_path") and not value.startswith("/"):
            message = "is not absolute: it is relative to where the gate is run"
            found.append(Finding(path, message, "warning"))
    if len(given) == 2 and config[given[0]] not in (config[given[1]], [config[given[1]]]):
        message = f"contradicts {given[0]}: keep only one of them"
        found.append(Finding(member_path(where, given[1]), message))
    return found


def _regex_problem(pattern: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(text, str) and "\0" not in text for text in value
    )


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


_Rule = tuple["Callable[[object], bool]", str]
_TIME: dict[str, _Rule] = {"timeout_seconds": (_is_time, "must be a number above 0")}
_PROGRAM: dict[str, _Rule] = _TIME | {
    "working_directory": (_is_text, "must be a path"),
    "expected_exit_code": (is_whole, "must be a whole number"),
}
_ARGUMENTS: _Rule = (_is_texts, "must be a list of strings without a NUL")
_OPTIONAL: dict[str, dict[str, _Rule]] = {
    "file_exists": {
        "type": (
            lambda value: value in ("file", "directory", "any"),
            "must be one of file, directory, any",
        )
    },
    "content_match": _TIME
    | {
        "match_type": (
            lambda value: value in ("regex", "literal", "contains"),
            "must be one of regex, literal, contains",
        ),
        "case_sensitive": (lambda value: isinstance(value, bool), "must be true or false"),
    },
    "test_pass": _PROGRAM,
    "custom": _PROGRAM | {"args": _ARGUMENTS, "script_args": _ARGUMENTS},
}
"""The optional fields of each type; null counts as absent."""


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
) -> Document:
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


def gate_error(rule: Document, result: Document) -> Document:
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
        "error_id": f"err_{result['result_id'].removeprefix('res_')}",
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
