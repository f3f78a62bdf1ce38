"""Plans and sessions of a repository, made into issues of its hive.

The rows are made outside the lock: it takes half a second for a thousand sprints. They are made
again under it where the tracker's file has changed in between.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace

from queenbee.documents import issue_rows
from queenbee.documents.sprints.numbers import is_sprint, sort_sprints
from queenbee.errors import InvalidInput, NotFound
from queenbee.store.files import stamp_of
from queenbee.store.issues_file import read_rows_exactly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from queenbee.documents.issue_rows import Row, RowImport
    from queenbee.documents.sessions.session import Session
    from queenbee.workflows.hive import Hive

    Make = Callable[[Sequence[Row], int], RowImport]

DEFAULT_PREFIX = "bd"
_NOBODY = "queen"
"""Who a dry run says would import, where nobody said who acts."""


@dataclass(frozen=True)
class Annotated:
    """Is what annotating a plan did: the beads under their headings, and those that have none."""

    beads: Mapping[str, str]
    without_heading: Mapping[str, str]
    changed: bool


@dataclass(frozen=True)
class SessionProgress:
    """Is a session with what its beads say: the bead of each task, where it was imported.

    `completed_by_beads` are the tasks that `team-session.json`, which is never written, does not
    call completed.
    """

    session: Session
    beads: Mapping[str, str] = field(default_factory=dict)
    completed_by_beads: Collection[str] = ()


def import_plan_file(
    hive: Hive,
    path: str,
    *,
    prefix: str | None = None,
    rig: str | None = None,
    source_branch: str = "main",
    agents_dir: str | None = None,
    dry_run: bool = False,
) -> RowImport:
    """Returns what importing a plan does to the tracker, and does it unless it is a dry run.

    The plan's agents must be in `agents_dir`, or in `.claude/agents/` if there is one. Raises
    `NotFound`, `Unreadable`, `InvalidInput` for a plan outside the repository, and `InvalidPlan`;
    nothing is imported then.
    """
    from queenbee.documents.plans.files import read_markdown
    from queenbee.documents.plans.importer import import_plan
    from queenbee.documents.plans.plan import parse_plan
    from queenbee.documents.plans.rows import PlanSetting
    from queenbee.workflows.targets import agents_for

    plan = parse_plan(read_markdown(path))
    actor = _actor(hive, dry_run=dry_run)
    plan_file = repository_path(hive, path)
    agents = agents_for(hive.layout.tree, agents_dir)

    def make(rows: Sequence[Row], now_ms: int) -> RowImport:
        setting = PlanSetting(
            plan_file=plan_file,
            repository=hive.layout.root,
            rig=rig or os.path.basename(hive.layout.root),
            prefix=prefix or usual_prefix(rows),
            actor=actor,
            source_branch=source_branch,
        )
        return import_plan(plan, rows, setting=setting, now_ms=now_ms, agents=agents)

    return _imported(hive, make, dry_run=dry_run)


def import_session_folder(
    hive: Hive, path: str, *, prefix: str | None = None, dry_run: bool = False
) -> RowImport:
    """Returns what importing a session's tasks does to the tracker, and does it.

    Raises `Unreadable` and `InvalidGraph`; nothing is imported then.
    """
    from queenbee.documents.sessions.files import read_session_folder
    from queenbee.documents.sessions.importer import import_session
    from queenbee.documents.sessions.session import read_session

    session = read_session(read_session_folder(path))
    actor = _actor(hive, dry_run=dry_run)
    # From the top, if it is in there: the path of one worktree means nothing in another.
    place = os.path.relpath(os.path.realpath(path), hive.layout.tree)
    outside = place.split(os.sep)[0] == os.pardir
    session = replace(session, path=os.path.realpath(path) if outside else place)

    def make(rows: Sequence[Row], now_ms: int) -> RowImport:
        first = prefix or usual_prefix(rows)
        return import_session(session, rows, prefix=first, actor=actor, now_ms=now_ms)

    return _imported(hive, make, dry_run=dry_run)


def annotate_plan_file(hive: Hive, path: str, *, dry_run: bool = False) -> Annotated:
    """Puts the beads of a plan's sprints under their headings, unless it is a dry run.

    Raises `NotFound`, `Unreadable`, and what `plan_beads` does.
    """
    from queenbee.documents.plans.annotate import annotate_plan
    from queenbee.documents.plans.files import annotate_file, read_markdown
    from queenbee.documents.plans.plan import parse_plan

    text = read_markdown(path)
    beads = plan_beads(hive, path)
    changed = annotate_plan(text, beads) != text if dry_run else annotate_file(path, beads)
    headings = {sprint.number for sprint in parse_plan(text).sprints}
    return Annotated(
        {sprint: bead for sprint, bead in beads.items() if sprint in headings},
        {sprint: bead for sprint, bead in beads.items() if sprint not in headings},
        changed,
    )


def plan_beads(hive: Hive, path: str) -> dict[str, str]:
    """Returns the bead of each sprint that a plan was imported into, by the sprint's number.

    Raises `NotFound` where it was not imported.
    """
    plan_file = repository_path(hive, path)
    beads: dict[str, str] = {}
    issues = hive.issues.all().values()
    for issue in sorted(issues, key=lambda one: (str(one.fields.get("created_at")), one.id)):
        file, sprint = issue_rows.plan_and_sprint(issue.fields)
        if file == plan_file and isinstance(sprint, str) and is_sprint(sprint):
            beads.setdefault(sprint, issue.id)
    if not beads:
        raise NotFound(
            f"no bead was made from {plan_file}", hint=f"queen plan import {path}", path=path
        )
    return {sprint: beads[sprint] for sprint in sort_sprints(beads)}


def with_progress(hive: Hive, session: Session) -> SessionProgress:
    """Returns the session with what its beads say besides: closed ones, and those in work."""
    completed, active = list(session.completed), list(session.active)
    beads: dict[str, str] = {}
    holders = {each.issue_id for each in hive.assignments.find()}
    for issue in hive.issues.tracked().values():
        metadata = issue_rows.metadata_of(issue.fields)
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


def usual_prefix(rows: Sequence[Mapping[str, object]]) -> str:
    """Returns the prefix of most ids of the tracker, or `bd` where it has none."""
    prefixes = Counter(str(row.get("id")).rpartition("-")[0] for row in rows)
    del prefixes[""]
    return prefixes.most_common(1)[0][0] if prefixes else DEFAULT_PREFIX


def repository_path(hive: Hive, path: str) -> str:
    """Returns a path from the top of the working tree. Raises `InvalidInput` for one outside."""
    relative = os.path.relpath(os.path.realpath(path), hive.layout.tree)
    if relative.split(os.sep)[0] == os.pardir:
        raise InvalidInput(
            f"{path} is outside the repository {hive.layout.tree}",
            hint="a plan's beads name it by its path from the top",
            path=path,
        )
    return relative.replace(os.sep, "/")


def _actor(hive: Hive, *, dry_run: bool) -> str:
    return (hive.actor_or_none or _NOBODY) if dry_run else hive.actor


def _imported(hive: Hive, make: Make, *, dry_run: bool) -> RowImport:
    path = hive.layout.issues_path
    seen = stamp_of(path)
    found = make(read_rows_exactly(path), hive.now_ms())
    if dry_run or not found.rows:
        return found
    with hive.transaction() as tx:
        if stamp_of(path) != seen:
            found = make(read_rows_exactly(path), tx.now_ms)
        for row in found.rows:
            tx.append_issue(row)
    return found
