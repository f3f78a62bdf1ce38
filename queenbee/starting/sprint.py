"""One sprint bead in a team: its dev agent, then each of its QA agents, then the verdict.

What comes next is read from the bead, so that a run that was killed is gone on with. What is
recorded is recorded here, whoever works; a judgement that was not recorded here counts for nothing,
and is asked for again. `docs/sprint-beads.md`, section "The loop".
"""

from __future__ import annotations

import json
import os
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import shell_word, suggested
from queenbee.core.timestamps import format_ms
from queenbee.documents.findings import errors_in, in_short
from queenbee.documents.sprints.executions import attempts_left, feedback, next_step
from queenbee.documents.sprints.reports import QA_STATUSES
from queenbee.documents.sprints.sprint_bead import SprintBead, check_bead, is_sprint_bead
from queenbee.errors import Conflict, ExternalFailure, NotFound, QueenError
from queenbee.git.ownership import branch_note
from queenbee.git.run import git, line, names_in
from queenbee.git.unfinished import WorktreeKeeper, branch_part
from queenbee.git.worktrees.bead_place import bead_place, leave_worktree, sprint_worktree
from queenbee.store import safe_open
from queenbee.store.droids import roster
from queenbee.store.git_files.worktrees import target_ref, worktrees
from queenbee.workflows.beads import record_history, set_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from queenbee.core.fold import Fields
    from queenbee.workflows.complete_hive import Hive

_LANDED_FOR_YOU = (
    "Others judge it when you end, and it is landed for you: do not run queen next, queen land or "
    "queen complete. Nobody answers questions here."
)
_REPORT = (
    "End with your report: one JSON object, and nothing after it, that follows this JSON Schema:"
)
_SHOWN = 200
_MOST_STARTS = 2_000
"""So many objects may begin in an output; with more, it has no report."""
_OBJECT = re.compile(r'\{(?=\s*+(?:"(?P<field>(?:status|message|details|fatal)")?|\}))')
"""Where one begins, perhaps with a field of a report."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is to be done with a bead now, and by which agent."""

    what: Literal["develop", "judge", "finish", "give up"]
    agent_path: str = ""
    agent_type: str = ""
    model: str = ""
    attempt: int = 0
    most_attempts: int = 0
    text: str = ""
    """What the agent is told; or why the bead is given up."""

    def environment(self, session: str) -> dict[str, str]:
        """Returns what a program gets besides the text."""
        return {
            "QUEEN_STEP": self.what, "QUEEN_AGENT_PATH": self.agent_path,
            "QUEEN_AGENT_TYPE": self.agent_type, "QUEEN_MODEL": self.model,
            "QUEEN_SESSION": session, "QUEEN_ATTEMPT": str(self.attempt),
            "QUEEN_MAX_ATTEMPTS": str(self.most_attempts),
        }  # fmt: skip


