"""Messages from one droid to another, to several or to all; threads, inboxes, read marks."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from queenbee._typed import typed
from queenbee.core.ids import WHOLE
from queenbee.core.names import EVERYONE, PERSON, several
from queenbee.core.records import ACKED, IMPORTANCES, READ, Message, Record, mark_of
from queenbee.core.text import suggested
from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.errors import InvalidInput, NotFound, NotYours, QueenError
from queenbee.services.waiting.pauses import waits
from queenbee.store.codec import decode

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from queenbee.core.fold import Fields
    from queenbee.core.records import Importance
    from queenbee.services.droids import Droids
    from queenbee.services.open_store import Store
    from queenbee.services.waiting.pauses import Steps
    from queenbee.services.writing.transaction import Transaction
    from queenbee.store.giving_up import Event

    Draft = Mapping[str, Any]
    """A message to send: the arguments of `Messages.send`, by name."""

KIND = "messages"
ANSWER = "YOUR ANSWER"
"""What stands for the answer in a command that is suggested."""
FRESH_MS = 24 * 3_600_000
"""A message to everyone also reaches a droid that joins the hive within this time."""
_ISSUE_THREAD = "issue:"
LANDED = "landed"
"""The field of a message that says which commit the target got."""
BY_HIVE = "by_hive"
"""The field of a message that the hive has written itself."""
CHECK_FILES = "check_files"
"""The field of a message to the person that lists what of the check is changed."""
TARGET_FAILS = "target_fails"
"""The field of a message to everybody that names a branch whose own check fails."""
_SUBJECT_LENGTH = 100
"""As the records document recommends. Only a subject taken from the body is cut to it."""


class Hit:
    """A message that a search found, and the words around the match."""

    __slots__ = ("message", "snippet")

    def __init__(self, message: Message, snippet: str) -> None:
        self.message: Message = message
        self.snippet: str = snippet

    def to_dict(self) -> dict[str, object]:
        """Returns the message's fields with `snippet`."""
        return {**self.message.to_dict(), "snippet": self.snippet}


_HEADERS: Mapping[str, Any] = {
    "subject": None,
    "issue_id": None,
    "importance": "normal",
    "reply_to": None,
    "ack_within_s": None,
    "new": False,
}
"""What `Messages.send` takes besides `to` and `body`, with the defaults."""


