"""Markdown plans: checked, drawn and converted, and imported as issues."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from queenbee._typed import typed
from queenbee.documents.plans.convert import convert_file
from queenbee.documents.plans.headings import read_unit
from queenbee.documents.plans.plan import parse_plan
from queenbee.documents.plans.plan_check import check_plan
from queenbee.documents.plans.plan_graph import plan_dependencies, render_plan
from queenbee.documents.plans.sections import Unread
from queenbee.documents.plans.source_text import read_markdown
from queenbee.store.git_trees import git_tree
from queenbee.workflows import imports
from queenbee.workflows.validation import agents_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.documents.findings import Finding
    from queenbee.documents.issue_rows import RowImport
    from queenbee.documents.plans.headings import Unit
    from queenbee.documents.plans.plan import Plan
    from queenbee.workflows.complete_hive import Hive
    from queenbee.workflows.imports import Annotated

    Form = Literal["text", "mermaid", "dot"]


@dataclass(frozen=True, slots=True)
class CheckedPlan:
    """What a plan has, and whether it can become issues."""

    source: str
    plan: Plan
    findings: Sequence[Finding]
    valid: bool

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        plan = self.plan
        return {
            "source": self.source,
            "valid": self.valid,
            "unit": str(plan.unit or ""),
            "other_units": dict(plan.other_units),
            "phases": [phase.number for phase in plan.phases],
            "sprints": [sprint.number for sprint in plan.sprints],
            "skipped": [sprint.number for sprint in plan.skipped],
            "left_out": list(plan.left_out),
            "parts": [
                {"line": each.heading.first + 1, "heading": each.heading.place,
                 "open": each.boxes.open}
                for each in plan.parts
            ],
            "states": [
                {"sprint": each.number, "state": each.mark or "open", "why": each.why}
                for each in (*plan.sprints, *plan.skipped)
            ],
            "findings": self.findings,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlanGraph:
    """What waits for what in a plan."""

    format: Form
    text: str
    dependencies: Mapping[str, Sequence[str]]
    has_errors: bool
    """Whether the plan has errors, so that sprints may be missing."""

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        found = asdict(self)
        del found["has_errors"]
        return found


class Plans:
    """The plans of a repository. What only reads a file needs no hive: `Plans.check(path)`."""

    def __init__(self, hive: Hive) -> None:
        self._hive = hive

    @staticmethod
    def check(  # noqa: PLR0913 - by name
        path: str,
        *,
        text: str | None = None,
        unit: str | None = None,
        source_branch: str | None = None,
        branch_prefix: str | None = None,
        agents_dir: str | None = None,
        strict: bool = False,
    ) -> CheckedPlan:
        """Returns what a plan has, and every error with its line. The file is read, or the `text`.

        `unit` names the headings that are sprints, such as `## Sprint`; by default, they are found.
        A `strict` check refuses also a line that has the form of a sprint or field and is not read.
        """
        plan = parse_plan(read_markdown(path) if text is None else text, _unit(unit))
        tree = git_tree(os.getcwd())
        found = check_plan(
            plan,
            source_branch=source_branch or imports.default_branch(tree),
            branch_prefix=branch_prefix or imports.usual_branch_prefix(tree),
            agents=agents_for(os.getcwd(), agents_dir),
        )
        bad = any(each.severity == "error" for each in found)
        refused = strict and any(isinstance(each, Unread) for each in found)
        return CheckedPlan(path, plan, found, not bad and not refused)

    @staticmethod
    def graph(path: str, *, unit: str | None = None, form: Form = "text") -> PlanGraph:
        """Returns what waits for what, as a text in this form and as ids."""
        plan = parse_plan(read_markdown(path), _unit(unit))
        bad = any(each.severity == "error" for each in check_plan(plan))
        return PlanGraph(form, render_plan(plan, form), plan_dependencies(plan), bad)

    @staticmethod
    def convert(path: str, *, unit: str | None = None, write: bool = False) -> str:
        """Returns as a diff what gives a plan the form `## Phase 1`, `### Sprint 1.1`; with
        `write`, also changes the file.
        """
        return convert_file(path, unit, write=write)

    @typed
    def import_(  # noqa: PLR0913 - by name
        self,
        path: str,
        *,
        unit: str | None = None,
        prefix: str | None = None,
        rig: str | None = None,
        source_branch: str | None = None,
        branch_prefix: str | None = None,
        agents_dir: str | None = None,
        accept: bool = False,
        dry_run: bool = False,
    ) -> RowImport:
        """Makes an issue for each sprint, or updates the issues, and returns what changed.

        `accept` lets issues that were claimed, ran or are done change their sprint. Importing it
        again changes nothing. Raises `InvalidPlan`.
        """
        asked = imports.PlanImport(
            prefix=prefix,
            rig=rig,
            source_branch=source_branch,
            branch_prefix=branch_prefix,
            agents_dir=agents_dir,
            unit=unit,
            accept=accept,
        )
        return imports.import_plan_file(self._hive, path, asked, dry_run=dry_run)

    @typed
    def annotate(self, path: str, *, dry_run: bool = False) -> Annotated:
        """Writes the id of each sprint's issue under its heading, and returns what changed."""
        return imports.annotate_plan_file(self._hive, path, dry_run=dry_run)

    @typed
    def issues(self, path: str) -> dict[str, str]:
        """Returns the id of the issue of each sprint that was imported."""
        return imports.plan_beads(self._hive, path)


def _unit(unit: str | None) -> Unit | None:
    return read_unit(unit) if unit else None
