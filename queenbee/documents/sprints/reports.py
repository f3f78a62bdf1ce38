"""QA agents' reports, and the `output_schema` in a bead that each report must follow.

Anyone may have written the schema: references are never fetched, and a pattern cannot run forever.
ADR 0013.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from queenbee.core.command_lines import command_line
from queenbee.documents.findings import MAX_FINDINGS, Finding, first_findings
from queenbee.documents.schema import is_understood, schema_findings
from queenbee.errors import MissingPackage

LONGEST_S = 10
"""How long a schema with patterns may take; without patterns it takes milliseconds."""

_PROGRAM = (
    "import sys; from queenbee.documents.sprints.reports import answer; "
    "sys.stdout.write(answer(sys.stdin.read()))"
)
QA_STATUSES = ("fail", "pass", "stop")

DEFAULT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "status": {"enum": ["pass", "fail", "stop"]},
        "message": {"type": "string"},
        "details": {"type": "object"},
    },
    "required": ["status", "message"],
}
"""What plans write for a QA agent that has no schema of its own."""


def schema_rules(schema: dict[str, Any], path: str) -> Iterator[Finding]:
    """Returns what an `output_schema` lacks, or why it is not a JSON Schema."""
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    status = properties.get("status")
    allowed = status.get("enum") if isinstance(status, dict) else None
    if not isinstance(allowed, list) or sorted(map(repr, allowed)) != list(map(repr, QA_STATUSES)):
        message = "must define status with exactly the enum 'pass', 'fail', 'stop'"
        yield Finding(f"{path}.properties.status", message)
    if "message" not in properties:
        yield Finding(f"{path}.properties.message", "must be defined, but is missing")
    fault = _schema_fault(schema)
    if fault is not None:
        yield Finding(path, f"is not a JSON Schema: {fault}")


def report_findings(report: dict[str, Any], schema: dict[str, Any]) -> list[Finding]:
    """Returns everything in a QA agent's report that its `output_schema` does not allow.

    Raises `MissingPackage` if only the jsonschema library could tell, and it is not installed.
    """
    if is_understood(schema):
        return schema_findings(report, schema)
    fault = _schema_fault(schema)
    if fault is not None:
        return [Finding("", f"output_schema is not a JSON Schema: {fault}")]
    try:
        asked = json.dumps([report, schema])
    except ValueError:
        return [Finding("", "has an integer with more digits than Python can print")]
    except RecursionError:
        return [Finding("", "is nested too deeply")]
    return _judged_apart(asked) if '"pattern' in asked else _judged(report, schema)


def answer(asked: str) -> str:
    """Returns the findings for a report and its schema as JSON: what the child process prints."""
    report, schema = json.loads(asked)
    return json.dumps([[each.path, each.message] for each in _judged(report, schema)])


def _judged(report: dict[str, Any], schema: dict[str, Any]) -> list[Finding]:
    from referencing import Registry  # noqa: PLC0415 - start-up
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - start-up

    # A registry of its own: the library's default one would fetch a $ref from the network.
    errors = _validator_class(schema)(schema, registry=Registry()).iter_errors(report)
    try:
        found = first_findings(
            (Finding(error.json_path[2:], error.message[:200]) for error in errors), ""
        )
    except Unresolvable as error:
        return [Finding("", f"output_schema refers to {error.ref!r}, which is not in it")]
    except RecursionError:
        return [Finding("", "output_schema refers to itself without end")]
    return sorted(found[:MAX_FINDINGS], key=lambda each: each.path) + found[MAX_FINDINGS:]


def _judged_apart(asked: str) -> list[Finding]:
    """Checks in a separate process: a regular expression can run forever (ADR 0012)."""
    command = command_line(sys.executable, "-E", "-P", "-c", _PROGRAM)
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, timeout=LONGEST_S
        )
    except subprocess.TimeoutExpired:
        return [Finding("", f"output_schema cannot be checked: timed out after {LONGEST_S} s")]
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return [Finding("", f"output_schema cannot be checked: {reason[:200]}")]
    return [Finding(path, message) for path, message in json.loads(done.stdout)]


def _schema_fault(schema: dict[str, Any]) -> str | None:
    if is_understood(schema):
        return None
    if not isinstance(schema.get("$schema", ""), str):
        return "its $schema must be a string"
    validator = _validator_class(schema)
    from jsonschema import SchemaError  # noqa: PLC0415 - start-up

    try:
        validator.check_schema(schema)
    except SchemaError as error:
        return error.message[:200]
    except RecursionError:
        return "it is nested too deeply"
    return None


def _validator_class(schema: dict[str, Any]) -> Any:
    try:
        from jsonschema import Draft202012Validator  # noqa: PLC0415 - start-up
        from jsonschema.validators import validator_for  # noqa: PLC0415 - start-up
    except ImportError:
        raise MissingPackage.of("this output_schema", "jsonschema", "schemas") from None
    return validator_for(schema, default=Draft202012Validator)
