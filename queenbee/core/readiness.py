"""What keeps an issue from being started, and which of the ready ones to take first.

`docs/format.md`, section "Issues". The rules for dependencies and for what is not work are those
of `bd ready`.
"""

from __future__ import annotations

import re
from itertools import groupby, islice
from math import fsum
from types import MappingProxyType

from queenbee.core.beads import HUMAN, NOT_WORK, WISP
from queenbee.core.names import id_fault, is_issue_id
from queenbee.core.timestamps import instant_ms

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from queenbee.core.beads import Issue
    from queenbee.core.reviews.review import Review

    Occupied = tuple[Collection[str], Collection[str], Collection[str]]
    """The issues about files that others have reserved, those about files that others are in, and
    those that the actor knows its way about.
    """
    Rank = tuple[float, float, float]
    """The urgency of an issue, the longest chain behind it, and all the work behind it: the
    smallest rank is taken first."""

PARENT = "parent-child"
BLOCKING = frozenset({"blocks", "conditional-blocks", "waits-for"})
STATES = ("done", "active", "ready", "waits", "on_hold")
WORKABLE = frozenset({"open", "in_progress"})
_MOST_MINUTES = 10**9
_AT_ONCE = 32
"""Issues of which `in_order_to_take` asks at once whether somebody is in their files."""
_FAILED = (
    "failed",
    "rejected",
    "wontfix",
    "won't fix",
    "canceled",
    "cancelled",
    "abandoned",
    "blocked",
    "error",
    "timeout",
    "aborted",
)
"""The words in a `close_reason` that mean failure: a `conditional-blocks` waits for one."""


class Standing:
    """Where one issue stands: done, active, or what it waits for.

    `waits_for` are the ids of the issues that block it or a parent of it; `because` says what else
    holds it back; `holder` is the droid that has it. An issue that `has_open_children` is not work
    yet, but its children are; that is only known if all issues were looked at.
    """

    __slots__ = ("because", "has_open_children", "holder", "issue", "review", "waits_for")

    def __init__(
        self,
        issue: Issue,
        *,
        holder: str | None = None,
        waits_for: Sequence[str] = (),
        because: str | None = None,
        has_open_children: bool = False,
        review: Review | None = None,
    ) -> None:
        self.issue: Issue = issue
        self.review: Review | None = review
        """The pull request that proposes its work; None if none does."""
        self.holder: str | None = holder
        self.waits_for: list[str] = list(waits_for)
        self.because: str | None = because
        self.has_open_children: bool = has_open_children

    @property
    def state(self) -> str:
        """`done`, `active`, `waits`, `on_hold` or `ready`: the first that is true."""
        if self.issue.done:
            return "done"
        if self.holder is not None:
            return "active"
        if self.waits_for:
            return "waits"
        return "on_hold" if self.because else "ready"

    @property
    def own_status(self) -> bool:
        """Returns whether only a status that Beads does not know holds the issue back."""
        return not self.waits_for and self.because == _other_status(self.issue)

    def startable(self, actor: str | None) -> bool:
        """Returns whether a droid could start it, or continue it, now."""
        return not (
            self.issue.done
            or self.waits_for
            or self.because
            or (self.holder is not None and self.holder != actor)
        )

    def follows(self, held: Collection[str]) -> bool:
        """Returns whether it is free and waits only for these issues: whoever has them may do it
        together with them.
        """
        is_free = not (self.issue.done or self.because) and self.holder is None
        return is_free and bool(self.waits_for) and all(each in held for each in self.waits_for)

    def takeable(self, actor: str | None) -> bool:
        """Returns whether a droid could take it now: it could start it, and not a child of it."""
        return not self.has_open_children and self.startable(actor)

    def to_dict(self) -> dict[str, object]:
        """Returns the issue's fields with its `state`, `holder`, `waits_for` and `because`."""
        return {
            **self.issue.to_dict(),
            "state": self.state,
            "holder": self.holder,
            "waits_for": self.waits_for,
            "because": self.because,
            **({"review": self.review.to_dict()} if self.review is not None else {}),
        }


def open_standings(
    issues: Mapping[str, Issue],
    *,
    holders: Mapping[str, str],
    now_ms: int,
    held_back: Mapping[str, str],
    reviews: Mapping[str, Review] = MappingProxyType({}),
    everything: bool = False,
) -> dict[str, Standing]:
    """Returns where each issue stands that is not done and is work for droids, or, with
    `everything`, each that is not done.

    `holders` gives the droid with the active assignment of an issue; `held_back` says why
    something other than the tracker holds an issue back, such as a gate that has not passed.
    """
    open_ = _Open(issues)
    blockers = open_.blockers()
    deferred = _deferred(issues, now_ms)
    found: dict[str, Standing] = {}
    for key in open_.needs:
        issue = issues[key]
        if everything or is_work(issue):
            because = deferred.get(key) or _set_aside(issue) or held_back.get(key)
            found[key] = Standing(
                issue,
                holder=holders.get(key) or _named_by_tracker(issue),
                waits_for=blockers.get(key, ()),
                because=because,
                has_open_children=key in open_.children,
                review=reviews.get(key),
            )
    return found


