"""Which issues are about files that somebody is in.

An issue names its files in its text (`src/app.py`, `README.md`): those that exist in the working
tree count.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from queenbee.core.beads import named_in
from queenbee.services.work.members import live_leases

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from queenbee.core.beads import Issue
    from queenbee.core.readiness import Standing
    from queenbee.services.hive import Services
    from queenbee.services.tracker.view import View


def files_of(issue: Issue, tree: str) -> set[str]:
    """Returns the files of the working tree that the texts of an issue name, from its root."""
    return existing(named_in(issue), tree)


def existing(names: Iterable[str], tree: str) -> set[str]:
    """Returns the names that are files of the working tree, from its root."""
    return {each for each in names if os.path.isfile(os.path.join(tree, each))}


class Occupied:
    """Which startable issues name files that others have reserved, or are in."""

    def __init__(self) -> None:
        self.reserved: set[str] = set()
        """The issues that name a file which another droid holds."""
        self.contested: set[str] = set()
        """The issues that name a file which an issue of another droid names too."""


def occupied(hive: Services, found: Mapping[str, Standing], actor: str) -> Occupied:
    """Returns which startable issues are about files that others hold or are in."""
    tree = hive.layout.tree
    busy = {
        path
        for each in found.values()
        if each.state == "active" and each.holder != actor
        for path in files_of(each.issue, tree)
    }
    result = Occupied()
    has_leases = any(lease.droid != actor for lease in live_leases(hive))
    if not busy and not has_leases:
        return result
    named = {
        each.issue.id: files_of(each.issue, tree)
        for each in found.values()
        if each.startable(actor)
    }
    held = _held(hive, named) if has_leases else set()
    for issue_id, files in named.items():
        if files & busy:
            result.contested.add(issue_id)
        if files & held:
            result.reserved.add(issue_id)
    return result


def _held(hive: Services, named: Mapping[str, set[str]]) -> set[str]:
    """Returns those of these files that others hold."""
    # Each file once: many issues name the same ones.
    paths = sorted(set().union(*named.values()))
    checked = hive.reservations.check(paths) if paths else []
    return {path for path, one in zip(paths, checked, strict=True) if one.status == "held"}


class Ready:
    """The first issues that are ready, how many there are, and how many in each state."""

    def __init__(self, issues: list[Issue], count: int, counts: dict[str, int]) -> None:
        self.issues = issues
        self.count = count
        self.counts = counts


def first_to_take(
    hive: Services, actor: str, most: int, *, without: Collection[str]
) -> list[Issue] | None:
    """Returns the first issues that an actor could start, as `in_order_to_take` orders them, or
    None if there is no index: then ask that.
    """
    return hive.issues.ask_index(lambda view: _to_take(hive, view, actor, actor, most, without))


def first_ready(hive: Services, actor: str | None, most: int | None) -> Ready | None:
    """Returns the first issues that are ready, or all, and how many there are; None if there is no
    index.
    """

    def asked(view: View) -> Ready:
        issues = _to_take(hive, view, None, actor or "", most, ())
        return Ready(issues, view.ready_to_take(), view.counts())

    return hive.issues.ask_index(asked)


def _to_take(
    hive: Services,
    view: View,
    holder: str | None,
    actor: str,
    most: int | None,
    without: Collection[str],
) -> list[Issue]:
    tree = hive.layout.tree
    others = view.names_of(view.held_by_others(actor)).values()
    busy = existing(set().union(*others), tree)

    def reserved(named: Mapping[str, set[str]]) -> Collection[str]:
        here = {each: existing(names, tree) for each, names in named.items()}
        held = _held(hive, here)
        return {each for each, names in here.items() if names & held}

    has_leases = any(lease.droid != actor for lease in live_leases(hive))
    ids = view.to_take(
        holder,
        reserved=reserved if has_leases else None,
        contested=view.naming(busy),
    )
    first = islice((each for each in ids if each not in without), most)
    return list(view.issues(list(first)).values())
