"""What keeps an issue from being started, and which of the ready ones to take first.

`docs/format.md`, section "Issues". The rules for dependencies and for what is not work are those
of `bd ready`.
"""

from __future__ import annotations

import re
from itertools import groupby, islice
from math import fsum

from queenbee.core.timestamps import instant_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from queenbee.core.beads import Issue

    Work = tuple[int, float | None, Sequence[str]]
    """The priority of an open issue, its estimate in minutes, and what it waits for."""
    Rank = tuple[int, float, float]
    """The urgency of an issue that can be started, the longest chain behind it, and all the work
    behind it."""

PARENT = "parent-child"
BLOCKING = frozenset({"blocks", "conditional-blocks", "waits-for"})
STATES = ("done", "active", "ready", "waits", "on_hold")
WORKABLE = frozenset({"open", "in_progress"})
NOT_WORK = frozenset({"merge-request", "gate", "molecule", "message", "agent", "role", "rig"})
"""Types of issues that Beads keeps for itself."""
_MOST_MINUTES = 10**9
_AT_ONCE = 32
"""Issues of which `ranked` asks at once whether they are reserved."""
_WISP = "-wisp-"
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
    holds it back; `holder` is the droid that has it.
    """

    __slots__ = ("because", "holder", "issue", "waits_for")

    def __init__(
        self, issue: Issue, *, holder: str | None, waits_for: list[str], because: str | None
    ) -> None:
        self.issue = issue
        self.holder = holder
        self.waits_for = waits_for
        self.because = because

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

    def to_dict(self) -> dict[str, object]:
        """Returns the issue's fields with its `state`, `holder`, `waits_for` and `because`."""
        return {
            **self.issue.to_dict(),
            "state": self.state,
            "holder": self.holder,
            "waits_for": self.waits_for,
            "because": self.because,
        }


def standings(
    issues: Mapping[str, Issue],
    *,
    holders: Mapping[str, str],
    now_ms: int,
    held_back: Mapping[str, str],
    everything: bool = False,
) -> dict[str, Standing]:
    """Returns where each issue stands that is work for droids, or, with `everything`, each.

    `holders` gives the droid with the active assignment of an issue; `held_back` says why
    something other than the tracker holds an issue back, such as a gate that has not passed.
    """
    blockers = all_blockers(issues)
    deferred = _deferred(issues, now_ms)

    def standing(identifier: str, issue: Issue) -> Standing:
        if issue.done:
            return Standing(issue, holder=None, waits_for=[], because=None)
        return Standing(
            issue,
            holder=holders.get(identifier) or _named_by_tracker(issue),
            waits_for=blockers.get(identifier, []),
            because=deferred.get(identifier) or _set_aside(issue) or held_back.get(identifier),
        )

    return {
        identifier: standing(identifier, issue)
        for identifier, issue in issues.items()
        if (everything and issue.status != "tombstone") or is_work(issue)
    }


def startable(found: Iterable[Standing], actor: str | None) -> list[Issue]:
    """Returns the issues that `actor` could start or continue now, as `by_urgency` sorts them."""
    return by_urgency(each.issue for each in found if each.startable(actor))


def is_work(issue: Issue) -> bool:
    """Returns whether an issue is work at all: no template, and nothing that Beads keeps for
    itself or throws away.
    """
    return not (
        (issue.issue_type in NOT_WORK and not _is_document(issue))
        or issue.template
        or _WISP in issue.id
        or issue.status == "tombstone"
    )


def blockers_of(issue: Issue, issues: Mapping[str, Issue]) -> list[str]:
    """Returns the ids that this issue itself waits for, in the order of its row."""
    return _blockers(issue, issues, _children(issues))


def all_blockers(issues: Mapping[str, Issue]) -> dict[str, list[str]]:
    """Returns what each blocked issue waits for: its own blockers, or else those of the nearest
    parent that has some.
    """
    children = _children(issues)
    blockers = {
        identifier: own
        for identifier, issue in issues.items()
        if not issue.done and (own := _blockers(issue, issues, children))
    }
    waiting = list(blockers)
    for parent in waiting:  # It grows meanwhile.
        for child in children.get(parent, ()):
            if child not in blockers:
                blockers[child] = blockers[parent]
                waiting.append(child)
    return blockers


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


def counts(found: Iterable[Standing]) -> dict[str, int]:
    """Returns how many issues there are in each state, and `total`."""
    states = [each.state for each in found]
    return {**{state: states.count(state) for state in STATES}, "total": len(states)}


def in_order_to_take(
    found: Mapping[str, Standing],
    *,
    actor: str | None,
    reserved: Collection[str] = (),
    contested: Collection[str] = (),
) -> list[Issue]:
    """Returns the issues that a droid could start, in the order that ends the plan soonest.

    First the priority, which an issue shares with those that wait for it; then those that are not
    in `reserved`, which would have to wait for a file; then the longest chain of work that waits
    for it; then all the work that waits for it; then those that are not in `contested`, whose files
    somebody is in; then the oldest.

    An issue with open children is not work yet, but its children are.
    """
    open_ = {key: work_of(each) for key, each in found.items() if not each.issue.done}
    waits = Waits(open_, usual_minutes(minutes for _, minutes, _ in open_.values()))
    parents = {
        target
        for each in found.values()
        if not each.issue.done
        for target, kind in each.issue.dependencies
        if kind == PARENT
    }
    startable = [
        each.issue
        for each in found.values()
        if each.startable(actor) and each.issue.id not in parents
    ]
    return sorted(
        startable,
        key=lambda issue: (
            waits.urgency[issue.id],
            issue.id in reserved,
            -waits.chain[issue.id],
            -waits.work_behind(issue.id),
            issue.id in contested,
            issue.age,
        ),
    )