def standings(
    issues: Mapping[str, Issue],
    *,
    holders: Mapping[str, str],
    now_ms: int,
    held_back: Mapping[str, str],
    reviews: Mapping[str, Review] = MappingProxyType({}),
    everything: bool = False,
) -> dict[str, Standing]:
    """Returns what `open_standings` does, with the issues that are done, in the given order."""
    found = open_standings(
        issues,
        holders=holders,
        now_ms=now_ms,
        held_back=held_back,
        reviews=reviews,
        everything=everything,
    )
    for key, issue in issues.items():
        if issue.done and (is_work(issue) or (everything and issue.status != "tombstone")):
            found[key] = Standing(issue)
    return {key: found[key] for key in issues if key in found}


def needed_for(
    ids: Iterable[str], look: Callable[[Collection[str]], Mapping[str, Issue]]
) -> dict[str, Issue] | None:
    """Returns the issues that decide where these stand: them, their parents to any depth, and what
    any of these depends on; None if any issue may. `look` gives those of some issues that there
    are.
    """
    needed: dict[str, Issue] = {}
    walked: set[str] = set()
    todo = dict.fromkeys(ids)
    while todo:
        needed.update(look([each for each in todo if each not in needed]))
        walked.update(todo)
        parents: dict[str, None] = {}
        others: dict[str, None] = {}
        for issue in [needed[each] for each in todo if each in needed]:
            for target, kind in issue.dependencies:
                if kind == "waits-for":  # For the children of an issue, which any row may be.
                    return None
                (parents if kind == PARENT else others)[target] = None
        needed.update(look([each for each in others if each not in needed]))
        todo = {each: None for each in parents if each not in walked}
    return needed


def startable(found: Iterable[Standing], actor: str | None) -> list[Issue]:
    """Returns the issues that `actor` could start or continue now, as `by_urgency` sorts them."""
    return by_urgency(each.issue for each in found if each.startable(actor))


def is_work(issue: Issue) -> bool:
    """Returns whether an issue is work: no template, and nothing that Beads keeps for itself."""
    # Asked of every row of the tracker, so it reads the fields themselves.
    kind = issue.get("issue_type")
    return not (
        (isinstance(kind, str) and kind in NOT_WORK and not _is_document(issue))
        or issue.get("is_template") is True
        or issue.get("status") == "tombstone"
        or WISP in issue.id
    )


def blockers_of(issue: Issue, issues: Mapping[str, Issue]) -> list[str]:
    """Returns the ids that this issue itself waits for, in the order of its row."""
    return _blockers(issue, issue.dependencies, issues, _children(issues.values()))


class _Open:
    """The issues that are not done, and what they depend on."""

    def __init__(self, issues: Mapping[str, Issue]) -> None:
        self._issues = issues
        self.needs = {key: one.dependencies for key, one in issues.items() if not one.done}
        """What each depends on, with the kind of dependency."""
        self.children: dict[str, list[str]] = {}
        """The children of each that are not done themselves."""
        waits_for_children = False
        for key, needs in self.needs.items():
            for target, kind in needs:
                if kind == PARENT:
                    self.children.setdefault(target, []).append(key)
                waits_for_children = waits_for_children or kind == "waits-for"
        # Only who waits for the children of another issue asks which of them are done.
        self._family = _children(issues.values()) if waits_for_children else {}

    def blockers(self) -> dict[str, list[str]]:
        """Returns what blocks each issue: its own blockers, or its nearest blocked parent's."""
        blockers = {
            key: own
            for key, needs in self.needs.items()
            if needs and (own := _blockers(self._issues[key], needs, self._issues, self._family))
        }
        for child, parent in _below([*blockers], self.children, self._issues):
            blockers[child] = blockers[parent]
        return blockers


def _below(
    level: Sequence[str], children: Mapping[str, Sequence[str]], issues: Mapping[str, Issue]
) -> Iterator[tuple[str, str]]:
    """Yields the issues below these, each with its nearest parent, the nearest issues first. Of
    several, it is the first in the issue's own row: in any order of issues the same.
    """
    seen = {*level}
    while level:
        here = {*level}
        nearest = {
            child: next(x for x, kind in issues[child].dependencies if kind == PARENT and x in here)
            for parent in level
            for child in children.get(parent, ())
            if child not in seen
        }
        yield from nearest.items()
        seen.update(nearest)
        level = [*nearest]


