"""Imports plans and sessions of a repository as issues of its hive.

The rows are made outside the lock, since a thousand sprints take half a second. If the tracker's
file changes in the meantime, they are made again under the lock.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.beads import DONE
from queenbee.core.text import one_line, suggested
from queenbee.documents.findings import Finding
from queenbee.documents.issue_lists.folders import read_issue_folder
from queenbee.documents.issue_lists.list_import import Importing, import_issue_list, list_summary
from queenbee.documents.issue_lists.listed import read_issue_list
from queenbee.documents.issue_rows import metadata_of, plan_and_sprint
from queenbee.documents.plans.convert import unit_of
from queenbee.documents.plans.headings import read_unit
from queenbee.documents.plans.plan import parse_plan
from queenbee.documents.plans.plan_check import PREFIXES
from queenbee.documents.plans.plan_import import import_plan
from queenbee.documents.plans.rows import PlanSetting
from queenbee.documents.plans.source_text import annotate_file, annotate_plan, read_markdown
from queenbee.documents.reconcile import usual_prefix
from queenbee.documents.sessions.folder import read_session_folder
from queenbee.documents.sessions.session import read_session
from queenbee.documents.sessions.session_import import import_session
from queenbee.documents.sprints.numbers import is_sprint, sort_sprints
from queenbee.errors import InvalidInput, NotFound, QueenError
from queenbee.services.writing.secrets import LooksLikeSecret
from queenbee.store.git_files.worktrees import branch_head, current_branch
from queenbee.store.git_trees import git_tree
from queenbee.workflows.ending_unchecked import refuse_end
from queenbee.workflows.owning.owner import Owner
from queenbee.workflows.validation import agents_for

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from queenbee.documents.issue_lists.listed import IssueList
    from queenbee.documents.issue_rows import Row, RowImport
    from queenbee.documents.plans.plan import Plan
    from queenbee.documents.sessions.session import Session
    from queenbee.workflows.complete_hive import Hive

    Make = Callable[[Sequence[Row], int], RowImport]
    from queenbee.store.git_trees import GitTree


@dataclass(frozen=True, slots=True)
class PlanImport:
    """How to import a plan; a default comes from the tracker's rows or the repository.

    `unit` names the headings that are sprints, as `## Sprint`. The plan's agents must be in
    `agents_dir`, or in `.claude/agents/` if that exists. `accept` lets a bead that was claimed, ran
    or is done change its sprint.
    """

    prefix: str | None = None
    rig: str | None = None
    source_branch: str | None = None
    branch_prefix: str | None = None
    agents_dir: str | None = None
    unit: str | None = None
    accept: bool = False


@dataclass(frozen=True, slots=True)
class ListImport:
    """How to import a list of issues.

    `name` is its file's; `source` insists on where it is from; `mapped` are `COLUMN=field` and
    `STATE=status`; `complete` closes what was imported before and is not in the list any more;
    `assign` gives open issues to their assignees, those that are droids here.
    """

    name: str = "-"
    source: str | None = None
    mapped: Sequence[str] = ()
    complete: bool = False
    assign: bool = False


@dataclass(frozen=True, slots=True)
class Annotated:
    """The result of annotating a plan: beads under their headings, and those without one."""

    beads: Mapping[str, str]
    without_heading: Mapping[str, str]
    changed: bool


@dataclass(frozen=True, slots=True)
class SessionProgress:
    """A session with the progress of its beads: the bead of each task that was imported.

    `completed_by_beads` are the tasks that are completed although `team-session.json`, which is
    never written, does not say so.
    """

    session: Session
    beads: Mapping[str, str] = field(default_factory=dict)
    completed_by_beads: Collection[str] = ()


def import_plan_file(
    hive: Hive,
    path: str,
    options: PlanImport | None = None,
    *,
    dry_run: bool = False,
) -> RowImport:
    """Returns what importing a plan does to the tracker, and does it unless it is a dry run.

    Raises `NotFound`, `Unreadable`, `InvalidInput` for a plan outside the repository, and
    `InvalidPlan`; nothing is imported then.
    """
    options = options or PlanImport()
    text = read_markdown(path)
    actor = hive.author
    plan_file = repository_path(hive, path)
    unit = read_unit(options.unit) if options.unit else unit_of(_beads_of(hive, plan_file), text)
    plan = parse_plan(text, unit)
    agents = agents_for(hive.layout.tree, options.agents_dir)
    tree = git_tree(hive.layout.tree)

    def make(rows: Sequence[Row], now_ms: int) -> RowImport:
        setting = PlanSetting(
            plan_file=plan_file,
            repository=hive.layout.root,
            rig=options.rig or os.path.basename(hive.layout.root),
            prefix=options.prefix or usual_prefix(row["id"] for row in rows),
            actor=actor,
            source_branch=options.source_branch or default_branch(tree),
            branch_prefix=options.branch_prefix or usual_branch_prefix(tree),
            unit=str(unit or ""),
            claimed=_claimed(hive),
            other_plans=_other_plans(hive, rows, plan_file),
            accept=options.accept,
        )
        return import_plan(plan, rows, setting=setting, now_ms=now_ms, agents=agents)

    return _imported(hive, make, dry_run=dry_run)


def import_session_folder(
    hive: Hive, path: str, *, prefix: str | None = None, dry_run: bool = False
) -> RowImport:
    """Returns what importing a session's tasks does to the tracker, and does it.

    Raises `Unreadable` and `InvalidGraph`; nothing is imported then.
    """
    session = read_session(read_session_folder(path))
    actor = hive.author
    # Relative to the top, if it is in the tree: an absolute path is wrong in another worktree.
    relative = os.path.relpath(os.path.realpath(path), hive.layout.tree)
    outside = relative.split(os.sep)[0] == os.pardir
    session = replace(session, path=os.path.realpath(path) if outside else relative)

    def make(rows: Sequence[Row], now_ms: int) -> RowImport:
        first = prefix or usual_prefix(row["id"] for row in rows)
        return import_session(session, rows, prefix=first, actor=actor, now_ms=now_ms)

    return _imported(hive, make, dry_run=dry_run)


def import_issues(
    hive: Hive,
    data: bytes | str,
    *,
    prefix: str | None = None,
    dry_run: bool = False,
    options: ListImport | None = None,
) -> RowImport:
    """Returns what importing a list of issues from elsewhere does to the tracker, and does it. The
    list is its bytes, or the path of a folder.

    Raises `InvalidInput`, and `NotYours` for an agent of a team that would end an issue which has
    checks; nothing is imported then.
    """
    how = options or ListImport()
    source, mapped = how.source, how.mapped
    listed = (
        read_issue_folder(data, insisted=source, mapped=mapped)
        if isinstance(data, str)
        else read_issue_list(data, name=how.name, insisted=source, mapped=mapped)
    )
    importing = partial(Importing, complete=how.complete)
    found = import_listed(hive, listed, importing, prefix=prefix, dry_run=dry_run)
    return _assigned(hive, found) if how.assign and not dry_run else found


def _assigned(hive: Hive, found: RowImport) -> RowImport:
    """Gives the issues of a list that are open to their assignees; says which it could not give."""
    known, left = {*hive.droids.known()}, Counter[str]()
    for row in (each.row for each in found.changes):
        name = row.get("assignee")
        if not name or row.get("status") in DONE or hive.assignments.active(row["id"]) is not None:
            continue
        try:
            if name not in known:
                raise NotFound("it is no droid here")
            hive.assignments.assign(row["id"], name)
        except QueenError as error:
            left[f"{name}: {one_line(error.message, 100)}"] += 1
    said = ", ".join(f"{why} ({count})" for why, count in left.most_common(20))
    more = (Finding("", f"not assigned: {said}", "warning"),) if said else ()
    return replace(found, findings=(*found.findings, *more))


def import_listed(
    hive: Hive,
    listed: IssueList,
    importing: Callable[[str, str, int], Importing] = Importing,
    *,
    prefix: str | None = None,
    dry_run: bool = False,
) -> RowImport:
    """Returns what importing issues from elsewhere does to the tracker, and does it; `importing`
    says how, given the prefix, the actor and the time. Raises as `import_issues` does.
    """
    actor = hive.author

    def make(rows: Sequence[Row], now_ms: int) -> RowImport:
        first = prefix or usual_prefix(row["id"] for row in rows)
        found = import_issue_list(listed, rows, importing(first, actor, now_ms))
        beads = hive.documents.ralph_beads()
        # Of an issue that is new here, only a file can have checks.
        may_have = set(beads.issues if beads is not None else ()).union(row["id"] for row in rows)
        may_have -= {row["id"] for row in rows if row.get("status") in DONE}
        for row in found.rows:
            if row["id"] in may_have and row.get("status") in DONE:
                refuse_end(hive, row["id"])
        return replace(found, source=list_summary(listed))

    return _imported(hive, make, dry_run=dry_run)


def annotate_plan_file(hive: Hive, path: str, *, dry_run: bool = False) -> Annotated:
    """Writes the bead ids of a plan's sprints under their headings, unless it is a dry run.

    Raises `NotFound`, `Unreadable`, what `plan_beads` does, and `InvalidInput` if an annotation
    gives a bead to another sprint than the tracker: it may be right, so the plan is not changed.
    """
    text = read_markdown(path)
    beads = plan_beads(hive, path)
    unit = unit_of(_beads_of(hive, repository_path(hive, path)), text)
    plan = parse_plan(text, unit)
    _refuse_moved(plan, beads, path)
    if dry_run:
        changed = annotate_plan(text, beads, unit) != text
    else:
        changed = annotate_file(path, beads, unit)
    headings = {sprint.number for sprint in plan.sprints}
    return Annotated(
        {sprint: bead for sprint, bead in beads.items() if sprint in headings},
        {sprint: bead for sprint, bead in beads.items() if sprint not in headings},
        changed,
    )


def plan_beads(hive: Hive, path: str) -> dict[str, str]:
    """Returns the bead of each imported sprint of a plan, by the sprint's number.

    Raises `NotFound` if the plan was not imported.
    """
    plan_file = repository_path(hive, path)
    beads: dict[str, str] = {}
    issues = hive.issues.all().values()
    for issue in sorted(issues, key=lambda one: (str(one.get("created_at")), one.id)):
        file, sprint = plan_and_sprint(issue.fields)
        if file == plan_file and isinstance(sprint, str) and is_sprint(sprint):
            beads.setdefault(sprint, issue.id)
    if not beads:
        raise NotFound(
            f"{plan_file} has not been imported",
            hint=suggested("queen plan import", path),
            path=path,
        )
    return {sprint: beads[sprint] for sprint in sort_sprints(beads)}


def _beads_of(hive: Hive, plan_file: str) -> list[Row]:
    return [row for row in hive.issues.rows().values() if plan_and_sprint(row)[0] == plan_file]


def _refuse_moved(plan: Plan, beads: Mapping[str, str], path: str) -> None:
    sprints = {bead: sprint for sprint, bead in beads.items()}
    annotated = {sprint.number: sprint.bead_id for sprint in plan.sprints}
    for sprint in plan.sprints:
        known = sprints.get(sprint.bead_id or "", sprint.number)
        # A bead that is also annotated where the tracker has it was copied, not moved.
        if known != sprint.number and annotated.get(known) != sprint.bead_id:
            raise InvalidInput(
                f"{path}:{sprint.line}: the annotation under sprint {sprint.number} names "
                f"{sprint.bead_id}, the bead of sprint {known}",
                hint=f"{suggested('queen plan import', path)}; or remove the annotation",
                line=sprint.line,
            )


def with_progress(hive: Hive, session: Session) -> SessionProgress:
    """Returns the session with the progress of its beads: the closed and the assigned ones."""
    completed, active = list(session.completed), list(session.active)
    beads: dict[str, str] = {}
    holders = {each.issue_id for each in hive.assignments.find()}
    for issue in hive.issues.all().values():
        metadata = metadata_of(issue.fields)
        task = metadata.get("session_task")
        if metadata.get("session_id") != session.session_id or not isinstance(task, str):
            continue
        beads[task] = issue.id
        if issue.status == "closed":
            completed.append(task)
        elif issue.id in holders:
            active.append(task)
    merged = replace(session, completed=tuple(completed), active=tuple(active))
    return SessionProgress(merged, beads, set(completed) - set(session.completed))


def repository_path(hive: Hive, path: str) -> str:
    """Returns the path relative to the top of the working tree. Raises `InvalidInput` outside."""
    relative = os.path.relpath(os.path.realpath(path), hive.layout.tree)
    if relative.split(os.sep)[0] == os.pardir:
        raise InvalidInput(
            f"{path} is outside the repository {hive.layout.tree}",
            hint="move the plan into the repository: its beads name it by its path there",
            path=path,
        )
    return relative.replace(os.sep, "/")


def _claimed(hive: Hive) -> frozenset[str]:
    """Returns the issues that somebody has claimed and not given back."""
    taken = [*hive.assignments.find(), *hive.assignments.find(status="completed")]
    return frozenset(each.issue_id for each in taken)


def _other_plans(hive: Hive, rows: Sequence[Row], plan_file: str) -> frozenset[str]:
    """Returns the other plans of the tracker's beads that are still in the working tree."""
    files = {file for row in rows if isinstance(file := plan_and_sprint(row)[0], str)}
    return frozenset(
        file for file in files - {plan_file} if os.path.isfile(os.path.join(hive.layout.tree, file))
    )


