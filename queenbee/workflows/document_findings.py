"""What doctor finds in documents: beads, gates, the plans and sessions behind beads, and records.

It reports only what makes a document unusable; the commands that validate one document also list
oddities.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from queenbee.core.beads import Issue
from queenbee.core.readiness import BLOCKING
from queenbee.core.text import suggested
from queenbee.documents import findings
from queenbee.documents.folders import bead_dirs, bead_notes, gates_dir, json_stamp
from queenbee.documents.gates.gate import validate_gate
from queenbee.documents.gates.gate_files import list_gates
from queenbee.documents.graphs import find_cycles
from queenbee.documents.issue_rows import metadata_of, plan_and_sprint
from queenbee.documents.plans.convert import unit_of
from queenbee.documents.plans.plan import Plan, parse_plan
from queenbee.documents.plans.plan_check import check_plan
from queenbee.documents.plans.source_text import read_markdown
from queenbee.documents.ralph.as_issues import RalphBeads
from queenbee.documents.ralph.bead_files import BeadFolders, bead_in_row, update_bead
from queenbee.documents.ralph.ralph_bead import validate_bead
from queenbee.documents.sessions.session import validate_session
from queenbee.documents.sprints.sprint_bead import check_bead, is_sprint_bead
from queenbee.errors import QueenError
from queenbee.services.diagnosis import Diagnosis
from queenbee.services.hive import Services
from queenbee.workflows.locks import documents_lock
from queenbee.workflows.verifications import KIND

_LISTED = 3
"""At most so many errors of one document; the command in the hint lists all of them."""


def examine(hive: Services, beads: RalphBeads | None) -> Iterator[Diagnosis]:
    """Returns what is wrong with the documents of a hive."""
    if beads is not None:
        yield from _ralph_beads(beads)
    yield from _gates(hive)
    open_issues = hive.issues.undone()
    yield from _cycles(hive, open_issues)
    tracked = hive.issues.tracked()
    open_beads = [issue for key, issue in open_issues.items() if key in tracked]
    yield from _rows(hive, open_beads)
    yield from _plans(hive, open_beads)
    yield from _sessions(hive, open_beads)
    yield from _records(hive)


def finish_moves(hive: Services, beads: RalphBeads | None) -> None:
    """Finishes the moves that left a bead in two folders, if possible."""
    notes = bead_notes(hive.layout)
    folders = BeadFolders(*bead_dirs(hive.layout), lock=documents_lock(hive), notes=notes)
    for bead in beads.files if beads is not None else ():
        if bead.stale is not None:
            with suppress(QueenError):
                update_bead(bead, lambda _: None, folders)


def _ralph_beads(beads: RalphBeads) -> Iterator[Diagnosis]:
    for problem in beads.problems:
        yield Diagnosis("unreadable", problem.path, _bare(problem.message, problem.path))
    for bead in beads.files:
        # Not the id, which may be the part that is wrong.
        hint = suggested("queen bead validate", bead.path)
        yield from _errors("bead", bead.path, beads.findings[bead.path], hint)
        first = beads.by_id[bead.bead_id]
        if bead is not first:
            text = f"the bead {bead.bead_id} is also in {first.path}"
            yield Diagnosis("duplicate_bead", bead.path, text, hint="remove all but one")
        if bead.stale is not None:
            text = f"left behind when {bead.bead_id} was moved; {bead.path} is used"
            yield Diagnosis(
                "stale_copy", bead.stale, text, hint="queen doctor --fix", severity="note"
            )


def _rows(hive: Services, issues: Iterable[Issue]) -> Iterator[Diagnosis]:
    path = hive.layout.issues_path
    for issue in issues:
        bead = bead_in_row(issue.fields, path)
        found = [*validate_bead(bead.document)] if bead is not None else []
        if is_sprint_bead(issue.fields):
            found += check_bead(dict(issue.fields))
        hint = suggested("queen bead validate", issue.id)
        yield from _errors("bead", path, found, hint, subject=issue.id)


def _gates(hive: Services) -> Iterator[Diagnosis]:
    folder = gates_dir(hive.layout)
    if not json_stamp(folder):
        return
    gates, problems = list_gates(folder)
    for problem in problems:
        yield Diagnosis("unreadable", problem.path, _bare(problem.message, problem.path))
    seen: dict[object, str] = {}
    for gate in gates:
        workflow_id, phase_id = gate.key
        hint = suggested("queen gate status", workflow=str(workflow_id), phase=str(phase_id))
        yield from _errors("gate", gate.path, validate_gate(gate.document), hint)
        key = repr(gate.key)
        if key in seen:
            text = f"the gate {workflow_id}/{phase_id} is also in {seen[key]}"
            yield Diagnosis("duplicate_gate", gate.path, text, hint="remove all but one")
        seen.setdefault(key, gate.path)


def _cycles(hive: Services, issues: Mapping[str, Issue]) -> Iterator[Diagnosis]:
    """Returns the cycles of issues that wait for one another and never become ready."""
    graph = {
        key: [target for target, kind in issue.dependencies if kind in BLOCKING]
        for key, issue in issues.items()
    }
    for cycle in find_cycles(graph):
        text = f"a cycle: {' waits for '.join((*cycle, cycle[0]))}; none of them ever becomes ready"
        hint = "remove one of these dependencies"
        yield Diagnosis("cycle", hive.layout.issues_path, text, hint=hint)


def _plans(hive: Services, issues: Iterable[Issue]) -> Iterator[Diagnosis]:
    """Returns what is wrong with the plans that open beads were made from."""
    plans: dict[str, list[Issue]] = {}
    for issue in issues:
        plan, _ = plan_and_sprint(issue.fields)
        if isinstance(plan, str) and plan and "\0" not in plan:
            plans.setdefault(plan, []).append(issue)
    for plan, beads in sorted(plans.items()):
        path = os.path.join(hive.layout.tree, plan)
        if os.path.exists(path) and _is_in_tree(hive, path):
            yield from _plan(hive, path, beads)
        else:
            yield from _missing("plan", path, beads[0].id)


def _plan(hive: Services, path: str, beads: Sequence[Issue]) -> Iterator[Diagnosis]:
    try:
        text = read_markdown(path)
        plan = parse_plan(text, unit_of((bead.fields for bead in beads), text))
    except QueenError as error:
        yield Diagnosis(error.code, path, _bare(error.message, path), hint=error.hint)
        return
    hint = suggested("queen plan check", path)
    yield from _errors("plan", path, check_plan(plan), hint)
    yield from _annotations(hive, plan, path)
    numbers = {sprint.number for sprint in plan.sprints}
    for bead in beads:
        number = plan_and_sprint(bead.fields)[1]
        if number not in numbers:
            text = f"{bead.id} was made from sprint {number}, which is no longer in the plan"
            yield Diagnosis("orphan", path, text, severity="note")


def _annotations(hive: Services, plan: Plan, path: str) -> Iterator[Diagnosis]:
    """Returns the annotations under sprints that name the wrong bead."""
    beads = {key: one for key, one in hive.issues.all().items() if one.status != "tombstone"}
    for sprint in plan.sprints:
        bead = beads.get(sprint.bead_id or "")
        if sprint.bead_id is None or (bead and plan_and_sprint(bead.fields)[1] == sprint.number):
            continue
        fault = "which is another item's bead" if bead else "which does not exist"
        text = f"the annotation of sprint {sprint.number} names {sprint.bead_id}, {fault}"
        moved = bead and [each.bead_id for each in plan.sprints].count(bead.id) == 1
        hint = suggested(f"queen plan {'import' if moved else 'annotate'}", path)
        yield Diagnosis("annotation", path, text, line=sprint.line, hint=hint)


def _sessions(hive: Services, issues: Iterable[Issue]) -> Iterator[Diagnosis]:
    """Returns what is wrong with the sessions that open beads were made from."""
    sessions: dict[str, str] = {}
    for issue in issues:
        session = metadata_of(issue.fields).get("session_path")
        if isinstance(session, str) and session and "\0" not in session:
            sessions.setdefault(session, issue.id)
    for session, bead_id in sorted(sessions.items()):
        path = os.path.join(hive.layout.tree, session)
        if not os.path.isdir(path) or not _is_in_tree(hive, path):
            yield from _missing("session", path, bead_id)
            continue
        hint = suggested("queen session validate", session=path)
        yield from _errors("session", path, validate_session(path), hint)


def _is_in_tree(hive: Services, path: str) -> bool:
    """Returns whether doctor may read it: anybody may write a row that names any place."""
    return os.path.realpath(path).startswith(os.path.join(hive.layout.tree, ""))


def _records(hive: Services) -> Iterator[Diagnosis]:
    path = hive.layout.ledger_path(KIND)
    for fields in hive.state(KIND).everything() if os.path.exists(path) else ():
        lacks = [name for name in ("subject_id", "verdict") if not fields.get(name)]
        if lacks:
            text = f"{fields['id']}: no {' and no '.join(lacks)}"
            yield Diagnosis("record", path, text, severity="note")


def _bare(message: str, path: str) -> str:
    # The path is already shown before the message.
    return message.removeprefix(f"{path} ")


def _missing(what: str, path: str, bead_id: str) -> Iterator[Diagnosis]:
    text = f"the {what} that {bead_id} was made from is not here"
    yield Diagnosis(what, path, text, severity="note")


def _errors(
    code: str, path: str, found: Iterable[findings.Finding], hint: str, *, subject: str = ""
) -> Iterator[Diagnosis]:
    errors = [finding for finding in found if finding.severity == "error"]
    for finding in errors[:_LISTED]:
        where = ": ".join(filter(None, (subject, finding.path)))
        message = f"{where}: {finding.message}" if where else finding.message
        yield Diagnosis(code, path, message, line=finding.line, hint=hint)
    if len(errors) > _LISTED:
        text = ": ".join(filter(None, (subject, f"and {len(errors) - _LISTED} more errors")))
        yield Diagnosis(code, path, text, hint=hint)
