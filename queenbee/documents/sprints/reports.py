"""QA agents' reports, and the `output_schema` in a bead that each report must follow.

The schema comes from a bead and so from anyone: references in it are never fetched. The
jsonschema library judges it; importing that takes longer than the rest of the command, and the
schema that plans write needs only our own reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.documents.findings import MOST_TOLD, Finding, first_told
from queenbee.documents.schema import schema_findings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

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
    if schema == DEFAULT_SCHEMA:
        return
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
    if schema == DEFAULT_SCHEMA:
        return schema_findings(report, schema)
    from referencing import Registry  # noqa: PLC0415 - start-up
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - start-up

    fault = _schema_fault(schema)
    if fault is not None:
        return [Finding("", f"output_schema is not a JSON Schema: {fault}")]
    # A registry of its own: the library's default one would fetch a $ref from the network.
    validator = _validator_class(schema)(schema, registry=Registry())
    errors = validator.iter_errors(report)
    try:
        found = first_told(
            (Finding(error.json_path[2:], error.message[:200]) for error in errors), ""
        )
    except Unresolvable as error:
        return [Finding("", f"output_schema refers to {error.ref!r}, which is not in it")]
    except RecursionError:
        return [Finding("", "output_schema never comes to an end")]
    except ValueError:
        # Python refuses to write out such a number, and the library's messages repeat values.
        return [Finding("", "has an integer of more digits than Python can print")]
    return sorted(found[:MOST_TOLD], key=lambda each: each.path) + found[MOST_TOLD:]


def _schema_fault(schema: dict[str, Any]) -> str | None:
    from jsonschema import SchemaError  # noqa: PLC0415 - start-up

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
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - start-up
    from jsonschema.validators import validator_for  # noqa: PLC0415 - start-up

    return validator_for(schema, default=Draft202012Validator)
