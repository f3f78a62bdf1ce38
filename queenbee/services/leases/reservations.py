"""Reservations: leases on glob patterns.

Two droids conflict when their patterns overlap and at least one is exclusive, or both edit in one
working tree: `core.leases`. A lease ends when it expires, when its owner releases it, or by a
takeover, which is recorded and which its owner gets a message about.
"""

from __future__ import annotations

import os

from queenbee._typed import typed
from queenbee.core import leases
from queenbee.core.glob.pattern import overlap
from queenbee.core.names import several
from queenbee.core.records import Reservation
from queenbee.core.text import suggested
from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.errors import Busy, Held, InvalidInput
from queenbee.services.leases.live import ACTIVE, KIND, LiveLeases, covers
from queenbee.services.leases.paths import Resolved, path_of, pattern_of
from queenbee.services.waiting.pauses import waits
from queenbee.store.git_files import tree_id
from queenbee.store.git_trees import folds_case
from queenbee.store.settings import AUTO, EXCLUSIVE

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from queenbee.core.queue import Want
    from queenbee.services.droids import Droids
    from queenbee.services.leases.granting import LeaseWriter, Request
    from queenbee.services.nudges import Nudges
    from queenbee.services.open_store import Store
    from queenbee.services.waiting.attempts import Progress
    from queenbee.services.waiting.pauses import Steps
    from queenbee.services.waiting.queue import PlaceInLine, Queue
    from queenbee.services.writing.transaction import Transaction
    from queenbee.store.giving_up import Event

_ORIGIN = ("session", "worktree", "branch", "tree_id")
"""What a lease says about where it was asked for."""


class PathStatus:
    """Whether a path is `free`, `mine` or `held` for the actor, and by which leases; or `stale`
    for somebody with an old token.
    """

    __slots__ = ("leases", "path", "status")

    def __init__(self, path: str, status: str, covering: list[Reservation]) -> None:
        self.path: str = path
        self.status: str = status
        self.leases: list[Reservation] = covering

    def __repr__(self) -> str:
        return f"PathStatus(path={self.path!r}, status={self.status!r}, leases={self.leases!r})"

    def to_dict(self) -> dict[str, object]:
        """Returns the path, its status, and the leases that cover it."""
        return {
            "path": self.path,
            "status": self.status,
            "reservations": [lease.to_dict() for lease in self.leases],
        }


