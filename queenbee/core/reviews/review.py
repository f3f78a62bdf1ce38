"""What the assignment of an issue in review says of the pull request that proposes its work.

A command that finds none does without what this module loads: plain Python.
"""

from __future__ import annotations

from queenbee.core.names import is_commit_id

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from typing import Self

    from queenbee.core.reviews.pull_requests import PullRequest

REVIEW = "review"
"""The field of an assignment that has it."""
PERSON = "person"
"""What `asks` says once a person is to look at it."""
_MOST_NUMBER = 2**31
_MOST_TOLD = 200
_TEXTS = ("url", "branch", "head", "target")


def proposed_branch(branch: str, issue_id: str | None) -> str:
    """Returns the branch at the remote on which the work of a worktree's branch is proposed: one
    for each issue.
    """
    import re  # noqa: PLC0415 - start-up

    name = re.sub(r"[^A-Za-z0-9_/-]+", "-", issue_id or "").strip("-")
    is_named = not name or f"/{branch}".endswith((f"/{name}", f"-{name}"))
    return branch if is_named else f"{branch}-{name}"


class Review:
    """A pull request, as the record says."""

    __slots__ = ("asks", "branch", "fork", "head", "number", "rounds", "target", "told", "url")

    def __init__(
        self, number: int, *, url: str, branch: str, head: str, target: str, fork: str = ""
    ) -> None:
        self.number: int = number
        self.url: str = url
        self.branch: str = branch
        """The branch at the remote."""
        self.head: str = head
        """The commit that was pushed last."""
        self.target: str = target
        self.fork: str = fork
        """The repository that has the branch, such as `ann/shop`, if it is not the target's."""
        self.rounds: int = 0
        """How often its droid was told to mend it."""
        self.asks: str = ""
        """The state that its droid has to do something about; empty if none."""
        self.told: tuple[str, ...] = ()
        """What of the host its droid was told, by key."""

    @classmethod
    def of(cls, said: object) -> Self | None:
        """Returns what a field of a record says; None if that is no review. Others may have written
        it, so no number, commit or branch is taken for what it is not.
        """
        if not isinstance(said, dict):
            return None
        number, texts = said.get("number"), [said.get(each) for each in _TEXTS]
        if type(number) is not int or not 0 < number < _MOST_NUMBER:
            return None
        if not all(isinstance(each, str) for each in texts):
            return None
        found = cls(number, **dict(zip(_TEXTS, map(str, texts), strict=True)))
        if not is_commit_id(found.head) or not found.branch or found.branch.startswith("-"):
            return None
        rounds, asks, told = said.get("rounds"), said.get("asks"), said.get("told")
        fork = said.get("fork")
        found.fork = fork if isinstance(fork, str) else ""
        found.rounds = rounds if type(rounds) is int and rounds > 0 else 0
        found.asks = asks if isinstance(asks, str) else ""
        found.told = tuple(map(str, told)) if isinstance(told, list) else ()
        return found

    @property
    def asks_droid(self) -> bool:
        """Whether its droid has something to do about it."""
        return self.asks not in ("", PERSON)

    def is_of(self, seen: PullRequest) -> bool:
        """Returns whether a pull request is of the branch that the record names: that may name any
        number.
        """
        return (seen.branch, seen.fork) == (self.branch, self.fork)

    def copy(self) -> Review:
        """Returns another one that says the same."""
        found = Review.of(self.to_dict())
        assert found is not None
        return found

    def to_dict(self, before: Review | None = None) -> dict[str, object]:
        """Returns the field of the record; with what one `before` it says was told, too."""
        told = [*dict.fromkeys((*(before.told if before is not None else ()), *self.told))]
        rounds = max(self.rounds, before.rounds if before is not None else 0)
        said = {name: getattr(self, name) for name in self.__slots__}
        return {**said, "rounds": rounds, "told": told[-_MOST_TOLD:]}

    def __str__(self) -> str:
        return f"#{self.number}"