class Messages:
    """The messages of a hive."""

    def __init__(
        self, store: Store, droids: Droids, *, check_issue: Callable[[str], object]
    ) -> None:
        self._store = store
        self._droids = droids
        self._check_issue = check_issue
        """Raises `NotFound` for an issue that nobody knows."""

    @typed
    def send(  # noqa: PLR0913 - by name
        self,
        to: str,
        body: str,
        *,
        subject: str | None = None,
        issue_id: str | None = None,
        importance: Importance = "normal",
        reply_to: str | None = None,
        ack_within_s: int | None = None,
        new: bool = False,
    ) -> list[Message]:
        """Sends one message to each recipient and returns them, in the order of `to`.

        `to` is a name, several separated by commas, whose copies share one thread, or `@all`: one
        message for every droid that is in the hive, or joins it within `FRESH_MS`. The subject
        defaults to the parent's, or to the first line of the body. `ack_within_s` asks for an
        acknowledgement within that many seconds. A name that nobody in the hive has is refused
        unless `new` says that its droid is to come. Raises `InvalidInput`, also for a body without
        text, `UnknownDroid`, and `NotFound` if the parent does not exist.
        """
        sender = self._store.actor
        draft = {
            "to": to,
            "body": body,
            "subject": subject,
            "issue_id": issue_id,
            "importance": importance,
            "reply_to": reply_to,
            "ack_within_s": ack_within_s,
            "new": new,
        }
        recipients = self._checked(draft, {}, set())
        with self._store.transaction() as tx:
            return self._stage(tx, sender, draft, recipients)

    def send_many(
        self, messages: Iterable[Mapping[str, Any]], *, noun: str = "message"
    ) -> list[Message]:
        """Sends many messages in one turn, with one wait for the disk: all or none. Returns them,
        in order, with a copy for each recipient.

        Each is given by the arguments of `send`, by name. Raises what `send` raises; the error says
        which one is wrong, counted from 1, and calls it `noun`.
        """
        sender, drafts = self._store.actor, [_draft(each) for each in messages]
        if not drafts:
            return []
        checked: dict[tuple[str, bool], list[str]] = {}
        issues: set[str] = set()
        staged: list[Message] = []
        number = 0
        try:
            for draft in drafts:
                number += 1
                self._checked(draft, checked, issues)
            number = 0
            with self._store.transaction() as tx:
                for draft in drafts:
                    number += 1
                    recipients = checked[draft["to"], draft["new"]]
                    staged += self._stage(tx, sender, draft, recipients)
                number = 0
        except QueenError as error:
            if number:
                error.message = f"{noun} {number}: {error.message}"
                error.details[noun] = number
            raise
        return staged

    def _checked(
        self,
        draft: Draft,
        known: dict[tuple[str, bool], list[str]],
        issues: set[str],
    ) -> list[str]:
        """Returns the recipients of a draft that can be sent. What other drafts have asked about
        is in `known` and `issues`, and not asked again.
        """
        if draft["importance"] not in IMPORTANCES:
            raise InvalidInput(
                f"{draft['importance']!r} is not an importance",
                hint=f"one of: {', '.join(IMPORTANCES)}",
            )
        if not draft["body"].strip():
            raise InvalidInput("the message is empty", hint="queen msg send NAME BODY")
        if draft["issue_id"] is not None and draft["issue_id"] not in issues:
            self._check_issue(draft["issue_id"])
            issues.add(draft["issue_id"])
        key = draft["to"], draft["new"]
        if key not in known:
            known[key] = self._recipients(draft["to"], new=draft["new"])
        self._store.look({name: draft[name] for name in ("subject", "body", "issue_id")})
        return known[key]

    def _stage(
        self, tx: Transaction, sender: str, draft: Draft, recipients: Sequence[str]
    ) -> list[Message]:
        parent = self.get(draft["reply_to"]) if draft["reply_to"] is not None else None
        within_s, subject = draft["ack_within_s"], draft["subject"]
        fields = {
            "subject": _subject_of(draft["body"], parent) if subject is None else subject,
            "body": draft["body"],
            "issue_id": draft["issue_id"] or (parent.issue_id if parent else None),
            "reply_to": parent.id if parent else None,
            "importance": draft["importance"],
            "ack_by": format_ms(tx.now_ms + within_s * 1000) if within_s else None,
        }
        return stage(tx, sender, recipients, fields, parent.thread if parent else None)

    @typed
    def reply(self, message_id: str, body: str, *, importance: Importance = "normal") -> Message:
        """Replies to the sender of a message; if the actor sent it, to its recipient."""
        parent = self.get(message_id)
        to = self.correspondent(parent)
        return self.send(to, body, reply_to=parent.id, importance=importance)[0]

    def answer(self, message_id: str, body: str, *, as_person: bool) -> Message:
        """Replies to a message to the actor, and acknowledges it. A person (`as_person`) answers
        what is to `human` as well, under the name that is set, or as `human`. Raises `NotYours`.
        """
        try:
            person = as_person and self.get(message_id).to == PERSON
        except NotFound as error:
            error.hint = suggested("queen msg inbox", as_=PERSON, unread=True)
            raise
        who = self._store.author if as_person else self._store.actor
        [parent] = self._to_actor([message_id], PERSON if person else who)
        draft = {**_HEADERS, "to": parent.from_, "body": body, "reply_to": parent.id}
        recipients = self._checked(draft, {}, set())
        with self._store.transaction() as tx:
            [sent] = self._stage(tx, who, draft, recipients)
            done = {READ: parent.read_at or tx.now, ACKED: parent.acked_at or tx.now}
            self._mark(tx, parent, done, who)
            return sent

    def correspondent(self, message: Message) -> str:
        """Returns who gets a reply of the actor: the sender, or the recipient of its own."""
        return message.to if message.from_ == self._store.actor else message.from_

    @typed
    def inbox(  # noqa: PLR0913 - by name
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
        filters = {"from": from_, "issue_id": issue_id}
        equals = {name: value for name, value in filters.items() if value is not None}
        most = None if overdue else limit
        own: dict[str, object] = {**equals, "to": to, **({"read": False} if unread else {})}
        found = self._select(own, since_ms=since_ms, newest_first=True, limit=most)
        shared = self._broadcasts(to, equals, unread=unread, since_ms=since_ms, limit=most)
        if shared:
            found = sorted([*found, *shared], key=lambda each: each.age, reverse=True)
        if overdue:
            now_ms = self._store.now_ms()
            found = [message for message in found if _is_overdue(message, now_ms)]
        return found[:limit]

    def unanswered(self, person: str, *, limit: int) -> list[Message]:
        """Returns what nobody has read of the messages to a person; and of the newest also what was
        read, and wants an answer still.
        """
        newest = self.inbox(droid=person, limit=limit)
        unread = [each for each in newest if not each.read]
        if len(newest) == limit:  # Some that are older may be unread.
            unread = self.inbox(unread=True, droid=person, limit=limit)
        return [*unread, *(each for each in newest if each.read and each.wants_answer)][:limit]

    def count(self, *, unread: bool = False, droid: str | None = None) -> int:
        """Returns how many messages to `droid` (default: the actor) there are."""
        to = self._recipient(droid)
        own = {"to": to, "deleted": False, **({"read": False} if unread else {})}
        shared = self._broadcasts(to, {}, unread=unread, since_ms=None, limit=None)
        return self._store.state(KIND).count(own) + len(shared)

    def recent(self, *, limit: int) -> list[Message]:
        """Returns the newest messages of the hive, whoever they are to, newest first."""
        recipients = self._store.state(KIND).distinct("to")
        # One recipient at a time: the index knows the order of each one's messages.
        newest = (
            self._select({"to": to}, newest_first=True, limit=limit)
            for to in recipients
            if isinstance(to, str)
        )
        found = sorted((each for some in newest for each in some), key=lambda each: each.age)
        return self._as_seen(found[: -limit - 1 : -1])

    def reach(self) -> list[str]:
        """Returns the droids in the hive that a message to `@all` by the actor reaches now."""
        return [name for name in self._droids.known() if name != self._store.actor]

    def _broadcasts(
        self,
        droid: str,
        equals: Mapping[str, object],
        *,
        unread: bool,
        since_ms: int | None,
        limit: int | None,
    ) -> list[Message]:
        """Returns the messages to everyone that reach a droid, as it sees them, newest first."""
        rows = self._store.state(KIND).select(
            {**equals, "to": EVERYONE},
            since_ms=since_ms,
            newest_first=True,
            limit=limit,
            differs={"from": droid},
            lacks=mark_of(droid, READ) if unread else None,
        )
        if not rows:
            return []
        oldest_ms = self._droids.joined_ms(droid) - FRESH_MS
        messages = [Message(fields).seen_by(droid) for fields in rows]
        return [message for message in messages if message.created_ms >= oldest_ms]

    def since(self, after: str, *, droid: str | None = None) -> list[Message]:
        """Returns the messages to `droid` that arrived here after the message `after`, in order of
        arrival. No clock or merge changes that order: a client that passes the last id it saw
        misses nothing and sees nothing twice. Raises `NotFound`.
        """
        to = self._recipient(droid)
        after = self._get(after).id
        with self._store.transaction() as tx:
            tx.touch(KIND)  # Records the lines that git brought.
        state = self._store.state(KIND)
        seen = state.first_line(after)
        assert seen is not None
        arrived: list[Message] = []
        for line in state.arrived_after(seen):
            identifier = decode(line).get("id")
            if isinstance(identifier, str) and state.first_line(identifier) == line:
                arrived.append(self._get(identifier))
        oldest_ms = self._droids.joined_ms(to) - FRESH_MS
        return [
            message.seen_by(to)
            for message in arrived
            if not message.deleted
            and (
                message.to == to
                or (
                    message.to == EVERYONE
                    and message.from_ != to
                    and message.created_ms >= oldest_ms
                )
            )
        ]

    @waits
    @typed
    def wait(
        self,
        *,
        timeout_s: float,
        cancel: Event | None = None,
        from_: str | None = None,
        issue_id: str | None = None,
    ) -> Steps[list[Message]]:
        """Returns the actor's unread messages, newest first, as soon as there are any; an empty
        list at the timeout. Raises `Cancelled` once the event `cancel` is set.
        """
        from queenbee.services.waiting.attempts import Watch, until  # noqa: PLC0415 - start-up

        watch = Watch(self._store, [KIND])
        asked = partial(self.inbox, unread=True, from_=from_, issue_id=issue_id)
        return (yield from until(watch, asked, timeout_s))

    @typed
    def acknowledge(self, message_ids: Sequence[str]) -> list[Message]:
        """Acknowledges messages, and marks them as read; repeating it changes nothing.

        All or none. Raises `NotFound`, and `NotYours` for a message to somebody else.
        """
        with self._store.transaction() as tx:
            messages = self._to_actor(message_ids)
            return [
                message
                if message.acked_at
                else self._mark(tx, message, {READ: message.read_at or tx.now, ACKED: tx.now})
                for message in messages
            ]

    @typed
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
        from queenbee.store.memory.search import find_text  # noqa: PLC0415 - start-up

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
                f"message {message_id} was deleted",
                hint=suggested("queen hive history", message_id),
            )
        return message

    def _get(self, message_id: str, noun: str = "message") -> Message:
        state = self._store.state(KIND)
        fields = state.get(message_id) if len(message_id) >= WHOLE else None
        if fields is None:
            from queenbee.services.short_ids import record_id  # noqa: PLC0415 - start-up

            fields = state.get(record_id(state, message_id) or "")
        if fields is None:
            raise NotFound(f"there is no {noun} {message_id!r}", hint="queen msg inbox")
        return Message(fields)

    @typed
    def thread(self, identifier: str) -> list[Message]:
        """Returns the thread of a message, or all messages about an issue, oldest first.

        Raises `NotFound`.
        """
        state = self._store.state(KIND)
        if state.get(identifier) is None and (about := self._about(identifier)):
            return self._as_seen(about)
        root = self._get(identifier, "message or issue").thread
        found = self._select({"thread_id": root})
        first = state.get(root)
        if first is not None and all(message.id != root for message in found):
            found = [*([] if first.get("deleted") is True else [Message(first)]), *found]
        return self._as_seen(found)

    def _as_seen(self, messages: list[Message]) -> list[Message]:
        actor = self._store.actor_or_none
        return messages if actor is None else [message.seen_by(actor) for message in messages]

    def _about(self, name: str) -> list[Message]:
        """Returns the messages about an issue; the Go tool calls its thread `issue:ID`."""
        issue_id = name.removeprefix(_ISSUE_THREAD)
        found = self._select({"issue_id": issue_id})
        known = {message.id for message in found}
        more = self._select({"thread_id": f"{_ISSUE_THREAD}{issue_id}"})
        found += [message for message in more if message.id not in known]
        return sorted(found, key=lambda message: message.age)

    @typed
    def mark_read(self, message_ids: Sequence[str], *, as_person: bool = False) -> list[Message]:
        """Marks messages as read by their recipient; those already read do not change. A person
        (`as_person`) also reads what is to `human`.

        All or none. Raises `NotFound`, and `NotYours` for a message to somebody else.
        """
        to_person = as_person and all(self.get(each).to == PERSON for each in several(message_ids))
        who = PERSON if to_person else self._store.actor
        with self._store.transaction() as tx:
            messages = self._to_actor(message_ids, who)
            return [
                message if message.read else self._mark(tx, message, {READ: tx.now}, who)
                for message in messages
            ]

    def _mark(
        self, tx: Transaction, message: Message, marks: Mapping[str, str], actor: str | None = None
    ) -> Message:
        """Adds the actor's marks to a message: on one to everyone, in fields of its own."""
        if message.to != EVERYONE:
            return Message(tx.update(KIND, message.id, {"read": True, **marks}))
        actor = actor or self._store.actor
        own = {mark_of(actor, name): at for name, at in marks.items()}
        return Message(tx.update(KIND, message.id, own)).seen_by(actor)

    def read_unread(
        self, *, limit: int | None = None, wanted: Callable[[Message], bool] | None = None
    ) -> list[Message]:
        """Marks the actor's unread messages as read and returns them, oldest first; at most
        `limit` of them, the oldest, or those that are `wanted`. Of several readers at once, each
        message goes to one.
        """
        unread = self.inbox(unread=True, limit=1 if wanted is None else None)
        chosen = {each.id for each in unread if wanted is None or wanted(each)}
        if not chosen:
            return []
        with self._store.transaction() as tx:
            # Only here, nobody else reads or deletes one of them meanwhile.
            if wanted is None:
                unread = self._oldest_unread(limit)
            else:
                rows = self._store.state(KIND).several(chosen)
                again = (Message(fields).seen_by(self._store.actor) for fields in rows)
                unread = [each for each in again if not (each.read or each.deleted)]
            unread = sorted(unread, key=lambda each: each.age)[:limit]
            return [self._mark(tx, message, {READ: tx.now}) for message in unread]

    def _oldest_unread(self, limit: int | None) -> list[Message]:
        """Returns the oldest messages that the actor has not read, and those to everyone."""
        to = self._store.actor
        own = self._select({"to": to, "read": False}, limit=limit)
        return own + self._broadcasts(to, {}, unread=True, since_ms=None, limit=None)

    def drop_merged(self) -> None:
        """Marks as read the unread messages that no longer hold: about landings whose commits the
        branch of this worktree has by now, nudges about what the actor no longer has, and who was
        given an issue that is done. Never fails.
        """
        has, layout = self._store.has_commit, self._store.layout

        def is_settled(message: Message) -> bool:
            if message.get("nudge") is True:
                return not self._has_since(message.created_ms)
            if self._was_of_an_issue(message):
                return True
            commit = message.get(LANDED)
            if has is None or not (isinstance(commit, str) and commit.isalnum()):
                return False
            return has(layout, commit)

        with suppress(QueenError):
            self.read_unread(wanted=is_settled)

    def _has_since(self, at_ms: int) -> bool:
        """Returns whether the actor has an issue or files that it had at that instant."""
        active = {"droid": self._store.actor, "status": "active"}
        kinds = ("assignments", "reservations")
        rows = (row for kind in kinds for row in self._store.state(kind).select(active))
        return any(Record(row).created_ms <= at_ms for row in rows)

    def _was_of_an_issue(self, message: Message) -> bool:
        """Returns whether the hive said who has an issue that somebody who got it then, or later,
        has completed.
        """
        if message.issue_id is None or message.get(BY_HIVE) is not True or message.get(CHECK_FILES):
            return False
        done = {"issue_id": message.issue_id, "status": "completed"}
        rows = self._store.state("assignments").select(done)
        return any(Record(row).created_ms >= message.created_ms for row in rows)

    def delete(self, message_id: str) -> Message:
        """Hides a message for both sides; only its sender or recipient may. Repeating it
        changes nothing. Raises `NotFound`, `NotYours`.
        """
        actor = self._store.actor
        with self._store.transaction() as tx:
            message = self._get(message_id)
            if message.to == EVERYONE and actor != message.from_:
                raise NotYours(
                    f"message {message.id} is to everyone; only {message.from_} can delete it",
                    hint=suggested("queen msg read", message.id),
                    owner=message.from_,
                )
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

    def _to_actor(self, message_ids: Sequence[str], actor: str | None = None) -> list[Message]:
        actor = actor or self._store.actor
        named = (self.get(each) for each in several(message_ids))
        messages = list({message.id: message for message in named}.values())
        for message in messages:
            if message.to == EVERYONE and message.from_ == actor:
                raise NotYours(
                    f"message {message.id} is from you, to everyone else",
                    hint=suggested("queen msg thread", message.id),
                    owner=actor,
                )
            if message.to not in (actor, EVERYONE):
                raise NotYours(
                    f"message {message.id} is to {message.to}, not to {actor}",
                    hint=suggested("queen msg thread", message.id),
                    owner=message.to,
                )
        return [message.seen_by(actor) for message in messages]

    def _recipients(self, to: str, *, new: bool) -> list[str]:
        if to == EVERYONE:
            return [EVERYONE]
        names = [name.strip() for name in to.split(",") if name.strip()]
        if not names:
            raise InvalidInput("no recipient given", hint="queen msg send NAME BODY")
        check = self._droids.check if new else self._droids.check_addressee
        return [check(name) for name in dict.fromkeys(names)]

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