def ranked(
    candidates: Iterable[tuple[str, Rank]],
    *,
    reserved: Callable[[Sequence[str]], Collection[str]],
    contested: Collection[str],
) -> Iterator[str]:
    """Yields ids in the order of `in_order_to_take`, from candidates in the order of their ranks
    and then their age. It asks which are `reserved` only as far as ids are taken from it.
    """
    for _, urgent in groupby(candidates, key=lambda each: each[1][0]):
        later: list[str] = []
        for _, alike in groupby(urgent, key=lambda each: each[1]):
            free_later: list[str] = []
            held: list[str] = []
            held_later: list[str] = []
            ids = (identifier for identifier, _ in alike)
            while some := list(islice(ids, _AT_ONCE)):
                taken = reserved(some)
                for each in some:
                    if each in taken:
                        (held_later if each in contested else held).append(each)
                    elif each in contested:
                        free_later.append(each)
                    else:
                        yield each
            yield from free_later
            later += [*held, *held_later]
        yield from later


def work_of(standing: Standing) -> Work:
    """Returns what an open issue adds to the work behind others."""
    issue = standing.issue
    return issue.priority, estimate(issue), standing.waits_for


def usual_minutes(estimates: Iterable[float | None]) -> float:
    """Returns the median of the estimates that there are: what an issue without one takes."""
    known = sorted(each for each in estimates if each)
    return known[len(known) // 2] if known else 1.0


class Waits:
    """What waits for each open issue. Right for an issue if all that waits for it, directly or
    not, is among `open_`.
    """

    def __init__(self, open_: Mapping[str, Work], usual: float) -> None:
        self._behind: dict[str, list[str]] = {key: [] for key in open_}
        for key, (_, _, waits_for) in open_.items():
            for blocker in waits_for:
                if blocker in self._behind:
                    self._behind[blocker].append(key)
        self._minutes = {key: minutes or usual for key, (_, minutes, _) in open_.items()}
        self.urgency = {key: priority for key, (priority, _, _) in open_.items()}
        """The most urgent priority among the issue and those behind it."""
        self.chain = dict(self._minutes)
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
        """Computes urgency and chains from the ends backwards; issues in a circle are left out,
        since nobody can start them.
        """
        blockers: dict[str, list[str]] = {key: [] for key in self._behind}
        left = {key: len(behind) for key, behind in self._behind.items()}
        for key, behind in self._behind.items():
            for each in behind:
                blockers[each].append(key)
        ends = [key for key, count in left.items() if not count]
        while ends:
            last = ends.pop()
            for each in blockers[last]:
                self.urgency[each] = min(self.urgency[each], self.urgency[last])
                chain = self._minutes[each] + self.chain[last]
                self.chain[each] = max(self.chain[each], chain)
                left[each] -= 1
                if not left[each]:
                    ends.append(each)


def estimate(issue: Issue) -> float | None:
    """Returns the minutes that an issue is said to take, or None."""
    minutes = issue.fields.get("estimated_minutes")
    if not isinstance(minutes, int | float) or isinstance(minutes, bool):
        return None
    return minutes if 0 < minutes < _MOST_MINUTES else None


def _children(issues: Mapping[str, Issue]) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for issue in issues.values():
        for target, kind in issue.dependencies:
            if kind == PARENT:
                children.setdefault(target, []).append(issue.id)
    return children


def _blockers(
    issue: Issue, issues: Mapping[str, Issue], children: Mapping[str, list[str]]
) -> list[str]:
    found: list[str] = []
    for target, kind in issue.dependencies:
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
    reason = target.fields.get("close_reason")
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
        until = issue.fields.get("defer_until")
        if (instant_ms(until) or 0) > now_ms:
            deferred[issue.id] = f"it is deferred until {until}"
        elif issue.status == "deferred":
            deferred[issue.id] = "it is deferred"
    if not deferred:
        return deferred
    children = _children(issues)
    waiting = list(deferred)
    while waiting:
        parent = waiting.pop()
        for child in children.get(parent, ()):
            if child not in deferred:
                deferred[child] = f"its parent {parent} is deferred"
                waiting.append(child)
    return deferred


def _set_aside(issue: Issue) -> str | None:
    if issue.pinned or issue.status == "pinned":
        return "it is pinned"
    if issue.ephemeral:
        return "it is ephemeral"
    return _other_status(issue)


def _is_document(issue: Issue) -> bool:
    """Returns whether an issue is a bead in a file of its own, whose types are others."""
    metadata = issue.fields.get("metadata")
    return isinstance(metadata, dict) and "bead_file" in metadata


def _other_status(issue: Issue) -> str | None:
    return None if issue.status in WORKABLE else f"its status is {issue.status}"


def _named_by_tracker(issue: Issue) -> str | None:
    return (issue.assignee or None) if issue.status == "in_progress" else None
