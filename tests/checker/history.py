"""What droids noted: each call with the instants around it, and what was held in between.

A call took effect somewhere between the instant before it was made and the one after it was
answered. So a grant is held *for certain* from its answer to the first call that may have ended it,
and *possibly* from its call to the answer that certainly ended it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

NEVER = 2**63
KILLED = None
"""The status of a call whose process was killed: what it did is not known."""


@dataclass
class Call:
    """One call of `queen`, and what came of it."""

    droid: str
    tree: str
    kind: str
    """`reserve`, `unreserve`, `claim`, `give`, `complete`, `land`, `send`, `read`, …"""
    what: str
    """The pattern, the issue, the recipient: whatever it is about."""
    asked: int
    answered: int = 0
    status: int | None = KILLED
    answer: Any = None
    """The JSON document on standard output."""
    said: dict[str, Any] = field(default_factory=dict)
    """The JSON document on standard error."""
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether it was told that it succeeded."""
        return self.status == 0

    @property
    def code(self) -> str:
        """The code of the refusal."""
        return str(self.said.get("error", {}).get("code", ""))

    @property
    def is_open(self) -> bool:
        """Whether nobody was told what it did."""
        unknown = (
            "outcome_unknown",
            "durability_unknown",
            "external",
            "unreachable",
            "interrupted",
        )
        return self.status is KILLED or self.code in unknown

    def __str__(self) -> str:
        return f"{self.droid} {self.kind} {self.what} ({self.status} {self.code})"


@dataclass
class Hold:
    """Something that a droid had, from when to when."""

    droid: str
    what: str
    tree: str
    exclusive: bool
    since: int
    """When it was possibly had first."""
    certain: int
    """From when on it was had for certain."""
    until: int = NEVER
    """Until when it was had for certain."""
    gone: int = NEVER
    """From when on it was certainly not had any more."""
    identifier: str = ""

    def may_end(self, asked: int) -> None:
        """Notes that a call may have ended it."""
        self.until = min(self.until, asked)

    def ends(self, call: Call) -> None:
        """Notes that a call has ended it, or may have, if nobody knows what it did."""
        self.may_end(call.asked)
        if call.done:
            self.gone = min(self.gone, call.answered)

    def __str__(self) -> str:
        return f"{self.droid} has {self.what}"


def in_order(calls: Iterable[Call], *kinds: str) -> list[Call]:
    """Returns the calls of these kinds, in the order in which they were made."""
    return sorted((each for each in calls if each.kind in kinds), key=lambda each: each.asked)


def together(holds: Iterable[Hold], exclude: Callable[[Hold, Hold], bool]) -> Iterator[str]:
    """Yields the pairs that were had for certain at once although they exclude each other."""
    live: list[Hold] = []
    for hold in sorted(holds, key=lambda each: each.certain):
        live = [each for each in live if each.until > hold.certain]
        if hold.until > hold.certain:
            for other in live:
                if other.droid != hold.droid and exclude(other, hold):
                    yield f"{other}, and {hold}"
            live.append(hold)


def for_nothing(
    refused: Iterable[Call], holds: Iterable[Hold], exclude: Callable[[Hold, Hold], bool]
) -> Iterator[str]:
    """Yields the refusals that nothing that was possibly had stood against."""
    known = sorted(holds, key=lambda each: each.since)
    for call in refused:
        wanted = Hold(call.droid, call.what, call.tree, call.more.get("exclusive", True), 0, 0)
        if not any(
            each.since <= call.answered
            and each.gone >= call.asked
            and each.droid != call.droid
            and exclude(each, wanted)
            for each in known
        ):
            yield f"{call}: for nothing"


def store(calls: Iterable[Call], path: str) -> None:
    """Writes the calls down, so that a person can look at what was judged."""
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(each)) + "\n" for each in calls)


def stored(path: str) -> list[Call]:
    """Reads what `store` wrote."""
    with open(os.fspath(path), encoding="utf-8") as file:
        return [Call(**json.loads(line)) for line in file]