def missing_blockers(issues: Mapping[str, Issue]) -> list[tuple[str, str]]:
    """Returns (issue, blocker) for each blocker that the file does not have."""
    return sorted(
        (issue.id, target)
        for issue in issues.values()
        if not issue.done
        for target, kind in issue.dependencies
        if kind in BLOCKING and target not in issues
    )


def by_urgency(issues: Iterable[Issue]) -> list[Issue]:
    """Returns the issues, most urgent first, then oldest."""
    return sorted(issues, key=urgency)


def urgency(issue: Issue) -> tuple[object, ...]:
    """Returns what issues are sorted by: most urgent first, then oldest."""
    return (issue.priority, issue.age)


def counts(found: Iterable[Standing], *, done: int = 0) -> dict[str, int]:
    """Returns how many issues there are in each state, and `total`; `done` more are done."""
    states = [each.state for each in found]
    of_each = {state: states.count(state) for state in STATES}
    return {**of_each, "done": of_each["done"] + done, "total": len(states) + done}


def _nobody(issues: list[Issue]) -> Occupied:
    return (), (), ()


def in_order_to_take(
    open_: Mapping[str, Standing],
    *,
    actor: str | None,
    occupied: Callable[[list[Issue]], Occupied] = _nobody,
) -> Iterator[Issue]:
    """Yields the open issues that an actor could take, the critical path first: see `in_order`."""
    return in_order(_ranked(open_, actor), occupied)


def _ranked(open_: Mapping[str, Standing], actor: str | None) -> Iterator[tuple[Rank, Issue]]:
    """Yields what an actor could take by rank and age. The work behind the less urgent is only
    added up once it is their turn.
    """
    waits = Waits(open_)
    urgent: dict[int, list[Issue]] = {}
    for key, each in open_.items():
        if each.takeable(actor):
            urgent.setdefault(waits.urgency[key], []).append(each.issue)
    for priority in sorted(urgent):
        ranked = [
            ((priority, -waits.chain[each.id], -waits.work_behind(each.id)), each)
            for each in urgent[priority]
        ]
        yield from sorted(ranked, key=lambda each: (each[0], each[1].age))


def in_order(
    ranked: Iterable[tuple[Rank, Issue]], occupied: Callable[[list[Issue]], Occupied]
) -> Iterator[Issue]:
    """Yields issues in the order in which to take them; they come by rank, then by age.

    First the priority, which an issue shares with those that wait for it; then those whose files
    nobody else has reserved; then the longest chain of work that waits for it; then all the work
    that waits for it; then those whose files nobody else is in; then those that the actor knows its
    way about; then the oldest. `occupied` says that of some issues at a time, only as far as issues
    are taken.
    """
    for _, urgent in groupby(ranked, key=lambda each: each[0][0]):
        later: list[Issue] = []
        for _, alike in groupby(urgent, key=lambda each: each[0]):
            issues = (issue for _, issue in alike)
            held: list[Issue] = []
            contested: list[Issue] = []
            held_and_contested: list[Issue] = []
            while some := list(islice(issues, _AT_ONCE)):
                reserved, shared, known = occupied(some)
                for each in sorted(some, key=lambda issue: issue.id not in known):
                    if each.id in reserved:
                        (held_and_contested if each.id in shared else held).append(each)
                    elif each.id in shared:
                        contested.append(each)
                    else:
                        yield each
            yield from contested
            later += [*held, *held_and_contested]
        yield from later


