"""Where all issues stand, without reading all of them: kept in the memory, and worked out again for
what changed.

`core.readiness` alone decides. A change is given to it with all that can depend on it or that it
depends on, and the answers for these take the place of the old ones. ADR 0043.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core import readiness
from queenbee.core.readiness import PARENT, Standing, Waits
from queenbee.core.timestamps import instant_ms
from queenbee.store.tracker.standing_rows import StandingRow, StandingRows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from queenbee.core.beads import Issue
    from queenbee.core.readiness import Occupied, Rank
    from queenbee.store.memory.memory import Memory
    from queenbee.store.memory.recorded import Recorded
    from queenbee.store.tracker.tracker_memory import TrackerMemory

    Look = Callable[[Collection[str]], Mapping[str, Issue]]

_MOST_AT_A_TIME = 2_000
"""For more issues than these, working all out anew takes as long."""
_AT_ONCE = 32


class Board:
    """The stored standings of the tracker's issues, as of `refresh`."""

    def __init__(self, memory: Memory) -> None:
        self._rows = StandingRows(memory)
        self._number = 0

    def refresh(
        self,
        tracker: TrackerMemory,
        assignments: Recorded,
        now_ms: int,
        *,
        look: Look,
        everything: Callable[[], Mapping[str, Issue]],
    ) -> bool:
        """Works out what changed; returns False if that could not be stored now. `look` gives those
        of some issues that there are, `everything` all; what was completed here is done.
        """
        self._number = tracker.number
        noted = self._rows.noted(self._number)
        known, (changed, cursor) = _cursor(noted), assignments.changes(None)
        if known is not None:  # Before the first assignment, there was nothing to miss.
            changed, cursor = assignments.changes(known if known[0] else (cursor[0], 0))
        assert tracker.version is not None
        now = [*tracker.version, *cursor]
        if noted is not None and noted[:4] == now and _holds(noted, now_ms):
            return True
        ids = None
        if noted is not None and changed is not None and _holds(noted, now_ms):
            begun = {str(one["issue_id"]) for each in changed if (one := assignments.get(each))}
            is_same = noted[0] == now[0]
            rows = tracker.changed_since(int(str(noted[1]))) if is_same else None
            ids = None if rows is None else self._affected(begun.union(rows), look)
        return self._stored(noted, now, now_ms, ids, look, everything)

    def _stored(
        self,
        noted: list[object] | None,
        now: list[object],
        now_ms: int,
        ids: set[str] | None,
        look: Look,
        everything: Callable[[], Mapping[str, Issue]],
    ) -> bool:
        if ids is not None:
            assert noted is not None
            usual = float(str(noted[6]))
            issues = self._with_all_needed(ids, look)
            if not any(map(_may_be_deferred, (issues[each] for each in ids if each in issues))):
                found = [*_standing_rows(issues, ids, now_ms, usual)[0]]
                needs = [*_needs(issues[each] for each in ids if each in issues)]
                after = [*now, *noted[4:]]
                if not self._rows.store(self._number, (noted, after), ids, found, needs):
                    return False
                if self._rows.usual_minutes(self._number) == usual:
                    return True
                noted = after
        whole = everything()
        rows, usual = _standing_rows(whole, None, now_ms, None)
        wakes = [ms for each in whole.values() if (ms := _deferred_ms(each)) > now_ms]
        after = [*now, now_ms, min(wakes, default=None), usual]
        return self._rows.store(self._number, (noted, after), None, rows, _needs(whole.values()))

    def _affected(self, changed: set[str], look: Look) -> set[str] | None:
        """Returns the issues whose standing these can change; None for too many."""
        found, todo = set(changed), set(changed)
        fresh = look(changed)
        while todo:
            if len(found) > _MOST_AT_A_TIME:
                return None
            needs = self._rows.needs(self._number, todo)
            needs += self._rows.needs(self._number, todo, reverse=True)
            near = {each for one, target, _ in needs for each in (one, target)}
            near.update(
                target for each in todo if each in fresh for target, _ in fresh[each].dependencies
            )
            near -= found
            # Beyond one that is done, only those that wait for its children.
            done = self._rows.done(self._number, near)
            waiting = self._rows.needs(self._number, done, reverse=True)
            found |= near
            todo = (near - done) | {one for one, _, kind in waiting if kind == "waits-for"} - found
            found |= todo
        return found

    def _with_all_needed(self, ids: Collection[str], look: Look) -> dict[str, Issue]:
        """Returns these issues, with their parents to any depth, what each depends on, and the
        children that one waits for.
        """
        issues = dict(look(ids))
        todo, walked = set(issues), set[str]()
        while todo:
            needs = [need for each in todo for need in issues[each].dependencies]
            spawners = {target for target, kind in needs if kind == "waits-for"}
            children = self._rows.needs(self._number, spawners, reverse=True)
            wanted = {target for target, _ in needs} | {one for one, _, _ in children}
            issues.update(look(wanted - issues.keys()))
            walked |= todo
            parents = {target for target, kind in needs if kind == PARENT}
            todo = (parents & issues.keys()) - walked
        return issues

    def near(self, issue_id: str, look: Look) -> Collection[str] | None:
        """Returns the issues whose standing one can change, and others; None for too many."""
        return self._affected({issue_id}, look)

    # Questions.

    @property
    def has_gone(self) -> bool:
        """Whether the memory turned out to be damaged since `refresh`: the answers are void."""
        return self._rows.has_gone

    def counts(self, holders: Mapping[str, str], held: Collection[str]) -> dict[str, int]:
        """Returns how many issues are in each state, and `total`."""
        counts = dict.fromkeys(readiness.STATES, 0)
        for state, has_holder, count in self._rows.counts(self._number):
            counts[_effective(state, "x" if has_holder else None)] += count
        for key, (state, holder, _) in self._rows.states(self._number, {*holders, *held}).items():
            counts[_effective(state, holder)] -= 1
            counts[_effective(state, holders.get(key, holder), is_held=key in held)] += 1
        return {**counts, "total": sum(counts.values())}

    def ready_count(self, holders: Mapping[str, str], held: Collection[str]) -> int:
        """Returns how many issues are ready and have no open children."""
        some = self._rows.states(self._number, {*holders, *held}).values()
        gone = sum(state == "ready" and holder is None and not has for state, holder, has in some)
        return self._rows.takeable_count(self._number) - gone

    def special(self) -> list[str]:
        """Returns the open issues that something other than their rows may hold back."""
        return self._rows.special(self._number)

    def named(self) -> list[str]:
        """Returns the open issues that the tracker says somebody has."""
        return self._rows.held(self._number)

    def startable(
        self, actor: str | None, holders: Mapping[str, str], held: Collection[str]
    ) -> Iterator[str]:
        """Yields the issues that an actor could start or continue now, most urgent first, then
        oldest.
        """
        return (
            key
            for key, holder in self._rows.startable(self._number)
            if key not in held and holders.get(key, holder) in (None, actor)
        )

    def in_order(
        self,
        actor: str | None,
        holders: Mapping[str, str],
        held: Collection[str],
        *,
        look: Look,
        occupied: Callable[[list[Issue]], Occupied],
    ) -> Iterator[Issue]:
        """Yields what an actor could take, in the order in which `queen next` takes it."""
        ranked = (
            (rank, key)
            for rank, key, holder in self._rows.in_order(self._number, actor)
            if key not in held and holders.get(key, holder) in (None, actor)
        )
        return readiness.in_order(_read(ranked, look), occupied)


