"""How a run ended: what was landed, and why what is left is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from queenbee.core.text import some
from queenbee.core.timestamps import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Code = Literal[
        "done", "stopped", "interrupted", "limit", "fatal", "stuck",
        "target_fails", "waits", "gave_back", "unseen", "ended_early", "not_begun", "kept",
        "on_hold", "proposed", "held", "asks",
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an issue, an agent or a whole team did not get on."""

    code: Code
    text: str
    """The same for people, with the next command."""
    issue_id: str | None = None
    agent: str | None = None
    why: str = ""
    """The part of the text that issues can share: the code and the issue make the rest."""

    def to_dict(self) -> dict[str, str | None]:
        """Returns the parts as plain values."""
        parts = {"code": self.code, "text": self.text}
        return {**parts, "issue_id": self.issue_id, "agent": self.agent}


@dataclass(frozen=True)
class Ended:
    """How a team ended."""

    why: Reason
    """Its code is `done` if nothing has kept it from the rest."""
    seconds: float
    landed: Mapping[str, int]
    """How many issues each agent completed."""
    clients: Mapping[str, str]
    """What ran each agent."""
    reasons: Sequence[Reason]
    """Why issues are left, why agents ended before the others, and what they ask a person."""
    left: Sequence[str]
    """The issues that are not done."""
    cost_usd: float

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self.why.code == "done" and not self.left

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        parts = {**vars(self), "reasons": [each.to_dict() for each in self.reasons]}
        return {**parts, "why": self.why.text, "code": self.why.code}

    def sentences(self) -> list[str]:
        """Returns what was done, by whom and in what time, and what is left and why, each in a
        line.
        """
        done = ", ".join(
            f"{key} ({self.clients[key]}) {count}" for key, count in self.landed.items()
        )
        count = sum(self.landed.values())
        found = [f"{count} issue{'s' * (count != 1)} in {format_duration(self.seconds)}: {done}"]
        if self.is_done and not count:
            found.append("there was no issue to do; to describe one: queen issue new TITLE")
        if self.cost_usd:
            found.append(f"spent, as the clients report it: {self.cost_usd:.2f} USD")
        asked = [each.text for each in self.reasons if each.code == "asks"]
        found += _together([each for each in self.reasons if each.code != "asks"])
        if self.why.code != "done":
            found.append(f"it ended before everything was done: {self.why.text}")
        if self.left:
            found.append(f"left: {some(self.left, 20)}; see: queen issues")
        return found + asked


_SEVERAL = {"waits": "wait to land", "on_hold": "are on hold"}


def _together(reasons: Sequence[Reason]) -> list[str]:
    """Returns the sentences of reasons; issues with the same one have it once."""
    alike: dict[object, list[Reason]] = {}
    for number, each in enumerate(reasons):
        key = (each.code, each.why) if each.why and each.code in _SEVERAL else number
        alike.setdefault(key, []).append(each)
    return [
        f"{some([str(each.issue_id) for each in same], 20)} {_SEVERAL[same[0].code]}: {same[0].why}"
        if same[1:]
        else same[0].text
        for same in alike.values()
    ]
