"""Issues in a database of another program: its rows are asked for, and it is told of claims.

`bd` keeps issues in Dolt. What it says is kept in a copy until the database changes; `br` has them
in SQLite, and in its file. A claim counts once the program has it too, and does not remain
otherwise. ADR 0048.
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.beads import CATEGORY
from queenbee.core.records import Assignment
from queenbee.core.text import mentioned, suggested
from queenbee.errors import ExternalFailure, QueenError, Taken
from queenbee.store.codec import decode, encode
from queenbee.store.creating import make_state_dir
from queenbee.store.lock import LongLock
from queenbee.store.tracker.issue_owner import owner_in
from queenbee.store.tracker.owned_copy import FlushedFile, Origin, OwnedCopy
from queenbee.workflows.owning.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.beads import Issue
    from queenbee.services.hive import Services

_LOCK_S = 60.0
"""How long others may take to ask; who waits then takes what they got."""
_PAUSE_S = 10.0
"""After a failure, nobody is asked for so long: a question may take half a minute to fail."""
_SLOW_MS = 60_000
"""So long after it did not answer in time, no command of this machine waits for it again."""
_ISSUE = b'{"_type":"issue",'
_STATUS = re.compile(rb'[{,]\s*"status"\s*:\s*"([^"\\]*)"')
_BUILT_IN = frozenset(
    {b"open", b"in_progress", b"blocked", b"deferred", b"closed", b"pinned", b"hooked"}
)


class OwnedRows:
    """What an open hive knows of issues that are in another program's database."""

    def __init__(self, hive: Services, owner: Owner, copy: OwnedCopy) -> None:
        self._hive = hive
        self._owner = owner
        self._copy = copy
        self._failure: QueenError | None = None
        self._again_s = 0.0

    @classmethod
    def of(cls, hive: Services) -> OwnedRows | None:
        """Returns them; None if the file is all that there is of them here."""
        owner = Owner.of(hive)
        if owner is None:
            return None
        if owner_in(hive.layout.beads_dir) == "dolt":
            return cls(hive, owner, OwnedCopy(hive.layout))
        file = FlushedFile(hive.layout)
        return cls(hive, owner, file) if owner.name == "br" and file.mark() else None

    def refresh(self) -> None:
        """Asks the program for its rows, if the database has changed since. What goes wrong is in
        `origin`: the rows that were known before stay.
        """
        if self._copy.is_current(self._hive.now_ms()):
            self._failure = None
        elif self._failure is None or time.monotonic() >= self._again_s:
            try:
                self._ask()
                self._failure = None
            except QueenError as error:
                self._failure, self._again_s = error, time.monotonic() + _PAUSE_S

    def doubt(self) -> None:
        """Has the next question ask the program, even if its database seems to be the same."""
        self._copy.doubt()
        self._again_s = 0.0

    def check(self) -> None:
        """Raises `ExternalFailure` if the program cannot be asked: nobody takes an issue by rows
        that may be old.
        """
        self.refresh()
        if self._failure is not None:
            name = self._owner.name
            raise ExternalFailure(
                f"the issues are {name}'s, which cannot be asked: {self._failure.message}",
                hint=self._failure.hint or "queen doctor",
            ) from self._failure

    def _ask(self) -> None:
        if not self._copy.is_here:
            raise ExternalFailure("its database is not on this machine", hint="bd bootstrap")
        now_ms = self._hive.now_ms()
        if self._copy.gave_up(now_ms, recently_ms=_SLOW_MS):
            again = f"{self._owner.name} list"
            raise ExternalFailure("it did not answer in time a moment ago", hint=again)
        make_state_dir(self._hive.layout)
        lock = f"{self._hive.layout.state_dir}/owned-issues.lock"
        with LongLock(lock, holder=self._owner.name, timeout_s=_LOCK_S):
            if self._copy.is_current(self._hive.now_ms()):
                return  # Somebody else has asked meanwhile.
            mark = self._copy.mark()
            try:
                rows = _rows_in(self._owner.rows())
                own = {*_STATUS.findall(rows)} - _BUILT_IN
                rows = _counted(rows, self._owner.done_statuses()) if own else rows
            except ExternalFailure as error:
                if error.details.get("timed_out"):
                    self._copy.give_up(self._hive.now_ms())
                raise
            self._copy.put(rows, mark, self._hive.now_ms())

    @property
    def origin(self) -> Origin:
        """Where the rows are from, and why they may be old. Raises `ExternalFailure` if nothing is
        known.
        """
        if self._failure is not None and not os.path.exists(self._hive.rows_path()):
            self.check()
        failure = self._failure
        why = failure.message if failure is not None else None
        hint = failure.hint if failure is not None else None
        return Origin(self._owner.name, self._copy.as_of_ms, why, hint)

    def granted(self, lines: Sequence[bytes]) -> None:
        """Tells the program of claims that the actor has made or given back. A claim that it
        refuses is taken back here. Raises `Taken` and `ExternalFailure`.
        """
        last = {each.issue_id: each for line in lines if (each := Assignment(decode(line)))}
        actor = self._hive.actor_or_none
        for each in last.values():
            row = self._hive.issues.row(each.issue_id)
            if row is None or each.deleted or actor not in (each.droid, each.assigned_by):
                continue
            if each.status == "active" and each.rev == 1:
                self._claim(each, row)
            elif each.status == "released" and not row.done and row.assignee == each.droid:
                self._tell("--status=open", "--assignee=", issue_id=row.id, droid=each.droid)

    def _tell(self, *words: str, issue_id: str, droid: str) -> None:
        try:
            self._owner.call("update", *words, values=[issue_id], actor=droid)
        finally:  # What it says now counts, whatever it answered.
            self.doubt()

    def _claim(self, given: Assignment, row: Issue) -> None:
        """Has the program give an issue to a droid, as only one can have it there, too."""
        is_others = row.status == "in_progress" and row.assignee not in (None, "", given.droid)
        is_handed = bool(given.previous_droid) or given.droid != self._hive.actor
        # What somebody hands over, or takes although it waits, is no claim for the program.
        is_moved = is_handed or is_others or bool(self._hive.issues.blockers(row))
        assigned = (f"--assignee={given.droid}", "--status=in_progress")
        failure: ExternalFailure | None = None
        try:
            words = (*assigned, *self._owner.anyway) if is_moved else ("--claim",)
            self._tell(*words, issue_id=row.id, droid=given.droid)
        except ExternalFailure as error:
            failure = error
        now = self._hive.issues.row(row.id)
        if failure is None and now is not None and now.assignee == given.droid:
            return
        self._undo(given)
        if now is not None and (now.done or now.assignee not in (None, "", given.droid)):
            who = "is closed" if now.done else f"is {mentioned(str(now.assignee))}'s"
            raise Taken(
                f"{row.id} {who} in {self._owner.name}",
                hint=f"queen next, or: {suggested('queen show', row.id)}",
                holder=now.assignee,
                issue_id=row.id,
            )
        said = failure or ExternalFailure(f"{self._owner.name} does not show the claim of {row.id}")
        raise ExternalFailure(
            f"{row.id} was not claimed: {said.message}", hint=said.hint or "queen doctor"
        ) from failure

    def _undo(self, given: Assignment) -> None:
        """Ends a grant as if it had never been, with the leases made for it."""
        hive, actor = self._hive, self._hive.actor
        found = hive.reservations.find(droid=given.droid)
        leases = [each.id for each in found if each.issue_id == given.issue_id]
        with hive.reservations.transaction() as tx:
            why = f"{self._owner.name} did not give {given.issue_id}"
            hive.reservations.stage_release(tx, leases, by=actor, reason=why)
            tx.update("assignments", given.id, {
                "status": "released", "updated_at": tx.now, "reason": why, "deleted": True,
            })  # fmt: skip


