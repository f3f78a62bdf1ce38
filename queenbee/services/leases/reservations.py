"""Reservations: readers-writer leases on glob patterns.

Two droids conflict when their patterns overlap and at least one is exclusive. A lease ends at
its TTL, by its owner, or by a takeover that is recorded in it and told to its owner.
"""

from __future__ import annotations

import time

from queenbee.core import leases
from queenbee.core.glob import pattern as globs
from queenbee.core.names import checked_issue_id, several
from queenbee.core.records import Reservation
from queenbee.core.timestamps import format_duration, format_ms, instant_ms
from queenbee.errors import Busy, Held, InvalidInput, NotFound, NotYours
from queenbee.services.leases.granting import KIND, Request, checked_ttl_s, extended, granted
from queenbee.services.leases.holders import Holder, refusal
from queenbee.services.leases.live import LiveLeases, covers, overlaps
from queenbee.services.leases.paths import Place, path_of, pattern_of
from queenbee.store.layout import folds_case
from queenbee.store.watch import wait_for_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queenbee.services.hive import Hive
    from queenbee.services.transaction import Transaction


class PathStatus:
    """What a path is to the actor: `free`, `mine` or `held`, and by which leases."""

    __slots__ = ("leases", "path", "status")

    def __init__(self, path: str, status: str, covering: list[Reservation]) -> None:
        self.path = path
        self.status = status
        self.leases = covering

    def to_dict(self) -> dict[str, object]:
        """Returns the path, its status, and the leases that cover it."""
        return {
            "path": self.path,
            "status": self.status,
            "reservations": [lease.to_dict() for lease in self.leases],
        }


