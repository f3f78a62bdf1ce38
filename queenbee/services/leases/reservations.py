"""Reservations: leases on glob patterns.

Two droids conflict when their patterns overlap and at least one is exclusive, or both edit in one
working tree: `core.leases`. A lease ends when it expires, when its owner releases it, or by a
takeover, which is recorded and which its owner gets a message about.
"""

from __future__ import annotations

import os

from queenbee.core import glob, leases
from queenbee.core.names import several
from queenbee.core.records import Reservation
from queenbee.core.text import mentioned, suggested
from queenbee.core.timestamps import format_duration, format_ms, instant_ms
from queenbee.errors import Busy, Held, InvalidInput, NotFound, NotYours, QueenError
from queenbee.services.leases.live import KIND, LiveLeases, covers
from queenbee.services.leases.paths import Resolved, path_of, pattern_of
from queenbee.store.git_files import working_tree
from queenbee.store.layout import folds_case
from queenbee.store.settings import AUTO, EXCLUSIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from queenbee.core.queue import Want
    from queenbee.services.droids import Droids
    from queenbee.services.leases.granting import Request
    from queenbee.services.nudges import Nudges
    from queenbee.services.store import Store
    from queenbee.services.waiting.queue import Place, Queue
    from queenbee.services.waiting.turns import Progress
    from queenbee.services.writing.transaction import Transaction


