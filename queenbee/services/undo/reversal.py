"""What follows from taking a step back, one thing each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from queenbee.services.writing.transaction import Transaction

    Action = Literal["release", "claim", "reserve", "restore", "delete", "set", "stays"]

_SENTENCES = {
    "release": "{droid} gives back {subject}",
    "claim": "{droid} has {subject} again",
    "reserve": "{droid} reserves {subject} again, until {detail}",
    "restore": "{subject} is again as before: {detail}",
    "delete": "{subject} is deleted",
    "set": "{subject} is {detail} again",
    "stays": "{subject} stays: {detail}",
}


def nothing(tx: Transaction) -> None:
    """Stages nothing."""


@dataclass(frozen=True, slots=True)
class Reversal:
    """One thing that follows, and what writes it in a transaction."""

    action: Action
    kind: str
    """Of the record: `assignments`, `reservations`, `issues`, `messages`; or `settings`."""
    subject: str
    """The issue, the pattern, the message or the setting."""
    droid: str = ""
    detail: str = ""
    stage: Callable[[Transaction], None] = field(default=nothing, repr=False)

    def __str__(self) -> str:
        return _SENTENCES[self.action].format(
            droid=self.droid, subject=self.subject, detail=self.detail
        )

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {
            "action": self.action,
            "kind": self.kind,
            "subject": self.subject,
            "droid": self.droid or None,
            "detail": self.detail or None,
        }
