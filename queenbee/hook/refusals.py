"""What an agent reads when another droid holds the file: who, why, how long, and what to do."""

from __future__ import annotations

from queenbee.core.timestamps import format_duration
from queenbee.hook import answers, events
from queenbee.hook.sessions import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.hook.answers import Answer
    from queenbee.hook.events import Event
    from queenbee.services.hive import Services
    from queenbee.services.leases.reservations import PathStatus

_SHOWN = 3


def answer(event: Event, hive: Services, held: Sequence[PathStatus]) -> Answer:
    """Returns the denial of an edit; of one that has happened, the word about it."""
    reason = sentences(hive, held)
    if event.kind == events.BEFORE_EDIT:
        return answers.denial(event, f"{reason} {_instead(hive, held[0])}")
    return answers.context(
        event, f"You changed what another agent holds. {reason} Tell them: {_ask(hive, held[0])}."
    )


def sentences(hive: Services, held: Sequence[PathStatus]) -> str:
    """Returns one sentence for each file: by whom it is held, for what, and for how long."""
    lines = [f"{clean(each.path, 200)} is {_holder(hive, each)}." for each in held]
    more = len(lines) - _SHOWN
    return " ".join([*lines[:_SHOWN], *([f"And {more} more."] if more > 0 else [])])


def _holder(hive: Services, status: PathStatus) -> str:
    lease = status.leases[0]
    pattern = f" ({clean(lease.pattern, 120)})" if lease.pattern != status.path else ""
    left = format_duration((lease.expires_ms - hive.now_ms()) / 1000)
    mode = "reserved by" if lease.exclusive else "being read, unchanged, by"
    issue = f" for {clean(lease.issue_id)}" if lease.issue_id else ""
    why = f" (“{clean(lease.reason)}”)" if lease.reason else ""
    return f"{mode} {clean(lease.droid)}{pattern}{issue}{why}, {left} left"


def _instead(hive: Services, first: PathStatus) -> str:
    wait = f"queen reserve {_quoted(first.path)} --wait 90s{_as(hive)}"
    return (
        "Do not change it in another way, such as by a shell command. Work on something else, "
        f"wait for it ({wait}), or ask its holder ({_ask(hive, first)})."
    )


def _ask(hive: Services, first: PathStatus) -> str:
    about = f"'About {first.path}: ...'" if "'" not in first.path else "'...'"
    return f"queen msg send {clean(first.leases[0].droid)} {clean(about, 200)}{_as(hive)}"


def _as(hive: Services) -> str:
    return f" --as {hive.actor_or_none}" if hive.actor_or_none else ""


def _quoted(path: str) -> str:
    text = clean(path, 200)
    plain = all(char.isalnum() or char in "/._-+@" for char in text)
    return text if plain else "'" + text.replace("'", "'\\''") + "'"
