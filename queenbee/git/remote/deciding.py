"""Which of the grants that wait for the remote it may confirm.

Whatever the remote has was taken in before. A grant that something from there stands against ends
by a line of its own; every other one gets a line with its token, which goes out with the push and
is nowhere before that. So a line with a token exists only if the remote has it. ADR 0029.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from queenbee.core import leases
from queenbee.core.fold import following
from queenbee.core.records import Assignment, Reservation
from queenbee.core.standing import superseded_assignments
from queenbee.services.leases.live import overlaps
from queenbee.store import codec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from queenbee.git.remote.sync_state import Notes
    from queenbee.services.hive import Services

    Grant = Assignment | Reservation
    Named = tuple[str, str]
    """The kind and the id of a grant."""

ASSIGNMENTS, RESERVATIONS = "assignments", "reservations"


@dataclass(slots=True)
class Decisions:
    """The lines that confirm grants, by kind, and the requests that they confirm."""

    lines: dict[str, list[bytes]] = field(default_factory=dict)
    confirmed: list[str] = field(default_factory=list)
    refused: int = 0


def decide(hive: Services, notes: Notes, token: int) -> Decisions:
    """Returns what the push with this number confirms; ends what it may not confirm."""
    decisions = Decisions()
    pending: dict[str, Sequence[Named]] = {**notes.pending()}
    pending |= _left_behind(hive, pending, notes.clone())
    ours = {identifier for named in pending.values() for _, identifier in named}
    given: set[str] = set()
    for name, named in pending.items():
        grants = [(kind, found(hive, kind, identifier)) for kind, identifier in named]
        alive = [(kind, grant) for kind, grant in grants if grant and is_live(grant, hive.now_ms())]
        lost = {
            grant.id: against[0].id
            for kind, grant in alive
            if (against := standing_against(hive, kind, grant, ours, given, notes.clone()))
        }
        if lost or len(alive) < len(grants):
            # All of a request or nothing; a lease that was to be extended stays as it was.
            withdraw(hive, [(kind, grant.id) for kind, grant in alive if not grant.token], lost)
            notes.remove_pending(name)
            decisions.refused += 1
            continue
        for kind, grant in alive:
            fields = {**grant.fields, "rev": following(grant.rev), "unconfirmed": False}
            fields |= {"token": token, "clone": notes.clone()}
            decisions.lines.setdefault(kind, []).append(codec.encode(fields))
        for kind, lines in taking_over(hive, [grant for _, grant in alive]).items():
            decisions.lines.setdefault(kind, []).extend(lines)
        given.update(grant.id for _, grant in alive)
        decisions.confirmed.append(name)
    return decisions


def taking_over(hive: Services, granted: Sequence[Grant]) -> dict[str, list[bytes]]:
    """Returns the lines that end what the grants of one request take over, without writing them:
    like a token, they exist only in the commit that confirms the request.
    """
    taking = [each for each in granted if isinstance(each, Reservation) and each.takes_over]
    if not taking:
        return {}
    tx = hive.transaction()
    tx.now_ms = hive.now_ms()
    hive.reservations.stage_takeover(tx, taking)
    return tx.lines


def _left_behind(
    hive: Services, pending: Mapping[str, Sequence[Named]], clone: str
) -> dict[str, Sequence[Named]]:
    """Returns the grants of this clone that wait for no confirmation, as requests.

    Whoever made them was killed before the request was noted, or is just about to note it. What
    one droid was granted at one time is one request.
    """
    noted = {named for each in pending.values() for named in each}
    left: dict[str, list[Named]] = {}
    for kind, view in ((ASSIGNMENTS, Assignment), (RESERVATIONS, Reservation)):
        for row in hive.state(kind).select({"status": "active"}):
            grant: Grant = view(row)
            if not grant.unconfirmed or grant.clone != clone or (kind, grant.id) in noted:
                continue
            if is_live(grant, hive.now_ms()):
                left.setdefault(f"{grant.droid} {grant.created_at}", []).append((kind, grant.id))
    return {**left}


def found(hive: Services, kind: str, identifier: str) -> Grant | None:
    """Returns a grant as it is recorded now, or None."""
    fields = hive.state(kind).exact(identifier)
    if fields is None:
        return None
    return Assignment(fields) if kind == ASSIGNMENTS else Reservation(fields)


def is_live(grant: Grant, now_ms: int) -> bool:
    """Returns whether a grant has not ended by the clock of its own machine."""
    if isinstance(grant, Reservation):
        grant = leases.as_of(grant.fields, now_ms)
    return grant.status == "active" and not grant.deleted


def standing_against(
    hive: Services,
    kind: str,
    grant: Grant,
    ours: Collection[str],
    given: Collection[str],
    clone: str,
) -> list[Grant]:
    """Returns the grants of other droids that keep this one from being confirmed.

    Age decides nothing here: what was recorded at the remote first stays. `ours` are the ids of
    the grants that wait for the same push; what lost to one of them still stands. So do those of
    them that were `given` already, also if they lost to what they take over.
    """
    if isinstance(grant, Assignment):
        return list(_assignments_against(hive, grant, ours))
    return list(_leases_against(hive, grant, ours, given, clone))


def _assignments_against(
    hive: Services, grant: Assignment, ours: Collection[str]
) -> Iterator[Assignment]:
    rows = hive.state(ASSIGNMENTS).select({"issue_id": grant.issue_id})
    every = [Assignment(row) for row in rows]
    lost = superseded_assignments(every)
    for each in every:
        standing = each.status == "active" and not each.deleted
        if standing and each.droid != grant.droid and lost.get(each.id, grant.id) in ours:
            yield each


def _leases_against(
    hive: Services, grant: Reservation, ours: Collection[str], given: Collection[str], clone: str
) -> Iterator[Reservation]:
    state, now_ms = hive.state(RESERVATIONS), hive.now_ms()
    skew_ms = int(hive.layout.settings.sync_clock_skew_s * 1000)
    fold_case = hive.reservations.fold_case
    lost = hive.reservations.verdicts()
    for row in state.select({"status": "active"}):
        each = Reservation(row)
        if each.id == grant.id or not leases.stand_against(each, grant):
            continue
        if each.id in grant.takes_over:
            continue
        # Another machine's clock may be behind ours: its confirmed lease may go on there.
        margin_ms = skew_ms if each.token and each.clone != clone else 0
        is_standing = each.id in given or lost.get(each.id, grant.id) in ours
        if not is_live(each, now_ms - margin_ms) or not is_standing:
            continue
        if overlaps(each, grant.pattern, fold_case=fold_case):
            yield each


def withdraw(hive: Services, named: Sequence[Named], lost: dict[str, str]) -> None:
    """Ends grants that were not confirmed, as if they had never been; `lost` names to what."""
    with hive.transaction() as tx:
        # Verdicts on what met them are no longer valid, as if lines had arrived.
        hive.engine.memory.count_arrival(RESERVATIONS)
        for kind, identifier in named:
            grant = found(hive, kind, identifier)
            if grant is None or grant.deleted or grant.status != "active":
                continue
            ended = "released_at" if kind == RESERVATIONS else "updated_at"
            changes = {"status": "released", ended: tx.now, "lost_to": lost.get(identifier)}
            # Deleted: it never counted, so nothing that it met in a merge lost to it.
            tx.update(kind, identifier, {**changes, "deleted": True})
