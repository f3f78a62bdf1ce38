"""What an agent reads when another droid holds the file: who, why, how long, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import mentioned, one_line, quotation, suggested
from queenbee.core.timestamps import format_duration
from queenbee.hook import answers, events
from queenbee.hook.session_events import MOST_CHARS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.records import Reservation
    from queenbee.errors import Held
    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.services.hive import Services
    from queenbee.services.leases.reservations import PathStatus

_SHOWN = 3
_PATH_CHARS = 200
_REASON_CHARS = 400


def answer(event: Event, hive: Services, held: Sequence[PathStatus]) -> Answer:
    """Returns the denial of an edit, or a warning about one that has already happened."""
    reason = _sentences(hive, held)
    if event.kind == events.BEFORE_EDIT:
        return answers.denial(event, f"{reason} {_instead(hive, held[0])}")
    return answers.context(
        event,
        f"You changed a file that another agent holds. {reason}{_tell(hive, held[0])}",
    )


def behind_waiters(event: Event, hive: Services, path: str, refusal: Held) -> Answer:
    """Returns the denial of an edit of a free file that another agent has waited for longer."""
    shown = one_line(path, _PATH_CHARS)
    reason = f"{mentioned(shown)}: {one_line(refusal.message, _REASON_CHARS)}."
    if event.kind == events.BEFORE_EDIT:
        wait = suggested("queen reserve", shown, wait="90s", as_=hive.actor_or_none)
        return answers.denial(
            event,
            f"{reason} Do not change it in another way, such as with a shell command. Work on "
            f"something else, or take your place in the line ({wait}).",
        )
    return answers.context(event, f"You changed a file that another agent waits for. {reason}")


def _sentences(hive: Services, held: Sequence[PathStatus]) -> str:
    """Returns one sentence for each file: who holds it, for what, and for how long."""
    lines = [
        f"{mentioned(one_line(each.path, _PATH_CHARS))} is {_holder(hive, each)}." for each in held
    ]
    more = len(lines) - _SHOWN
    return " ".join([*lines[:_SHOWN], *([f"And {more} more."] if more > 0 else [])])


def _holder(hive: Services, status: PathStatus) -> str:
    lease = status.leases[0]
    pattern = (
        f" ({mentioned(one_line(lease.pattern, 120))})" if lease.pattern != status.path else ""
    )
    left = format_duration((lease.expires_ms - hive.now_ms()) / 1000)
    where = "" if lease.exclusive else f", which edits it in {_tree(hive, lease)}"
    issue = f" for {mentioned(one_line(lease.issue_id, MOST_CHARS))}" if lease.issue_id else ""
    why = f" ({quotation(one_line(lease.reason, MOST_CHARS))})" if lease.reason else ""
    droid = mentioned(one_line(lease.droid, MOST_CHARS))
    return f"reserved by {droid}{pattern}{where}{issue}{why}, {left} left"


def _tree(hive: Services, lease: Reservation) -> str:
    """Returns in which working tree an announced edit is, as seen from this one."""
    here = lease.tree_id is not None and lease.tree_id == hive.reservations.editor().tree_id
    session = " in another session" if lease.droid == hive.actor_or_none else ""
    return f"{'this' if here else 'a'} working tree{session}"


def _instead(hive: Services, first: PathStatus) -> str:
    path, lease = one_line(first.path, _PATH_CHARS), first.leases[0]
    stop = "Do not change it in another way, such as with a shell command. Work on something else"
    if lease.droid == hive.actor_or_none:
        return f"{stop}, or in a working tree of your own (git worktree add)."
    shared = None if lease.exclusive or hive.reservations.editor().exclusive else True
    wait = suggested("queen reserve", path, shared=shared, wait="90s", as_=hive.actor_or_none)
    return f"{stop}, wait for it ({wait}), or ask its holder ({_ask(hive, first)})."


def _tell(hive: Services, first: PathStatus) -> str:
    own = first.leases[0].droid == hive.actor_or_none
    return "" if own else f" Tell it: {_ask(hive, first)}."


def _ask(hive: Services, first: PathStatus) -> str:
    about = f"About {one_line(first.path, _PATH_CHARS)}: ..."
    holder = one_line(first.leases[0].droid, MOST_CHARS)
    return suggested("queen msg send", holder, about, as_=hive.actor_or_none)
