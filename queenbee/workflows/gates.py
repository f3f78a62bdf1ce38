"""Makes and shows the phase gates of a hive and adds rules to them; what `queen gate` calls."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.text import suggested
from queenbee.documents.folders import gates_dir
from queenbee.documents.gates.gate import add_rule, new_gate, validate_gate
from queenbee.documents.gates.judgement import Verdict, attempt_of, judge, latest_results
from queenbee.documents.gates.phases import phase_number
from queenbee.documents.gates.store import (
    GateFile,
    create_gate,
    find_gate,
    list_gates,
    update_gate,
)
from queenbee.documents.json_documents import parse_json
from queenbee.documents.plans.files import read_markdown
from queenbee.documents.plans.plan import parse_plan
from queenbee.errors import InvalidInput, NotFound, Unreadable
from queenbee.workflows.locks import documents_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.documents.findings import Finding
    from queenbee.documents.gates.judgement import Document, RuleResult
    from queenbee.workflows.hive import Hive

_SLUG = re.compile(r"[^A-Za-z0-9]+")
_SLUG_LENGTH = 40


@dataclass(frozen=True)
class GateView:
    """One gate: its verdict, its rules with their latest results, and its findings."""

    path: str
    document: Document
    verdict: Verdict
    findings: Sequence[Finding]

    @property
    def rules(self) -> list[dict[str, object]]:
        """The rules, each with the status and message of its latest result."""
        latest = latest_results(self.document)
        rules = self.document["validation_config"]["rules"]
        return [_rule(rule, latest.get(rule["rule_id"])) for rule in rules]

    def to_dict(self) -> dict[str, object]:
        """Returns the gate as plain values, with only the latest results."""
        metadata = self.document["metadata"]
        return {
            "workflow_id": metadata["workflow_id"],
            "phase_id": metadata["phase_id"],
            "phase_name": metadata["phase_name"],
            "path": self.path,
            "attempt": attempt_of(self.document),
            "status": self.verdict.status,
            "passed": self.verdict.passed,
            "blocking": list(self.verdict.blocking),
            "warnings": list(self.verdict.warnings),
            "rules": self.rules,
            "findings": [finding.to_dict() for finding in self.findings],
        }


@dataclass(frozen=True)
class RuleOptions:
    """A rule as the options of a command describe it; exactly one of the first four is given.

    `exists` and `contains` are files, `test` a command, `script` a program.
    """

    exists: str | None = None
    contains: str | None = None
    test: str | None = None
    script: str | None = None
    patterns: Sequence[str] = ()
    args: Sequence[str] = ()
    timeout_s: float | None = None
    rule_id: str | None = None
    name: str | None = None
    warning: bool = False


def new_hive_gate(hive: Hive, workflow_id: str, phase_id: str, name: str | None) -> GateView:
    """Creates a pending gate without rules. Raises `InvalidInput`, or `Conflict` if it exists."""
    document = new_gate(
        workflow_id=workflow_id,
        phase_id=phase_id,
        phase_name=name or phase_id,
        now_ms=hive.now_ms(),
    )
    return _view(create_gate(gates_dir(hive.layout), document, lock=documents_lock(hive)))


def add_hive_rule(hive: Hive, workflow_id: str, phase_id: str, rule: Document) -> GateView:
    """Adds a rule to a gate, with an id if it has none. Raises as `documents.gates.add_rule`."""

    def added(document: Document) -> Document:
        return add_rule(document, _identified(rule, document))

    folder = gates_dir(hive.layout)
    return _view(update_gate(folder, workflow_id, phase_id, added, lock=documents_lock(hive)))


def gate_view(hive: Hive, workflow_id: str, phase_id: str) -> GateView:
    """Returns a gate. Raises `NotFound`, or `Unreadable` for one that is not valid."""
    return _view(find_gate(gates_dir(hive.layout), workflow_id, phase_id))


def gate_views(hive: Hive, workflow_id: str | None = None) -> list[GateView]:
    """Returns all gates, or those of one workflow. Raises `Unreadable` if one cannot be read."""
    found, problems = list_gates(gates_dir(hive.layout))
    if workflow_id is not None:
        # A broken or foreign file spoils only the workflow whose gate it may be.
        begins = f"phase_{workflow_id}_"
        problems = [each for each in problems if os.path.basename(each.path).startswith(begins)]
    if problems:
        raise Unreadable(problems[0].message, path=problems[0].path, hint="queen doctor")
    keys = [gate.key for gate in found if workflow_id in (None, gate.key[0])]
    return [gate_view(hive, str(workflow), str(phase)) for workflow, phase in keys]


def rule_of(options: RuleOptions) -> Document:
    """Returns the rule that the options describe, without an id if they give none.

    Raises `InvalidInput` for none or several of the four types.
    """
    given = {
        rule_type: value
        for rule_type, value in (
            ("file_exists", options.exists),
            ("content_match", options.contains),
            ("test_pass", options.test),
            ("custom", options.script),
        )
        if value is not None
    }
    if len(given) != 1:
        raise InvalidInput(
            "a rule is one of: --exists, --contains, --test, --script, or a JSON object",
            hint="queen gate add-rule --help",
        )
    ((rule_type, value),) = given.items()
    rule: Document = {"rule_id": options.rule_id} if options.rule_id else {}
    rule |= {
        "rule_type": rule_type,
        "rule_name": options.name or _rule_name(rule_type, value),
        "rule_config": _config(rule_type, value, options),
        "severity": "warning" if options.warning else "error",
    }
    return rule


def rule_from(text: str) -> Document:
    """Returns the rule in a JSON text. Raises `InvalidInput` if it is not an object."""
    try:
        rule = parse_json(text.encode(errors="replace"), "the rule")
    except Unreadable as error:
        raise InvalidInput(error.message) from error
    if not isinstance(rule, dict):
        raise InvalidInput("the rule must be a JSON object")
    return rule


def phase_name(plan_file: str, phase_id: str) -> str | None:
    """Returns the title that a plan gives to a phase, or None for one without.

    Raises `NotFound` for a plan that does not exist, or has no such phase.
    """
    phases = parse_plan(read_markdown(plan_file)).phases
    titles = {phase_number(phase.number): phase.title for phase in phases}
    number = phase_number(phase_id)
    if number not in titles:
        raise NotFound(
            f"{plan_file} has no phase {phase_id}", hint=suggested("queen plan graph", plan_file)
        )
    return titles[number] or None


def _config(rule_type: str, value: str, options: RuleOptions) -> Document:
    fields: dict[str, Document] = {
        "file_exists": {"file_path": value},
        "content_match": {"file_path": value, "patterns": list(options.patterns)},
        "test_pass": {"test_command": value},
        "custom": {"script_path": value, "args": list(options.args)},
    }
    config = fields[rule_type]
    if options.patterns and rule_type != "content_match":
        raise InvalidInput("--pattern needs --contains")
    if options.args and rule_type != "custom":
        raise InvalidInput("--arg needs --script")
    if options.timeout_s is not None:
        if rule_type == "file_exists":
            raise InvalidInput("--timeout cannot be combined with --exists")
        config["timeout_seconds"] = options.timeout_s
    return config


def _rule_name(rule_type: str, value: str) -> str:
    names = {
        "file_exists": f"{value} exists",
        "content_match": f"{value} has the required content",
        "test_pass": f"{value} passes",
        "custom": f"{os.path.basename(value)} passes",
    }
    return names[rule_type]


def _identified(rule: Document, document: Document) -> Document:
    """Returns the rule with an id, as its first field, that no other rule of the gate has."""
    if "rule_id" in rule:
        return rule
    taken = {other["rule_id"] for other in document["validation_config"]["rules"]}
    words = str(rule.get("rule_name") or rule.get("rule_type"))
    base = f"rule_{_SLUG.sub('_', words)[:_SLUG_LENGTH].strip('_').lower()}"
    names = [base, *(f"{base}_{number}" for number in range(2, len(taken) + 3))]
    return {"rule_id": next(name for name in names if name not in taken), **rule}


def _view(gate: GateFile) -> GateView:
    findings = validate_gate(gate.document)
    return GateView(gate.path, gate.document, judge(gate.document), findings)


def _rule(rule: Document, result: RuleResult | None) -> dict[str, object]:
    return {
        "rule_id": rule["rule_id"],
        "rule_type": rule["rule_type"],
        "rule_name": rule.get("rule_name"),
        "severity": rule.get("severity", "error"),
        "status": result["status"] if result else "not run",
        "message": result.get("message") if result else None,
        "validated_at": result["validated_at"] if result else None,
    }
