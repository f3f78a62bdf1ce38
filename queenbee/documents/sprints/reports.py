"""The JSON Schema by which a QA agent's report is judged: is it one, and does the report hold.

The schema comes from a bead, so from anyone: no reference in it is ever fetched.
"""

from __future__ import annotations

from queenbee.documents.findings import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

QA_STATUSES = ("fail", "pass", "stop")


def schema_rules(schema: dict[str, Any], path: str) -> Iterator[Finding]:
    """Returns what an `output_schema` lacks, or why it is no JSON Schema at all."""
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    status = properties.get("status")
    allowed = status.get("enum") if isinstance(status, dict) else None
    if not isinstance(allowed, list) or sorted(map(repr, allowed)) != list(map(repr, QA_STATUSES)):
        message = "must define status with the enum 'pass', 'fail', 'stop', no more and no fewer"
        yield Finding(f"{path}.properties.status", message)
    if "message" not in properties:
        yield Finding(f"{path}.properties.message", "must be defined, but is missing")
    fault = _schema_fault(schema)
    if fault is not None:
        yield Finding(path, f"is not a JSON Schema: {fault}")


def report_findings(report: dict[str, Any], schema: dict[str, Any]) -> list[Finding]:
    """Returns everything in a QA agent's report that its `output_schema` does not allow."""
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    fault = _schema_fault(schema)
    if fault is not None:
        return [Finding("", f"output_schema is not a JSON Schema: {fault}")]
    # A registry of its own: the library's default one would fetch a $ref from the network.
    validator = _validator_class(schema)(schema, registry=Registry())
    try:
        errors = sorted(validator.iter_errors(report), key=lambda error: error.json_path)
    except Unresolvable as error:
        return [Finding("", f"output_schema refers to {error.ref!r}, which is not in it")]
    except RecursionError:
        return [Finding("", "output_schema never comes to an end")]
    return [Finding(error.json_path[2:], error.message[:200]) for error in errors]


def _schema_fault(schema: dict[str, Any]) -> str | None:
    from jsonschema import SchemaError

    if not isinstance(schema.get("$schema", ""), str):
        return "its $schema must be a string"
    try:
        _validator_class(schema).check_schema(schema)
    except SchemaError as error:
        return error.message[:200]
    except RecursionError:
        return "it is nested too deeply"
    return None


def _validator_class(schema: dict[str, Any]) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    return validator_for(schema, default=Draft202012Validator)
