"""The tracker's issues, written: by Beads' own program where there is one, else by us.

`docs/format.md`, section "Issues".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from queenbee.core.beads import DONE, Issue
from queenbee.core.names import checked_issue_id, checked_new_id
from queenbee.core.readiness import BLOCKING
from queenbee.core.row_edits import fitting_status, tombstone
from queenbee.core.text import one_line, suggested, utf8
from queenbee.core.timestamps import format_ms, parse_ms
from queenbee.documents.issue_rows import Row, close_row, new_row
from queenbee.documents.reconcile import digits_for, fresh_id, hashed_id, usual_prefix
from queenbee.errors import Conflict, InvalidInput, QueenError, Unreadable
from queenbee.services.assignments import taken
from queenbee.store.issues_file import UNREADABLE
from queenbee.workflows.complete_hive import Hive
from queenbee.workflows.ending_unchecked import refuse_end
from queenbee.workflows.locks import refuse_in_hand
from queenbee.workflows.owning.owner import Owner

# Loaded before others have to wait for it in a turn at writing.
import queenbee.services.writing.issue_changes  # noqa: F401 # isort: skip

_STATUSES = ("open", "in_progress", "in_review", "blocked", "deferred")


@dataclass(frozen=True, slots=True)
class NewIssue:
    """An issue to add; without an id, it gets one that begins with the prefix."""

    title: str
    description: str = ""
    issue_type: str = "task"
    priority: int = 2
    acceptance: str | None = None
    labels: Sequence[str] = ()
    estimate: int | None = None
    """In minutes."""
    depends_on: Sequence[str] = ()
    parent: str | None = None
    prefix: str | None = None
    issue_id: str | None = None

    @property
    def needs(self) -> list[tuple[str, str]]:
        """The issues that it refers to, each with the kind of dependency."""
        parent = [(self.parent, "parent-child")] if self.parent else []
        return [*((each, "blocks") for each in self.depends_on), *parent]


class Tracker:
    """The tracker's issues, for writing."""

    def __init__(self, hive: Hive) -> None:
        self._hive = hive
        self.owner: Owner | None = Owner.of(hive)
        """The program that owns the file, or None if QueenBee writes it."""

    def new(self, asked: NewIssue) -> str:
        """Adds an issue, and returns its id. Raises `InvalidInput`, `NotFound`, `Conflict`.

        As all that is written, its texts are looked at for credentials first.
        """
        title = _checked_title(asked.title)
        _check_priority(asked.priority)
        self._hive.look(asdict(asked))
        if asked.issue_id is not None:
            checked_new_id(checked_issue_id(asked.issue_id))
        for each, _ in asked.needs:
            self._hive.issues.get(each)
        if self.owner:
            return self._new_by_owner(title, asked)
        actor, identifier = self._hive.author, self._fresh_id(title, asked)
        with self._hive.transaction() as tx:
            while self._hive.tracker().has(identifier):  # Somebody made it meanwhile.
                identifier = self._fresh_id(title, asked)
            row = new_row(identifier, actor, tx.now, issue_type=asked.issue_type)
            row.update(title=title, description=asked.description, priority=asked.priority)
            row.update(labels=list(asked.labels))
            row.update(
                _given(acceptance_criteria=asked.acceptance, estimated_minutes=asked.estimate)
            )
            row["dependencies"] = [
                _dependency(identifier, target, kind, actor, tx.now) for target, kind in asked.needs
            ]
            self._hive.issues.put(tx, row)
        return identifier

    def edit(
        self,
        issue_id: str,
        *,
        add_labels: Sequence[str] = (),
        remove_labels: Sequence[str] = (),
        **changes: object,
    ) -> Issue:
        """Changes fields of an issue; None leaves a field as it is. Raises as `new` does."""
        wanted = _given(**changes)
        if not (wanted or add_labels or remove_labels):
            raise InvalidInput("nothing to change", hint="queen issue edit --help")
        if "title" in wanted:
            wanted["title"] = _checked_title(str(wanted["title"]))
        _check_priority(wanted.get("priority", 0))
        _check_status(wanted.get("status", "open"), self.owner)
        self._hive.look({**wanted, "labels": add_labels})
        if "defer_until" in wanted:
            wanted["defer_until"] = _checked_time(str(wanted["defer_until"]))
        issue = self._to_edit(issue_id, wanted)
        if self.owner:
            options = [f"--{_OPTION.get(name, name)}={value}" for name, value in wanted.items()]
            options += [f"--add-label={each}" for each in add_labels]
            options += [f"--remove-label={each}" for each in remove_labels]
            self._call("update", *options, values=[issue_id])
            return self._now(issue)

        def edited(row: Row, now_ms: int) -> Row:
            known = row.get("labels")
            labels = dict.fromkeys([*(known if isinstance(known, list) else ()), *add_labels])
            kept = [each for each in labels if each not in remove_labels]
            changed = {"labels": kept} if add_labels or remove_labels else {}
            return fitting_status({**row, **wanted, **changed})

        self._change(issue_id, edited)
        return self._hive.issues.get(issue_id)

    def _to_edit(self, issue_id: str, wanted: Mapping[str, object]) -> Issue:
        """Returns an issue. Raises `NotFound`, and `Conflict` for the type of a bead in hand."""
        issue = self._hive.issues.get(issue_id)
        if "issue_type" in wanted:
            refuse_in_hand(self._hive, issue_id)
        return issue

    def close(self, issue_id: str, *, reason: str | None = None, anyway: bool = False) -> Issue:
        """Closes an issue; repeating it changes nothing.

        Raises `NotFound`, `Taken` if a droid works on it, unless `anyway`, and `NotYours` for an
        agent of a team if it has checks.
        """
        self._hive.look({"reason": reason})
        issue = self._hive.issues.get(issue_id)
        self._refuse_end(issue_id, "queen issue close", anyway=anyway)
        row = self._hive.issues.row(issue_id)
        if row is not None and row.done:
            return issue
        if self.owner:
            self.owner.close(issue_id, reason, actor=self._hive.author)
            return self._now(issue)

        def closed(row: Row, now_ms: int) -> Row:
            return row if row.get("status") in DONE else close_row(row, now_ms, reason)

        self._change(issue_id, closed)
        return self._hive.issues.get(issue_id)

    def delete(self, issue_id: str, *, reason: str | None = None, anyway: bool = False) -> Issue:
        """Deletes an issue: its row becomes a tombstone, which other clones learn of. Repeating it
        changes nothing. Raises as `close` does.
        """
        self._hive.look({"reason": reason})
        gone = self._hive.issues.tombstone(issue_id)
        if gone is not None:
            return gone
        issue = self._hive.issues.get(issue_id)
        self._refuse_end(issue_id, "queen issue delete", anyway=anyway)
        if self.owner:
            self._call("delete", "--force", values=[issue_id])
            return self._now(issue)
        actor = self._hive.author
        self._change(issue_id, lambda row, now_ms: tombstone(row, now_ms, actor, reason))
        return self._hive.issues.tombstone(issue_id) or issue

    def check(
        self,
        issue_ids: Sequence[str],
        *,
        ended_by: str | None = None,
        anyway: bool = False,
        deleted: bool = False,
    ) -> None:
        """Refuses before the first of these is changed, so that nothing is half done: if one is no
        issue, or is assigned and this command would end it. With `deleted`, tombstones are fine.

        Raises as `close` does.
        """
        for each in issue_ids:
            if not deleted or self._hive.issues.tombstone(each) is None:
                self._hive.issues.get(each)
            if ended_by:
                self._refuse_end(each, ended_by, anyway=anyway)

    def _refuse_end(self, issue_id: str, command: str, *, anyway: bool) -> None:
        refuse_end(self._hive, issue_id)
        holder = self._hive.assignments.active(issue_id)
        if holder is None or anyway:
            return
        mine = holder.droid == self._hive.actor_or_none and command == "queen issue close"
        hint = suggested("queen complete" if mine else command, issue_id, force=not mine)
        raise taken(holder, self._hive.now_ms(), hint=hint)

    def reopen(self, issue_id: str) -> Issue:
        """Opens an issue again that is closed, was completed or is deleted; repeating it changes
        nothing.
        """
        gone = self._hive.issues.tombstone(issue_id) if self.owner is None else None
        issue = gone or self._hive.issues.get(issue_id)
        if not issue.done:
            return issue
        row = self._hive.issues.row(issue_id)
        if self.owner:
            if row is not None and row.done:
                self._call("reopen", values=[issue_id])
            else:  # Completed here only: a newer row is enough.
                self._call("update", "--status=open", values=[issue_id])
            return self._now(issue)

        def opened(row: Row, now_ms: int) -> Row:
            return fitting_status({**row, "status": "open"})

        self._change(issue_id, opened)
        return self._hive.issues.get(issue_id)

    def depend(
        self, issue_id: str, on: Sequence[str], *, kind: str = "blocks", remove: bool = False
    ) -> Issue:
        """Makes an issue wait for others, or no longer. Raises `Conflict` for a circle."""
        for each in (issue_id, *on):
            self._hive.issues.get(each)
        if not remove:
            self._check_no_circle(issue_id, on, kind)
        if self.owner:
            for each in on:
                if remove:
                    self._call("dep", "remove", values=[issue_id, each])
                else:
                    self._call("dep", "add", f"--type={kind}", values=[issue_id, each])
            return self._hive.issues.get(issue_id)
        actor = self._hive.author

        def changed(row: Row, now_ms: int) -> Row:
            if not remove:
                self._check_no_circle(issue_id, on, kind)  # Again: nobody else writes now.
            known = row.get("dependencies")
            kept = [one for one in known if one] if isinstance(known, list) else []
            kept = [one for one in kept if _target(one) not in on]
            now = format_ms(now_ms)
            added = [] if remove else [_dependency(issue_id, one, kind, actor, now) for one in on]
            return {**row, "dependencies": [*kept, *added]}

        self._change(issue_id, changed)
        return self._hive.issues.get(issue_id)

    def _change(self, issue_id: str, change: Callable[[Row, int], Row]) -> None:
        _ = self._hive.author  # A change has an author, also where the row does not name one.
        with self._hive.transaction() as tx:
            row = self._hive.issues.exact_row(issue_id, ended=True)
            if row is None:
                raise self._no_row(issue_id)
            changed = change(row, tx.now_ms)
            if changed != row:
                self._hive.issues.change(tx, issue_id, row, changed)

    def _no_row(self, issue_id: str) -> QueenError:
        issue = self._hive.issues.get_or_none(issue_id)
        if issue is not None and issue.status == UNREADABLE:
            path = self._hive.layout.issues_path
            said = f"the row of {issue_id} in {path} cannot be read"
            return Unreadable(said, hint="queen doctor", path=path)
        said = f"{issue_id} is a bead in a file of its own, not a row of the tracker"
        return InvalidInput(said, hint=suggested("queen bead show", issue_id), issue_id=issue_id)

    def _check_no_circle(self, issue_id: str, on: Sequence[str], kind: str) -> None:
        if kind not in BLOCKING:
            return
        issues = self._hive.issues.all()
        todo, seen = list(on), set(on)
        while todo:
            each = todo.pop()
            if each == issue_id:
                why = f"{', '.join(on)}, which waits for {issue_id}"
                raise Conflict(
                    f"{issue_id} cannot wait for {'itself' if issue_id in on else why}",
                    hint=suggested("queen show", on[0]),
                    issue_id=issue_id,
                )
            needed = issues[each].dependencies if each in issues else []
            for target, which in needed:
                if which in BLOCKING and target not in seen:
                    seen.add(target)
                    todo.append(target)

    def _fresh_id(self, title: str, asked: NewIssue) -> str:
        taken = self._hive.issues.taken_ids()
        if asked.issue_id is None:
            usual = usual_prefix(self._hive.tracker().ids())
            # Random, unlike an import's: two clones may each have an issue of one title.
            seed = f"{title}\0{os.urandom(8).hex()}"
            # Twice as many: other clones make issues, too.
            source = partial(hashed_id, digits=digits_for(2 * len(taken) + 100))
            return fresh_id(asked.prefix or usual, seed, taken, source)
        if asked.issue_id in taken:
            gone = self._hive.issues.tombstone(asked.issue_id)
            raise Conflict(
                f"there {'was' if gone else 'is'} an issue {asked.issue_id} already",
                hint=f"with an id of its own: {suggested('queen issue new', title)}"
                if gone
                else suggested("queen show", asked.issue_id),
                issue_id=asked.issue_id,
            )
        return asked.issue_id

    def _new_by_owner(self, title: str, asked: NewIssue) -> str:
        is_br = self.owner is not None and self.owner.name == "br"
        if is_br and asked.issue_id is not None:
            raise InvalidInput("br gives issues their ids itself", hint="leave --id out")
        values = {
            "type": asked.issue_type,
            "priority": asked.priority,
            "description": asked.description or None,
            "acceptance": None if is_br else asked.acceptance,
            "estimate": asked.estimate,
            "parent": asked.parent,
            "id": asked.issue_id,
            "labels": ",".join(asked.labels) or None,
            "deps": ",".join(asked.depends_on) or None,
        }
        options = [f"--{name}={value}" for name, value in _given(**values).items()]
        made = self._call("create", "--silent", *options, values=[title]).split()
        identifier = made[-1] if made else ""
        if is_br and asked.acceptance is not None:  # It takes this only for an issue that it has.
            self._call("update", f"--acceptance={asked.acceptance}", values=[identifier])
        return identifier

    def _now(self, issue: Issue) -> Issue:
        """Returns an issue as its program has it after a call."""
        return self._hive.issues.get_or_none(issue.id) or issue

    def _call(self, *words: str, values: Sequence[str] | None = None) -> str:
        assert self.owner is not None
        return self.owner.change(*words, values=values, actor=self._hive.author)