class Sprint:
    """A sprint bead that a droid has, in its worktree."""

    def __init__(
        self,
        home: Hive,
        issue_id: str,
        droid: str,
        env: Mapping[str, str],
        tell: Callable[[str], None],
    ) -> None:
        """Makes its worktree. Raises as `sprint_worktree` does, and `NotFound` for a source branch
        with commits that would land along with it.
        """
        self.issue_id = issue_id
        self._droid = droid
        self._tell = tell
        place = bead_place(home, home.issues.get(issue_id))
        target = str(target_ref(home.layout))
        note = branch_note(home.layout, place.branch)
        began = [place.base, *([note.base] if note is not None and note.base else [])]
        more = ("rev-list", "--count", *map(no_dash, began), "--not", no_dash(target), "--")
        alien = line(*more, cwd=home.layout.tree, repository={})
        if int(alien or 0):
            raise NotFound(
                f"{issue_id} begins with {place.base}, of which {alien} commits are not on "
                f"{target}, where it would land",
                hint=f"git switch {shell_word(place.base.removeprefix('refs/heads/'))} in the "
                "main worktree, or merge that branch first",
            )
        self.path: str = sprint_worktree(home, issue_id, droid).path
        self._place = place
        self._target = target
        self._env = env
        self.hive: Hive = type(home).open(self.path, droid=droid, env=env)
        self.redo: str = ""
        """Why what was judged well did not land."""
        self.tries: int = 0
        """How many attempts there were in this run."""
        self._judged = self.head()
        self._passed: set[str] = set()
        """The QA agents whose pass of the last attempt this process has recorded."""
        self._asked = SprintBead(self.row)
        """What people asked for: its agent may edit the row by which it is judged."""

    def reopen(self) -> None:
        """Opens its hive again, since its folder may be another one by now."""
        self.hive = type(self.hive).open(self.path, droid=self._droid, env=self._env)

    @property
    def row(self) -> Fields:
        """The bead as it is now. Raises `NotFound`, and `Conflict` for what is no valid bead."""
        found = self.hive.issues.exact_row(self.issue_id, ended=True)
        if found is None:
            raise NotFound(f"{self.issue_id} is gone", hint="queen bead list")
        errors = errors_in(check_bead(found))
        if errors or not is_sprint_bead(found):
            said = in_short(errors) if errors else f"its type is {found.get('issue_type')}"
            raise Conflict(
                f"{self.issue_id} was begun as a sprint bead, and is none any more: {said}",
                hint=suggested("queen bead validate", self.issue_id),
            )
        return found

    @property
    def session(self) -> str:
        """The session of its team, or ""."""
        return team_session(self.hive, self.issue_id)

    @property
    def branch(self) -> str:
        """The branch of the bead."""
        return self._place.branch

    @property
    def makes_nothing(self) -> bool:
        """Whether an attempt without a commit is an attempt, too."""
        said = SprintBead(self.row).metadata.get("agent_type")
        return said not in (None, "dev", "docs") or bool(self._place.merges)

    def head(self) -> str:
        """Returns the commit of its worktree."""
        return line("rev-parse", "HEAD", cwd=self.path, repository={}) or ""

    def step(self, why: str) -> Step:
        """Returns what is to be done now; `why` says why the last process was not enough.

        Raises `Conflict` if others have changed who judges, or how.
        """
        row = self.row
        read, what = SprintBead(row), next_step(row)
        if read.max_attempts != self._asked.max_attempts:
            raise self._changed("max_retry_attempts")
        if self.redo and what == "finish":
            what = "develop" if attempts_left(row) else "give up"
        if what == "give up":
            return Step(what="give up", text=self._end(row, why))
        if what == "develop":
            return self._develop(read, why)
        if read.qa_agents != self._asked.qa_agents:
            raise self._changed("the QA agents")
        counts = self._passed & {*read.judgements()}
        agents = (each for each in read.qa_agents if str(each["agent_path"]) not in counts)
        agent = next(agents, None)
        return Step(what="finish") if agent is None else self._judge(read, agent, why)

    def _changed(self, what: str) -> Conflict:
        return Conflict(
            f"{what} of {self.issue_id} changed since it was begun",
            hint=f"look at it: {suggested('queen bead show', self.issue_id)}",
        )

    def note_session(self, session: str) -> None:
        """Notes the session of the bead's team, also in its row, unless that has one."""
        if session:
            roster.note_session(self.hive.layout, self.issue_id, session)
        if session and not SprintBead(self.row).metadata.get("scrum_master_session_id"):
            said = f"metadata.scrum_master_session_id={json.dumps(session)}"
            set_metadata(self.hive, self.issue_id, [said])

    def record_dev(self, status: str, *, session: str, began_ms: int) -> None:
        """Records an attempt of the dev agent."""
        self._judged = self.head()  # First: what it made is judged even if this is refused.
        self._passed.clear()
        said = SprintBead(self.row).metadata
        entry = {
            **self._entry(session, began_ms, said["dev_agent_path"], said["dev_model"]),
            "status": status,
            "feedback_from_qa": feedback(self.row),
        }
        record_history(self.hive, "dev", self.issue_id, json.dumps(entry))
        self.tries, self.redo = self.tries + 1, ""

    def record_qa(self, step: Step, output: str, *, session: str, began_ms: int) -> str:
        """Records what a QA agent reported, and takes back what has changed since it began; returns
        its status.

        The changes are kept on a branch: a person may have made them. Raises `NotFound` without a
        report, `InvalidRecord` for one that its schema forbids, and as `put_back` does.
        """
        self._take_back(step)
        report = report_in(output)
        if report is None:
            raise NotFound(f"{step.agent_path} printed no report with a status and a message")
        said = {key: report.pop(key) for key in ("status", "message")}
        details = report.pop("details", None)
        entry = {**self._entry(session, began_ms, step.agent_path, step.model), **said}
        entry["details"] = {**(details if isinstance(details, dict) else {}), **report}
        record_history(self.hive, "qa", self.issue_id, json.dumps(entry))
        if said["status"] == "pass":
            self._passed.add(step.agent_path)
        return str(said["status"])

    def end(self, *, error: str = "") -> bool:
        """Records the verdict, and leaves the worktree to others; returns whether it is fatal."""
        row = self.row
        read, fatal = SprintBead(row), bool(error) and is_fatal(row)
        names = ("agent_path", "status", "message", "details")
        judged = [{key: one.get(key) for key in names} for one in read.judgements().values()]
        result = {
            "bead_id": self.issue_id,
            "success": not error,
            "bead_updated": not error,
            "attempt_count": read.last_attempt,
            "qa_results": judged,
            "error": error or None,
            "fatal": fatal,
        }
        record_history(self.hive, "result", self.issue_id, json.dumps(result))
        self.leave()
        return fatal

    def leave(self) -> None:
        """Leaves the worktree to whoever works on its branch next."""
        leave_worktree(self.hive.layout, self.path)

    def _take_back(self, step: Step) -> None:
        here = next(each for each in worktrees(self.hive.layout) if each.path == self.path)
        keeper, branch = WorktreeKeeper(self.hive), self._place.branch
        name = branch_part(f"{self.issue_id}-while-judged")
        changed = keeper.put_back(here, branch=branch, name=name, to=self._judged)
        if changed.branch is not None:
            self._tell(
                f"{self._droid}: {self.path} changed while {step.agent_path} judged "
                f"{self.issue_id}; put back, and kept: {suggested('git show', changed.branch)}"
            )

    def _develop(self, read: SprintBead, why: str) -> Step:
        said = read.metadata
        parts = [
            f"You are {self._droid}. {self._where()} {_LANDED_FOR_YOU}",
            *self._written(),
            *(f"- {each}" for each in said["dev_prompts"] if each not in self._written()[-1]),
        ]
        if said.get("branches_to_merge"):
            open_ = ", ".join(self._place.merges) or "none: all have landed on the main branch"
            parts.append(f"The branches to merge, as git knows them: {open_}.")
        wrong = self.redo or feedback(dict(read.row)) or why
        if wrong:
            parts.append(f"What was wrong with the last attempt:\n{wrong}")
        return Step(
            what="develop", agent_path=said["dev_agent_path"], model=said["dev_model"],
            agent_type=said.get("agent_type") or "dev", text=_as(said["dev_agent_path"], parts),
            attempt=read.last_attempt + 1, most_attempts=read.max_attempts,
        )  # fmt: skip

    def _judge(self, read: SprintBead, agent: Mapping[str, Any], why: str) -> Step:
        path, kind = str(agent["agent_path"]), str(agent.get("agent_type") or "qa")
        changed = git(
            "diff", "--name-only", "-z", no_dash(f"{self._target}...HEAD"), "--", cwd=self.path
        )
        given = {
            "worktree_path": self.path,
            "branch": self._place.branch,
            "changed_files": names_in(changed)[:_SHOWN],
        }
        judges = f"You judge attempt {read.last_attempt} as {kind} agent."
        parts = [
            f"{judges} {self._where()} Change nothing. Nobody answers questions here.",
            *self._written(),
            str(agent["prompt"]),
            f"Your input: {json.dumps(given)}",
            f"{_REPORT} {json.dumps(agent['output_schema'])}",
            *([f"Your last report was not accepted: {why}"] if why else []),
        ]
        return Step(
            what="judge", agent_path=path, model=str(agent["model"]), agent_type=kind,
            text=self._as_judge(path, parts),
            attempt=read.last_attempt, most_attempts=read.max_attempts,
        )  # fmt: skip

    def _as_judge(self, path: str, parts: Sequence[str]) -> str:
        """Returns what a QA agent is told: its file counts as the target has it, so that nobody
        rewrites the judge of their own work. It is none if it is behind a link.
        """
        if path == "claude":
            return _as(path, parts)
        file = _file_of(path)
        try:
            here: bytes | None = safe_open.read(os.path.join(self.path, file))
        except (OSError, QueenError):
            here = None
        try:
            listed = ("ls-tree", "-z", no_dash(self._target), "--", os.path.normpath(file))
            mode, _, blob = git(*listed, cwd=self.path, repository={}).split()[:3]
            spec = no_dash(blob.decode() if mode.startswith(b"100") else "")
            there: bytes | None = git("cat-file", "blob", spec, cwd=self.path, repository={})
        except (ExternalFailure, ValueError):
            there = None
        if there is None:
            first = f"Do not read {file}: {self._target} has no such file, so it says nothing of "
            first += "you."
        elif here == there:
            return _as(path, parts)
        else:
            text = there.decode(errors="replace")
            first = f"You are the agent that this file describes; {file} here differs, and does "
            first += f"not count:\n{text}"
        return "\n\n".join([first, *parts])

    def _written(self) -> tuple[str, ...]:
        """Returns what people wrote for it, as it stands, and where that is."""
        said, text = self._asked.metadata, str(self._asked.row.get("description") or "")
        return (f"From {said['plan_file']}, {said['plan_section']}:", text) if text else ("",)

    def _where(self) -> str:
        title = self._asked.row.get("title")
        return f"This is {self.issue_id}, {title!r}, in {self.path} on {self._place.branch}."

    def _end(self, row: Fields, why: str) -> str:
        """Returns why a bead is given up."""
        read = SprintBead(row)
        if read.fatal:
            return str(read.metadata["scrum_result"].get("error") or "its result is fatal")
        if read.stopped:
            return f"a QA agent said to stop: {feedback(row) or 'see queen bead show'}"
        last = self.redo or feedback(row) or why or "see queen bead show"
        return f"its {read.max_attempts} attempts are used up: {last}"

    def _entry(self, session: str, began_ms: int, path: str, model: str) -> dict[str, object]:
        return {
            "session_id": session or f"{self._droid}-{uuid.uuid4().hex[:12]}",
            "agent_path": path,
            "model": model,
            "started_at": format_ms(began_ms),
            "completed_at": format_ms(self.hive.now_ms()),
        }


