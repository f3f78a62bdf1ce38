"""Makes and shows the phase gates of a hive and adds rules to them; what `queen gate` calls."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from queenbee.checks.check import described
from queenbee.checks.consent import GATE, proposals
from queenbee.core.text import suggested
from queenbee.documents.findings import Finding
from queenbee.documents.folders import gates_dir
from queenbee.documents.gates.gate import add_rule, new_gate, remove_rule, validate_gate
from queenbee.documents.gates.gate_files import (
    GateFile,
    create_gate,
    find_gate,
    list_gates,
    update_gate,
    validator_results,
)
from queenbee.documents.gates.judgement import (
    Document,
    Verdict,
    attempt_of,
    judge,
    latest_results,
    rules_of,
)
from queenbee.documents.gates.phases import phase_number
from queenbee.documents.gates.rule_types import rule_check
from queenbee.documents.json_documents import parse_json
from queenbee.documents.plans.plan import parse_plan
from queenbee.documents.plans.source_text import read_markdown
from queenbee.errors import InvalidInput, NotFound, Unreadable
from queenbee.services.writing.seeing import note_typed
from queenbee.workflows.complete_hive import Hive
from queenbee.workflows.gating.gate_check import state_of_run
from queenbee.workflows.locks import documents_lock

_SLUG = re.compile(r"[^A-Za-z0-9]+")
_SLUG_LENGTH = 40
_RULE_HELP = "queen gate add-rule --help"


@dataclass(frozen=True, slots=True)
class GateView:
    """One gate: its verdict, its rules with their latest results, and its findings."""

    path: str
    document: Document
    verdict: Verdict
    findings: Sequence[Finding]
    run: str | None = None
    """What the attempt is doing, if it has not ended."""
    ledger_dir: str = ""
    """The folder that the paths of evidence start from."""

    @property
    def rules(self) -> list[dict[str, object]]:
        """The rules, each with what it checks and its latest result; `evidence` is a full path."""
        latest = latest_results(self.document)
        rules = self.document["validation_config"]["rules"]
        return [self._rule(rule, latest.get(rule["rule_id"])) for rule in rules]

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
            "run": self.run,
            "rules": self.rules,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def _rule(self, rule: Document, result: Document | None) -> dict[str, object]:
        evidence = result.get("details", {}).get("evidence") if result else None
        return {
            "rule_id": rule["rule_id"],
            "rule_type": rule["rule_type"],
            "rule_name": rule.get("rule_name"),
            "severity": rule.get("severity", "error"),
            "checks": described(rule_check(rule)),
            "status": result["status"] if result else "not run",
            "message": result.get("message") if result else None,
            "validated_at": result["validated_at"] if result else None,
            "evidence": os.path.join(self.ledger_dir, evidence)
            if isinstance(evidence, str)
            else None,
        }


@dataclass(frozen=True, slots=True)
class UnusableGate:
    """A file that cannot be read as a gate, so that its phase has not passed."""

    path: str
    problem: str
    workflow_id: str | None
    phase_id: str | None
    status: str = "unreadable"

    def to_dict(self) -> dict[str, object]:
        """Returns what is known, with the keys of a gate."""
        known = {"workflow_id": self.workflow_id, "phase_id": self.phase_id, "path": self.path}
        verdict = {"status": self.status, "passed": False, "blocking": [self.problem]}
        unknown = dict.fromkeys(("phase_name", "attempt", "run"))
        return known | verdict | unknown | {"warnings": [], "rules": [], "findings": []}


@dataclass(frozen=True, slots=True)
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


class _Kind(NamedTuple):
    """A type of rule: the option that asks for it, and the field that has what that gives."""

    option: str
    rule_type: str
    field: str
    what: str
    is_command: bool = False


_KINDS = (
    _Kind("exists", "file_exists", "file_path", "exists"),
    _Kind("contains", "content_match", "file_path", "has the required content"),
    _Kind("test", "test_pass", "test_command", "passes", is_command=True),
    _Kind("script", "custom", "script_path", "passes"),
)


def new_hive_gate(hive: Hive, workflow_id: str, phase_id: str, name: str | None) -> GateView:
    """Creates a pending gate without rules. Raises `InvalidInput`, or `Conflict` if it exists."""
    hive.look({"workflow_id": workflow_id, "phase_id": phase_id, "name": name})
    document = new_gate(
        workflow_id=workflow_id,
        phase_id=phase_id,
        phase_name=name or phase_id,
        now_ms=hive.now_ms(),
    )
    return _view(hive, create_gate(gates_dir(hive.layout), document, lock=documents_lock(hive)))


def add_hive_rule(hive: Hive, workflow_id: str, phase_id: str, rule: Document) -> GateView:
    """Adds a rule to a gate, with an id if it has none; it is the last one of the view.

    Its command was typed here, so that it may run here. Raises as `documents.gates.add_rule`.
    """
    hive.look({"rule": rule})
    view = _changed(
        hive, workflow_id, phase_id, lambda gate: add_rule(gate, _identified(rule, gate))
    )
    added = rule_check(rules_of(view.document)[-1])
    asked = proposals(hive.layout, GATE, f"{workflow_id}/{phase_id}", [added])
    note_typed(hive.layout, asked)
    return view


def remove_hive_rule(hive: Hive, workflow_id: str, phase_id: str, rule_id: str) -> GateView:
    """Removes a rule from a gate. Raises as `documents.gates.remove_rule`."""
    return _changed(hive, workflow_id, phase_id, lambda gate: remove_rule(gate, rule_id))


def _changed(
    hive: Hive, workflow_id: str, phase_id: str, change: Callable[[Document], Document]
) -> GateView:
    folder = gates_dir(hive.layout)
    return _view(
        hive, update_gate(folder, workflow_id, phase_id, change, lock=documents_lock(hive))
    )


def gate_view(hive: Hive, workflow_id: str, phase_id: str) -> GateView:
    """Returns a gate. Raises `NotFound`, or `Unreadable` for one that is not valid."""
    return _view(hive, find_gate(gates_dir(hive.layout), workflow_id, phase_id))


def gate_views(hive: Hive, workflow_id: str | None = None) -> list[GateView | UnusableGate]:
    """Returns all gates, or those of one workflow; one that cannot be used says why."""
    gates, broken = list_gates(gates_dir(hive.layout))
    found: list[GateView | UnusableGate] = []
    for gate in gates:
        if workflow_id in (None, gate.key[0]):
            try:
                found.append(gate_view(hive, *gate.key))
            except Unreadable as error:
                found.append(UnusableGate(gate.path, error.message, *gate.key))
    for file in broken:
        keys = sorted(file.keys)
        key = keys[0] if len(keys) == 1 else (None, None)
        if workflow_id is None or file.phases_of(workflow_id):
            found.append(UnusableGate(file.path, file.message, *key))
    for path, said in validator_results(gates_dir(hive.layout)) if workflow_id is None else ():
        problem = f"{path} has results of the source's own validator ({said}), and gates nothing"
        found.append(UnusableGate(path, problem, None, None, status="no gate"))
    return found


def rule_of(hive: Hive, options: RuleOptions) -> Document:
    """Returns the rule that the options describe, without an id if they give none.

    Files are given from the working directory. The rule has them from the top of the working
    tree, where gates run, so that it means the same in every worktree. Raises `InvalidInput` for
    none or several of the four types.
    """
    given = [
        (kind, value if kind.is_command else _from_top(hive, value))
        for kind in _KINDS
        if (value := getattr(options, kind.option)) is not None
    ]
    if len(given) != 1:
        raise InvalidInput(
            "a rule is one of: --exists, --contains, --test, --script, or a JSON object",
            hint=_RULE_HELP,
        )
    ((kind, value),) = given
    rule: Document = {"rule_id": options.rule_id} if options.rule_id else {}
    name = os.path.basename(value) if kind.option == "script" else value
    return rule | {
        "rule_type": kind.rule_type,
        "rule_name": options.name or f"{name} {kind.what}",
        "rule_config": {kind.field: value, **_more_config(kind, options)},
        "severity": "warning" if options.warning else "error",
    }


def _more_config(kind: _Kind, options: RuleOptions) -> Document:
    if options.patterns and kind.option != "contains":
        raise InvalidInput("--pattern needs --contains")
    if options.args and kind.option != "script":
        raise InvalidInput("--arg needs --script")
    if options.timeout_s is not None and kind.option == "exists":
        raise InvalidInput("--timeout cannot be combined with --exists")
    more: Document = {}
    if kind.option == "contains":
        more["patterns"] = list(options.patterns)
    if kind.option == "script":
        more["args"] = list(options.args)
    if options.timeout_s is not None:
        more["timeout_seconds"] = options.timeout_s
    return more


def _from_top(hive: Hive, path: str) -> str:
    """Returns a path as rules have it; one outside the working tree is absolute."""
    if not path or os.path.isabs(path):
        return path
    absolute = os.path.normpath(os.path.join(hive.cwd, path))
    relative = os.path.relpath(absolute, hive.layout.tree)
    return absolute if relative.split(os.sep)[0] == os.pardir else relative


def rule_from(text: str) -> Document:
    """Returns the rule in a JSON text. Raises `InvalidInput` if it is not an object."""
    try:
        rule = parse_json(text.encode(errors="replace"), "the rule")
    except Unreadable as error:
        raise InvalidInput(error.message, hint=_RULE_HELP) from error
    if not isinstance(rule, dict):
        raise InvalidInput("the rule must be a JSON object", hint=_RULE_HELP)
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


def _identified(rule: Document, document: Document) -> Document:
    """Returns the rule with an id, as its first field, that no other rule of the gate has."""
    if "rule_id" in rule:
        return rule
    taken = {other["rule_id"] for other in document["validation_config"]["rules"]}
    words = str(rule.get("rule_name") or rule.get("rule_type"))
    base = f"rule_{_SLUG.sub('_', words)[:_SLUG_LENGTH].strip('_').lower()}"
    names = [base, *(f"{base}_{number}" for number in range(2, len(taken) + 3))]
    return {"rule_id": next(name for name in names if name not in taken), **rule}


def _view(hive: Hive, gate: GateFile) -> GateView:
    document = gate.document
    run = state_of_run(hive, document)
    return GateView(
        gate.path, document, judge(document), validate_gate(document), run, hive.layout.beads_dir
    )
