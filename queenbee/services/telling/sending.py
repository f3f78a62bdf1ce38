"""Sending a message, and what is told of it: whom it reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from queenbee.core.names import EVERYONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.records import Message
    from queenbee.services.hive import Services


class Broadcast:
    """A message to everyone that was sent, and the droids in the hive that it reaches."""

    def __init__(self, message: Message, reaches: Sequence[str]) -> None:
        self.message = message
        self.reaches = reaches

    def to_dict(self) -> dict[str, object]:
        """Returns the message's fields with `reaches`."""
        return {**self.message.to_dict(), "reaches": list(self.reaches)}


def send(
    hive: Services, to: str, body: str, *, issue_id: str | None = None, **headers: Any
) -> Message | Broadcast | list[Message]:
    """Sends a message and returns it; a list of its copies if `to` has several names.

    `issue_id` may be a part of an id. Other arguments and errors are those of `Messages.send`.
    """
    if issue_id is not None:
        issue_id = hive.issue_id(issue_id)
    sent = hive.messages.send(to, body, issue_id=issue_id, **headers)
    if to == EVERYONE:
        return Broadcast(sent[0], hive.messages.reach())
    return sent if "," in to else sent[0]
