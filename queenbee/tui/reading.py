"""What a reader gets to read: an issue with its thread, or the thread of a message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from queenbee.core.names import EVERYONE
from queenbee.core.records import Message
from queenbee.core.text import printable, shortened
from queenbee.services.work.overview import Overview, overview
from queenbee.watch.cells import Cell, age, cell, left, marked
from queenbee.workflows.complete_hive import Hive

_MOST_MESSAGES = 200
_MOST_CHARS = 20_000
"""What is shown of one text: a longer one is a log."""
_TEXTS = ("description", "design", "acceptance_criteria", "notes")


@dataclass(frozen=True)
class Page:
    """A title, lines, and the message that an answer goes to."""

    title: str
    lines: Sequence[Cell]
    answer_to: str | None


def issue_page(hive: Hive, issue_id: str) -> Page:
    """Returns everything about an issue. Raises `NotFound`."""
    found, now_ms = overview(hive, issue_id), hive.now_ms()
    last = found.messages[-1].id if found.messages else None
    return Page(found.issue_id, list(_of_issue(found, now_ms)), last)


def thread_page(hive: Hive, message_id: str) -> Page:
    """Returns the thread of a message, and marks as read what of it is to the actor."""
    messages = hive.messages.thread(message_id)
    actor = hive.actor_or_none
    mine = (each for each in messages if each.to in (actor, EVERYONE) and each.from_ != actor)
    unread = [each.id for each in mine if not each.read]
    if unread:
        hive.messages.mark_read(unread)
    title = messages[0].subject if messages else message_id
    return Page(title, list(_of_thread(messages, hive.now_ms())), message_id)


def _of_issue(found: Overview, now_ms: int) -> Iterator[Cell]:
    issue = found.issue or found.deleted
    if issue is not None:
        yield cell(issue.title, "title")
        yield cell(f"P{issue.priority}  {issue.issue_type}  {issue.status}")
        if found.blockers:
            yield cell(f"waits for {', '.join(found.blockers)}", "waits")
        for name in _TEXTS:
            text = issue.get(name)
            if isinstance(text, str) and text.strip():
                yield Cell("")
                yield cell(name.replace("_", " "), "heading")
                yield from _lines(text)
    yield from _of_bead(found.bead)
    if found.assignments or found.reservations:
        yield Cell("")
        yield Cell("who", "heading")
    for each in found.assignments:
        yield cell(f"{each.droid}  {each.status}  {age(each.created_ms, now_ms)}")
    for lease in found.reservations:
        end = left(lease.expires_ms, now_ms)
        yield cell(f"{lease.droid} holds {lease.pattern}  {end} left")
    yield Cell("")
    yield Cell("messages", "heading")
    if not found.messages:
        yield Cell("none")
    yield from _of_thread(found.messages, now_ms)


def _of_bead(bead: Mapping[str, object] | None) -> Iterator[Cell]:
    """Yields what a bead says about its checks and gates, a line for each plain value."""
    if bead is None:
        return
    yield Cell("")
    yield Cell("checks", "heading")
    for name, value in bead.items():
        if isinstance(value, str | int) and not isinstance(value, bool):
            yield cell(f"{name.replace('_', ' ')}: {value}")


def _of_thread(messages: Sequence[Message], now_ms: int) -> Iterator[Cell]:
    hidden = len(messages) - _MOST_MESSAGES
    if hidden > 0:
        yield Cell(f"… {hidden} older ones: queen msg thread", "waits")
    for each in messages[-_MOST_MESSAGES:]:
        mark = marked("urgent", "").text + " " if each.importance in ("high", "urgent") else ""
        yield Cell("")
        yield cell(f"{mark}{each.from_} → {each.to}  {age(each.created_ms, now_ms)}", "from")
        if each.subject and not each.body.startswith(each.subject.rstrip("…")):
            yield cell(each.subject, "title")
        yield from _lines(each.body)


def _lines(text: str) -> Iterator[Cell]:
    for line in shortened(text, _MOST_CHARS).split("\n"):
        yield Cell(printable(line.rstrip("\r").expandtabs(4)))
