"""Sending messages, one or a batch of them, and what is told of it: whom a message reaches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from queenbee.core.names import EVERYONE, nearest
from queenbee.core.timestamps import parse_duration_s
from queenbee.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.records import Message
    from queenbee.services.hive import Services

_FIELDS = {
    "to": str,
    "body": str,
    "subject": str,
    "issue": str,
    "importance": str,
    "reply_to": str,
    "ack_within": str,
    "new": bool,
}
"""What a line of a batch may have, as the tool `send` of MCP has it."""


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
) -> list[Message] | list[Broadcast]:
    """Sends a message and returns its copies, one for each name in `to`.

    `issue_id` may be a part of an id. Other arguments and errors are those of `Messages.send`.
    """
    if issue_id is not None:
        issue_id = hive.issue_id(issue_id)
    sent = hive.messages.send(to, body, issue_id=issue_id, **headers)
    if to == EVERYONE:
        return [Broadcast(sent[0], hive.messages.reach())]
    return sent


def send_batch(hive: Services, text: str) -> list[Message]:
    """Sends a message for each line, a JSON object with `to` and `body`: all of them or none.

    Raises `InvalidInput` and what `Messages.send` raises; `line` says which line is wrong.
    """
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    messages = [_draft(hive, number, line) for number, line in enumerate(lines, start=1)]
    return hive.messages.send_many(messages, noun="line")


def _draft(hive: Services, number: int, line: str) -> dict[str, Any]:
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _wrong(number, f"not JSON: {error}") from error
    if not isinstance(given, dict):
        raise _wrong(number, "not a JSON object")
    for name, value in given.items():
        kind = _FIELDS.get(name)
        if kind is None:
            close = nearest(name, _FIELDS)
            hint = f"did you mean {close!r}?" if close else f"known: {', '.join(_FIELDS)}"
            raise _wrong(number, f"there is no field {name!r}", hint=hint)
        if value is not None and not isinstance(value, kind):
            what = "text" if kind is str else "true or false"
            raise _wrong(number, f"{name} is not {what}")
    for name in ("to", "body"):
        if given.get(name) is None:
            raise _wrong(number, f"{name} is missing")
    try:
        within, issue = given.get("ack_within"), given.get("issue")
        within_s = None if within is None else parse_duration_s(within)
        issue_id = None if issue is None else hive.issue_id(issue)
    except InvalidInput as error:
        raise _wrong(number, error.message, hint=error.hint) from error
    return {
        "to": given["to"],
        "body": given["body"],
        "subject": given.get("subject"),
        "issue_id": issue_id,
        "importance": given.get("importance") or "normal",
        "reply_to": given.get("reply_to"),
        "ack_within_s": within_s,
        "new": bool(given.get("new")),
    }


def _wrong(number: int, what: str, *, hint: str | None = None) -> InvalidInput:
    return InvalidInput(f"line {number}: {what}", hint=hint, line=number)
