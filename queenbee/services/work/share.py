"""The share of the work that a droid is offered with its issue: what belongs with that, and is
nobody else's share.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from queenbee.store.droids import offers, roster
from queenbee.store.git_trees import linked_trees_since

if TYPE_CHECKING:
    from queenbee.core.beads import Issue
    from queenbee.services.hive import Services
    from queenbee.services.work.shared_files import Subjects

_MOST = 4
"""So many further issues are offered with one: they are done at once, or not by this droid."""
_FAR = 20
"""What is so many times less about the same than the nearest issue belongs to another share."""
_LOOKED_AT = 200
_HERE_MS = 5 * 60_000
"""A droid that acted within this time is there to take a part of the work."""
_BEGUN_MS = 15 * 60_000
"""A worktree that git wrote for within this time is somebody's who works, or is about to."""


def offered_share(hive: Services, issue: Issue, subjects: Subjects, *, again: bool) -> list[Issue]:
    """Returns the issues that are held for the actor now, to be done with this one: those that wait
    for nothing else, and those about the same as it if nobody waits for these. With `again`, what
    was offered before. What is about files everywhere is done alone.

    It is an equal share of what is ready, so that it gets smaller towards the end.
    """
    now_ms, actor = hive.now_ms(), hive.own_actor
    held = offers.held(hive.layout, now_ms)
    if again:
        mine = hive.issues.standings_of(key for key, droid in held.items() if droid == actor)
        may = {issue.id, *mine}
        return [each.issue for each in mine.values() if each.state == "ready" or each.follows(may)]
    team, open_ = roster.looked_after(hive.layout, actor), list(hive.issues.open().values())
    left = sum(each.state == "ready" for each in open_)
    waited_for = Counter(key for each in open_ for key in each.waits_for)
    behind: dict[str, Issue] = {}
    near: dict[str, tuple[float, Issue]] = {}
    for each in open_[:_LOOKED_AT]:
        key = each.issue.id
        if held.get(key, actor) != actor or (team is not None and not team.may_take(each.issue)):
            continue
        if issue.is_across or each.issue.is_across:
            continue
        if each.follows({issue.id, *behind}):
            # What others wait for as well is to land soon.
            if all(waited_for[one] == 1 for one in each.waits_for):
                behind[key] = each.issue
        elif each.state == "ready" and not waited_for[key]:
            near[key] = subjects.nearness(issue, each.issue), each.issue
    nearest = sorted(near.values(), key=lambda each: -each[0])
    least = nearest[0][0] / _FAR if nearest else 0
    taken = {issue.id, *behind}
    if any(taken & {*each.waits_for} for each in open_ if each.issue.id not in taken):
        nearest = []  # More would make it land later.
    wanted = behind | {each.id: each for nearness, each in nearest if nearness > least}
    # What waits for this one alone is nobody else's work before: one of it costs nobody time.
    droids = _droids_here(hive, now_ms, {each.holder for each in open_ if each.holder})
    most = max(bool(behind), left // droids)
    given = offers.offer(hive.layout, actor, list(wanted), min(most, _MOST), now_ms)
    return [wanted[each] for each in given]


def _droids_here(hive: Services, now_ms: int, at_work: set[str]) -> int:
    """Returns how many take a part of the work: who has acted, and at least one for each worktree
    in which somebody has begun, also if that one has not asked for work yet.
    """
    seen = hive.droids.seen_here().items()
    here = {name for name, at_ms in seen if at_ms > now_ms - _HERE_MS}
    team = (each.name for each in roster.everybody(hive.layout))
    trees = linked_trees_since(hive.layout.common_dir or "", now_ms - _BEGUN_MS)
    return max(trees, len({hive.own_actor, *here, *team, *at_work}))
