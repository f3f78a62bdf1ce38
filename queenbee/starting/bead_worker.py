"""An agent of a team that also works on sprint beads: one process for each step of such a bead."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import command_line
from queenbee.core.text import printable
from queenbee.errors import Conflict, ExternalFailure, InvalidInput, NotFound, QueenError
from queenbee.git.contents.landing_messages import Messages
from queenbee.git.landing.committing import commit_all
from queenbee.git.ownership import bead_branches
from queenbee.git.unfinished import Unfinished, WorktreeKeeper
from queenbee.git.worktrees.bead_place import sprint_worktree
from queenbee.git.worktrees.worktree_mending import WorktreeMender
from queenbee.starting.landing_result import message_of
from queenbee.starting.processes.child import UNKNOWN, Child
from queenbee.starting.sprint import Sprint, Step
from queenbee.starting.worker import Worker
from queenbee.starting.workplace import SETTING_UP
from queenbee.store.droids import agent_sessions, roster
from queenbee.store.git_files.host_tokens import without_tokens

if TYPE_CHECKING:
    from queenbee.core.records import Assignment
    from queenbee.services.work import Begin
    from queenbee.starting.obstacles import Obstacle
    from queenbee.store.layout import Layout

_DEVELOPING, _JUDGING = roster.STEPS


@dataclass
class BeadWorker(Worker):
    """A worker that follows the document of the sprint beads for those."""

    fatal: str = ""
    """Why nobody is to go on, if a bead says so."""
    given_up: set[str] = field(default_factory=set)
    """The beads that are not tried again."""
    _sprint: Sprint | None = None
    _step: Step | None = None
    _resumed: str = ""
    """The session that its process was to go on with."""
    _lost: str = ""
    """A session that could not be gone on with."""

    def __post_init__(self) -> None:
        if self.entry.is_alive and self.entry.state == _JUDGING:
            # Where its output began is not known any more: it judges again.
            log = roster.log_path(self.hive.layout, self.name)
            Child(self.entry.process, log=log).end()
            self.entry.process = ""
        super().__post_init__()

    def _run(self, begin: Begin) -> None:
        issue = begin.issue
        begun = bead_branches(self.home.layout).values()
        # A row that says by now that it is no bead is not worked on as something else.
        if issue is None or (issue.team is None and issue.id not in begun):
            if self._sprint is not None:
                self._sprint.leave()
                self._go_home()
            self.entry.team = ""
            super()._run(begin)
            return
        self._takes(begin)
        self._is_unclear = False  # It has a worktree of its own.
        self.entry.team = issue.team or ""
        try:
            self._go_on(begin.assignment)
        except (Conflict, ExternalFailure, InvalidInput, NotFound) as error:
            self._why = "; ".join(filter(None, (error.message, error.hint)))
            self._give_back(begin.assignment, f"{self.name} cannot work on it: {self._why}")

    def _go_on(self, held: Assignment) -> None:
        """Does the next step of a bead."""
        sprint = self._on(held)
        self._make_sprint_fit(sprint)
        self.entry.path, self._ahead = sprint.path, self._unlanded()
        if self._sets_up():
            return
        step = self._step = sprint.step(self._why)
        if step.what == "give up":
            self.given_up.add(held.issue_id)
            if sprint.end(error=step.text):
                self.fatal = f"{held.issue_id} is fatal: {step.text}"
            self._give_back(held, step.text)
        elif step.what == "develop" and self.entry.is_ending and sprint.tries:
            self._give_back(held)
        elif step.what == "finish":
            command = "land" if self._unlanded() else "complete"
            env = self._environment(held.issue_id)
            argv = command_line("queen", command, "--json", values=[held.issue_id])
            self._start(argv, "landing", env)
        elif not self._waits_to_be_seen():
            self._start_step(sprint, step)

    def _on(self, held: Assignment) -> Sprint:
        if self._sprint is None or self._sprint.issue_id != held.issue_id:
            self._sprint = Sprint(self.home, held.issue_id, self.name, self.env, self.tell)
        return self._sprint

    def _make_sprint_fit(self, sprint: Sprint) -> None:
        again = partial(sprint_worktree, self.home, sprint.issue_id, self.name)
        if self._mended(WorktreeMender(self.home, sprint.path, sprint.branch, again)):
            sprint.reopen()

    def _start_step(self, sprint: Sprint, step: Step) -> None:
        session = ""
        if step.what == "develop":
            if sprint.redo:
                self._abort_landing(sprint.issue_id)
            session = sprint.session
            if not session and not self.client.loops:
                session = f"{self.name}-{uuid.uuid4().hex[:12]}"
                sprint.note_session(session)
        self._resumed = session if session != self._lost and self.client.resumed else ""
        env = {**self._environment(sprint.issue_id), **step.environment(session)}
        env = without_tokens(env, self.hive.layout.common_dir)
        argv = self.client.command(
            step.text, session=self._resumed, model=step.model, options=self.options
        )
        path = ""
        if not self.client.loops:
            path = self._handover.written("briefing", printable(step.text, keep_newlines=True))
        self.tell(f"{self.name}: {step.agent_path} is to {step.what} {sprint.issue_id}")
        state = _DEVELOPING if step.what == "develop" else _JUDGING
        self._start(argv, state, env, said=path)

    def _settle(self, ended: str, *, is_own: bool) -> None:
        if self.entry.state == SETTING_UP:
            self._set_up(ended, is_own=is_own)
            return
        held, state = self.held(), self.entry.state
        if held is not None and state in roster.STEPS and held.issue_id == self.entry.issue_id:
            self.entry.process = ""
            self._spend()
            if self._is_stopped(ended):
                return
            if state == _DEVELOPING:
                self._developed(self._on(held), ended)
            else:
                self._has_judged(self._on(held), held)
            return
        before = self.entry.landed
        super()._settle(ended, is_own=is_own)
        if self._sprint is None or self.is_running:
            return
        if held is not None:
            self._sprint.redo = self._why  # Nothing, if it only waits to land.
        elif self.entry.landed > before:
            self._sprint.end()
            self._go_home()
        else:
            self._sprint.leave()
            self._go_home()

    def _developed(self, sprint: Sprint, ended: str) -> None:
        """Records an attempt; what it made is committed, so that it is what is judged."""
        if ended == UNKNOWN:  # Of a run that was killed: the judges will see.
            ended = ""
        if ended and self._resumed:
            self._lost = self._resumed
            self._again(f"its session could not be resumed, or {ended}")
            return
        status = "timeout" if self._silence.why else "failed" if ended else "completed"
        if not ended:
            try:
                self._make_sprint_fit(sprint)
                self._commit(sprint)
            except QueenError as error:
                status, ended = "failed", error.message
        if not ended and not sprint.makes_nothing and not self._unlanded():
            status, ended = "failed", "it ended, and had made nothing"
        session = self._resumed or self._newest() or sprint.session
        sprint.note_session(session)
        sprint.record_dev(status, session=session, began_ms=self.entry.since_ms)
        if ended:
            self._again(ended)
        else:
            self._why = ""
            self._note("between")

    def _commit(self, sprint: Sprint) -> None:
        def tell(said: str) -> None:
            self.tell(f"{self.name}: {said}")

        title = str(sprint.row.get("title") or "")
        messages = Messages.of(self.hive.layout.settings, sprint.path)
        message = message_of(sprint.issue_id, title, self.name, messages)
        for said in commit_all(sprint.hive.layout, message, tell=tell):
            tell(said)

    def _has_judged(self, sprint: Sprint, held: Assignment) -> None:
        step, output = self._step, self._output.decode(errors="replace")
        if step is None:
            self._note("between")
            return
        session = self._newest()
        session = session if session != sprint.session else ""
        try:
            status = sprint.record_qa(step, output, session=session, began_ms=self.entry.since_ms)
        except QueenError as error:
            self._fail(error.message, held)
            return
        self._ends, self._why = 0, ""
        self.tell(f"{self.name}: {step.agent_path} judges {sprint.issue_id}: {status}")
        self._note("between")

    def _put_away(self, held: Assignment) -> Unfinished | None:
        sprint = self._sprint
        if sprint is None or sprint.issue_id != held.issue_id:
            return super()._put_away(held)
        # Its branch is the bead's own, and is gone on with.
        unfinished = WorktreeKeeper(self.home).keep(self.held() or held)
        sprint.leave()
        self._go_home()
        return unfinished

    def _may_leave(self, obstacle: Obstacle) -> bool:
        """Returns False for a bead: if it had gone away, all would judge again."""
        return self._sprint is None and super()._may_leave(obstacle)

    def _land_again(self, obstacle: Obstacle) -> None:
        held = self.held()
        if self._sprint is None or held is None:
            super()._land_again(obstacle)
        else:
            self._go_on(held)

    def _drop(self, obstacle: Obstacle) -> None:
        super()._drop(obstacle)
        if self._sprint is not None and self._sprint.issue_id == obstacle.issue_id:
            self._sprint.leave()
            self._go_home()

    def _go_home(self) -> None:
        self._sprint, self.entry.path = None, self.hive.layout.tree

    def _sessions(self) -> Layout:
        return self._sprint.hive.layout if self._sprint is not None else self.hive.layout

    def _newest(self) -> str:
        return agent_sessions.newest(self._sessions())
