"""Messages from one droid to another, to several or to all; threads, inboxes, read marks."""

from __future__ import annotations

import time

from queenbee.core.names import EVERYONE, checked_issue_id, several
from queenbee.core.records import IMPORTANCES, Message
from queenbee.core.text import suggested
from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.errors import InvalidInput, NotFound, NotYours
from queenbee.store.ledger.codec import decode
from queenbee.store.watch import wait_for_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.fold import Fields
    from queenbee.services.droids import Droids
    from queenbee.services.store import Store
    from queenbee.services.transaction import Transaction

KIND = "messages"
_SUBJECT_LENGTH = 100
"""As the records document recommends. Only a subject taken from the body is cut to it."""


class Hit:
    """A message that a search found, and the words around the match."""

    __slots__ = ("message", "snippet")

    def __init__(self, message: Message, snippet: str) -> None:
        self.message = message
        self.snippet = snippet

    def to_dict(self) -> dict[str, object]:
        """Returns the message's fields with `snippet`."""
        return {**self.message.to_dict(), "snippet": self.snippet}


class Messages:
    """The messages of a hive."""

    def __init__(self, store: Store, droids: Droids) -> None:
        self._store = store
        self._droids = droids

    def send(
        self,
        to: str,
        body: str,
        *,
        subject: str | None = None,
        issue_id: str | None = None,
        importance: str = "normal",
        reply_to: str | None = None,
        ack_within_s: int | None = None,
    ) -> list[Message]:
        """Sends one message to each recipient and returns them, in the order of `to`.

        `to` is a name, several separated by commas, or `@all` (every known droid but the
        sender); all copies share one thread. The subject defaults to the parent's, or to the
        first line of the body. `ack_within_s` asks for an acknowledgement within that many
        seconds. Raises `InvalidInput`, `UnknownDroid`, and `NotFound` if the parent does not
        exist.
        """
        sender = self._store.actor
        _check_importance(importance)
        if issue_id is not None:
            checked_issue_id(issue_id)
        recipients = self._recipients(to, sender)
        self._store.look({"subject": subject, "body": body, "issue_id": issue_id})
        with self._store.transaction() as tx:
            parent = self.get(reply_to) if reply_to is not None else None
            fields = {
                "subject": subject if subject is not None else _subject_of(body, parent),
                "body": body,
                "issue_id": issue_id or (parent.issue_id if parent else None),
                "reply_to": parent.id if parent else None,
                "importance": importance,
                "ack_by": format_ms(tx.now_ms + ack_within_s * 1000) if ack_within_s else None,
            }
            return stage(tx, sender, recipients, fields, parent.thread if parent else None)

    def reply(self, message_id: str, body: str, *, importance: str = "normal") -> Message:
        """Replies to the sender of a message; if the actor sent it, to its recipient."""
        parent = self.get(message_id)
        to = parent.to if parent.from_ == self._store.actor else parent.from_
        return self.send(to, body, reply_to=parent.id, importance=importance)[0]

    def inbox(
        self,
        *,
        unread: bool = False,
        since_ms: int | None = None,
        from_: str | None = None,
        issue_id: str | None = None,
        limit: int | None = None,
        droid: str | None = None,
        overdue: bool = False,
    ) -> list[Message]:
        """Returns the messages to `droid` (default: the actor), newest first.

        `overdue` keeps those whose requested acknowledgement is late.
        """
        to = self._recipient(droid)
        equals: dict[str, object] = {"to": to}
        if unread:
            equals["read"] = False
        if from_ is not None:
            equals["from"] = from_
        if issue_id is not None:
            equals["issue_id"] = issue_id
        if not overdue:
            return self._select(equals, since_ms=since_ms, newest_first=True, limit=limit)
        now_ms = self._store.now_ms()
        found = self._select(equals, since_ms=since_ms, newest_first=True)
        return [message for message in found if _is_overdue(message, now_ms)][:limit]

    def since(self, after: str, *, droid: str | None = None) -> list[Message]:
        """Returns the messages to `droid` that arrived here after the message `after`, in order of
        arrival. No clock or merge changes that order: a client that passes the last id it saw
        misses nothing and sees nothing twice. Raises `NotFound`.
        """
        to = self._recipient(droid)
        self._get(after)
        with self._store.transaction() as tx:
            tx.touch(KIND)  # Copies lines that git brought to the journal.
        state = self._store.state(KIND)
        seen = state.first_line(after)
        assert seen is not None
        arrived: list[Message] = []
        for line in state.ledger.journal.arrived_after(seen):
            identifier = decode(line).get("id")
            if isinstance(identifier, str) and state.first_line(identifier) == line:
                arrived.append(self._get(identifier))
        return [message for message in arrived if message.to == to and not message.deleted]

    def wait(
        self, *, timeout_s: float, from_: str | None = None, issue_id: str | None = None
    ) -> list[Message]:
        """Returns the actor's unread messages, newest first, as soon as there are any; an empty
        list at the timeout.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            ledger = self._store.state(KIND).ledger
            before = ledger.stamp()
            found = self.inbox(unread=True, from_=from_, issue_id=issue_id)
            paths = ledger.path, ledger.journal_path
            if found or not wait_for_change(ledger.stamp, before, paths, deadline):
                return found

    def acknowledge(self, message_ids: Sequence[str]) -> list[Message]:
        """Acknowledges messages, and marks them as read; repeating it changes nothing.

        All or none. Raises `NotFound`, and `NotYours` for a message to somebody else.
        """
        with self._store.transaction() as tx:
            messages = self._to_actor(message_ids)
            seen = {"read": True, "acked_at": tx.now}
            return [
                message
                if message.acked_at
                else Message(
                    tx.update(KIND, message.id, {"read_at": message.read_at or tx.now, **seen})
                )
                for message in messages
            ]

    def search(
        self,
        query: str,
        *,
        issue_id: str | None = None,
        from_: str | None = None,
        since_ms: int | None = None,
        limit: int | None = None,
    ) -> list[Hit]:
        """Returns the messages whose subject or body has all words of the query, best first.

        A word may end in `*`; words in double quotes must follow each other. Raises `InvalidInput`.
        """
        from queenbee.store.index.search import find_text  # noqa: PLC0415 - start-up

        equals = {"issue_id": issue_id, "from": from_}
        hits = find_text(
            self._store.state(KIND),
            query,
            {name: value for name, value in equals.items() if value is not None},
            since_ms=since_ms,
            limit=limit,
        )
        return [Hit(self._get(identifier), snippet) for identifier, snippet in hits]

    def sent(self, *, limit: int | None = None) -> list[Message]:
        """Returns the messages that the actor wrote, newest first."""
        return self._select({"from": self._store.actor}, newest_first=True, limit=limit)

    def get(self, message_id: str) -> Message:
        """Returns one message. Raises `NotFound`, also if it was deleted."""
        message = self._get(message_id)
        if message.deleted:
            raise NotFound(
                f"message {message_id} was deleted", hint=suggested("queen history", message_id)
            )
        return message

    def _get(self, message_id: str) -> Message:
        fields = self._store.state(KIND).get(message_id)
        if fields is None:
            raise NotFound(f"there is no message {message_id!r}", hint="queen msg inbox")
        return Message(fields)

    def thread(self, identifier: str) -> list[Message]:
        """Returns the thread of a message, or all messages about an issue, oldest first.

        Raises `NotFound`.
        """
        state = self._store.state(KIND)
        fields = state.get(identifier)
        if fields is not None:
            root = Message(fields).thread
            found = self._select({"thread_id": root})
            first = state.get(root)
            if first is not None and all(message.id != root for message in found):
                found = [*([] if first.get("deleted") is True else [Message(first)]), *found]
        else:
            found = self._select({"issue_id": identifier})
            if not found:
                raise NotFound(
                    f"there is no message or issue {identifier!r} with a thread",
                    hint="queen msg inbox",
                )
        return found

    def mark_read(self, message_ids: Sequence[str]) -> list[Message]:
        """Marks messages as read by their recipient; those already read do not change.

        All or none. Raises `NotFound`, and `NotYours` for a message to somebody else.
        """
        with self._store.transaction() as tx:
            messages = self._to_actor(message_ids)
            seen = {"read": True, "read_at": tx.now}
            return [
                message if message.read else Message(tx.update(KIND, message.id, seen))
                for message in messages
            ]

    def delete(self, message_id: str) -> Message:
        """Hides a message for both sides; only its sender or recipient may. Repeating it
        changes nothing. Raises `NotFound`, `NotYours`.
        """
        actor = self._store.actor
        with self._store.transaction() as tx:
            message = self._get(message_id)
            if actor not in (message.from_, message.to):
                raise NotYours(
                    f"message {message.id} is between {message.from_} and {message.to}",
                    owner=message.from_,
                )
            if message.deleted:
                return message
            gone = {"deleted": True, "deleted_at": tx.now, "deleted_by": actor}
            return Message(tx.update(KIND, message.id, gone))

    def _recipient(self, droid: str | None) -> str:
        return self._droids.check(droid) if droid is not None else self._store.actor

    def _to_actor(self, message_ids: Sequence[str]) -> list[Message]:
        actor = self._store.actor
        messages = [self.get(each) for each in dict.fromkeys(several(message_ids))]
        for message in messages:
            if message.to != actor:
                raise NotYours(
                    f"message {message.id} is to {message.to}, not to {actor}",
                    hint=suggested("queen msg thread", message.id),
                    owner=message.to,
                )
        return messages

    def _recipients(self, to: str, sender: str) -> list[str]:
        if to == EVERYONE:
            others = [name for name in self._droids.known() if name != sender]
            if not others:
                raise NotFound(
                    "this hive knows no other droids yet",
                    hint="name the recipients, as in: queen msg send reviewer,tester BODY",
                )
            return others
        names = [name.strip() for name in to.split(",") if name.strip()]
        if not names:
            raise InvalidInput("no recipient given", hint="queen msg send NAME BODY")
        return [self._droids.check(name) for name in dict.fromkeys(names)]

    def _select(
        self,
        equals: Mapping[str, object],
        *,
        since_ms: int | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[Message]:
        rows = self._store.state(KIND).select(
            equals, since_ms=since_ms, newest_first=newest_first, limit=limit
        )
        return [Message(fields) for fields in rows]


def stage(
    tx: Transaction,
    sender: str,
    recipients: Sequence[str],
    fields: Mapping[str, object],
    thread_id: str | None = None,
) -> list[Message]:
    """Adds one message per recipient to a transaction; several share the first one's thread."""
    staged: list[Message] = []
    for to in recipients:
        record: Fields = {"from": sender, "to": to, **fields, "thread_id": thread_id, "read": False}
        identifier = tx.mint(KIND)
        if thread_id is None and len(recipients) > 1:
            record["thread_id"] = thread_id = identifier
        staged.append(Message(tx.create(KIND, record, identifier=identifier)))
    return staged


def _check_importance(importance: str) -> None:
    if importance not in IMPORTANCES:
        raise InvalidInput(
            f"{importance!r} is not an importance", hint=f"one of: {', '.join(IMPORTANCES)}"
        )


def _is_overdue(message: Message, now_ms: int) -> bool:
    due_ms = instant_ms(message.ack_by)
    return due_ms is not None and due_ms <= now_ms and message.acked_at is None


def _subject_of(body: str, parent: Message | None) -> str:
    if parent is not None:
        prefix = "" if parent.subject.lower().startswith("re:") else "Re: "
        return prefix + parent.subject
    line = next((line.strip() for line in body.splitlines() if line.strip()), "")
    return line if len(line) <= _SUBJECT_LENGTH else line[: _SUBJECT_LENGTH - 1] + "…"
