"""`queen gate`: the rules that a phase must meet before the next one begins."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli.app import Answer, Invocation, command, group
from queenbee.cli.options import body_or_stdin, dry_run, seconds
from queenbee.cli.progress import watcher
from queenbee.cli.rendering import show_findings, table
from queenbee.cli.terminal import aside, say
from queenbee.core.text import printable, shortened
from queenbee.errors import InvalidInput, NoHive, QueenError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.documents.gates.judgement import AttemptRecord, Verdict
    from queenbee.workflows.gates import GateView
    from queenbee.workflows.hive import Hive

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


def _of_phase(function: Callable[..., object]) -> Callable[..., object]:
    """Adds the options that name a gate."""
    phase = click.option("--phase", "-p", metavar="ID", required=True, help="The phase")
    return _of_workflow(phase(function))


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


def _show_gate(view: GateView) -> None:
    metadata = view.document["metadata"]
    name = f"{metadata['workflow_id']}/{metadata['phase_id']}"
    say(f"{printable(name)}  {printable(metadata['phase_name'])}", bold=True)
    say(f"{view.verdict.status}, attempt {view.to_dict()['attempt']}, {printable(view.path)}")
    rows = [
        [
            str(rule["status"]),
            str(rule["severity"]),
            str(rule["rule_name"] or rule["rule_id"]),
            shortened(str(rule["message"] or ""), 70),
        ]
        for rule in view.rules
    ]
    table(["STATUS", "SEVERITY", "RULE", "RESULT"], rows, empty="No rules.")
    show_findings((each for each in view.findings if each.severity == "error"), view.path)


@command(
    "new",
    show=_show_gate,
    example="queen gate new --workflow wf_1 --phase phase_1 --name 'Calculator'\n"
    "queen gate new --plan plans/accounts.md --phase 1",
)
@_of_phase
@click.option("--name", help="The phase's name; default: from the plan, or its id")
def new(
    hive: Hive, plan_file: str | None, workflow: str | None, phase: str, name: str | None
) -> GateView:
    """Make a gate for a phase, with no rules yet"""
    from queenbee.workflows.gates import new_hive_gate, phase_name  # noqa: PLC0415 - start-up

    workflow = _named(workflow, plan_file)
    if plan_file is not None and name is None:
        name = phase_name(plan_file, phase)
    return new_hive_gate(hive, workflow, phase, name)


@command(
    "add-rule",
    show=_show_gate,
    example="queen gate add-rule -w wf_1 -p phase_1 --test 'pytest -q' --timeout 5m\n"
    "queen gate add-rule -w wf_1 -p phase_1 --contains src/add.py --pattern 'def add'\n"
    "cat rule.json | queen gate add-rule -w wf_1 -p phase_1 -",
)
@_of_phase
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
def add_rule(
    hive: Hive,
    plan_file: str | None,
    workflow: str | None,
    phase: str,
    rule: str | None,
    **wish: Any,
) -> GateView:
    """Add a rule to a gate

    Use one of --exists, --contains, --test and --script, or give the rule as JSON (- reads it from
    standard input).
    """
    from queenbee.workflows.gates import RuleOptions, add_hive_rule, rule_from, rule_of  # noqa: PLC0415 - start-up

    if rule is not None:
        document = rule_from(body_or_stdin(rule))
    else:
        timeout_s = wish.pop("timeout")
        document = rule_of(RuleOptions(**wish, timeout_s=timeout_s))
    return add_hive_rule(hive, _named(workflow, plan_file), phase, document)


def _show_run(value: GateView | Mapping[str, Any]) -> None:
    if isinstance(value, dict):
        for line in value["checks"]:
            say(printable(line))
    else:
        _show_gate(value)  # type: ignore[arg-type]


@command("run", show=_show_run, example="queen gate run --workflow wf_1 --phase phase_1")
@_of_phase
@dry_run
def run(
    hive: Hive, plan_file: str | None, workflow: str | None, phase: str, dry_run: bool
) -> Answer:
    """Run all rules of a gate

    Exit 0 if it has passed, 1 if not. The output of the rules is kept as evidence.
    """
    from queenbee.checks.check import describe  # noqa: PLC0415 - start-up
    from queenbee.documents.gates.run import gate_checks  # noqa: PLC0415 - start-up
    from queenbee.workflows.gates import gate_view  # noqa: PLC0415 - start-up
    from queenbee.workflows.running import run_gate  # noqa: PLC0415 - start-up

    name = _named(workflow, plan_file)
    if dry_run:
        checks = describe(gate_checks(gate_view(hive, name, phase).document))
        value = {"workflow_id": name, "phase_id": phase, "dry_run": True, "checks": checks}
        return Answer(value, yes=True)
    verdict = run_gate(hive, name, phase, env=os.environ, on_progress=watcher()).verdict
    return Answer(gate_view(hive, name, phase), yes=verdict.passed)


def _show_status(value: GateView | Sequence[GateView]) -> None:
    if not isinstance(value, list):
        _show_gate(value)  # type: ignore[arg-type]
        return
    rows = [
        [
            view.document["metadata"]["workflow_id"],
            view.document["metadata"]["phase_id"],
            view.verdict.status,
            view.document["metadata"]["phase_name"],
            shortened("; ".join(view.verdict.blocking), 60),
        ]
        for view in value
    ]
    table(["WORKFLOW", "PHASE", "STATUS", "NAME", "BLOCKED BY"], rows, empty="No gates.")


@command("status", show=_show_status, example="queen gate status --workflow wf_1")
@_of_workflow
@click.option("--phase", "-p", metavar="ID", help="One gate, with all its rules")
def status(
    hive: Hive, plan_file: str | None, workflow: str | None, phase: str | None
) -> GateView | list[GateView]:
    """Show the gates, or one with its rules and their latest results"""
    from queenbee.workflows.gates import gate_view, gate_views  # noqa: PLC0415 - start-up

    if phase is not None:
        return gate_view(hive, _named(workflow, plan_file), phase)
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
    table(["ATTEMPT", "STATUS", "STARTED", "ENDED", "PASSED", "ERRORS"], rows, empty="None.")


@command("history", show=_show_history, example="queen gate history -w wf_1 -p phase_1")
@_of_phase
def history(
    hive: Hive, plan_file: str | None, workflow: str | None, phase: str
) -> list[AttemptRecord]:
    """List every attempt at a gate, oldest first"""
    from queenbee.documents.gates.gate import history as attempts_of  # noqa: PLC0415 - start-up
    from queenbee.workflows.gates import gate_view  # noqa: PLC0415 - start-up

    return attempts_of(gate_view(hive, _named(workflow, plan_file), phase).document)


def _show_verdict(value: Mapping[str, Any]) -> None:
    say(f"{value['status']}: {printable(value['workflow_id'])}/{printable(value['phase_id'])}")
    for line in (*value["blocking"], *value["warnings"]):
        say(f"  {printable(line)}")


_allow_missing = click.option(
    "--allow-missing", is_flag=True, help="Count a phase without a gate as passed"
)


@command("check", show=_show_verdict, example="queen gate check -w wf_1 -p phase_1")
@_of_phase
@_allow_missing
def check(
    hive: Hive, plan_file: str | None, workflow: str | None, phase: str, allow_missing: bool
) -> Answer:
    """Check whether a phase has passed

    Exit 0 if it has, 1 if it has not, 7 if its gate is missing or corrupt.
    """
    name = _named(workflow, plan_file)
    verdict = _verdict(hive, name, phase, allow_missing)
    value = {
        "workflow_id": name,
        "phase_id": phase,
        "status": verdict.status,
        "passed": verdict.passed,
        "blocking": list(verdict.blocking),
        "warnings": list(verdict.warnings),
    }
    return Answer(value, yes=verdict.passed)


@command(
    "hook",
    show=lambda _: None,
    example="queen gate hook --workflow wf_1 --phase phase_1 --allow-missing",
    opens_hive=False,
)
@_of_phase
@_allow_missing
def hook(
    call: Invocation, plan_file: str | None, workflow: str | None, phase: str, allow_missing: bool
) -> dict[str, object]:
    """Check a phase from an agent's hook

    Exit 0 if it has passed. If not, exit 2 with the reason on standard error, which tells an agent
    not to go on. A gate that cannot be read blocks too.
    """
    try:
        workflow = _named(workflow, plan_file)
        verdict = _verdict(call.hive, workflow, phase, allow_missing)
        reason = "; ".join(verdict.blocking) or f"it is {verdict.status}"
    except NoHive as error:
        if allow_missing:
            return {"passed": True}
        verdict, reason = None, error.message
    except QueenError as error:
        verdict, reason = None, error.message
    except Exception as error:
        # A bug of ours must not open a gate: agents read any other status as "go on".
        if os.environ.get("QUEEN_DEBUG"):
            raise
        verdict, reason = None, f"{type(error).__name__}: {error}"
    if verdict is not None and verdict.passed:
        return {"passed": True}
    text = f"queen: phase {phase} of {workflow or plan_file} has not passed: {reason}"
    aside(printable(text))
    raise click.exceptions.Exit(BLOCKED)


def _verdict(hive: Hive, workflow: str, phase: str, allow_missing: bool) -> Verdict:
    from queenbee.documents.folders import gates_dir  # noqa: PLC0415 - start-up
    from queenbee.documents.gates.store import check_gate  # noqa: PLC0415 - start-up

    return check_gate(gates_dir(hive.layout), workflow, phase, allow_missing=allow_missing)


gate = group(
    "gate",
    [new, add_rule, run, status, history, check, hook],
    help="Phase gates: rules to meet before the next phase begins",
    example="queen gate run -w wf_1 -p phase_1",
)