class PathStatus:
    """Whether a path is `free`, `mine` or `held` for the actor, and by which leases; or `stale`
    for somebody with an old token.
    """

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

    def __init__(
        self,
        store: Store,
        *,
        queue: Callable[[], Queue],
        droids: Callable[[], Droids],
        nudges: Callable[[], Nudges],
        check_issue: Callable[[str], object],
    ) -> None:
        self.store = store
        self._check_issue = check_issue
        """Raises `NotFound` for an issue that nobody knows."""
        self._queue = queue
        self._droids = droids
        self._nudges = nudges
        self.fold_case = folds_case(store.layout.common_dir)
        self._live = LiveLeases(
            fold_case=self.fold_case, cache_path=store.layout.verdicts_path(KIND)
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
        alone: bool = True,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> list[Reservation]:
        """Leases all of the patterns to the actor, or none; returns the leases in their order.

        Reserving a pattern again extends its lease and never shortens it. Raises `Held`, which
        lists every holder, and those who wait and are served first. With `wait_s`, waits for its
        turn, and raises `Busy` when that time runs out; `on_progress` is told how it stands.
        `force` ends the leases of the holders, records who did it and why, and notifies them. It
        needs a reason, unless all of them may be relieved: `Nudges.may_take_over`. A new lease for
        an agent's `session` is marked with it, and ends with it. One that is not `exclusive`
        announces an edit in this working tree: others may edit the same files in theirs, and in
        this one nobody, unless it is not `alone`.
        """
        from queenbee.services.leases.granting import Request  # noqa: PLC0415 - start-up

        droid, ttl_s = self.store.actor, self._ttl_s(ttl_s)
        if issue_id is not None:
            self._check_issue(issue_id)
        wanted = self._wanted(several(patterns))
        self.store.look({"pattern": list(wanted), "issue_id": issue_id, "reason": reason})
        request = Request(
            droid,
            wanted,
            exclusive=exclusive,
            ttl_s=ttl_s,
            issue_id=issue_id,
            reason=reason,
            force=force,
            session=session,
            tree_id=self._tree_id(keep=not exclusive) if alone else None,
            origin=self._origin(session, announced=not exclusive, alone=alone),
        )
        if force and not (reason and reason.strip()):
            self._relieve(request)
        try:
            return self._wait_and_grant(request, wait_s, on_progress)
        except (Held, Busy) as refusal:
            self._add_signs_of_life(refusal, request)
            raise

    def resolve(self, patterns: Iterable[str]) -> list[Resolved]:
        """Returns patterns from the root for what the user typed, each with a note for the user.

        Raises `BadPattern`.
        """
        tree, cwd = self.store.layout.tree, self.store.cwd
        return [pattern_of(text, tree=tree, cwd=cwd) for text in patterns]

    def release(
        self, patterns: Sequence[str] = (), *, ids: Sequence[str] = (), everything: bool = False
    ) -> list[Reservation]:
        """Ends leases of the actor: by pattern, by id, or all; also those that lost to older
        ones. All or none.

        Raises `NotFound` if nobody holds one, and `NotYours` if another droid does.
        """
        from queenbee.services.leases.granting import end  # noqa: PLC0415 - start-up

        droid = self.store.actor
        with self.store.transaction() as tx:
            state = self.store.state(KIND)
            # Those that lost to older ones have no effect, but can be ended too.
            lost = [loser for _, loser in self.conflicts() if loser.droid == droid]
            live = [*self._live.everything(state, tx.now_ms), *lost]
            mine = self._chosen(live, droid, patterns, ids, everything=everything)
            return end(tx, state, self._live, [lease.id for lease in mine], {})

    def renew(
        self,
        patterns: Sequence[str] = (),
        *,
        ids: Sequence[str] = (),
        everything: bool = False,
        ttl_s: int | None = None,
    ) -> list[Reservation]:
        """Extends leases of the actor to `ttl_s` from now; never shortens one. All or none."""
        from queenbee.services.leases.granting import extend  # noqa: PLC0415 - start-up

        droid, ttl_s = self.store.actor, self._ttl_s(ttl_s)
        with self.store.transaction() as tx:
            live = self._live.everything(self.store.state(KIND), tx.now_ms)
            mine = self._chosen(live, droid, patterns, ids, everything=everything)
            state = self.store.state(KIND)
            return [extend(tx, state, self._live, lease, ttl_s, {}) for lease in mine]

    def absurd(self) -> tuple[list[Reservation], list[Reservation]]:
        """Returns the leases that a wrong clock granted and that have not ended, and the
        released ones that say that they end in the future; `stage_repair` repairs both.
        """
        from queenbee.services.leases.repairing import absurd  # noqa: PLC0415 - start-up

        return absurd(self.store.state(KIND), self.store.now_ms(), self.store.present_ms())

    def stage_repair(self, tx: Transaction, *, by: str) -> None:
        """Ends the leases that a wrong clock granted, and gives those that it released an end
        that is not in the future.
        """
        from queenbee.services.leases.repairing import repair  # noqa: PLC0415 - start-up

        repair(tx, self.store.state(KIND), self._live, by=by)

    def stale(self) -> list[Reservation]:
        """Returns the live leases whose droid has written nothing for half of their TTL, so that
        a person can decide about them; each with `last_seen_at`.
        """
        from queenbee.services.droids import Droids  # noqa: PLC0415 - start-up

        now_ms, seen_ms = self.store.now_ms(), Droids(self.store).last_seen_ms()
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

    def around(self, paths: Iterable[str]) -> list[Reservation]:
        """Returns the live leases that may cover one of these paths from the root, oldest first.

        Of thousands of leases it reads only those on the folders of the paths.
        """
        return self._live.around(self.store.state(KIND), paths, self.store.now_ms())

    def check(self, paths: Sequence[str], *, session: str | None = None) -> list[PathStatus]:
        """Returns for each literal path whether it is free, the actor's, or held by another: by
        one whose lease keeps the actor (in a `session`) from editing it in this working tree.

        What is not held may have leases of others, who edit it in their working trees.
        """
        state, now_ms = self.store.state(KIND), self.store.now_ms()
        asker = self.editor(session)
        statuses = []
        for path in (self._literal(each) for each in several(paths)):
            covering = self._live.covering(state, path, now_ms)
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
        if self.store.engine.shared:
            raise InvalidInput(
                "grants of a hive in a database have no token: the database decides for all",
                hint=suggested("queen check", status.path),
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
        return self._live.overlapping(state, pattern, self.store.now_ms())

    def holders_against(self, want: Want, droid: str) -> list[str]:
        """Returns the other droids whose live leases exclude what this one wants."""
        state, now_ms = self.store.state(KIND), self.store.now_ms()
        asker = leases.Asker(droid, exclusive=want.exclusive, tree_id=want.tree_id)
        return list(
            dict.fromkeys(
                lease.droid
                for pattern in want.patterns
                for lease in self._live.overlapping(state, pattern, now_ms)
                if leases.stand_against(lease, asker)
            )
        )

    def conflicts(self) -> list[tuple[Reservation, Reservation]]:
        """Returns (the older grant, the superseded one) for each pair that a merge brought
        together and whose superseded one has not ended yet.
        """
        state, now_ms = self.store.state(KIND), self.store.now_ms()
        pairs: list[tuple[Reservation, Reservation]] = []
        for loser_id, winner_id in self._live.verdicts(state).items():
            loser = leases.as_of(state.get(loser_id) or {}, now_ms)
            if leases.is_live(loser):
                winner = leases.as_of(state.get(winner_id) or {}, now_ms)
                marked = Reservation({**loser.fields, "superseded_by": winner_id})
                pairs.append((winner, marked))
        return sorted(pairs, key=lambda pair: pair[1].age)

    def verdicts(self) -> dict[str, str]:
        """Returns the winner's id for each superseded lease of the hive."""
        return dict(self._live.verdicts(self.store.state(KIND)))

    def overlap(self, left: str, right: str) -> str | None:
        """Returns a path that both patterns cover, or None. Raises `BadPattern`."""
        one, other = self.resolve([left, right])
        return glob.overlap(one.pattern, other.pattern, fold_case=self.fold_case)

    def stage_reserve(
        self, tx: Transaction, patterns: Sequence[str], *, issue_id: str | None
    ) -> list[Reservation]:
        """Leases all of the patterns to the actor in a transaction. Raises `Held`."""
        from queenbee.services.leases.granting import Request  # noqa: PLC0415 - start-up

        request = Request(
            self.store.actor,
            self._wanted(several(patterns)),
            exclusive=True,
            ttl_s=self._ttl_s(None),
            issue_id=issue_id,
            reason=None,
            force=False,
            tree_id=self._tree_id(keep=False),
            origin=dict(self.store.grant_marks),
        )
        return self._stage(tx, request)

    def stage_release(
        self, tx: Transaction, lease_ids: Sequence[str], *, by: str, reason: str
    ) -> list[str]:
        """Ends leases in a transaction, recording who did it and why; returns their patterns."""
        from queenbee.services.leases.granting import end  # noqa: PLC0415 - start-up

        changes = {"released_by": by, "release_reason": reason}
        ended = end(tx, self.store.state(KIND), self._live, lease_ids, changes)
        return [lease.pattern for lease in ended]

    def _tree_id(self, *, keep: bool) -> str | None:
        """Returns the id of this working tree; with `keep`, after making one if it has none."""
        found = working_tree.read_tree_id(self.store.layout)
        if found is None and keep:
            with self.store.transaction():
                return working_tree.keep_tree_id(self.store.layout)
        return found

    def _origin(self, session: str | None, *, announced: bool, alone: bool) -> dict[str, object]:
        """Returns what a new lease says about where it was asked for.

        A droid that reserves exclusively by name means the files of all working trees.
        """
        layout = self.store.layout
        origin: dict[str, object] = dict(self.store.grant_marks)
        if session:
            origin |= {"session": session, "worktree": layout.worktree}
        if announced:
            origin["worktree"] = layout.worktree
            origin["branch"] = working_tree.branch_of(layout)
            origin["tree_id"] = self._tree_id(keep=True) if alone else None
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

    def _wait_and_grant(
        self, request: Request, wait_s: float, on_progress: Callable[[Progress], None] | None
    ) -> list[Reservation]:
        if wait_s <= 0:
            return self._grant(request)
        from queenbee.services.waiting.turns import served  # noqa: PLC0415 - start-up

        return served(
            self._queue().place(request.want, wait_s),
            lambda place: self._grant(request, place),
            kinds=[KIND],
            on_progress=on_progress,
        )

    def _relieve(self, request: Request) -> None:
        """Fills in why the holders may be relieved. Raises `InvalidInput` if one may not."""
        request.relieved = {}
        for droid in self.holders_against(request.want, request.droid):
            why = self._nudges().may_take_over(droid)
            if why is not None:
                request.relieved[droid] = why
                continue
            asked = next(iter(request.patterns.values()))
            step = self._nudges().next_step(droid, suggested("queen reserve", asked, force=True))
            raise InvalidInput(
                "a takeover needs a reason, which the holder will read",
                hint=step or "add --reason TEXT",
            )
        if not request.relieved:
            raise InvalidInput(
                "a takeover needs a reason, which the holder will read", hint="add --reason TEXT"
            )

    def _add_signs_of_life(self, refusal: QueenError, request: Request) -> None:
        """Adds to a refusal when each holder was last seen, and what to do about a quiet one."""
        holders = refusal.details.get("holders")
        if not isinstance(holders, list):
            return  # The hive is locked.
        quiet = []
        for holder in holders:
            seen_ms = self._droids().seen_ms(holder["droid"])
            if seen_ms is not None:
                holder["last_seen_at"] = format_ms(seen_ms)
            if self._droids().is_quiet(holder["droid"]) and seen_ms is not None:
                ago = format_duration((self.store.now_ms() - seen_ms) / 1000)
                quiet.append((holder["droid"], ago))
        for droid, ago in dict(quiet).items():
            refusal.message += f"; {mentioned(str(droid))} was last seen {ago} ago"
        refusal.args = (refusal.message,)
        if quiet and not refusal.details.get("circle"):
            asked = next(iter(request.patterns.values()))
            take_over = suggested("queen reserve", asked, force=True)
            refusal.hint = self._nudges().next_step(quiet[0][0], take_over) or refusal.hint

    def _grant(self, request: Request, place: Place | None = None) -> list[Reservation]:
        with self.store.transaction() as tx:
            return self._stage(tx, request, place)

    def _stage(
        self, tx: Transaction, request: Request, place: Place | None = None
    ) -> list[Reservation]:
        from queenbee.services.leases.granting import grant  # noqa: PLC0415 - start-up

        queue = self._queue() if self.store.layout.may_have_waiters() else None
        return grant(tx, self.store.state(KIND), self._live, request, queue, place)

    def _chosen(
        self,
        live: Sequence[Reservation],
        droid: str,
        patterns: Sequence[str],
        ids: Sequence[str],
        *,
        everything: bool,
    ) -> list[Reservation]:
        """Returns the leases of a droid that these patterns and ids name, or all of them."""
        mine = [lease for lease in live if lease.droid == droid]
        if everything:
            if not mine:
                raise NotFound(f"{droid} holds no reservations", hint="queen reserved")
            return mine
        from queenbee.services.short_ids import record_id  # noqa: PLC0415 - start-up

        chosen: dict[str, Reservation] = {}
        for text in several(patterns):
            # First what it means here, then a pattern copied from `queen reserved`.
            meant = self.resolve([text])[0].pattern
            named = _with_pattern(mine, meant) or _with_pattern(mine, text)
            if not named:
                raise _not_held(
                    text, [each for each in live if each.pattern in (meant, text)], droid
                )
            chosen.update((lease.id, lease) for lease in named)
        for text in several(ids):
            identifier = record_id(self.store.state(KIND), text)
            one = [lease for lease in live if lease.id == identifier]
            if not one or one[0].droid != droid:
                raise _not_held(text, one, droid)
            chosen[one[0].id] = one[0]
        if not chosen:
            raise InvalidInput("no reservations given", hint="give patterns, --id ID, or --all")
        return list(chosen.values())

    def _literal(self, path: str) -> str:
        return path_of(path, tree=self.store.layout.tree, cwd=self.store.cwd)


def _with_pattern(found: Iterable[Reservation], pattern: str) -> list[Reservation]:
    return [lease for lease in found if lease.pattern == pattern]


def _not_held(named: str, others: Sequence[Reservation], droid: str) -> NotFound | NotYours:
    if others:
        owner = others[0].droid
        return NotYours(
            f"{named} is reserved by {owner}, not by {droid}",
            hint=f"ask the holder: {suggested('queen msg send', owner, 'BODY')}",
            owner=owner,
            reservation=others[0].to_dict(),
        )
    return NotFound(
        f"{droid} holds no live reservation {named!r}",
        hint=f"{suggested('queen reserved', droid=droid)}; if it has ended, reserve it again",
    )