def thread_of(field: str, value: str) -> str:
    """Returns the thread of what the hive tells everybody until it holds no longer."""
    return f"{field}:{value}"


def withdraw(store: Store, field: str, value: str) -> None:
    """Hides the messages to everybody in which the hive has written this: it holds no longer."""
    told = store.state(KIND).select({"thread_id": thread_of(field, value)})
    over = [str(each["id"]) for each in told if each.get(BY_HIVE) and each.get(field) == value]
    if over:
        with store.transaction() as tx:
            gone = {"deleted": True, "deleted_at": tx.now, "deleted_by": store.actor}
            for each in over:
                tx.update(KIND, each, gone)


def _draft(given: Mapping[str, Any]) -> Draft:
    """Returns the arguments of `Messages.send`, given by name. Raises `TypeError`."""
    unknown = given.keys() - {"to", "body", *_HEADERS}
    if unknown or not {"to", "body"} <= given.keys():
        raise TypeError(f"no message: {sorted(given)}")
    return {**_HEADERS, **given}


def _is_overdue(message: Message, now_ms: int) -> bool:
    due_ms = instant_ms(message.ack_by)
    return due_ms is not None and due_ms <= now_ms and not message.acked_at


def _subject_of(body: str, parent: Message | None) -> str:
    if parent is not None:
        prefix = "" if parent.subject.lower().startswith("re:") else "Re: "
        return prefix + parent.subject
    line = next((line.strip() for line in body.splitlines() if line.strip()), "")
    return line if len(line) <= _SUBJECT_LENGTH else line[: _SUBJECT_LENGTH - 1] + "…"
