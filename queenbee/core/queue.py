"""Who waits for what, and who has to let whom go first.

Whoever began to wait first is served first, among those whose wishes exclude each other. ADR 0020.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from queenbee.core.leases import exclude
from queenbee.core.text import mentioned
from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.errors import BadPattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from queenbee.core.records import Reservation


class Want:
    """What a droid wants: leases on patterns, one issue, or any issue that is ready."""

    __slots__ = ("any_issue", "exclusive", "issue_id", "patterns", "tree_id")

    def __init__(
        self,
        patterns: Iterable[str] = (),
        *,
        exclusive: bool = True,
        tree_id: str | None = None,
        issue_id: str | None = None,
        any_issue: bool = False,
    ) -> None:
        self.patterns: tuple[str, ...] = tuple(patterns)
        """From the root."""
        self.exclusive: bool = exclusive
        self.tree_id: str | None = tree_id
        """The working tree to announce an edit in, if the leases need not be exclusive."""
        self.issue_id: str | None = issue_id
        self.any_issue: bool = any_issue

    @classmethod
    def of(cls, lease: Reservation) -> Want:
        """Returns the wish that a lease fulfils."""
        tree_id = None if lease.exclusive else lease.tree_id
        return cls([lease.pattern], exclusive=lease.exclusive, tree_id=tree_id)

    def __str__(self) -> str:
        if self.patterns:
            return ", ".join(self.patterns)
        return self.issue_id or "any issue"

    def shown(self) -> str:
        """Returns what is wanted, for a sentence; others' text cannot leave its quotes."""
        if self.patterns or self.issue_id is None:
            return ", ".join(map(mentioned, self.patterns)) or "any issue"
        return mentioned(self.issue_id)

    def to_dict(self) -> dict[str, object]:
        """Returns what is wanted, without what is not."""
        if self.patterns:
            here = {"tree_id": self.tree_id} if self.tree_id else {}
            return {"patterns": list(self.patterns), "exclusive": self.exclusive, **here}
        return {"issue_id": self.issue_id} if self.issue_id else {"any_issue": self.any_issue}


@dataclass(slots=True, eq=False)
class Waiter:
    """A droid that waits, as of when it was looked at."""

    name: str
    """A ULID; the order of the names is the order of the line."""
    droid: str
    want: Want
    _: KW_ONLY
    since_ms: int
    until_ms: int
    """When it gives up."""
    pid: int

    @classmethod
    def read(cls, name: str, fields: Mapping[str, object]) -> Waiter | None:
        """Returns the waiter that an entry describes, or None if it describes none."""
        droid, pid, issue_id = (fields.get(key) for key in ("droid", "pid", "issue_id"))
        tree_id = fields.get("tree_id")
        patterns = fields.get("patterns", [])
        since_ms, until_ms = instant_ms(fields.get("since")), instant_ms(fields.get("until"))
        if not isinstance(droid, str) or since_ms is None or until_ms is None:
            return None
        want = Want(
            (each for each in patterns if isinstance(each, str))
            if isinstance(patterns, list)
            else (),
            exclusive=fields.get("exclusive") is not False,
            tree_id=tree_id if isinstance(tree_id, str) else None,
            issue_id=issue_id if isinstance(issue_id, str) else None,
            any_issue=fields.get("any_issue") is True,
        )
        pid = pid if isinstance(pid, int) else 0
        return cls(name, droid, want, since_ms=since_ms, until_ms=until_ms, pid=pid)

    def to_dict(self) -> dict[str, object]:
        """Returns who waits for what, and since when."""
        return {
            "droid": self.droid,
            **self.want.to_dict(),
            "since": format_ms(self.since_ms),
            "until": format_ms(self.until_ms),
            "pid": self.pid,
        }


def clash(one: Want, other: Want, *, fold_case: bool = False) -> str | None:
    """Returns what the two wishes cannot share (a path, or an issue), or None.

    A wish with an unreadable pattern shares everything else.
    """
    if one.issue_id is not None and one.issue_id == other.issue_id:
        return one.issue_id
    if one.any_issue and other.any_issue:
        return "any issue"
    if not (one.patterns and other.patterns) or not exclude(one, other):
        return None
    from queenbee.core.glob.pattern import overlap  # noqa: PLC0415 - start-up

    for mine in one.patterns:
        for theirs in other.patterns:
            try:
                witness = overlap(mine, theirs, fold_case=fold_case)
            except BadPattern:
                continue
            if witness is not None:
                return witness
    return None


def ahead(
    want: Want,
    droid: str,
    line: Iterable[Waiter],
    *,
    before: str | None = None,
    fold_case: bool = False,
) -> list[Waiter]:
    """Returns those in the line whom this wish has to let go first.

    These are other droids' waiters whose wishes clash with it; with `before`, only those who have
    waited longer than the entry of that name. A droid never waits for itself.
    """
    return [
        each
        for each in line
        if each.droid != droid
        and (before is None or each.name < before)
        and clash(want, each.want, fold_case=fold_case) is not None
    ]


def circle(
    droid: str,
    first: Sequence[str | Waiter],
    line: Sequence[Waiter],
    blockers: Callable[[Waiter], Sequence[str | Waiter]],
) -> list[Waiter]:
    """Returns waiters that wait, each for the next and the last for `droid`; empty if none do.

    `first` is what the droid's new wish would wait for. A blocker is the name of a droid that has
    to end a lease, or a waiter that is ahead. A droid that waits is taken to do nothing else.
    """
    seen: set[str] = set()

    def walk(blocked_by: Sequence[str | Waiter]) -> list[Waiter]:
        for each in blocked_by:
            if each == droid:
                continue
            waiting = [each] if isinstance(each, Waiter) else _of(each, line)
            for waiter in waiting:
                if waiter.droid == droid or waiter.name in seen:
                    continue
                seen.add(waiter.name)
                next_ones = blockers(waiter)
                if droid in next_ones:
                    return [waiter]
                found = walk(next_ones)
                if found:
                    return [waiter, *found]
        return []

    return walk(first)


def ordinal(number: int) -> str:
    """Returns a place in a line: `1st`, `2nd`, `11th`."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def _of(droid: str, line: Sequence[Waiter]) -> list[Waiter]:
    return [each for each in line if each.droid == droid]
