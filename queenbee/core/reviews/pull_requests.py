"""A pull request at a code host: what the host says of it, and the state that follows from that and
from what was pushed.

`state_of` is a function of its arguments alone: nothing here remembers what was before, so whatever
was missed meanwhile, the next answer of the host is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OPEN, MERGED_THERE, CLOSED_THERE = "OPEN", "MERGED", "CLOSED"
"""What the host says it is."""
LANDED, MERGED, PARTLY, CLOSED = "landed", "merged", "partly_landed", "closed"
FOREIGN, UNKNOWN, CONFLICT, FAILING = "foreign", "unknown", "conflict", "failing"
CHANGES, BEHIND, CHECKING, WAITING = "changes", "behind", "checking", "waiting"
DRAFT, QUEUED, READY = "draft", "queued", "ready"
STATES: Mapping[str, str] = {
    LANDED: "is merged, and the target has it",
    MERGED: "is merged, and the target is not seen with it yet",
    PARTLY: "is merged without what was pushed last",
    CLOSED: "was closed, and not merged",
    FOREIGN: "has commits of somebody else",
    UNKNOWN: "cannot be told",
    CONFLICT: "conflicts with the target",
    FAILING: "fails a check that the host requires",
    CHANGES: "is to be changed, says a review",
    BEHIND: "has to have the newest target",
    CHECKING: "is being checked",
    WAITING: "waits for a review or a rule of the host",
    DRAFT: "is a draft",
    QUEUED: "is in the merge queue",
    READY: "could be merged",
}
"""Each state, in words, in the order in which the first that is true counts."""
FOR_AGENT = frozenset({CONFLICT, FAILING, CHANGES, BEHIND, FOREIGN, PARTLY, CLOSED})
"""Those that its droid has to do something about: it is told, once."""
PASSED, FAILED, PENDING = "passed", "failed", "pending"
UNSURE = "UNSURE"
"""What a host says that does not tell a conflict from not having looked yet."""
_MERGEABLE = ("CLEAN", "HAS_HOOKS", "UNSTABLE")


@dataclass(frozen=True, slots=True)
class Check:
    """One check that the host knows of a commit; `state` is `passed`, `failed` or `pending`."""

    name: str
    state: str
    is_required: bool = True
    job: int = 0
    """The number of the job that has its log; 0 if there is none."""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Remark:
    """What somebody said at the host: a review, a comment at a line, or one on the whole."""

    id: str
    by: str
    body: str
    role: str
    """What its author is to the repository: `OWNER`, `MEMBER`, `COLLABORATOR`, or somebody else."""
    state: str = ""
    """Of a review, what it says: `CHANGES_REQUESTED` and so on."""
    path: str = ""
    line: int = 0
    thread: str = ""
    """The thread that it begins, to answer it."""

    @property
    def counts(self) -> bool:
        """Whether it is of somebody whose words reach an agent: anybody may write there."""
        return self.role in ("OWNER", "MEMBER", "COLLABORATOR")


@dataclass(frozen=True, slots=True)
class PullRequest:
    """What a host says of a pull request; texts in it are somebody else's."""

    number: int
    state: str
    head: str
    """The commit that it proposes now, or proposed when it ended."""
    url: str = ""
    id: str = ""
    """What the host calls it in requests to change it."""
    branch: str = ""
    base: str = ""
    fork: str = ""
    """The repository that has its branch, such as `ann/shop`, if that is another one; `?` if it
    is gone."""
    merge_commit: str = ""
    is_draft: bool = False
    merge_state: str = UNKNOWN
    """`CLEAN`, `DIRTY`, `BEHIND`, `BLOCKED` and so on."""
    decision: str = ""
    """`APPROVED`, `CHANGES_REQUESTED`, `REVIEW_REQUIRED`, or nothing if no review is wanted."""
    is_queued: bool = False
    auto_method: str = ""
    """How the host merges it by itself as soon as it may; empty if it does not."""
    checks: Sequence[Check] | None = ()
    """None if the host does not let us see them."""
    reviews: Sequence[Remark] = ()
    threads: Sequence[Remark] = ()
    """The first remarks of threads that are not resolved."""
    comments: Sequence[Remark] = ()


def state_of(seen: PullRequest | None, pushed: str, *, is_in_target: bool) -> str:
    """Returns the state of a pull request whose branch was `pushed` last at this commit; the first
    of `STATES` that is true. `seen` is None if the host did not answer; `is_in_target` says whether
    the target, as it was fetched last, has its merge commit.
    """
    if seen is None or seen.state not in (OPEN, MERGED_THERE, CLOSED_THERE):
        return UNKNOWN
    if seen.state == MERGED_THERE:
        if not is_in_target:
            return MERGED
        return LANDED if seen.head == pushed else PARTLY
    if seen.state == CLOSED_THERE:
        return CLOSED
    return FOREIGN if seen.head != pushed else _open_state(seen)


def _open_state(seen: PullRequest) -> str:
    checks = [each.state for each in seen.checks or () if each.is_required]
    rows = (
        (CONFLICT, seen.merge_state == "DIRTY"),
        (FAILING, FAILED in checks),
        (CHANGES, seen.decision == "CHANGES_REQUESTED"),
        (BEHIND, seen.merge_state == "BEHIND"),
        (CHECKING, PENDING in checks),
        (WAITING, seen.decision == "REVIEW_REQUIRED"),
        (DRAFT, seen.is_draft),
        (QUEUED, seen.is_queued),
        (READY, seen.merge_state in _MERGEABLE),
        (WAITING, seen.merge_state == "BLOCKED"),
    )
    # Else the host is still finding out whether it can be merged.
    return next((state for state, is_so in rows if is_so), UNKNOWN)
