"""`queen gate`: the rules that a phase must meet before the next one begins."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from queenbee.checks.check import describe
from queenbee.cli.app import Answer, Invocation, QueenGroup, command, group
from queenbee.cli.options import body_or_stdin, dry_run, force, seconds
from queenbee.cli.progress import watcher
from queenbee.cli.rendering import paragraph, show_findings, show_json, table, verdict
from queenbee.cli.terminal import aside
from queenbee.core.text import printable, shortened
from queenbee.errors import InvalidInput, NoHive, QueenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from queenbee.documents.gates.judgement import Document
    from queenbee.library.hive import Hive
    from queenbee.workflows.gating.gates import GateView, UnusableGate

BLOCKED = 2
"""Agents read this status as "do not go on", with the reason on standard error. It is the only
exit status of `queen` that is not in the table of `docs/scripting.md`.
"""


def _of_workflow(function: Callable[..., object]) -> Callable[..., object]:
    """Adds the options that name a workflow."""
    plan = click.option(
        "--plan",
        "plan_file",
        metavar="PLAN.md",
        help="The plan whose gates to use, instead of --workflow",
    )
    workflow = click.option("--workflow", "-w", metavar="ID", help="The workflow")
    return plan(workflow(function))


_phase = click.option("--phase", "-p", metavar="ID", required=True, help="The phase")


def _of_gate(function: Callable[..., object]) -> Callable[..., object]:
    """Adds the options that name a gate, and gives the command its workflow and its phase."""

    @wraps(function)
    def called(
        hive: Hive, plan_file: str | None, workflow: str | None, phase: str, **more: object
    ) -> object:
        with _of_plan(plan_file):
            return function(hive, _named(workflow, plan_file), phase, **more)

    return _of_workflow(_phase(called))


def _named(workflow: str | None, plan_file: str | None) -> str:
    """Returns the workflow that one of the two options names. Raises `InvalidInput`."""
    if workflow is not None and plan_file is not None:
        raise InvalidInput("give --workflow or --plan, not both")
    if plan_file is not None:
        from queenbee.documents.gates.phases import plan_workflow  # noqa: PLC0415 - start-up

        return plan_workflow(plan_file)
    if workflow is None:
        raise InvalidInput("a gate needs a workflow", hint="--workflow ID, or --plan PLAN.md")
    return workflow


@contextmanager
def _of_plan(plan_file: str | None) -> Iterator[None]:
    """Names `--plan` and its file in a refusal because something does not exist."""
    try:
        yield
    except QueenError as error:
        if plan_file is None or error.code not in ("not_found", "gate_missing"):
            raise
        missing = "" if os.path.exists(plan_file) else ", a file that does not exist"
        if missing:
            error.hint = "give the path of the plan from where you are, or --workflow ID"
        error.message = f"--plan names {plan_file}{missing}: {error.message}"
        raise


def _show_head(view: GateView) -> None:
    metadata = view.document["metadata"]
    name = f"{metadata['workflow_id']}/{metadata['phase_id']}"
    paragraph(f"{printable(name)}  {printable(metadata['phase_name'])}", bold=True)
    paragraph(f"{view.verdict.status}, attempt {view.to_dict()['attempt']}, {printable(view.path)}")
    if view.run:
        paragraph(view.run)


def _show_gate(view: GateView) -> None:
    _show_head(view)
    rows = [
        [
            str(rule["status"]),
            str(rule["severity"]),
            str(rule["rule_name"] or rule["rule_id"]),
            shortened(str(rule["message"] or ""), 70),
        ]
        for rule in view.rules
    ]
    table(
        ["STATUS", "SEVERITY", "RULE", "RESULT"], rows, empty="No rules.", text=["RESULT", "RULE"]
    )
    _show_evidence(view)
    show_findings((each for each in view.findings if each.severity == "error"), view.path)


def _show_evidence(view: GateView) -> None:
    """Shows where the output of the rules that did not pass is."""
    for rule in view.rules:
        if rule["evidence"] and rule["status"] != "passed":
            name = printable(str(rule["rule_name"] or rule["rule_id"]))
            paragraph(f"evidence of {name}: {printable(os.path.relpath(str(rule['evidence'])))}")


def _show_details(view: GateView) -> None:
    """Shows a gate with everything about each rule."""
    _show_head(view)
    for rule in view.rules:
        severity = " (warning)" if rule["severity"] == "warning" else ""
        paragraph(f"{printable(str(rule['rule_id']))}{severity}: {printable(str(rule['checks']))}")
        result = f"{rule['status']}: {rule['message']}" if rule["message"] else str(rule["status"])
        when = f", {rule['validated_at']}" if rule["validated_at"] else ""
        paragraph(f"    {printable(result)}{printable(when)}")
        if rule["evidence"]:
            paragraph(f"    evidence: {printable(os.path.relpath(str(rule['evidence'])))}")
    if not view.rules:
        paragraph("No rules.")
    show_findings(view.findings, view.path)


@command(
    show=_show_gate,
    example="queen gate new --workflow wf_1 --phase phase_1 --name 'Calculator'\n"
    "queen gate new --plan plans/accounts.md --phase 1",
)
@_of_workflow
@_phase
@click.option("--name", help="The phase's name; default: from the plan, or its id")
def new(
    hive: Hive, plan_file: str | None, workflow: str | None, phase: str, name: str | None
) -> GateView:
    """Make a gate for a phase, with no rules yet"""
    from queenbee.workflows.gating.gates import new_hive_gate, phase_name  # noqa: PLC0415 - start-up

    workflow = _named(workflow, plan_file)
    if plan_file is not None and name is None:
        with _of_plan(plan_file):
            name = phase_name(plan_file, phase)
    return new_hive_gate(hive, workflow, phase, name)


def _show_added(view: GateView) -> None:
    rule = view.rules[-1]
    paragraph(f"added {printable(str(rule['rule_id']))}: {printable(str(rule['checks']))}")
    _show_gate(view)


@command(
    show=_show_added,
    example="queen gate add-rule -w wf_1 -p phase_1 --test 'pytest -q' --timeout 5m\n"
    "queen gate add-rule -w wf_1 -p phase_1 --contains src/add.py --pattern 'def add'\n"
    "cat rule.json | queen gate add-rule -w wf_1 -p phase_1 -",
)
@_of_gate
@click.argument("rule", required=False, metavar="[JSON|-]")
@click.option("--exists", metavar="FILE", help="A file that must exist")
@click.option("--contains", metavar="FILE", help="A file that must contain every --pattern")
@click.option(
    "--pattern", "patterns", multiple=True, metavar="REGEX", help="What --contains looks for"
)
@click.option("--test", metavar="COMMAND", help="A shell command that must succeed")
@click.option("--script", metavar="FILE", help="A program that must succeed")
@click.option("--arg", "args", multiple=True, metavar="TEXT", help="An argument of --script")
@click.option("--timeout", callback=seconds, metavar="5m", help="How long the rule may run")
@click.option("--id", "rule_id", metavar="ID", help="The rule's id; default: from its name")
@click.option("--name", help="The rule's name; default: what it checks")
@click.option("--warning", is_flag=True, help="Report a failure but do not block on it")
def add_rule(hive: Hive, workflow: str, phase: str, rule: str | None, **wish: Any) -> GateView:
    """Add a rule to a gate

    Use one of --exists, --contains, --test and --script, or give the rule as JSON (- reads it from
    standard input). A FILE is relative to where you are; commands run at the top of the working
    tree.
    """
    from queenbee.workflows.gating.gates import RuleOptions, add_hive_rule, rule_from, rule_of  # noqa: PLC0415 - start-up

    if rule is not None:
        document = rule_from(body_or_stdin(rule))
    else:
        timeout_s = wish.pop("timeout")
        document = rule_of(hive, RuleOptions(**wish, timeout_s=timeout_s))
    return add_hive_rule(hive, workflow, phase, document)


@command(show=_show_gate, example="queen gate remove-rule -w wf_1 -p phase_1 rule_pytest_q_passes")
@_of_gate
@click.argument("rule_id", metavar="RULE")
def remove_rule(hive: Hive, workflow: str, phase: str, rule_id: str) -> GateView:
    """Remove a rule from a gate that has not passed

    If rules have run, the gate must run again: removing the rule that failed does not make it pass.
    """
    from queenbee.workflows.gating.gates import remove_hive_rule  # noqa: PLC0415 - start-up

    return remove_hive_rule(hive, workflow, phase, rule_id)


@command(show=_show_details, example="queen gate show --plan plans/accounts.md --phase 1")
@_of_gate
def show(hive: Hive, workflow: str, phase: str) -> GateView:
    """Show a gate with its rules, results and evidence"""
    from queenbee.workflows.gating.gates import gate_view  # noqa: PLC0415 - start-up

    return gate_view(hive, workflow, phase)


def _show_run(value: GateView | Mapping[str, Any]) -> None:
    if isinstance(value, dict):
        for line in value["checks"]:
            paragraph(printable(line))
    else:
        _show_gate(value)  # type: ignore[arg-type]


@command(show=_show_run, example="queen gate run --workflow wf_1 --phase phase_1")
@_of_gate
@force("again", "Also if it has passed; the history keeps both")
@dry_run
def run(hive: Hive, workflow: str, phase: str, again: bool, dry_run: bool) -> Answer:
    """Run all rules of a gate

    Exit 0 if it has passed, 1 if not. The output of the rules is kept as evidence.
    """
    from queenbee.documents.gates.gate_run import gate_checks  # noqa: PLC0415 - start-up
    from queenbee.workflows.gating.gates import gate_view  # noqa: PLC0415 - start-up
    from queenbee.workflows.running import run_gate  # noqa: PLC0415 - start-up

    if dry_run:
        checks = describe(gate_checks(gate_view(hive, workflow, phase).document))
        value = {"workflow_id": workflow, "phase_id": phase, "dry_run": True, "checks": checks}
        return Answer(value, yes=True)
    on_progress = watcher()
    done = run_gate(hive, workflow, phase, env=os.environ, again=again, on_progress=on_progress)
    return Answer(gate_view(hive, workflow, phase), yes=done.verdict.passed)


def _show_status(value: Sequence[Any]) -> None:
    if click.get_current_context().params["phase"] is not None:
        _show_gate(value[0])
        return
    rows = [
        [
            str(gate["workflow_id"] or "?"),
            str(gate["phase_id"] or "?"),
            str(gate["status"]),
            str(gate["phase_name"] or ""),
            # Of a gate that cannot be read, the reason names the file.
            reason if gate["status"] in ("unreadable", "no gate") else shortened(reason, 60),
        ]
        for gate in (view.to_dict() for view in value)
        for reason in ["; ".join(gate["blocking"])]
    ]
    headings = ["WORKFLOW", "PHASE", "STATUS", "NAME", "BLOCKED BY"]
    table(headings, rows, empty="No gates.", text=["NAME", "BLOCKED BY"], spare=["NAME"])


@command(show=_show_status, example="queen gate status --workflow wf_1")
@_of_workflow
@click.option("--phase", "-p", metavar="ID", help="One gate, with all its rules")
def status(
    hive: Hive, plan_file: str | None, workflow: str | None, phase: str | None
) -> Sequence[GateView | UnusableGate]:
    """Show the gates, or one with its latest results"""
    from queenbee.workflows.gating.gates import gate_view, gate_views  # noqa: PLC0415 - start-up

    if phase is not None:
        with _of_plan(plan_file):
            return [gate_view(hive, _named(workflow, plan_file), phase)]
    if workflow is None and plan_file is None:
        return gate_views(hive)
    return gate_views(hive, _named(workflow, plan_file))


def _show_history(attempts: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        [
            str(each["attempt"]),
            str(each["status"]),
            str(each["started_at"] or ""),
            str(each["completed_at"] or ""),
            f"{each['passed_count']} of {each['total_count']}",
            shortened("; ".join(str(error.get("message")) for error in each["errors"]), 60),
        ]
        for each in attempts
    ]
    headings = ["ATTEMPT", "STATUS", "STARTED", "ENDED", "PASSED", "ERRORS"]
    table(headings, rows, empty="None.", text=["ERRORS"], spare=["STARTED"])


@command(show=_show_history, example="queen gate history -w wf_1 -p phase_1")
@_of_gate
def history(hive: Hive, workflow: str, phase: str) -> list[Document]:
    """List every attempt at a gate, oldest first"""
    from queenbee.documents.gates.gate import history as attempts_of  # noqa: PLC0415 - start-up
    from queenbee.workflows.gating.gates import gate_view  # noqa: PLC0415 - start-up

    return attempts_of(gate_view(hive, workflow, phase).document)


def _show_verdict(value: Mapping[str, Any]) -> None:
    paragraph(
        f"{value['status']}: {printable(value['workflow_id'])}/{printable(value['phase_id'])}"
    )
    run = [value["run"]] if value["run"] else []
    for line in (*run, *value["blocking"], *value["warnings"]):
        paragraph(f"  {printable(line)}")


_allow_missing = click.option(
    "--allow-missing", is_flag=True, help="Count a phase without a gate as passed"
)


@command(show=_show_verdict, example="queen gate check -w wf_1 -p phase_1")
@_of_gate
@_allow_missing
def check(hive: Hive, workflow: str, phase: str, allow_missing: bool) -> Answer:
    """Check whether a phase has passed

    Exit 0 if it has, 1 if it has not, 7 if its gate is missing or corrupt.
    """
    from queenbee.workflows.gating.gate_check import check_hive_gate  # noqa: PLC0415 - start-up

    found = check_hive_gate(hive, workflow, phase, allow_missing=allow_missing)
    verdict = found.verdict
    value = {
        "workflow_id": workflow,
        "phase_id": phase,
        "status": verdict.status,
        "passed": verdict.passed,
        "run": found.run,
        "blocking": list(verdict.blocking),
        "warnings": list(verdict.warnings),
    }
    return Answer(value, yes=verdict.passed)


@command(
    show=lambda _: None,
    example="queen gate hook --workflow wf_1 --phase phase_1 --allow-missing",
    opens_hive=False,
)
@_of_workflow
@_phase
@_allow_missing
def hook(
    call: Invocation, plan_file: str | None, workflow: str | None, phase: str, allow_missing: bool
) -> dict[str, object]:
    """Check a phase from an agent's hook

    Exit 0 if it has passed. If not, exit 2 with the reason on standard error, which tells an agent
    not to go on. A gate that cannot be read blocks too.
    """
    try:
        from queenbee.workflows.gating.gate_check import check_hive_gate  # noqa: PLC0415 - start-up

        workflow = _named(workflow, plan_file)
        with _of_plan(plan_file):
            found = check_hive_gate(call.hive, workflow, phase, allow_missing=allow_missing)
        passed = found.verdict.passed
        reason = "; ".join(found.reasons) or f"it is {found.verdict.status}"
    except NoHive as error:
        if allow_missing:
            return {"passed": True}
        passed, reason = False, error.message
    except QueenError as error:
        passed, reason = False, error.message
    except Exception as error:
        # A bug of ours must not open a gate: agents read any other status as "go on".
        if os.environ.get("QUEEN_DEBUG"):
            raise
        passed, reason = False, f"{type(error).__name__}: {error}"
    if passed:
        return {"passed": True}
    text = f"queen: phase {phase} of {workflow or plan_file} has not passed: {reason}"
    aside(printable(text))
    raise click.exceptions.Exit(BLOCKED)


@command(show=show_json, example="queen gate schema", opens_hive=False)
def schema(call: Invocation) -> dict[str, Any]:
    """Print the JSON Schema of a gate"""
    from queenbee.documents.gates.gate import gate_schema  # noqa: PLC0415 - start-up

    return gate_schema()


def _show_validated(checked: Mapping[str, Any]) -> None:
    word = verdict(checked["valid"])
    paragraph(f"{word}: {printable(checked['source'])}", bold=not checked["valid"], state=word)
    show_findings(checked["findings"], checked["source"])


@command(
    show=_show_validated,
    example="queen gate validate .claude/state/validation/phase_wf_1.json",
    opens_hive=False,
)
@click.argument("file", metavar="FILE|-")
def validate(call: Invocation, file: str) -> Answer:
    """Check whether a gate's file is valid

    Exit 0 if it is, 1 with every error if not. - is standard input.
    """
    from queenbee.documents.findings import errors_in  # noqa: PLC0415 - start-up
    from queenbee.documents.gates.gate import validate_gate  # noqa: PLC0415 - start-up
    from queenbee.documents.json_documents import parse_json, read_json  # noqa: PLC0415 - start-up

    source = "standard input" if file == "-" else file
    document = parse_json(sys.stdin.buffer.read(), source) if file == "-" else read_json(file)
    found = validate_gate(document)
    valid = not errors_in(found)
    return Answer({"source": source, "valid": valid, "findings": found}, yes=valid)


gate: QueenGroup = group(
    "gate",
    [new, add_rule, remove_rule, run, show, status, history, check, hook, schema, validate],
    help="Phase gates: rules to meet before the next phase begins",
    example="queen gate run -w wf_1 -p phase_1",
)