_OPTION = {
    "issue_type": "type",
    "acceptance_criteria": "acceptance",
    "estimated_minutes": "estimate",
    "defer_until": "defer",
}
"""The options of `bd` and `br` whose names differ from the fields'."""


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _checked_title(title: str) -> str:
    if not title.strip():
        raise InvalidInput("an issue needs a title", hint="queen issue new 'Fix the login form'")
    utf8(title)  # Else one line of it would lose what is no letter.
    return one_line(title).strip()


def _checked_time(text: str) -> str:
    """Returns a time as rows hold it; a date is its first moment. Raises `InvalidInput`."""
    return format_ms(parse_ms(f"{text}T00:00:00Z" if len(text) == len("2026-01-31") else text))


def _check_status(status: object, owner: Owner | None) -> None:
    """Raises `InvalidInput`; which others there are, the program that owns the issues knows."""
    if status not in _STATUSES and (owner is None or status in DONE):
        raise InvalidInput(
            f"{status!r} is not a status to set",
            hint=f"one of: {', '.join(_STATUSES)}; or queen issue close, reopen",
        )


def _check_priority(priority: object) -> None:
    if not isinstance(priority, int) or not 0 <= priority <= 4:
        raise InvalidInput(
            f"{priority!r} is not a priority", hint="0 (most urgent) to 4, as in --priority 1"
        )


def _dependency(issue_id: str, target: str, kind: str, actor: str, now: str) -> dict[str, str]:
    return {
        "issue_id": issue_id,
        "depends_on_id": target,
        "type": kind,
        "created_at": now,
        "created_by": actor,
    }


def _target(dependency: object) -> object:
    if isinstance(dependency, dict):
        return dependency.get("depends_on_id") or dependency.get("id")
    return dependency
