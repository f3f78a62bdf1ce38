"""Mail that has to be read before a landing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import mentioned, quotation, suggested
from queenbee.errors import Conflict

if TYPE_CHECKING:
    from queenbee.core.records import Message
    from queenbee.services.hive import Services

_MOST_CHARS = 1_000


def read_first(hive: Services, issue_id: str | None) -> None:
    """Raises `Conflict` with the text if there is unread mail about the issue, or urgent mail.

    It is read by that: a message stops one landing.
    """
    hive.messages.drop_merged()
    mail = hive.messages.read_unread(wanted=lambda each: stops_landing(each, issue_id))
    if not mail:
        return
    text = "; ".join(
        f"{mentioned(each.from_)}: {quotation(each.body, _MOST_CHARS)}" for each in mail
    )
    count = "a message" if len(mail) == 1 else f"{len(mail)} messages"
    raise Conflict(
        f"nothing was landed: {count} came before, read now: {text}",
        hint=f"answer ({suggested('queen msg reply', mail[0].id, 'TEXT')}), or land again",
        messages=[each.to_dict() for each in mail],
    )


def stops_landing(message: Message, issue_id: str | None) -> bool:
    """Returns whether a message has to be read before an issue lands."""
    told = message.subject.startswith(f"[{issue_id}] ")  # By the hive itself.
    return message.importance == "urgent" or (
        issue_id is not None and message.issue_id == issue_id and not told
    )
