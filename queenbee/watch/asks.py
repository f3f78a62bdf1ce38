"""What waits for a person, each with what there is to read and what can be done about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from queenbee.core.text import printable, shortened
from queenbee.git.contents.settings_origin import shown_commands
from queenbee.library.hive import Hive
from queenbee.services.messages import CHECK_FILES
from queenbee.services.telling.people import Want
from queenbee.services.work import Status
from queenbee.watch.acts import Act, accept, answer, give_back, nudge
from queenbee.watch.cells import Target
from queenbee.workflows.people import wants

_MOST_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Ask:
    """One thing that waits for a person."""

    kind: str
    """That of a `Want`, or `review` or `landing`."""
    text: str
    detail: str = ""
    """What there is to read, on several lines."""
    acts: tuple[Act, ...] = ()


def asks(hive: Hive, status: Status) -> list[Ask]:
    """Returns what waits for a person now: questions first."""
    found = [*(_ask(hive, each) for each in wants(hive)), *_of_issues(hive, status)]
    return sorted(found, key=lambda each: each.kind != "answer")


def _ask(hive: Hive, want: Want) -> Ask:
    if want.kind in ("answer", "message"):
        return _message(hive, want)
    if want.kind == "trust":
        commands = [*hive.documents.unseen_commands()]
        detail = "\n".join(shown_commands(hive.layout, commands))
        text = f"Commands of this repository that would run here: {len(commands)}"
        return Ask("trust", text, detail, (accept(commands),))
    acts: tuple[Act, ...] = ()
    if want.kind == "gate":
        acts = (Act("run_gate", want.about, "Retry"),)
    elif want.kind == "quiet":
        acts = (nudge(want.droid), *_release(hive, want.about, want.droid))
    return Ask(want.kind, want.text, "", acts)


def _message(hive: Hive, want: Want) -> Ask:
    message = hive.messages.get(want.about)
    body = printable(shortened(message.body, _MOST_CHARS), keep_newlines=True)
    label = "Decline" if CHECK_FILES in message.fields else "Answer"
    # A question stays until it is answered.
    read = () if want.kind == "answer" else (Act("read", message.id, "Mark as read"),)
    body = "" if body == message.subject else body
    return Ask(want.kind, want.text, body, (answer(message.id, label), *read))


def _release(hive: Hive, issue_id: str, droid: str | None = None) -> tuple[Act, ...]:
    """Returns the release of an issue that a droid has; by default, whoever has it."""
    held = hive.assignments.active(issue_id)
    if held is None or droid not in (None, held.droid):
        return ()
    act = give_back(Target(issue_id, droid=held.droid, assigned=True))
    return () if act is None else (act,)


def _of_issues(hive: Hive, status: Status) -> Iterator[Ask]:
    for issue_id, pull in status.with_a_person.items():
        text = f"{issue_id} waits for you: {pull}"
        yield Ask("review", text, "", _release(hive, issue_id))
    for issue_id, why in status.waits_to_land.items():
        yield Ask("landing", f"{issue_id}: {why}")
