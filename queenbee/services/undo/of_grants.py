"""Taking back what a step did to claims and leases."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.leases import as_of, is_live
from queenbee.core.readiness import WORKABLE
from queenbee.core.records import Assignment, Reservation
from queenbee.core.reviews.review import REVIEW
from queenbee.core.text import mentioned, one_line, shell_word, suggested
from queenbee.core.timestamps import format_ms
from queenbee.errors import Conflict
from queenbee.services.undo.reversal import Reversal, nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from queenbee.services.hive import Services
    from queenbee.services.undo.reversal import Action
    from queenbee.services.undo.step import Step
    from queenbee.services.writing.transaction import Transaction

ASSIGNMENTS, RESERVATIONS = "assignments", "reservations"
WHY = "taken back: queen undo"
_SHORTEST_MS = 1_000
"""Of a shorter rest of a lease, nobody has anything."""
_TITLE_CHARS = 60
_NOTES = ("note", "noted_at", "worktree")


class _Turn:
    """What a step did to one issue: who had it before, and who had it after that."""

    def __init__(self) -> None:
        self.had: Assignment | None = None
        self.has: Assignment | None = None
        self.landed: str | None = None
        self.completed = False


def of_assignments(hive: Services, step: Step) -> tuple[list[Reversal], list[Reservation]]:
    """Returns what follows for the claims of a step, and the leases that end with them. Raises
    `Conflict`.
    """
    found: list[Reversal] = []
    freed: list[Reservation] = []
    for issue_id, turn in _turns(hive, step).items():
        _refuse_later(hive, issue_id, turn)
        if turn.had is not None and turn.has is None:
            _refuse_unclaimable(hive, step, turn.had, completed=turn.completed)
        had, has = turn.had, turn.has
        if had is not None and has is not None and had.id == has.id:
            found += _note(had, has)
            continue
        back = partial(hive.assignments.stage_return, has=has, had=had, why=WHY)
        if has is not None:
            held = hive.reservations.find(droid=has.droid)
            freed += [lease for lease in held if lease.issue_id == issue_id]
        if had is not None:
            found.append(Reversal("claim", ASSIGNMENTS, issue_id, had.droid, stage=back))
        elif has is not None:
            found.append(Reversal("release", ASSIGNMENTS, issue_id, has.droid, stage=back))
        if turn.completed and issue_id not in step.lines.get("issues", {}):
            found += _reopened(hive, issue_id)
    return found, freed


def _turns(hive: Services, step: Step) -> dict[str, _Turn]:
    state, turns = hive.state(ASSIGNMENTS), dict[str, _Turn]()
    for identifier, (first, last, _) in step.lines.get(ASSIGNMENTS, {}).items():
        was, then = state.before(identifier, first), state.before(identifier, last + 1)
        if then is None:
            continue
        before, after = Assignment(was or {"status": ""}), Assignment(then)
        turn = turns.setdefault(after.issue_id, _Turn())
        if before.status == "active":
            turn.had = before
        if after.status == "active":
            turn.has = after
        turn.completed |= after.status == "completed"
        turn.landed = turn.landed or after.landed
    return turns


def _refuse_later(hive: Services, issue_id: str, turn: _Turn) -> None:
    """Raises `Conflict` if the issue went on after the step."""
    if turn.landed is not None:
        raise Conflict(
            f"{issue_id} has landed, as {turn.landed[:10]}",
            hint=_reverting(hive, issue_id, turn.landed[:10]),
            issue_id=issue_id,
        )
    current, show = hive.assignments.active(issue_id), suggested("queen show", issue_id)
    if (current and current.id) != (turn.has and turn.has.id):
        now = f"{current.droid} has it now" if current is not None else "nobody has it any more"
        raise Conflict(f"{issue_id} has changed hands since: {now}", hint=show, issue_id=issue_id)
    if current and turn.has and current.get(REVIEW) != turn.has.get(REVIEW):
        raise Conflict(
            f"{issue_id} is proposed by a pull request since", hint=show, issue_id=issue_id
        )


def _refuse_unclaimable(hive: Services, step: Step, had: Assignment, *, completed: bool) -> None:
    """Raises `Conflict` if somebody had the issue after the step, or has ended it or put it on hold
    after the step `completed` it; else what a claim raises.
    """
    issue_id = had.issue_id
    given = hive.assignments.find(issue_id=issue_id, status="all")
    since = [each for each in given if each.created_at > had.created_at]
    if later := [each for each in since if each.id not in step.lines[ASSIGNMENTS]]:
        last = later[-1]
        why = f"has changed hands since: {last.droid} had it ({last.status})"
    elif not completed:
        hive.issues.check_claimable(issue_id, had.droid)
        return
    else:
        row = hive.issues.row(issue_id)
        if row is None or row.status in WORKABLE or issue_id in step.lines.get("issues", {}):
            return
        why = f"has changed since: it is {mentioned(row.status)}"
    show = suggested("queen show", issue_id)
    raise Conflict(f"{issue_id} {why}", hint=show, issue_id=issue_id)


def _reverting(hive: Services, issue_id: str, commit: str) -> str:
    """Returns the command that takes back what landed, merged or not, in any folder of a worktree.
    The records of the commit stay: they have changed since, so `git revert` meets a conflict.
    """
    issue, layout = hive.issues.get_or_none(issue_id), hive.layout
    title = one_line(issue.title, _TITLE_CHARS) if issue is not None else issue_id
    apply = f"{suggested('git -C', layout.tree)} apply -3"
    steps = [
        f"git diff-tree -p --binary {commit} {commit}~ -- ':/!.beads' | {apply}",
        f"git commit -m {shell_word(f'Revert: {title}')}",
        *(["queen land"] if layout.worktree is not None else []),
        suggested("queen issue reopen", issue_id),
    ]
    return " && ".join(steps)


def _note(had: Assignment, has: Assignment) -> Iterator[Reversal]:
    before = {name: had.get(name) or "" for name in _NOTES if had.get(name) != has.get(name)}
    if before:

        def restored(tx: Transaction) -> None:
            tx.update(ASSIGNMENTS, had.id, before)

        detail = ", ".join(before)
        yield Reversal("restore", ASSIGNMENTS, had.issue_id, had.droid, detail, restored)


def _reopened(hive: Services, issue_id: str) -> Iterator[Reversal]:
    """Returns how an issue is open again whose row the completion did not change."""
    if hive.issues.row(issue_id) is not None:

        def opened(tx: Transaction) -> None:
            row = hive.issues.exact_row(issue_id)
            assert row is not None
            hive.issues.change(tx, issue_id, row, row)  # A newer row is enough.

        yield Reversal("restore", "issues", issue_id, detail="status", stage=opened)
    elif hive.issues.get_or_none(issue_id) is not None:
        raise Conflict(
            f"{issue_id} is a bead in a file of its own, which says that it is completed",
            hint=suggested("queen bead show", issue_id),
            issue_id=issue_id,
        )


def of_reservations(hive: Services, step: Step, freed: Collection[Reservation]) -> list[Reversal]:
    """Returns what follows for the leases of a step, and for those that end with its claims."""
    state, now_ms = hive.state(RESERVATIONS), hive.now_ms()
    ended = {lease.id: lease for lease in freed}
    again: list[Reservation] = []
    stays: list[Reversal] = []
    for identifier, (first, last, _) in step.lines.get(RESERVATIONS, {}).items():
        then = state.before(identifier, last + 1) or {}
        was, lease = state.before(identifier, first), as_of(state.get(identifier) or {}, now_ms)
        if was is None:
            if is_live(lease) and then.get("status") == "active":
                ended[identifier] = lease
        elif then.get("status") != "active" and was.get("status") == "active":
            again.append(Reservation(was))
        elif lease.status == "active":
            stays.append(_reversal("stays", lease, f"reserved until {lease.expires_at}"))
    patterns = {each.pattern for each in ended.values()}
    return [
        *(_reversal("release", each, stage=partial(_end, hive, each)) for each in ended.values()),
        *(_again(hive, each, now_ms, free=each.pattern not in patterns) for each in again),
        *stays,
    ]


def _end(hive: Services, lease: Reservation, tx: Transaction) -> None:
    hive.reservations.stage_release(tx, [lease.id], by=hive.actor, reason=WHY)


def _again(hive: Services, lease: Reservation, now_ms: int, *, free: bool) -> Reversal:
    """Returns how a lease that the step ended begins again; one of another droid does not."""
    if lease.droid != hive.actor_or_none or not free:
        detail = f"released; {lease.droid} can reserve it again"
        return _reversal("stays", lease, detail)
    if lease.expires_ms <= now_ms + _SHORTEST_MS:
        return _reversal("stays", lease, "released; it would have expired by now")

    def granted(tx: Transaction) -> None:
        hive.reservations.stage_again(tx, lease)

    return _reversal("reserve", lease, format_ms(lease.expires_ms), granted)


def _reversal(
    action: Action,
    lease: Reservation,
    detail: str = "",
    stage: Callable[[Transaction], None] = nothing,
) -> Reversal:
    return Reversal(action, RESERVATIONS, lease.pattern, lease.droid, detail, stage)
