"""What beads and gates say about issues: the answers to the questions of the services. ADR 0008.

Documents are cached until a file changes. Without any, nothing else of this layer is imported.
"""

from __future__ import annotations

import os

from queenbee.core.beads import definition_of_done
from queenbee.core.text import suggested
from queenbee.documents.folders import bead_dirs, gates_dir, json_stamp
from queenbee.errors import Conflict, Unreadable
from queenbee.services.document_questions import Documents
from queenbee.store.droids import roster
from queenbee.store.git_files.worktrees import current_branch
from queenbee.store.tracker.issue_owner import owner_in

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from queenbee.core.beads import Issue
    from queenbee.documents.gates.phases import GateState, PhaseGates
    from queenbee.documents.ralph.as_issues import RalphBeads
    from queenbee.documents.ralph.bead_files import BeadFile
    from queenbee.services.diagnosis import Diagnosis
    from queenbee.services.hive import Services
    from queenbee.store.trust import Proposal
    from queenbee.workflows.bead_view import BeadView


class HiveDocuments(Documents):
    """The documents of an open hive, as they are on disk at each call."""

    def __init__(self, hive: Services) -> None:
        self._hive = hive
        self._beads: tuple[object, RalphBeads] | None = None
        self._gates: tuple[object, PhaseGates] | None = None

    def issues(self) -> Mapping[str, Issue]:
        """Returns the Ralph beads as issues."""
        beads = self.ralph_beads()
        return beads.issues if beads is not None else {}

    def held_back(self, issues: Mapping[str, Issue]) -> Mapping[str, str]:
        """Returns the issues that are not ready, each with the reason.

        Either a gate before the issue's phase has not passed, or a sprint bead has no attempt
        left, or a Ralph bead, in a file or a row, is not valid or waits for something, or its
        checks have commands that nobody here has seen.
        """
        held = {each.origin: _UNSEEN for each in self._unseen(issues)}
        with_metadata = [one for one in issues.values() if _metadata(one) and not one.done]
        if with_metadata:
            held.update(self._without_attempts(with_metadata))
            held.update(self._behind_gates(with_metadata))
        held.update(self._with_unusable_checks(issues))
        beads = self.ralph_beads()
        if beads is not None:
            lookup, open_ids = self._lookup_among(beads, issues), _open(issues)
            for bead_id in beads.issues:
                reason = beads.reason_to_wait(bead_id, lookup, is_open=bead_id in open_ids)
                if reason is not None:
                    held[bead_id] = reason
        return held

    def about(self, issue_id: str, issue: Issue | None) -> Mapping[str, object] | None:
        """Returns the view of an issue that is a bead, without its document; else None."""
        beads = self.ralph_beads()
        known = beads is not None and issue_id in beads.by_id
        if issue is None or not (known or may_be_bead(issue) or has_checks(issue)):
            return None
        view = self.view(issue)
        return view.to_dict() if view is not None else None

    def examine(self) -> Iterator[Diagnosis]:
        """Returns what is wrong with beads, gates, plans, sessions and records of checks."""
        from queenbee.workflows.document_findings import examine  # noqa: PLC0415 - start-up

        return examine(self._hive, self.ralph_beads())

    def repair(self) -> None:
        """Finishes the moves of beads that were interrupted."""
        from queenbee.workflows.document_findings import finish_moves  # noqa: PLC0415 - start-up

        finish_moves(self._hive, self.ralph_beads())

    def view(self, issue: Issue) -> BeadView | None:
        """Returns everything known about a bead, or None for an issue that is not one."""
        from queenbee.workflows.bead_view import bead_view  # noqa: PLC0415 - start-up

        return bead_view(
            self._hive,
            issue,
            self._shown_bead(issue),
            waits=self.held_back({issue.id: issue}).get(issue.id),
            gates=self.gates().before(issue.fields),
            lookup=self.lookup,
        )

    def ralph_beads(self) -> RalphBeads | None:
        """Returns the Ralph beads, or None if there are no bead files."""
        stamp = tuple(map(json_stamp, bead_dirs(self._hive.layout)))
        if not any(stamp):
            return None
        if self._beads is None or self._beads[0] != stamp:
            from queenbee.documents.ralph.as_issues import read_beads  # noqa: PLC0415 - start-up

            self._beads = stamp, read_beads(self._hive.layout)
        return self._beads[1]

    def find_bead(self, bead_id: str) -> BeadFile | None:
        """Returns the Ralph bead with this id, in its file or in the tracker's row, or None.

        Raises `Conflict` if two files have the id, or the row has other checks than the file, and
        `Unreadable` if a file with this name cannot be read: no checks must be skipped.
        """
        in_file = self._in_file(bead_id)
        issue = self._hive.issues.get_or_none(bead_id)
        in_row = self._in_row(issue) if issue is not None else None
        if in_file is None or in_row is None:
            return in_file or in_row
        if in_file.document.get("dod") != in_row.document["dod"]:
            raise Conflict(
                f"{bead_id} has two Definitions of Done: in {in_file.path}, and another in its row "
                f"in {in_row.path}",
                hint="remove one of them",
                bead_id=bead_id,
            )
        return in_file

    def _in_row(self, issue: Issue) -> BeadFile | None:
        if not has_checks(issue):
            return None
        from queenbee.documents.ralph.bead_files import bead_in_row  # noqa: PLC0415 - start-up

        return bead_in_row(issue.fields, self._hive.layout.issues_path)

    def _shown_bead(self, issue: Issue) -> BeadFile | None:
        beads = self.ralph_beads()
        bead = beads.by_id.get(issue.id) if beads is not None else None
        return bead or self._in_row(issue)

    def _in_file(self, bead_id: str) -> BeadFile | None:
        beads = self.ralph_beads()
        if beads is None:
            return None
        if bead_id not in beads.issues:
            for problem in beads.problems:
                if os.path.basename(problem.path) == f"{bead_id}.json":
                    hint = f"correct or remove {problem.path}"
                    raise Unreadable(problem.message, hint=hint, path=problem.path)
            return None
        from queenbee.documents.ralph.bead_files import find_bead  # noqa: PLC0415 - start-up

        return find_bead(beads.folders, bead_id)

    def lookup(self, bead_id: str) -> Mapping[str, Any] | None:
        """Returns the document or row of an id that a bead waits for, or None."""
        return self._lookup_among(self.ralph_beads(), self._hive.issues.all())(bead_id)

    def gates(self) -> PhaseGates:
        """Returns the phase gates."""
        folder = gates_dir(self._hive.layout)
        stamp = json_stamp(folder)
        if self._gates is None or self._gates[0] != stamp:
            from queenbee.documents.gates.phases import read_gates  # noqa: PLC0415 - start-up

            self._gates = stamp, read_gates(folder)
        return self._gates[1]

    def _lookup_among(
        self, beads: RalphBeads | None, issues: Mapping[str, Issue]
    ) -> Callable[[str], Mapping[str, Any] | None]:
        """Returns a lookup that reads the disk once instead of once per bead."""

        def lookup(bead_id: str) -> Mapping[str, Any] | None:
            bead = beads.by_id.get(bead_id) if beads is not None else None
            issue = issues.get(bead_id) or self._hive.issues.row(bead_id)
            done = issue is not None and issue.done
            if bead is not None:
                return {**bead.document, "status": "completed"} if done else bead.document
            if issue is None:
                return None
            # A row that the tracker has removed blocks nothing.
            return {**issue.fields, "status": "closed"} if done else issue.fields

        return lookup

    def _open_beads(self) -> Iterator[BeadFile]:
        """Yields the Ralph beads in files, and those in rows that are not done."""
        beads = self.ralph_beads()
        yield from beads.files if beads is not None else ()
        yield from self._in_rows(self._hive.issues.of_documents())

    def unseen_commands(self) -> list[Proposal]:
        """Returns the commands that nobody on this machine has seen, each once."""
        layout, beads = self._hive.layout, [*self._open_beads()]
        said = layout.settings
        commands = (said.land_check, said.worktree_setup, said.team_args)
        usual = current_branch(layout.common_dir) if layout.common_dir else None
        is_set = any(commands) or said.land_target not in ("", usual)
        is_set = is_set or said.host_issues != "off"
        is_owned = owner_in(layout.beads_dir) is not None
        waits = bool(roster.unseen(layout))
        if not (beads or is_set or is_owned or waits or json_stamp(gates_dir(layout))):
            return []
        from queenbee.workflows.proposed import unseen_of  # noqa: PLC0415 - start-up

        issues = self._hive.issues.all() if self.ralph_beads() is not None else {}
        return unseen_of(layout, beads, _open(issues))

    def unseen_in(self, issue: Issue) -> list[Proposal]:
        """Returns the commands of an issue's checks that nobody on this machine has seen."""
        found = self._unseen({issue.id: issue})
        return [each for each in found if each.origin == issue.id]

    def _unseen(self, issues: Mapping[str, Issue]) -> list[Proposal]:
        beads = self.ralph_beads()
        of_files = [beads.by_id[each] for each in beads.issues] if beads is not None else []
        every = [*of_files, *self._in_rows(issues)]
        if not every:
            return []
        from queenbee.store.trust import Trust  # noqa: PLC0415 - start-up
        from queenbee.workflows.proposed import of_beads  # noqa: PLC0415 - start-up

        layout = self._hive.layout
        return Trust(layout).unseen(
            [*of_beads(layout, every, _open(issues), layout.settings.bead_shell)]
        )

    def _in_rows(self, issues: Mapping[str, Issue]) -> Iterator[BeadFile]:
        for issue in issues.values():
            bead = None if issue.done else self._in_row(issue)
            if bead is not None:
                yield bead

    def _with_unusable_checks(self, issues: Mapping[str, Issue]) -> Iterator[tuple[str, str]]:
        for bead in self._in_rows(issues):
            from queenbee.documents.ralph.ralph_bead import first_error  # noqa: PLC0415 - start-up

            error = first_error(bead.document)
            if error:
                yield bead.bead_id, error
            elif "phase_gate" in bead.document:
                fields = {"metadata": {"phase_gate": bead.document["phase_gate"]}}
                closed = [gate for gate in self.gates().before(fields) if not gate.passed]
                yield from ((bead.bead_id, self._why_closed(gate)) for gate in closed[:1])

    def _behind_gates(self, issues: Sequence[Issue]) -> Iterator[tuple[str, str]]:
        if not json_stamp(gates_dir(self._hive.layout)):
            issues = [issue for issue in issues if "phase_gate" in _metadata(issue)]
        if not issues:
            return
        gates = self.gates()
        for issue in issues:
            closed = [gate for gate in gates.before(issue.fields) if not gate.passed]
            if closed:
                yield issue.id, self._why_closed(closed[0])

    def _why_closed(self, gate: GateState) -> str:
        """Returns why nothing after a gate is ready, and the next command, if one is known."""
        from queenbee.store.trust import Trust  # noqa: PLC0415 - start-up
        from queenbee.workflows.proposed import of_gates  # noqa: PLC0415 - start-up

        key = "/".join((gate.workflow_id, gate.phase_id))
        layout = self._hive.layout
        if gate.status in ("missing", "unreadable"):
            return gate.sentence
        if any(each.origin == key for each in Trust(layout).unseen([*of_gates(layout)])):
            return f"{gate.sentence}; its rules wait for a person: queen config trust"
        if gate.status == "failed":  # Another run alone helps nobody.
            return gate.sentence
        run = suggested("queen gate run", workflow=gate.workflow_id, phase=gate.phase_id)
        return f"{gate.sentence}: {run}"

    def _without_attempts(self, issues: Iterable[Issue]) -> Iterator[tuple[str, str]]:
        for issue in issues:
            metadata = _metadata(issue)
            if any(map(metadata.get, _HISTORY)):
                from queenbee.documents.sprints.executions import (  # noqa: PLC0415 - start-up
                    has_history,
                    next_step,
                )

                if has_history(issue.fields) and next_step(dict(issue.fields)) == "give up":
                    fatal = (metadata.get("scrum_result") or {}).get("fatal")
                    yield issue.id, "its result is fatal" if fatal else "it has no attempt left"


_UNSEEN = "its checks wait for a person: queen config trust"
_HISTORY = ("dev_agent_executions", "qa_agent_executions", "scrum_result")


def has_checks(issue: Issue) -> bool:
    """Returns whether a row of the tracker carries a Definition of Done, usable or not."""
    said = {name: issue.get(name) for name in ("dod", "metadata")}
    return definition_of_done(said) is not None


def _open(issues: Mapping[str, Issue]) -> set[str]:
    """Returns the ids of those that are not done."""
    return {key for key, each in issues.items() if not each.done}


def may_be_bead(issue: Issue) -> bool:
    """Returns whether a row of the tracker could be a bead; most rows are not."""
    return bool(_metadata(issue)) or "beads-ralph" in issue.issue_type


def _metadata(issue: Issue) -> Mapping[str, Any]:
    metadata = issue.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
