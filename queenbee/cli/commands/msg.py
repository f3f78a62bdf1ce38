"""`queen msg`, `nudge`: messages between droids."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli.app import (
    Answer,
    QueenGroup,
    command,
    first,
    group,
    invocation,
    is_mine,
    short_ids,
    tell,
)
from queenbee.cli.exits import BUSY
from queenbee.cli.options import body_or_stdin, seconds, since_option, timeout_option
from queenbee.cli.rendering import ago, entry, paragraph, show_lines, table
from queenbee.cli.terminal import say
from queenbee.core.names import ALWAYS_KNOWN, PERSON
from queenbee.core.records import IMPORTANCES, Message
from queenbee.core.text import printable, shortened, suggested
from queenbee.core.timestamps import format_duration
from queenbee.errors import InvalidInput, NoActor, QueenError, UnknownDroid
from queenbee.services.telling import sending
from queenbee.services.telling.sending import Broadcast
from queenbee.workflows.next_text import of_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.records import Importance, Message
    from queenbee.library.hive import Hive
    from queenbee.services.messages import Hit


_ACK_WITHIN_S = 3600

_MARKS = {"low": "low", "normal": "", "high": "high", "urgent": "URGENT"}


def show_list(messages: Sequence[Message]) -> None:
    """Shows messages as a table, one line each."""
    now_ms = time.time_ns() // 1_000_000
    short = short_ids("messages", messages)
    rows = [
        [
            "" if message.read else "new",
            ago(message.created_ms, now_ms),
            message.from_,
            message.to,
            _MARKS.get(message.importance, message.importance),
            message.issue_id or "",
            shortened(message.subject or message.body.partition("\n")[0]),
            short[message.id],
        ]
        for message in messages
    ]
    headings = ["", "WHEN", "FROM", "TO", "", "ISSUE", "SUBJECT", "ID"]
    # What a narrow list does without: you, on one of the two sides.
    spare = ["FROM" if all(is_mine(each.from_) for each in messages) else "TO", "ISSUE"]
    table(headings, rows, empty="No messages.", text=["SUBJECT"], spare=spare)


def show_whole(messages: Sequence[Message], *, most: int | None = None) -> None:
    """Shows messages with their bodies, no more than `most` lines of each."""
    show_lines(of_messages(invocation().hive, messages, most))


_FEW = 20
"""More messages than this are counted, not listed."""


def _show_broadcast(sent: Broadcast) -> None:
    name = printable(short_ids("messages", [sent.message])[sent.message.id])
    if sent.reaches:
        names = ", ".join(map(printable, sent.reaches))
        say(f"sent {name} to {names}, and to whoever joins within 24h")
    else:
        say(f"sent {name}: nobody else is here yet; it waits 24h for who joins")


def _show_sent(sent: Sequence[Message | Broadcast]) -> None:
    messages = [each for each in sent if not isinstance(each, Broadcast)]
    for each in sent:
        if isinstance(each, Broadcast):
            _show_broadcast(each)
            return
    if len(messages) > _FEW or not messages:
        say(f"sent {len(messages)} messages")
        return
    short = short_ids("messages", messages)
    for message in messages:
        here = invocation().hive.droids.has_been_here(message.to)
        absent = "" if here or message.to in ALWAYS_KNOWN else ", who has not been here yet"
        say(f"sent {printable(short[message.id])} to {printable(message.to)}{absent}")


def _show_reply(sent: Message) -> None:
    _show_sent([sent])


def _about_what(hive: Hive, issue_id: str | None) -> str | None:
    return None if issue_id is None else hive.issue_id(issue_id, recorded=True)


_importance = click.option(
    "--importance",
    type=click.Choice(IMPORTANCES),
    default="normal",
    metavar="LEVEL",
    help="low, normal, high or urgent; shown in the list",
)
_HEADERS = ("subject", "issue_id", "reply_to", "new")
_since = since_option("messages")
_from = click.option("--from", "from_", metavar="DROID", help="Only messages from this droid")
_about = click.option("--issue", "issue_id", metavar="ID", help="Only messages about this issue")
_limit = click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="At most this many",
)


@command(
    show=_show_sent,
    example="queen msg send reviewer 'Button is ready' --issue qb-42\n"
    "git diff --stat | queen msg send @all -\n"
    "queen msg send --batch - < messages.jsonl",
    at_once=True,
)
@click.argument("words", nargs=-1, metavar="TO... BODY")
@click.option("--subject", help="A brief subject; default: the body's first line")
@click.option("--issue", "issue_id", metavar="ID", help="The issue it is about")
@_importance
@click.option("--reply-to", metavar="ID", help="The message to answer")
@click.option("--new", is_flag=True, help="Also to a name that nobody uses yet")
@click.option("--ack", is_flag=True, help="Ask for an acknowledgement within an hour")
@click.option("--ack-within", callback=seconds, metavar="1h", help="Ask for one within this time")
@click.option("--batch", metavar="-", help="Send a message for each line of JSON on standard input")
def send(
    hive: Hive,
    words: tuple[str, ...],
    batch: str | None,
    ack: bool,
    ack_within: int | None,
    **headers: Any,
) -> list[Message] | list[Broadcast]:
    """Send a message

    TO is one droid or several, `human`, or @all: everyone in the hive, and whoever joins within a
    day. BODY is Markdown, in quotes; - reads it from standard input.

    --batch - sends many at once, all or none: on each line an object with "to", "body" and, if you
    like, "subject", "issue", "importance", "reply_to", "ack_within" and "new".
    """
    if batch is not None:
        # click has the default of an option that was not given, or its value.
        given = [*words, ack, ack_within, *(headers[name] for name in _HEADERS)]
        if batch != "-" or any(given):
            raise InvalidInput(
                "--batch reads everything from standard input",
                hint="queen msg send --batch - < FILE",
            )
        return sending.send_batch(hive, body_or_stdin("-"))
    if len(words) < 2:
        raise click.UsageError("Missing argument 'BODY'." if words else "Missing argument 'TO'.")
    within_s = ack_within or (_ACK_WITHIN_S if ack else None)
    *to, body = words
    names = ",".join(to)
    try:
        return sending.send(hive, names, body_or_stdin(body), ack_within_s=within_s, **headers)
    except (UnknownDroid, InvalidInput) as error:
        if len(to) == 1 and body in hive.droids.known():
            error.hint = f"the droid comes first: {suggested('queen msg send', body, names)}"
        if len(to) > 1:
            error.hint = f"put quotes around text that contains spaces; {error.hint or ''}"
            from queenbee.cli.person import sits_here  # noqa: PLC0415 - start-up

            as_ = PERSON if isinstance(error, NoActor) else None
            if as_ is None or sits_here(is_json=invocation().json):
                error.hint = suggested("queen msg send", words[0], " ".join(words[1:]), as_=as_)
        raise


@command(show=show_list, example="queen msg inbox --unread --since 2h", at_once=True)
@click.option("--unread", is_flag=True, help="Only unread messages")
@_since
@_from
@_about
@_limit
@click.option("--for", "droid", metavar="DROID", help="The inbox of another droid")
@click.option("--overdue", is_flag=True, help="Only messages whose acknowledgement is overdue")
@click.option("--after", metavar="ID", help="Only later arrivals than this message, oldest first")
def inbox(
    hive: Hive, after: str | None, limit: int, droid: str | None, **filters: Any
) -> list[Message]:
    """List the messages sent to you, newest first

    A client that passes the last id it saw to --after gets every new message exactly once,
    whatever clocks and merges do. --after combines only with --for and --limit.
    """
    if after is not None:
        if any(filters.values()):
            raise InvalidInput(
                "--after combines only with --for and --limit",
                hint=suggested("queen msg inbox", after=after),
            )
        return first(hive.messages.since(after, droid=droid), limit)
    filters["issue_id"] = _about_what(hive, filters["issue_id"])
    found = hive.messages.inbox(limit=limit + 1, droid=droid, **filters)
    if any(value for key, value in filters.items() if key != "unread"):
        return first(found, limit)
    return first(found, limit, lambda: hive.messages.count(unread=filters["unread"], droid=droid))


def _show_read(messages: Sequence[Message]) -> None:
    if messages:
        show_whole(messages)
    else:
        paragraph("No unread messages.")


@command(show=_show_read, example="queen msg read\nqueen msg read 5W6X", at_once=True)
@click.argument("ids", nargs=-1, metavar="[ID...]")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most this many unread")
def read(hive: Hive, ids: tuple[str, ...], limit: int | None) -> list[Message]:
    """Show messages whole and mark them as read

    Without an ID, shows everything that you have not read, oldest first.
    """
    if not ids:
        hive.messages.drop_merged()
        found = hive.messages.read_unread(limit=limit)
        left = hive.messages.count(unread=True) if len(found) == limit else 0
        if left and not invocation().json:
            tell(f"{left} more are unread: queen msg read")
        return found
    if limit is not None:
        raise InvalidInput("--limit is for reading without an ID", hint="queen msg read --limit 20")
    from queenbee.store.callers.agent_above import is_agent  # noqa: PLC0415 - start-up

    return hive.messages.mark_read(ids, as_person=not is_agent())


@command(show=_show_reply, example="queen msg reply 5W6X 'On it'", at_once=True)
@click.argument("message_id", metavar="ID")
@click.argument("body")
@_importance
def reply(hive: Hive, message_id: str, body: str, importance: Importance) -> Message:
    """Answer a message, in its thread"""
    return hive.messages.reply(message_id, body_or_stdin(body), importance=importance)


@command(show=_show_reply, example="queen answer 5W6X 'Euros'", at_once=True)
@click.argument("message_id", metavar="ID")
@click.argument("body", metavar="TEXT", required=False)
def answer(hive: Hive, message_id: str, body: str | None) -> Message:
    """Answer a message, and take it off your list

    A person also answers what agents ask human: under the name that is set, or as human.
    """
    from queenbee.services.messages import ANSWER  # noqa: PLC0415 - start-up
    from queenbee.store.callers.agent_above import is_agent  # noqa: PLC0415 - start-up

    if body in (None, "TEXT", ANSWER):
        hint = suggested("queen answer", message_id, "what you want to say")
        what = f"{body} stands for what you want to say" if body else "the answer is missing"
        raise InvalidInput(what, hint=hint)
    with suppress(QueenError):
        if at := hive.messages.get(message_id).acked_at:
            tell(f"it was answered before, at {at}; this is one more answer")
    as_person = not is_agent()
    return hive.messages.answer(message_id, body_or_stdin(body), as_person=as_person)


@command(show=show_whole, example="queen msg thread qb-42", at_once=True)
@click.argument("identifier", metavar="ID|ISSUE")
def thread(hive: Hive, identifier: str) -> list[Message]:
    """Show a whole thread, or all messages about an issue"""
    return hive.messages.thread(identifier)


@command(show=show_list, example="queen msg sent --limit 5", at_once=True)
@_limit
def sent(hive: Hive, limit: int) -> list[Message]:
    """List the messages that you sent, newest first"""
    return first(hive.messages.sent(limit=limit + 1), limit)


def _show_deleted(message: Message) -> None:
    say(f"deleted {printable(short_ids('messages', [message])[message.id])}")


@command(show=_show_deleted, example="queen msg delete 5W6X")
@click.argument("message_id", metavar="ID")
def delete(hive: Hive, message_id: str) -> Message:
    """Hide a message that you sent or received

    The line stays in the ledger and in git. To remove a secret, see docs/security.md.
    """
    return hive.messages.delete(message_id)


def _show_acknowledged(messages: Sequence[Message]) -> None:
    short = short_ids("messages", messages)
    for each in messages:
        entry(f"acknowledged {printable(short[each.id])} from ", printable(each.from_))


@command(show=_show_acknowledged, example="queen msg ack 5W6X", at_once=True)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
def ack(hive: Hive, ids: tuple[str, ...]) -> list[Message]:
    """Acknowledge messages, which also marks them as read"""
    return hive.messages.acknowledge(ids)


def _show_hits(hits: Sequence[Hit]) -> None:
    now_ms = time.time_ns() // 1_000_000
    short = short_ids("messages", [hit.message for hit in hits])
    rows = [
        [ago(hit.message.created_ms, now_ms), hit.message.from_, hit.snippet, short[hit.message.id]]
        for hit in hits
    ]
    mine = [is_mine(hit.message.from_) for hit in hits]
    table(["WHEN", "FROM", "TEXT", "ID"], rows, empty="Nothing found.", text=["TEXT"], mine=mine)


@command(show=_show_hits, example="queen msg search 'login timeout' --issue qb-42")
@click.argument("query")
@_about
@_from
@_since
@_limit
def search(hive: Hive, query: str, limit: int, **filters: Any) -> list[Hit]:
    """Find messages by the words in them, best first

    A message must contain all the words. A word may end in *; double quotes mark a phrase.
    """
    filters["issue_id"] = _about_what(hive, filters["issue_id"])
    return first(hive.messages.search(query, limit=limit + 1, **filters), limit)


@command(show=show_list, example="queen msg wait --wait 10m --from reviewer")
@timeout_option("60s")
@_from
@_about
def wait(hive: Hive, timeout: int, from_: str | None, issue_id: str | None) -> Answer:
    """Wait until there are unread messages

    Exit 0 as soon as there are some, 6 if the wait timed out. Read them (queen msg read ID), or the
    next wait returns them again.
    """
    about = _about_what(hive, issue_id)
    found = hive.messages.wait(timeout_s=timeout, from_=from_, issue_id=about)
    return Answer(found, yes=bool(found), no=BUSY)


msg: QueenGroup = group(
    "msg",
    [send, inbox, wait, read, reply, ack, thread, search, sent, delete],
    help="Messages between droids",
    more="nudge:msg notify:care.for_people",
    example="queen msg send reviewer 'The API is ready' --issue qb-42\nqueen msg inbox --unread",
)


def _show(asked: Message) -> None:
    paragraph(f"nudged {printable(asked.to)} ({printable(asked.id)})")
    hive = invocation().hive
    paragraph(
        f"Without a sign of life within {format_duration(hive.layout.settings.answer_within_s)}, "
        f"you may take over: {' or '.join(hive.nudges.take_overs(asked.to))}"
    )


@command(show=_show, example="queen msg nudge ui-engineer")
@click.argument("droid")
def nudge(hive: Hive, droid: str) -> Message:
    """Ask a quiet droid whether it is still there

    A droid is quiet if it has shown no sign of life for 15 minutes (quiet_after); for 3 (ask_after)
    if it has an issue and somebody waits for one; or if its agent has ended. If it does not answer
    within a minute, anybody may take over from it without another reason. Any command, edit or
    commit of it is an answer. Whoever waits in queen next --wait asks, and takes over, by itself.
    """
    from queenbee.git.unfinished import WorktreeKeeper  # noqa: PLC0415 - start-up

    WorktreeKeeper(hive).note_signs(droid)
    return hive.nudges.nudge(droid)