def _imported(hive: Hive, make: Make, *, dry_run: bool) -> RowImport:
    seen = hive.tracker().version, _claimed(hive)
    found = make([*hive.issues.rows().values()], hive.now_ms())
    if dry_run or not found.rows:
        return found
    _look(hive, found)
    owner = Owner.of(hive)
    if owner is not None:
        owner.put(found.rows, actor=hive.author)
        return found
    with hive.transaction() as tx:
        if (hive.tracker().version, _claimed(hive)) != seen:
            found = make([*hive.issues.rows().values()], tx.now_ms)
            _look(hive, found)
        for row in found.rows:
            hive.issues.put(tx, row)
    return found


def _look(hive: Hive, found: RowImport) -> None:
    """Raises `LooksLikeSecret`, which names the issue, if one seems to hold a credential."""
    for change in found.changes:
        if change.kind != "keep":
            try:
                hive.look(change.row)
            except LooksLikeSecret as error:
                error.message = f"{change.key}: {error.message}"
                raise


DEFAULT = "main"
_REF = re.compile(r"ref: refs/remotes/origin/(\S+)\s*\Z")


def default_branch(tree: GitTree | None) -> str:
    """Returns the repository's default branch: what `origin/HEAD` names, `main` or `master`.

    Without any of them, it is the branch of the main worktree; without that, `main`.
    """
    if tree is None:
        return DEFAULT
    head = os.path.join(tree.common_dir, "refs", "remotes", "origin", "HEAD")
    with suppress(OSError), open(head, encoding="utf-8", errors="replace") as file:
        if match := _REF.match(file.read()):
            return match[1]
    for name in (DEFAULT, "master"):
        if _has_branch(tree, name):
            return name
    return current_branch(tree.common_dir) or DEFAULT


def usual_branch_prefix(tree: GitTree | None) -> str | None:
    """Returns what new branches begin with if `sprint` is a branch; None means the default."""
    if tree is None or not _has_branch(tree, PREFIXES[0]):
        return None
    return next((name for name in PREFIXES if not _has_branch(tree, name)), None)


def _has_branch(tree: GitTree, name: str) -> bool:
    return branch_head(tree.common_dir, name) is not None