class Reservations:
    """The reservations of a hive."""

    def __init__(self, hive: Hive) -> None:
        self._hive = hive
        self.fold_case = folds_case(hive.layout.common_dir)
        self._leases = LiveLeases(
            fold_case=self.fold_case, cache_path=hive.layout.verdicts_path(KIND)
        )

    def reserve(
        self,
        patterns: Sequence[str],
        *,
        exclusive: bool = True,
        ttl_s: int | None = None,
        issue_id: str | None = None,
        reason: str | None = None,
        wait_s: float = 0,
        force: bool = False,
        session: str | None = None,
    ) -> list[Reservation]:
        """Leases all of the patterns to the actor, or none; returns the leases in their order.

        Reserving a pattern again extends its lease and never shortens it. Raises `Held`, which
        lists every holder; with `wait_s`, `Busy` when that time runs out. `force` (which needs a
        reason) ends what stands in the way, records who and why in it, and tells its holders.
        A new lease that is taken for an agent's `session` says so, and ends with it.
        """
        droid = self._hive.actor
        patterns = several(patterns)
        ttl_s = checked_ttl_s(self._hive.layout.settings.ttl_s if ttl_s is None else ttl_s)
        if force and not (reason and reason.strip()):
            raise InvalidInput(
                "a takeover needs a reason: its holder will read it", hint="add --reason TEXT"
            )
        if issue_id is not None:
            checked_issue_id(issue_id)
        wanted: dict[str, str] = {}
        for place, text in zip(self.places(patterns), patterns, strict=True):
            wanted.setdefault(place.pattern, text)
        if not wanted:
            raise InvalidInput("no pattern is named", hint="queen reserve 'src/**'")
        origin = {"session": session, "worktree": self._hive.layout.worktree} if session else {}
        request = Request(droid, wanted, exclusive, ttl_s, issue_id, reason, force, origin)
        deadline = time.monotonic() + wait_s
        while True:
            before = self._hive.state(KIND).ledger.stamp()
            try:
                return self._grant(request)
            except Held as held:
                if wait_s <= 0:
                    raise
                self._wait(held, before, deadline, wait_s)

    def places(self, patterns: Iterable[str]) -> list[Place]:
        """Returns what was typed as patterns from the root, with what should be said about them.

        Raises `BadPattern`.
        """
        tree, cwd = self._hive.layout.tree, self._hive.cwd
        return [pattern_of(text, tree=tree, cwd=cwd) for text in patterns]

    def release(
        self, patterns: Sequence[str] = (), *, ids: Sequence[str] = (), everything: bool = False
    ) -> list[Reservation]:
        """Ends leases of the actor: by pattern, by id, or all; also those that lost to older
        ones. All or none.

        Raises `NotFound` for what nobody holds, and `NotYours` for what another droid holds.
        """
        droid = self._hive.actor
        with self._hive.transaction() as tx:
            lost = [loser for _, loser in self.conflicts() if loser.droid == droid]
            mine = self._select(tx.now_ms, droid, patterns, ids, everything, lost)
            return self._end(tx, [lease.id for lease in mine], {})

    def renew(
        self,
        patterns: Sequence[str] = (),
        *,
        ids: Sequence[str] = (),
        everything: bool = False,
        ttl_s: int | None = None,
    ) -> list[Reservation]:
        """Extends leases of the actor to `ttl_s` from now; never shortens one. All or none."""
        droid = self._hive.actor
        ttl_s = checked_ttl_s(self._hive.layout.settings.ttl_s if ttl_s is None else ttl_s)
        with self._hive.transaction() as tx:
            mine = self._select(tx.now_ms, droid, patterns, ids, everything)
            return [extended(tx, lease, ttl_s, {}) for lease in mine]

    def stale(self) -> list[Reservation]:
        """Returns the live leases whose droid has written nothing for half of their TTL, so that
        a person can decide what becomes of them; each with `last_seen_at`, as far as is known.
        """
        from queenbee.services.activity import last_seen_ms

        now_ms, seen_ms = self._hive.now_ms(), last_seen_ms(self._hive)
        stale = []
        for lease in self.find():
            begun_ms = instant_ms(lease.fields.get("updated_at")) or lease.created_ms
            last_ms = max(begun_ms, seen_ms.get(lease.droid, 0))
            if now_ms - last_ms >= (lease.expires_ms - begun_ms) / 2:
                stale.append(Reservation({**lease.fields, "last_seen_at": format_ms(last_ms)}))
        return stale

    def find(
        self, *, droid: str | None = None, path: str | None = None, ended: bool = False
    ) -> list[Reservation]:
        """Returns live leases, oldest first; with `ended`, all that ever were.

        `path` keeps those that cover this literal path.
        """
        state, now_ms = self._hive.state(KIND), self._hive.now_ms()
        found = self._leases.everything(state, now_ms, ended=ended)
        literal = self._literal(path) if path is not None else None
        return [
            lease
            for lease in found
            if not lease.deleted
            and (droid is None or lease.droid == droid)
            and (literal is None or covers(lease, literal, fold_case=self.fold_case))
        ]

    def check(self, paths: Sequence[str]) -> list[PathStatus]:
        """Returns for each literal path whether it is free, the actor's, or held by another."""
        state, now_ms = self._hive.state(KIND), self._hive.now_ms()
        actor = self._hive.actor_or_none
        statuses = []
        for path in (self._literal(each) for each in several(paths)):
            covering = self._leases.covering(state, path, now_ms)
            others = [lease for lease in covering if lease.droid != actor]
            status = "held" if others else "mine" if covering else "free"
            statuses.append(PathStatus(path, status, others or covering))
        return statuses

    def overlapping(self, pattern: str) -> list[Reservation]:
        """Returns the live leases that share a path with a pattern from the root."""
        state = self._hive.state(KIND)
        found = self._leases.overlapping(state, pattern, self._hive.now_ms())
        return [lease for lease, _ in found]

    def conflicts(self) -> list[tuple[Reservation, Reservation]]:
        """Returns (the older grant, the superseded one) for each that a merge brought together
        and that has not ended by itself yet.
        """
        state, now_ms = self._hive.state(KIND), self._hive.now_ms()
        pairs: list[tuple[Reservation, Reservation]] = []
        for loser_id, winner_id in self._leases.verdicts(state).items():
            loser = leases.as_of(state.get(loser_id) or {}, now_ms)
            if leases.is_live(loser):
                winner = leases.as_of(state.get(winner_id) or {}, now_ms)
                marked = Reservation({**loser.fields, "superseded_by": winner_id})
                pairs.append((winner, marked))
        return sorted(pairs, key=lambda pair: pair[1].age)

    def overlap(self, left: str, right: str) -> str | None:
        """Returns a path that both patterns cover, or None. Raises `BadPattern`."""
        one, other = self.places([left, right])
        return globs.overlap(one.pattern, other.pattern, fold_case=self.fold_case)

    def _grant(self, request: Request) -> list[Reservation]:
        with self._hive.transaction() as tx:
            state = self._hive.state(KIND)
            met = {
                pattern: self._leases.overlapping(state, pattern, tx.now_ms)
                for pattern in request.patterns
            }
            holders = [
                Holder(lease, pattern, witness)
                for pattern, leased in met.items()
                for lease, witness in leased
                if leases.stand_against(lease, droid=request.droid, exclusive=request.exclusive)
            ]
            if holders and not request.force:
                raise refusal(holders, tx.now_ms, request.patterns)
            if holders:
                self._take_over(tx, request, holders)
            if state.greatest("released_at") > tx.now:
                tx.not_before(self._ends_ms(met))
            return [
                granted(tx, request, pattern, [lease for lease, _ in leased])
                for pattern, leased in met.items()
            ]

    def stage_release(
        self, tx: Transaction, lease_ids: Sequence[str], *, by: str, reason: str
    ) -> list[str]:
        """Ends leases in a transaction, recording who and why; returns their patterns."""
        changes = {"released_by": by, "release_reason": reason}
        return [lease.pattern for lease in self._end(tx, lease_ids, changes)]

    def _end(
        self, tx: Transaction, lease_ids: Sequence[str], changes: dict[str, str]
    ) -> list[Reservation]:
        state = self._hive.state(KIND)
        # Ended before what lost to it was made, a lease would no longer have excluded that.
        lost = [loser for loser, by in self._leases.verdicts(state).items() if by in lease_ids]
        tx.behind(Reservation(state.get(each) or {}).created_ms for each in [*lease_ids, *lost])
        changes = {**changes, "status": "released", "released_at": tx.now}
        return [Reservation(tx.update(KIND, each, changes)) for each in lease_ids]

    def _ends_ms(self, patterns: Iterable[str]) -> list[int]:
        """Returns when the ended leases that a new one follows came to their end."""
        rows = self._hive.state(KIND).select({"status": "released"})
        return [
            leases.lease_end_ms(lease)
            for lease in map(Reservation, rows)
            if any(overlaps(lease, each, fold_case=self.fold_case) for each in patterns)
        ]

    def _take_over(self, tx: Transaction, request: Request, holders: list[Holder]) -> None:
        from queenbee.services.messages import stage

        lost = {holder.lease.id: holder.lease for holder in holders}
        self.stage_release(tx, list(lost), by=request.droid, reason=request.reason or "")
        for owner in dict.fromkeys(lease.droid for lease in lost.values()):
            patterns = ", ".join(each.pattern for each in lost.values() if each.droid == owner)
            issue_id = next((e.issue_id for e in lost.values() if e.droid == owner), None)
            fields: dict[str, object] = {
                "subject": f"Your reservation was taken over by {request.droid}",
                "body": f"{request.droid} took over {patterns}: {request.reason}",
                "issue_id": issue_id,
                "importance": "high",
            }
            stage(tx, request.droid, [owner], fields)

    def _wait(self, held: Held, before: tuple[object, ...], deadline: float, wait_s: float) -> None:
        """Returns when the refusal may no longer stand; raises `Busy` at the deadline."""
        ends_ms = held.details["ends_ms"]
        assert isinstance(ends_ms, int)
        ledger = self._hive.state(KIND).ledger
        # The first lease to end by itself is worth a look too; the clock that judges it is the
        # hive's, and may be set while we wait.
        until = time.monotonic() + max(0, ends_ms - self._hive.now_ms()) / 1000
        paths = ledger.path, ledger.journal_path
        wait_for_change(ledger.stamp, before, paths, min(deadline, until))
        if time.monotonic() >= deadline:
            raise Busy(
                f"waited {format_duration(wait_s)} in vain: {held.message}",
                hint=held.hint,
                **held.details,
            ) from held

    def _select(
        self,
        now_ms: int,
        droid: str,
        patterns: Sequence[str],
        ids: Sequence[str],
        everything: bool,
        lost: Sequence[Reservation] = (),
    ) -> list[Reservation]:
        live = [*self._leases.everything(self._hive.state(KIND), now_ms), *lost]
        mine = [lease for lease in live if lease.droid == droid]
        if everything:
            if not mine:
                raise NotFound(f"{droid} holds no reservation", hint="queen reserved")
            return mine
        chosen: dict[str, Reservation] = {}
        for text in several(patterns):
            # What it means here comes first; then what `queen reserved` shows, copied as it is.
            meant = self.places([text])[0].pattern
            matching = [lease for lease in mine if lease.pattern == meant]
            matching = matching or [lease for lease in mine if lease.pattern == text]
            if not matching:
                others = [lease for lease in live if lease.pattern in (meant, text)]
                raise self._not_held(text, others, droid)
            chosen.update((lease.id, lease) for lease in matching)
        for identifier in several(ids):
            one = [lease for lease in live if lease.id == identifier]
            if not one or one[0].droid != droid:
                raise self._not_held(identifier, one, droid)
            chosen[identifier] = one[0]
        if not chosen:
            raise InvalidInput("nothing is named", hint="name patterns, --id ID, or --all")
        return list(chosen.values())

    def _not_held(
        self, named: str, others: Sequence[Reservation], droid: str
    ) -> NotFound | NotYours:
        if others:
            owner = others[0].droid
            return NotYours(
                f"{named} is reserved by {owner}, not by {droid}",
                hint=f"ask its holder: queen msg send {owner} BODY",
                owner=owner,
                reservation=others[0].to_dict(),
            )
        return NotFound(
            f"{droid} holds no live reservation {named!r}",
            hint=f"queen reserved --droid {droid}; one that has ended is reserved anew",
        )

    def _literal(self, path: str) -> str:
        return path_of(path, tree=self._hive.layout.tree, cwd=self._hive.cwd)