def _rows_in(exported: bytes) -> bytes:
    """Returns the lines with issues, without memories and headers. Raises `ExternalFailure`."""
    lines = exported.split(b"\n")
    if lines.pop() != b"":
        raise ExternalFailure("bd export ended in the middle of a line", hint="bd export")
    kept = []
    for number, line in enumerate(lines, start=1):
        try:
            row = None if line.startswith(_ISSUE) else json.loads(line or b"{}")
        except ValueError as error:
            raise ExternalFailure(
                f"bd export: line {number} is no JSON", hint="bd export"
            ) from error
        if row is None or (isinstance(row, dict) and row.get("_type", "issue") == "issue"):
            kept.append(line)
    return b"".join(line + b"\n" for line in kept if line and line != b"{}")


def _counted(rows: bytes, done: set[str]) -> bytes:
    """Returns the lines, of which those that have one of these statuses say that it means done."""
    lines = rows.splitlines(keepends=True) if done else []
    for number, line in enumerate(lines):
        if not done.isdisjoint(each.decode(errors="replace") for each in _STATUS.findall(line)):
            with suppress(ValueError):
                row = json.loads(line)
                category = {CATEGORY: "done"} if row.get("status") in done else {}
                lines[number] = encode({**row, **category}) + b"\n"
    return b"".join(lines) or rows
