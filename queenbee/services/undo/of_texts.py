"""Taking back what a step did to issues and messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.beads import Issue
from queenbee.core.kinds import ISSUES
from queenbee.core.names import EVERYONE
from queenbee.core.records import ACKED, READ, Message
from queenbee.core.row_edits import (
    OF_STATUS,
    STAMP,
    as_row,
    fitting_status,
    tombstone,
    with_changes,
)
from queenbee.core.text import quotation, some, suggested
from queenbee.errors import Conflict
from queenbee.services.undo.of_grants import WHY
from queenbee.services.undo.reversal import Reversal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from queenbee.core.fold import Fields
    from queenbee.services.hive import Services
    from queenbee.services.undo.reversal import Action
    from queenbee.services.undo.step import Step
    from queenbee.services.writing.transaction import Transaction

MESSAGES = "messages"
_VALUE_CHARS = 60


def of_issues(hive: Services, step: Step, refuse_end: Callable[[str], None]) -> Iterator[Reversal]:
    """Yields what follows for the issues of a step: each field that it changed is as it was, and an
    issue that it added is deleted. Calls `refuse_end` with each issue that ends by that. Raises
    `Conflict`.
    """
    written = step.lines.get(ISSUES, {})
    if not written:
        return
    state, rows = hive.state(ISSUES), hive.issues.rows()
    _refuse_used(hive, step, [each for each, (_, _, names) in written.items() if "id" in names])
    for issue_id, (first, last, names) in written.items():
        row = rows.get(issue_id, {})
        was, then = state.before(issue_id, first), state.before(issue_id, last + 1)
        before, after = as_row(was or {}), as_row(then or {})
        changed = [each for each in names if each != STAMP and row.get(each) != after.get(each)]
        if changed or not row:
            raise Conflict(
                f"{issue_id} has changed since: {some(changed, 5) or 'it is gone'}",
                hint=suggested("queen log", issue=issue_id),
                issue_id=issue_id,
            )
        if was is None:
            refuse_end(issue_id)
            gone = tombstone(row, hive.now_ms(), hive.author, WHY)
            yield Reversal("delete", ISSUES, issue_id, stage=_put(hive, issue_id, row, gone))
            continue
        again = fitting_status(with_changes(row, {each: before.get(each) for each in names}))
        if Issue(again).done and not Issue(row).done:
            refuse_end(issue_id)
        texts = [each for each in names if each not in {STAMP, *OF_STATUS}]
        detail = ", ".join(_said(each, again.get(each)) for each in texts)
        stage = _put(hive, issue_id, row, again)
        yield Reversal("restore", ISSUES, issue_id, detail=detail, stage=stage)


def _said(name: str, value: object) -> str:
    """Returns a field with what it is now, as far as that is a text or a number, or several."""
    several = value if isinstance(value, list) else [value]
    if value in (None, "", []):
        return f"no {name}"
    if not all(isinstance(each, str | int | float) for each in several):
        return name
    return f"{name} {quotation(', '.join(map(str, several)), _VALUE_CHARS)}"


def _put(
    hive: Services, issue_id: str, row: Fields, changed: Fields
) -> Callable[[Transaction], None]:
    def put(tx: Transaction) -> None:
        hive.issues.change(tx, issue_id, row, changed)

    return put


def _refuse_used(hive: Services, step: Step, made: Sequence[str]) -> None:
    """Raises `Conflict` if somebody works on an issue that the step added, or one refers to it."""
    if not made:
        return
    own = {*step.lines.get("assignments", {})}
    for issue_id in made:
        current = hive.assignments.active(issue_id)
        if current is not None and current.id not in own:
            raise Conflict(
                f"{current.droid} has {issue_id} by now",
                hint=suggested("queen show", issue_id),
                issue_id=issue_id,
            )
    for issue in hive.issues.all().values():
        needs = [target for target, _ in issue.dependencies if target in made]
        if needs and issue.id not in made:
            raise Conflict(
                f"{issue.id} refers to {needs[0]} by now",
                hint=suggested("queen show", issue.id),
                issue_id=issue.id,
            )


def of_messages(hive: Services, step: Step) -> Iterator[Reversal]:
    """Yields what follows for a step of messages alone: what nobody has read is deleted, and what
    it deleted is there again. A message that `queen answer` answered is as unread as before. What a
    step told others of itself stays. Raises `Conflict` for what was read.
    """
    if {*step.lines} != {MESSAGES}:
        return
    state = hive.state(MESSAGES)
    for identifier, (first, _, _) in step.lines.get(MESSAGES, {}).items():
        message, was = Message(state.get(identifier) or {}), state.before(identifier, first)
        if was is None and (message.read or message.readers):
            by = message.readers[0] if message.readers else message.to
            raise Conflict(
                f"{by} has read the message about {message.subject!r}",
                hint=suggested("queen msg thread", message.id),
                id=identifier,
            )
        deletes = was is None and not message.deleted
        if not deletes and not (message.deleted and was is not None and not was.get("deleted")):
            continue
        subject = f"the message to {message.to}"
        stage = _hidden(identifier, hive.author if deletes else "")
        action: Action = "delete" if deletes else "restore"
        yield Reversal(action, MESSAGES, subject, detail=message.subject, stage=stage)
        asked = Message(state.get(message.reply_to or "") or {})
        marks = _marks(asked, message.created_at, given=not deletes)
        if marks:
            subject = f"the question of {asked.from_}"
            detail = "answered" if not deletes else "unread" if "read" in marks else "unanswered"
            stage = _marked(asked.id, marks)
            yield Reversal("set", MESSAGES, subject, detail=detail, stage=stage)


def _marks(asked: Message, at: str, *, given: bool) -> Fields:
    """Returns the marks that an answer at that time gave to one droid's message, given again, or
    taken away.
    """
    if asked.to == EVERYONE:
        return {}
    was, now = ("", at) if given else (at, "")
    names = [each for each in (READ, ACKED) if asked.get(each) == was]
    marks: Fields = dict.fromkeys(names, now)
    return {**marks, "read": given} if READ in names else marks


def _marked(identifier: str, marks: Fields) -> Callable[[Transaction], None]:
    def mark(tx: Transaction) -> None:
        tx.update(MESSAGES, identifier, marks)

    return mark


def _hidden(identifier: str, by: str) -> Callable[[Transaction], None]:
    def hide(tx: Transaction) -> None:
        gone = {"deleted": bool(by), "deleted_at": tx.now if by else "", "deleted_by": by}
        tx.update(MESSAGES, identifier, gone)

    return hide
