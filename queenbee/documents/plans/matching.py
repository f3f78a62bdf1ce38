"""Which bead belongs to which sprint of a plan that has changed since its last import.

Pure. `docs/plans.md`, section "Import". The annotation decides before the number, which moves. A
bead that somebody claimed, ran or finished keeps its sprint, unless the caller accepts the change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import shell_word
from queenbee.documents.findings import Finding
from queenbee.documents.issue_rows import metadata_of, plan_and_sprint
from queenbee.documents.plans.rows import begun_as
from queenbee.documents.reconcile import match_rows
from queenbee.documents.sprints.numbers import is_sprint, without_zeros

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.documents.issue_rows import Row
    from queenbee.documents.plans.plan import Plan, Sprint
    from queenbee.documents.plans.rows import PlanSetting


def match_beads(
    plan: Plan, known: Mapping[str, Row], setting: PlanSetting
) -> tuple[dict[str, Row], list[Finding]]:
    """Returns the bead that each sprint has so far, and every contradiction as a finding."""
    matching = _Matching(known, setting)
    annotated = {
        sprint.number: row
        for sprint in plan.sprints
        if (row := matching.by_annotation(sprint)) is not None
    }
    moved = {row["id"] for row in annotated.values()}
    rest = {key: row for key, row in known.items() if key not in moved}
    numbered = match_rows(rest, lambda row: _number_in(row, setting.plan_file))
    found: dict[str, Row] = {}
    for sprint in plan.sprints:
        row = annotated.get(sprint.number)
        if row is None and (row := numbered.get(without_zeros(sprint.number))) is not None:
            matching.check_title(sprint, row)
        if row is not None:
            found[sprint.number] = row
            matching.check_done(sprint, row)
    return found, matching.findings


def _number_in(row: Row, plan_file: str) -> str | None:
    """Returns the sprint of a plan that a bead was made from, or None for another plan's bead."""
    file, sprint = plan_and_sprint(row)
    return without_zeros(sprint) if file == plan_file and isinstance(sprint, str) else None


class _Matching:
    def __init__(self, known: Mapping[str, Row], setting: PlanSetting) -> None:
        self._known = known
        self._setting = setting
        self.findings: list[Finding] = []

    def by_annotation(self, sprint: Sprint) -> Row | None:
        """Returns the bead that the annotation under a sprint names, if it is a sprint's bead."""
        if sprint.bead_id is None:
            return None
        row = self._known.get(sprint.bead_id)
        if row is None or row.get("status") == "tombstone":
            state = "does not exist" if row is None else "was deleted"
            text = f"the annotation names {sprint.bead_id}, which {state}"
            self.findings.append(sprint.finding(text, severity="warning"))
            return None
        file, number = plan_and_sprint(row)
        if not isinstance(number, str) or not is_sprint(number):
            text = f"the annotation names {sprint.bead_id}, which is not the bead of a sprint"
            self.findings.append(sprint.finding(text, hint="remove the annotation"))
            return None
        if file != self._setting.plan_file and file in self._setting.other_plans:
            text = f"the annotation names {sprint.bead_id}, the bead of sprint {number} in {file}"
            hint = "remove the annotation: each plan has its own beads"
            self.findings.append(sprint.finding(text, hint=hint))
            return None
        if without_zeros(number) != without_zeros(sprint.number):
            hint = f"if that is the same work under a new number: {self._accepting()}; "
            hint += "if not, remove the annotation"
            now = f"its annotation is under sprint {sprint.number}"
            self._check_begun(sprint, row, f"sprint {number}", now, hint)
        return row

    def check_title(self, sprint: Sprint, row: Row) -> None:
        """Reports a bead with a history whose number now belongs to a sprint with another title."""
        # The tracker's title may have been edited.
        if _plain(sprint.title) in map(_plain, (str(row.get("title")), _made_from(row))):
            return
        hint = (
            f"write <!-- beads-ralph: {row['id']} --> under the heading of the sprint that it "
            f"belongs to; if that is sprint {sprint.number}: {self._accepting()}"
        )
        now = f"sprint {sprint.number} is now {sprint.title!r}"
        self._check_begun(sprint, row, repr(_made_from(row)), now, hint)

    def check_done(self, sprint: Sprint, row: Row) -> None:
        """Reports a sprint that is marked as done while somebody works on its bead."""
        state = begun_as(row, self._setting.claimed)
        if sprint.mark == "done" and state is not None and row.get("status") != "closed":
            text = f"is marked as done, but its bead {row['id']} is not closed ({state})"
            hint = f"queen complete {shell_word(row['id'])}"
            self.findings.append(sprint.finding(text, severity="warning", hint=hint))

    def _check_begun(self, sprint: Sprint, row: Row, was: str, now: str, hint: str) -> None:
        state = begun_as(row, self._setting.claimed)
        if state is not None and not self._setting.accept:
            text = f"{row['id']} ({state}) was made from {was}, but {now}"
            self.findings.append(sprint.finding(text, hint=hint))

    def _accepting(self) -> str:
        return f"queen plan import {shell_word(self._setting.plan_file)} --accept"


def _made_from(row: Row) -> str:
    """Returns the title in a bead's `plan_section`, which only imports write."""
    section = metadata_of(row).get("plan_section")
    text = section.rpartition("### Sprint ")[2] if isinstance(section, str) else ""
    return text.partition(":")[2].strip() or str(row.get("title"))


def _plain(title: str) -> str:
    return " ".join(title.casefold().split())