class Waits:
    """What waits for each open issue: right where all that waits for it is among `open_`."""

    def __init__(self, open_: Mapping[str, Standing], usual: float | None = None) -> None:
        self._blockers = {
            key: [blocker for blocker in each.waits_for if blocker in open_]
            for key, each in open_.items()
        }
        self._behind: dict[str, list[str]] = {key: [] for key in open_}
        for key, blockers in self._blockers.items():
            for blocker in blockers:
                self._behind[blocker].append(key)
        estimates = {key: estimate(each.issue) for key, each in open_.items()}
        known = sorted(each for each in estimates.values() if each)
        # The median: what an issue without an estimate takes.
        self.usual: float = usual or (known[len(known) // 2] if known else 1.0)
        self._minutes = {key: minutes or self.usual for key, minutes in estimates.items()}
        self.urgency: dict[str, int] = {key: each.issue.priority for key, each in open_.items()}
        """The most urgent priority among the issue and those behind it."""
        self.chain: dict[str, float] = dict(self._minutes)
        """The longest time from the start of the issue to the end of what is behind it."""
        self._follow()

    def work_behind(self, issue_id: str) -> float:
        """Returns the time that all issues behind this one take together."""
        seen: set[str] = set()
        todo = [issue_id]
        while todo:
            for each in self._behind[todo.pop()]:
                if each not in seen:
                    seen.add(each)
                    todo.append(each)
        return fsum(self._minutes[each] for each in seen)  # In any order, the same.

    def _follow(self) -> None:
        """Computes urgency and chains from the ends backwards, without issues in a circle."""
        left = {key: len(behind) for key, behind in self._behind.items()}
        ends = [key for key, count in left.items() if not count]
        while ends:
            last = ends.pop()
            for each in self._blockers[last]:
                self.urgency[each] = min(self.urgency[each], self.urgency[last])
                chain = self._minutes[each] + self.chain[last]
                self.chain[each] = max(self.chain[each], chain)
                left[each] -= 1
                if not left[each]:
                    ends.append(each)


def estimate(issue: Issue) -> float | None:
    """Returns the minutes that an issue is said to take, or None."""
    minutes = issue.get("estimated_minutes")
    if not isinstance(minutes, int | float) or isinstance(minutes, bool):
        return None
    return minutes if 0 < minutes < _MOST_MINUTES else None


def _children(issues: Iterable[Issue]) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for issue in issues:
        for target, kind in issue.dependencies:
            if kind == PARENT:
                children.setdefault(target, []).append(issue.id)
    return children


def _blockers(
    issue: Issue,
    needs: Iterable[tuple[str, str]],
    issues: Mapping[str, Issue],
    children: Mapping[str, list[str]],
) -> list[str]:
    found: list[str] = []
    for target, kind in needs:
        if kind == "waits-for":
            found += _unfinished_children(issue, target, issues, children)
        elif kind in BLOCKING and target in issues and _blocks(issues[target], kind):
            found.append(target)
    return list(dict.fromkeys(found))


def _blocks(target: Issue, kind: str) -> bool:
    """Returns whether an issue blocks those that depend on it in this way."""
    if not target.done:
        return target.status != "pinned"
    if kind == "blocks" or target.status == "tombstone":
        return False
    reason = target.get("close_reason")
    return not (isinstance(reason, str) and _says_failure(reason))


def _says_failure(reason: str) -> bool:
    return re.search(rf"\b(?:{'|'.join(_FAILED)})\b", reason.lower()) is not None


def _unfinished_children(
    issue: Issue, spawner: str, issues: Mapping[str, Issue], children: Mapping[str, list[str]]
) -> list[str]:
    """Returns the children of an issue that a `waits-for` waits for.

    All of them, or, with the gate `any-children`, all until one is done.
    """
    known = [issues[each] for each in children.get(spawner, ()) if each != issue.id]
    unfinished = [each.id for each in known if not each.done and each.status != "pinned"]
    first_is_enough = issue.waits_for_any_child_of(spawner)
    return [] if first_is_enough and any(each.done for each in known) else unfinished


def _deferred(issues: Mapping[str, Issue], now_ms: int) -> dict[str, str]:
    """Returns the issues that are deferred, with all their children, each with the reason."""
    deferred: dict[str, str] = {}
    for issue in issues.values():
        until = issue.get("defer_until")
        if until is not None and (instant_ms(until) or 0) > now_ms:
            deferred[issue.id] = f"it is deferred until {until}"
        elif issue.get("status") == "deferred":
            deferred[issue.id] = "it is deferred"
    if deferred:
        for child, parent in _below([*deferred], _children(issues.values()), issues):
            deferred[child] = f"its parent {parent} is deferred"
    return deferred


def _set_aside(issue: Issue) -> str | None:
    # Asked of every open issue, and so is the next question below: they read the fields themselves.
    if not is_issue_id(issue.id):  # Nobody could complete it, or give it back.
        return "its id is not one word"
    if fault := id_fault(issue.id):  # Somebody else made it: no program is to be misled by it.
        return f"its id {fault}"
    if issue.get("pinned") is True or issue.get("status") == "pinned":
        return "it is pinned"
    if issue.get("ephemeral") is True:
        return "it is ephemeral"
    if (labels := issue.get("labels")) and isinstance(labels, list) and HUMAN in labels:
        return "a person decides it"
    return _other_status(issue)


def _is_document(issue: Issue) -> bool:
    """Returns whether an issue is a bead in a file of its own, whose types are others."""
    metadata = issue.get("metadata")
    return isinstance(metadata, dict) and "bead_file" in metadata


def _other_status(issue: Issue) -> str | None:
    """Returns why its status keeps it from being started, or None. Somebody has begun one that is
    in progress: who, only its assignee says.
    """
    is_begun = issue.status == "in_progress" and not issue.assignee
    return f"its status is {issue.status}" if is_begun or issue.status not in WORKABLE else None


def _named_by_tracker(issue: Issue) -> str | None:
    return (issue.assignee or None) if issue.get("status") == "in_progress" else None