def _read(ranked: Iterator[tuple[Rank, str]], look: Look) -> Iterator[tuple[Rank, Issue]]:
    """Yields the issues with their ranks; they are read some at a time."""
    while True:
        some = [each for each, _ in zip(ranked, range(_AT_ONCE), strict=False)]
        if not some:
            return
        issues = look([key for _, key in some])
        for rank, key in some:
            if key in issues:
                yield rank, issues[key]


def _effective(state: str, holder: str | None, *, is_held: bool = False) -> str:
    if state == "done":
        return state
    if holder is not None:
        return "active"
    return "on_hold" if is_held and state == "ready" else state


def _cursor(noted: list[object] | None) -> tuple[int, int] | None:
    return None if noted is None else (int(str(noted[2])), int(str(noted[3])))


def _holds(noted: list[object], now_ms: int) -> bool:
    """Returns whether no deferral ended since, by whichever clock."""
    made_ms, wakes_ms = noted[4], noted[5]
    assert isinstance(made_ms, int)
    return made_ms <= now_ms and (not isinstance(wakes_ms, int) or now_ms < wakes_ms)


def _deferred_ms(issue: Issue) -> int:
    return instant_ms(issue.get("defer_until")) or 0


def _may_be_deferred(issue: Issue) -> bool:
    return issue.get("defer_until") is not None or issue.get("status") == "deferred"


def _needs(issues: Collection[Issue] | Iterator[Issue]) -> Iterator[tuple[str, str, str]]:
    for issue in issues:
        for target, kind in issue.dependencies:
            yield issue.id, target, kind


def _standing_rows(
    issues: Mapping[str, Issue], ids: Collection[str] | None, now_ms: int, usual: float | None
) -> tuple[list[StandingRow], float]:
    """Returns where these issues, or all, stand, and what an issue without an estimate takes."""
    found = readiness.open_standings(issues, holders={}, now_ms=now_ms, held_back={})
    waits = Waits(found, usual)
    rows = []
    for key, issue in issues.items():
        if (ids is None or key in ids) and readiness.is_work(issue):
            rows.append(_row(issue, found[key], waits) if key in found else _done(issue))
    return rows, waits.usual


def _done(issue: Issue) -> StandingRow:
    return StandingRow(issue.id, "done")


def _row(issue: Issue, standing: Standing, waits: Waits) -> StandingRow:
    from queenbee.services.writing.secrets import is_like_secret  # noqa: PLC0415 - start-up

    waiting = "waits" if standing.waits_for else "on_hold" if standing.because else "ready"
    row = StandingRow(issue.id, waiting)
    row.holder, row.children = standing.holder, standing.has_open_children
    row.urgency, row.chain = waits.urgency[issue.id], waits.chain[issue.id]
    estimate = readiness.estimate(issue)
    if waiting == "ready" and not row.children:
        row.behind = waits.work_behind(issue.id)
    row.priority, row.created_ms, row.minutes = issue.priority, issue.created_ms, estimate
    row.is_special = (
        bool(issue.get("metadata")) or issue.get("dod") is not None or is_like_secret(issue.id)
    )
    return row
