"""What this machine knows of the exchanges that `[sync] when` asks for.

With `when = "write"`, a write leaves a request beside the memory. The command exchanges the
records once it has printed its answer; if it cannot, the next one does. A request is removed only
when an exchange that began after it has ended, so a command that is killed leaves it to the next.
ADR 0029.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.text import named, shortened
from queenbee.core.timestamps import format_duration
from queenbee.errors import QueenError, Unreadable, Untrusted
from queenbee.store import safe_open
from queenbee.store.lock import is_held
from queenbee.store.whole_files import keep, recall, take_name

if TYPE_CHECKING:
    from queenbee.services.open_store import Store
    from queenbee.store.layout import Layout

MANUAL, READ = "manual", "read"
REST_S = 60.0
"""After a remote could not be reached, it is left alone for so long."""
_OLD_S = 180.0
"""Somebody who waits has waited for less."""
_MOST_BYTES = 64 * 1024
_MOST_MARK_BYTES = 4096
_WHY_CHARS = 300
"""The remote says why, at any length."""
_MOST_TOLD = 200
"""So that the note stays readable: who is left out is told once more."""


def allow(layout: Layout) -> None:
    """Notes that somebody ran `queen sync` here: from now on, `when` counts.

    The settings come with a clone, and the git config with an unpacked archive: together, they
    could run a program of their author at any command. So the note holds what no archive can know:
    which file the kernel made, and when; with which branch of which remote that was, and of which
    hive in a database, if it was one.
    """
    with suppress(OSError, QueenError):
        if not is_allowed(layout):
            safe_open.make_folder(layout.remote_dir)
            safe_open.write(_in(layout, "here"), b"")
            take_name(_in(layout, "allowed"), _mark(layout), durable=False)


def is_allowed(layout: Layout) -> bool:
    """Returns whether records may be exchanged without being asked for."""
    try:
        return safe_open.read(_in(layout, "allowed"), _MOST_MARK_BYTES) == _mark(layout)
    except (OSError, Unreadable):
        return False


def require(layout: Layout, *, at_first: bool = False) -> None:
    """Raises `Untrusted` unless somebody here has agreed to exchange records with this branch of
    this remote: both may have come by a pull. `at_first`: or unless they are the default ones, and
    nobody has agreed to any.
    """
    from queenbee.store.settings import Settings  # noqa: PLC0415 - start-up
    from queenbee.store.trust import Trust  # noqa: PLC0415 - start-up

    where, usual = ((each.sync_remote, each.sync_branch) for each in (layout.settings, Settings()))
    is_first = at_first and where == usual and not os.path.lexists(_in(layout, "allowed"))
    if not (is_first or is_allowed(layout) or Trust(layout).asks_nothing):
        remote, branch = (named([each]) for each in where)
        raise Untrusted(
            f"nobody on this machine has agreed to exchange records with {branch} of {remote}",
            hint="a person here: queen sync",
        )


def _mark(layout: Layout) -> bytes:
    status = os.stat(_in(layout, "here"), follow_symlinks=False)
    made = b"%d %d %d" % (status.st_dev, status.st_ino, status.st_ctime_ns)
    said = layout.settings
    of_whom = () if said.engine_kind == "files" else (said.engine_kind, said.engine_hive)
    parts = ("", said.sync_remote, said.sync_branch, *of_whom)
    return made + "\n".join(parts).encode(errors="surrogateescape")


def request(layout: Layout) -> None:
    """Leaves a request for an exchange. Never fails: the records are here, and the next write asks
    again.
    """
    with suppress(OSError, QueenError):
        if is_allowed(layout):
            safe_open.write(_in(layout, "asked"), b"")


# The request is renamed before an exchange and removed after it. A write in between makes a new
# one, and a kill in between leaves the renamed one: both are requests that are still there.


def begin_serving(layout: Layout) -> None:
    """Notes that an exchange begins, which will send all that was written before."""
    with suppress(OSError):
        safe_open.replace(_in(layout, "asked"), _in(layout, "serving"))


def served(layout: Layout) -> None:
    """Notes that the exchange has ended well."""
    with suppress(OSError):
        safe_open.unlink(_in(layout, "serving"))


def is_asked(layout: Layout) -> bool:
    """Returns whether a request is left."""
    return any(os.path.exists(_in(layout, name)) for name in ("asked", "serving"))


def wants_exchange(layout: Layout) -> bool:
    """Returns whether to exchange now: something was written, the remote can be reached as far as
    is known, and no `queen sync --watch` runs, which does it.
    """
    if layout.settings.sync_when == MANUAL or not is_asked(layout):
        return False
    return is_allowed(layout) and not is_resting(layout) and not is_watched(layout)


def watch_path(layout: Layout) -> str:
    """Returns the lock of `queen sync --watch`."""
    return _in(layout, "behind")


def is_watched(layout: Layout) -> bool:
    """Returns whether `queen sync --watch` runs now."""
    return is_held(watch_path(layout))


def wants_fetch(store: Store, *, anew: bool = False) -> bool:
    """Returns whether to fetch before reading: the settings say so, and the last fetch was longer
    ago than `sync.max_age`, unless something was missed (`anew`). A carrier of every write has
    everything already.
    """
    layout = store.layout
    settings = layout.settings
    if store.engine.carrier is not None or settings.sync_when == MANUAL:
        return False
    is_young = settings.sync_when != READ or fetched_s(layout) < settings.sync_max_age_s
    if is_young and not anew:
        return False
    return is_allowed(layout) and not is_resting(layout)


def note_fetch(layout: Layout) -> None:
    """Notes that the branch was fetched now, and so that the remote can be reached."""
    # The time of an empty file: to replace one that has a content waits for the disk.
    with (
        suppress(OSError),
        os.fdopen(safe_open.open_file(_in(layout, "fetched"), os.O_RDWR | os.O_CREAT)) as file,
    ):
        os.utime(file.fileno())
    with suppress(OSError):
        safe_open.unlink(_in(layout, "away"))


def fetched_s(layout: Layout) -> float:
    """Returns how long ago the branch was fetched, by the wall clock; infinity if that is not
    known, or would be in the future.
    """
    try:
        ago_s = time.time() - os.stat(_in(layout, "fetched")).st_mtime
    except OSError:
        return float("inf")
    return ago_s if ago_s >= 0 else float("inf")


def staleness(layout: Layout) -> str:
    """Returns how old the records from the remote are, with what brings newer ones, if nothing does
    that by itself; empty for some minutes, and where none were ever fetched.
    """
    ago_s, said = fetched_s(layout), layout.settings
    if (
        said.sync_when != MANUAL
        or said.engine_kind == "postgres"
        or not _OLD_S <= ago_s < float("inf")
    ):
        return ""
    age = format_duration(ago_s).split(" ")[0]
    fresh = "queen config set sync.when read keeps them fresh"
    return f"the records of other clones are {age} old: queen sync; {fresh}"


def note_away(layout: Layout, why: str) -> None:
    """Notes that the remote cannot be reached, for those who come next. Each is told once, until
    it can be reached again.
    """
    told = _away(layout).get("told")
    told = told[-_MOST_TOLD:] if isinstance(told, list) else []
    keep(
        _in(layout, "away"),
        {"at_ns": time.time_ns(), "why": shortened(why, _WHY_CHARS), "told": told},
    )


def is_resting(layout: Layout) -> bool:
    """Returns whether the remote could not be reached just now, and is left alone for a while."""
    at_ns = _away(layout).get("at_ns")
    return isinstance(at_ns, int) and 0 <= (time.time_ns() - at_ns) / 1e9 < REST_S


def news(store: Store) -> list[str]:
    """Returns what the actor should know once: that the remote cannot be reached."""
    layout = store.layout
    if not is_allowed(layout):
        return ["records are exchanged without being asked for once you have run: queen sync"]
    away, who = _away(layout), store.actor_or_none or ""
    told = away.get("told")
    if not isinstance(told, list) or who in told:
        return []
    keep(_in(layout, "away"), {**away, "told": [*told, who]})
    return [f"{away.get('why')}; going on with what is here"]


def _away(layout: Layout) -> dict[str, object]:
    """Returns when the remote could not be reached last, why, and who was told; empty if it can."""
    said = recall(_in(layout, "away"), _MOST_BYTES)
    return said if isinstance(said, dict) else {}


def _in(layout: Layout, name: str) -> str:
    return os.path.join(layout.remote_dir, name)