def team_session(hive: Hive, issue_id: str) -> str:
    """Returns the session of a bead's team on this machine: its own, or the last that a bead of its
    team has.
    """
    noted = roster.sessions(hive.layout)
    issues = hive.issues.some({*noted, issue_id})
    team = issues[issue_id].team
    theirs = [noted[each] for each in noted if each in issues and issues[each].team == team]
    return noted.get(issue_id) or next(reversed(theirs), "")


def is_fatal(row: Mapping[str, Any]) -> bool:
    """Returns whether a bead's result is fatal, or a QA agent said so in a report."""
    read = SprintBead(row)
    reports = [each.get("details") for each in read.qa_executions if each.get("status") == "stop"]
    return read.fatal or any(
        isinstance(each, dict) and each.get("fatal") is True for each in reports
    )


def report_in(output: str) -> dict[str, Any] | None:
    """Returns the report with which a QA agent ended, or None: a JSON object with a status and a
    message, after which no other begins or ends. One within another that cannot be read is none:
    its text may be of whom it judges. Claude Code's last words are the `result` of its last line.
    """
    line = _json(output.rstrip().rpartition("\n")[2])
    if isinstance(line, dict) and line.get("type") == "result":
        output = str(line.get("result"))
    found, at, decoder = None, 0, json.JSONDecoder()
    for _ in range(_MOST_STARTS):
        if (start := _OBJECT.search(output, at)) is None:
            return found if output.find("}", at) < 0 else None
        try:
            value, at = decoder.raw_decode(output, start.start())
        except (ValueError, RecursionError):
            found, at = None, start.end()
            if start["field"]:
                break
        else:
            is_one = value.get("status") in QA_STATUSES and isinstance(value.get("message"), str)
            found = value if is_one else None
    return None


def _json(text: str) -> object:
    try:
        return json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return None


def _file_of(path: str) -> str:
    return path if path.endswith(".md") else f"{path}.md"


def _as(path: str, parts: Sequence[str]) -> str:
    """Returns what an agent is told: which one it is, if that is written down, and the rest."""
    if path != "claude":
        parts = [f"First read {_file_of(path)}: you are the agent that it describes.", *parts]
    return "\n\n".join(parts)