class Reservations:
    """The reservations of a hive."""

    def __init__(
        self,
        store: Store,
        *,
        queue: Callable[[], Queue],
        droids: Callable[[], Droids],
        nudges: Callable[[], Nudges],
        check_issue: Callable[[str], object],
        own_issue: Callable[[], str | None],
    ) -> None:
        self.store = store
        self._check_issue = check_issue
        """Raises `NotFound` for an issue that nobody knows."""
        self._own_issue = own_issue
        """Returns the only issue that the actor has, or None."""
        self._queue = queue
        self._droids = droids
        self._nudges = nudges
        self.fold_case: bool = folds_case(store.layout.common_dir)
        self._live = LiveLeases(
            fold_case=self.fold_case, cache_path=store.layout.verdicts_path(KIND)
        )

    @waits
    @typed
    def reserve(  # noqa: PLR0913 - by name
        self,
        patterns: Sequence[str],
        *,
        exclusive: bool = True,
        ttl_s: int | None = None,
        issue_id: str | None = None,
        reason: str | None = None,
        timeout_s: float = 0,
        cancel: Event | None = None,
        force: bool = False,
        session: str | None = None,
        alone: bool = True,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Steps[list[Reservation]]:
        """Leases all of the patterns to the actor, or none; returns the leases in their order.

        Reserving a pattern again extends its lease and never shortens it. Raises `Held`, which
        lists every holder, and those who wait and are served first. With `timeout_s`, waits for its
        turn, and raises `Busy` when that time runs out, and `Cancelled` once the event `cancel` is
        set; `on_progress` is told how it stands, and an exception that it raises ends the wait. Of
        a wait that was given up, neither a lease nor a place in the line is left.
        `force` ends the leases of the holders, records who did it and why, and notifies them. It
        needs a reason, unless all of them may be relieved: `Nudges.may_take_over`. A new lease for
        an agent's `session` is marked with it, and ends with it; any other one is for the only
        issue that the actor has, and ends with that, unless `issue_id` names another or is "". One
        that is not `exclusive` announces an edit in this working tree: others may edit the same
        files in theirs, and in this one nobody, unless it is not `alone`.
        """
        asker = self._asker(exclusive=exclusive, alone=alone, session=session)
        if issue_id:
            self._check_issue(issue_id)
        elif issue_id is None and session is None:
            issue_id = self._own_issue()
        request = self._request(asker, patterns, ttl_s, issue_id, reason)
        request.force = force
        return (yield from self._granted(request, timeout_s, on_progress))

    def resolve(self, patterns: Iterable[str]) -> list[Resolved]:
        """Returns patterns from the root for what the user typed, each with a note for the user.

        Raises `BadPattern`.
        """
        tree, cwd = self.store.layout.tree, self.store.cwd
        return [pattern_of(text, tree=tree, cwd=cwd) for text in patterns]

    @typed
    def release(
        self, patterns: Sequence[str] = (), *, ids: Sequence[str] = (), everything: bool = False
    ) -> list[Reservation]:
        """Ends leases of the actor: by pattern, by id, or all; also those that lost to older
        ones. All or none.

        Raises `NotFound` if nobody holds one, and `NotYours` if another droid does.
        """
        droid = self.store.actor
        with self.transaction() as tx:
            # Those that lost to older ones have no effect, but can be ended too.
            lost = [loser for _, loser in self.conflicts() if loser.droid == droid]
            live = [*self._live.everything(self.store.state(KIND), tx.now_ms), *lost]
            mine = self._chosen(live, patterns, ids, everything=everything)
            ended = self._writer(tx).end([lease.id for lease in mine], {})
            tx.refuse_in_vain(lease.id for lease in mine)
            return ended

    @typed
    def renew(
        self,
        patterns: Sequence[str] = (),
        *,
        ids: Sequence[str] = (),
        everything: bool = False,
        ttl_s: int | None = None,
    ) -> list[Reservation]:
        """Extends leases of the actor to `ttl_s` from now; never shortens one. All or none."""
        ttl_s = self._ttl_s(ttl_s)
        with self.transaction() as tx:
            live = self._live.everything(self.store.state(KIND), tx.now_ms)
            mine = self._chosen(live, patterns, ids, everything=everything)
            writer = self._writer(tx)
            return [writer.extend(lease, ttl_s, {}) for lease in mine]

    def absurd(self) -> tuple[list[Reservation], list[Reservation]]:
        """Returns the leases that a wrong clock granted and that have not ended, superseded ones
        included, and the released ones that say that they end in the future; oldest first.
        """
        state, now_ms, present_ms = (
            self.store.state(KIND),
            self.store.now_ms(),
            self.store.present_ms(),
        )
        active = [leases.as_of(fields, now_ms) for fields in state.select(ACTIVE)]
        # None ends after it would have.
        late = state.dated_after("expires_at", present_ms, {"status": "released"})
        released = map(Reservation, late)
        return (
            [lease for lease in active if leases.held_absurdly(lease, present_ms)],
            [lease for lease in released if leases.ended_absurdly(lease, present_ms)],
        )

    def stage_repair(self, tx: Transaction, *, by: str) -> None:
        """Ends the leases that a wrong clock granted, and gives those that it released an end
        that is not in the future.
        """
        self._writer(tx).repair(*self.absurd(), by=by)

    def stale(self) -> list[Reservation]:
        """Returns the live leases whose droid has written nothing for half of their TTL, so that
        a person can decide about them; each with `last_seen_at`.
        """
        now_ms, droids = self.store.now_ms(), self._droids()
        stale = []
        for lease in self.find():
            begun_ms = instant_ms(lease.get("updated_at")) or lease.created_ms
            last_ms = max(begun_ms, droids.seen_ms(lease.droid) or 0)
            if now_ms - last_ms >= (lease.expires_ms - begun_ms) / 2:
                stale.append(Reservation({**lease.fields, "last_seen_at": format_ms(last_ms)}))
        return stale

    @typed
    def find(
        self, *, droid: str | None = None, path: str | None = None, ended: bool = False
    ) -> list[Reservation]:
        """Returns live leases, oldest first; with `ended`, all leases ever.

        `path` keeps those that cover this literal path.
        """
        state, now_ms = self.store.state(KIND), self.store.now_ms()
        found = self._live.everything(state, now_ms, ended=ended)
        literal = self._literal(path) if path is not None else None
        return [
            lease
            for lease in found
            if not lease.deleted
            and (droid is None or lease.droid == droid)
            and (literal is None or covers(lease, literal, fold_case=self.fold_case))
        ]

    def covering(self, paths: Collection[str]) -> dict[str, list[Reservation]]:
        """Returns for each of these paths from the root the live leases on it, oldest first."""
        return self._live.covering(self.store.state(KIND), paths, self.store.now_ms())

    @typed
    def check(self, paths: Sequence[str], *, session: str | None = None) -> list[PathStatus]:
        """Returns for each literal path whether it is free, the actor's, or held by another: by
        one whose lease keeps the actor (in a `session`) from editing it in this working tree.

        What is not held may have leases of others, who edit it in their working trees.
        """
        return self.check_tracked([*map(self._literal, several(paths))], session=session)

    def check_tracked(
        self, paths: Sequence[str], *, session: str | None = None
    ) -> list[PathStatus]:
        """Returns the same for paths from the root as git has them, whatever is there now, such as
        a link in place of a folder.
        """
        met, asker = self.covering(paths), self.editor(session)
        statuses = []
        for path in paths:
            covering = [*met[path]]
            against = [lease for lease in covering if leases.stand_against(lease, asker)]
            if against:
                against.sort(key=lambda lease: not lease.exclusive)
                statuses.append(PathStatus(path, "held", against))
                continue
            covering.sort(key=lambda lease: lease.droid != asker.droid)
            mine = covering and covering[0].droid == asker.droid
            statuses.append(PathStatus(path, "mine" if mine else "free", covering))
        return statuses

    def fenced(self, status: PathStatus, token: int) -> PathStatus:
        """Returns the status, or `stale` if a grant with a newer token ever covered the path.

        Raises `InvalidInput` where grants have no token, since one place decides for all machines.
        """
        if self.store.engine.carrier is not None:
            raise InvalidInput(
                "grants of a hive in a database have no token: the database decides for all",
                hint=suggested("queen reserve check", status.path),
            )
        covering = self.find(path=os.path.join(self.store.layout.tree, status.path), ended=True)
        newer = [lease for lease in covering if lease.token > token]
        if status.status == "held" or not newer:
            return status
        return PathStatus(status.path, "stale", newer)

    def editor(self, session: str | None = None) -> leases.Asker:
        """Returns what an edit by the actor asks for, as the setting `reserve` of `[hook]` says."""
        mode = self.store.layout.settings.hook_reserve
        return leases.Asker(
            self.store.actor_or_none,
            exclusive=mode == EXCLUSIVE,
            tree_id=self._tree_id(keep=False) if mode == AUTO else None,
            session=session,
        )

    def overlapping(self, pattern: str) -> list[Reservation]:
        """Returns the live leases that share a path with a pattern from the root."""
        state = self.store.state(KIND)
        return self._live.overlapping(state, [pattern], self.store.now_ms())[pattern]

    def holders_against(self, want: Want, droid: str) -> list[str]:
        """Returns the other droids whose live leases exclude what this one wants."""
        state, now_ms = self.store.state(KIND), self.store.now_ms()
        asker = leases.Asker(droid, exclusive=want.exclusive, tree_id=want.tree_id)
        met = self._live.overlapping(state, want.patterns, now_ms)
        against = (lease for found in met.values() for lease in found)
        return list(
            dict.fromkeys(lease.droid for lease in against if leases.stand_against(lease, asker))
        )

    def conflicts(self) -> list[tuple[Reservation, Reservation]]:
        """Returns (the older grant, the superseded one) for each pair that a merge brought
        together and whose superseded one has not ended yet.
        """
        state, now_ms = self.store.state(KIND), self.store.now_ms()
        active = (leases.as_of(fields, now_ms) for fields in state.select(ACTIVE))
        live = [each for each in active if leases.is_live(each)]
        lost = self._live.verdicts(state) if live else {}
        return [
            (
                leases.as_of(state.get(lost[each.id]) or {}, now_ms),
                Reservation({**each.fields, "superseded_by": lost[each.id]}),
            )
            for each in live
            if each.id in lost
        ]

    def verdicts(self) -> dict[str, str]:
        """Returns the winner's id for each superseded lease of the hive."""
        return dict(self._live.verdicts(self.store.state(KIND)))

    @typed
    def overlap(self, left: str, right: str) -> str | None:
        """Returns a path that both patterns cover, or None. Raises `BadPattern`."""
        one, other = self.resolve([left, right])
        return overlap(one.pattern, other.pattern, fold_case=self.fold_case)

    def stage_reserve(
        self, tx: Transaction, patterns: Sequence[str], *, issue_id: str | None
    ) -> list[Reservation]:
        """Leases all of the patterns to the actor in a transaction. Raises `Held`."""
        asker = self._asker(exclusive=True, alone=True, session=None)
        return self._stage(tx, self._request(asker, patterns, None, issue_id, None))

    def stage_again(self, tx: Transaction, ended: Reservation) -> Reservation:
        """Leases in a transaction what has ended as it was, until the same time. Raises `Held`."""
        from queenbee.services.leases.granting import Request  # noqa: PLC0415 - start-up

        asker = leases.Asker(
            ended.droid,
            exclusive=ended.exclusive,
            tree_id=ended.tree_id,
            session=ended.session,
        )
        origin = {name: ended.get(name) for name in _ORIGIN if ended.get(name)}
        request = Request(
            asker,
            {ended.pattern: ended.pattern},
            ttl_s=max(1, (ended.expires_ms - tx.now_ms) // 1000),
            issue_id=ended.issue_id or "",
            reason=ended.reason,
            origin={**origin, **self.store.grant_marks},
        )
        return self._stage(tx, request)[0]

    def stage_release(
        self, tx: Transaction, lease_ids: Sequence[str], *, by: str, reason: str
    ) -> list[str]:
        """Ends leases in a transaction, recording who did it and why; returns their patterns."""
        changes = {"released_by": by, "release_reason": reason}
        ended = self._writer(tx).end(lease_ids, changes)
        return [lease.pattern for lease in ended]

    def stage_takeover(self, tx: Transaction, granted: Sequence[Reservation]) -> None:
        """Ends in a transaction what confirmed leases of one droid take over, and tells others."""
        self._writer(tx).take_over_for(granted)

    def _tree_id(self, *, keep: bool) -> str | None:
        """Returns the id of this working tree; with `keep`, after making one if it has none."""
        found = tree_id.read_tree_id(self.store.layout)
        if found is None and keep:
            with self.store.transaction():
                return tree_id.keep_tree_id(self.store.layout)
        return found

    def _asker(self, *, exclusive: bool, alone: bool, session: str | None) -> leases.Asker:
        return leases.Asker(
            self.store.actor,
            exclusive=exclusive,
            tree_id=self._tree_id(keep=not exclusive or bool(session)) if alone else None,
            session=session,
        )

    def _request(
        self,
        asker: leases.Asker,
        patterns: Sequence[str],
        ttl_s: int | None,
        issue_id: str | None,
        reason: str | None,
    ) -> Request:
        """Returns the request for what the user typed, after looking for secrets in it."""
        from queenbee.services.leases.granting import Request  # noqa: PLC0415 - start-up

        ttl_s, wanted = self._ttl_s(ttl_s), self._wanted(several(patterns))
        self.store.look({"pattern": list(wanted), "issue_id": issue_id, "reason": reason})
        return Request(
            asker,
            wanted,
            ttl_s=ttl_s,
            issue_id=issue_id,
            reason=reason,
            origin=self._origin(asker),
        )

    def _origin(self, asker: leases.Asker) -> dict[str, object]:
        """Returns what a new lease says about where it was asked for.

        A droid that reserves exclusively by name means the files of all working trees.
        """
        layout = self.store.layout
        origin: dict[str, object] = dict(self.store.grant_marks)
        if asker.session:
            origin["session"] = asker.session
        if branch := tree_id.branch_of(layout):
            origin["branch"] = branch
        if asker.session or not asker.exclusive:
            origin |= {"worktree": layout.worktree, "tree_id": asker.tree_id}
        return origin

    def _wanted(self, patterns: Sequence[str]) -> dict[str, str]:
        """Returns the patterns from the root, each with the text first typed for it."""
        wanted: dict[str, str] = {}
        for resolved, text in zip(self.resolve(patterns), patterns, strict=True):
            wanted.setdefault(resolved.pattern, text)
        if not wanted:
            raise InvalidInput("no pattern given", hint="queen reserve 'src/**'")
        return wanted

    def _ttl_s(self, ttl_s: int | None) -> int:
        from queenbee.services.leases.granting import checked_ttl_s  # noqa: PLC0415 - start-up

        return checked_ttl_s(self.store.layout.settings.ttl_s if ttl_s is None else ttl_s)

    def _granted(
        self, request: Request, wait_s: float, on_progress: Callable[[Progress], None] | None
    ) -> Steps[list[Reservation]]:
        """Grants a request, in its turn. Raises `Held`, `Busy`."""
        asked = next(iter(request.patterns.values()))
        if request.force and not (request.reason and request.reason.strip()):
            from queenbee.services.leases.lease_refusals import relieved  # noqa: PLC0415 - start-up

            holders = self.holders_against(request.want, request.droid)
            request.relieved = relieved(asked, holders, self._nudges())
        try:
            if wait_s <= 0:
                return self._grant(request)
            from queenbee.services.waiting.attempts import served  # noqa: PLC0415 - start-up

            return (
                yield from served(
                    self._queue().place(request.want, wait_s),
                    lambda place: self._grant(request, place),
                    kinds=[KIND],
                    on_progress=on_progress,
                )
            )
        except (Held, Busy) as refusal:
            from queenbee.services.leases.lease_refusals import add_signs_of_life  # noqa: PLC0415 - start-up

            now_ms = self.store.now_ms()
            add_signs_of_life(refusal, asked, self._droids(), self._nudges(), now_ms)
            raise

    def _grant(self, request: Request, place: PlaceInLine | None = None) -> list[Reservation]:
        with self.transaction() as tx:
            return self._stage(tx, request, place)

    def _stage(
        self, tx: Transaction, request: Request, place: PlaceInLine | None = None
    ) -> list[Reservation]:
        queue = self._queue() if self.store.layout.may_have_waiters() else None
        return self._writer(tx).grant(request, queue, place)

    def transaction(self) -> Transaction:
        """Returns a transaction of the store in which leases are written: what writes them is
        loaded before others have to wait for it.
        """
        self._writers()
        return self.store.transaction()

    def _writers(self) -> type[LeaseWriter]:
        from queenbee.services.leases.granting import LeaseWriter  # noqa: PLC0415 - start-up

        return LeaseWriter

    def _writer(self, tx: Transaction) -> LeaseWriter:
        return self._writers()(tx, self.store.state(KIND), self._live)

    def _chosen(
        self,
        live: Sequence[Reservation],
        patterns: Sequence[str],
        ids: Sequence[str],
        *,
        everything: bool,
    ) -> list[Reservation]:
        """Returns the leases of the actor that these patterns and ids name, or all of them."""
        from queenbee.services.leases.owned import all_of, named  # noqa: PLC0415 - start-up

        if everything:
            return all_of(live, self.store.actor)
        from queenbee.services.short_ids import record_id  # noqa: PLC0415 - start-up

        state = self.store.state(KIND)
        meant = ((text, self.resolve([text])[0].pattern) for text in several(patterns))
        found = ((text, record_id(state, text)) for text in several(ids))
        return named(live, self.store.actor, meant, found)

    def _literal(self, path: str) -> str:
        return path_of(path, tree=self.store.layout.tree, cwd=self.store.cwd)
