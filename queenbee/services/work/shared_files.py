"""Which issues are about files that somebody is in, and which of them to take first.

An issue names its files in its text (`src/app.py`, `README.md`): those that exist in the working
tree count.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from queenbee.core.beads import named_in, subjects_of
from queenbee.core.conflicts.appended import everybody_appends_to
from queenbee.services.waiting.landing_record import issues_landing
from queenbee.services.work.members import live_leases

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from queenbee.core.beads import Issue
    from queenbee.core.readiness import Occupied
    from queenbee.services.hive import Services


_LOOKED_AT = 200
"""The ready issues that are read to tell what is rare."""
_NEXT_TO_NOTHING = 0.001
_FEW = 4
"""What fewer issues name tells them apart, however few there are."""
_LAST = 5
"""Issues that a droid completed before these are no longer in its context."""


def files_of(issue: Issue, hive: Services) -> set[str]:
    """Returns the files of the working tree that the texts of an issue name, from its root; in a
    linked worktree without those in which landing keeps what everybody adds.
    """
    layout = hive.layout
    join = layout.settings.land_join if layout.worktree is not None else "off"
    return {
        each
        for each in named_in(issue)
        if os.path.isfile(os.path.join(layout.tree, each))
        and not everybody_appends_to(each, join, layout.settings.land_union)
    }


class Subjects:
    """What open issues are about. What half of them or more name, such as a list of all functions,
    says nothing about any of them.
    """

    def __init__(self, hive: Services, at_work: Iterable[Issue]) -> None:
        self._hive = hive
        self._at_work = at_work
        self._of_issues: dict[str, set[str]] = {}

    @cached_property
    def _counts(self) -> tuple[Counter[str], float]:
        """How many of the open issues name each thing, and from how many on it says nothing."""
        ready = self._hive.issues.in_order(None, lambda _: ((), (), ()))
        looked_at = [*self._at_work, *islice(ready, _LOOKED_AT)]
        named = Counter(name for each in looked_at for name in self._of(each))
        return named, max(_FEW, len(looked_at) / 2)

    def _of(self, issue: Issue) -> set[str]:
        if issue.id not in self._of_issues:
            self._of_issues[issue.id] = subjects_of(issue)
        return self._of_issues[issue.id]

    def files(self, issue: Issue) -> set[str]:
        """Returns those of its `files_of` that say something."""
        return {each for each in files_of(issue, self._hive) if self._says_something(each)}

    def nearness(self, issue: Issue, other: Issue) -> float:
        """Returns how much of two issues is about the same: what few issues name counts more, and
        what most of them name next to nothing.
        """
        named, _ = self._counts
        return sum(
            1 / max(1, named[each]) if self._says_something(each) else _NEXT_TO_NOTHING
            for each in self._of(issue) & self._of(other)
        )

    def _says_something(self, name: str) -> bool:
        named, common = self._counts
        return named[name] < common


def to_take(hive: Services, actor: str, *, free_only: bool = False) -> Iterator[Issue]:
    """Yields the open issues that an actor could take, in the order in which `queen next` takes
    them: those whose files others have reserved, are in, or have changed, that are landing, or that
    are about files everywhere while others are at work, come later; those that the actor has just
    made possible, or whose files were those of its last issues, come first. With `free_only`,
    without those that it has.
    """
    others = hive.issues.at_work(without=actor)
    landing = hive.issues.some(issues_landing(hive.layout, actor))
    at_work = [*(each.issue for each in others), *landing.values()]
    known = _Known(hive, actor)
    subjects = Subjects(hive, at_work) if at_work or known.issues else None
    busy = {path for each in at_work if subjects for path in subjects.files(each)}
    if at_work and hive.changed_by is not None:
        busy |= hive.changed_by(hive.layout, {str(each.holder) for each in others}, bool(landing))
    has_leases = any(lease.droid != actor for lease in live_leases(hive))

    def occupied(issues: Sequence[Issue]) -> Occupied:
        about = {each.id: subjects.files(each) for each in issues} if subjects else {}
        named = {each.id: files_of(each, hive) for each in issues} if has_leases else {}
        # Each file once: many issues name the same ones.
        paths = sorted(set().union(*named.values()))
        checked = hive.reservations.check(paths) if paths else []
        held = {path for path, one in zip(paths, checked, strict=True) if one.status == "held"}
        return (
            {key for key, files in named.items() if files & held},
            {each.id for each in issues if at_work and (each.is_across or about[each.id] & busy)},
            {each.id for each in issues if known.has(each, about.get(each.id, set()))},
        )

    return hive.issues.in_order(None if free_only else actor, occupied)


class _Known:
    """What an actor knows from the last issues that it completed: what waited for them, and their
    files.
    """

    def __init__(self, hive: Services, actor: str) -> None:
        done = hive.assignments.find(droid=actor, status="completed")
        last = sorted(done, key=lambda each: (each.updated_at, each.id))[-_LAST:]
        self.issues = {each.issue_id for each in last}
        found = hive.issues.some(self.issues)
        self._files = {path for each in found.values() for path in files_of(each, hive)}

    def has(self, issue: Issue, files: set[str]) -> bool:
        """Returns whether an issue builds on one of them, or is about one of their files."""
        needs = {key for key, _ in issue.dependencies}
        return bool(needs & self.issues or files & self._files)
