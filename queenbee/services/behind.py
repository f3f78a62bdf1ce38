"""Exchanging records behind the answer: what was written is sent by a process of its own.

With `when = "write"` in `[sync]`, a write leaves a request beside the journal and starts `queen
behind`, unless one runs already. One of them serves all requests of a machine; what
is written meanwhile is served by the same exchange, or by one more. A request is removed only when
an exchange that began after it has ended, so whoever is killed, the next command starts another.
ADR 0029.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from contextlib import suppress

from queenbee.core.text import shortened
from queenbee.errors import QueenError, Unreadable
from queenbee.store import safe_open
from queenbee.store.documents import keep, recall, take_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.services.store import Store
    from queenbee.store.layout import Layout

MANUAL, READ = "manual", "read"
REST_S = 60.0
"""After a remote could not be reached, it is left alone for so long."""
_YOUNG_S = 2.0
"""A request of this age has a process on its way to serve it."""
_MOST_BYTES = 64 * 1024
_WHY_CHARS = 300
"""The remote says why, at any length."""
_MOST_TOLD = 200
"""So that the note stays readable: who is left out is told once more."""
PROGRAM = "from queenbee.cli.main import main; main()"
_START = 'cd / && "$@" </dev/null >/dev/null 2>&1 &'


def lock_path(layout: Layout) -> str:
    """Returns the lock of the process that serves the requests of this machine."""
    return os.path.join(layout.remote_dir, "behind")


def allow(layout: Layout) -> None:
    """Notes that somebody ran `queen sync` here: from now on, `when` counts.

    The settings come with a clone, and the git config with an unpacked archive: together, they
    could run a program of their author at any command. So the note holds what no archive can know:
    which file the kernel made, and when.
    """
    with suppress(OSError, QueenError):
        if not is_allowed(layout):
            safe_open.make_folder(layout.remote_dir)
            safe_open.write(_here(layout), b"")
            take_name(_allowed(layout), _mark(layout), durable=False)


def is_allowed(layout: Layout) -> bool:
    """Returns whether records may be exchanged without being asked for."""
    try:
        return safe_open.read(_allowed(layout), 200) == _mark(layout)
    except (OSError, Unreadable):
        return False


def _mark(layout: Layout) -> bytes:
    status = os.stat(_here(layout), follow_symlinks=False)
    return b"%d %d %d" % (status.st_dev, status.st_ino, status.st_ctime_ns)


def ask(store: Store) -> None:
    """Asks for an exchange of what was written, and starts it. Never fails: the records are here,
    and the next command asks again.
    """
    if not is_allowed(store.layout):
        return
    with suppress(OSError, QueenError):
        age_s = _age_s(_asked(store.layout))
        request(store.layout)
        if not 0 <= age_s < _YOUNG_S:
            start(store)


def request(layout: Layout) -> None:
    """Leaves a request for an exchange."""
    safe_open.make_folder(layout.remote_dir)
    safe_open.write(_asked(layout), b"")


def start(store: Store) -> None:
    """Starts the exchange, unless one runs, or the remote could not be reached just now."""
    layout = store.layout
    if is_resting(layout) or is_served(layout):
        return
    command = [sys.executable, "-E", "-P", "-X", "utf8", "-c", PROGRAM]
    command += ["--beads-dir", layout.beads_dir, "behind"]
    # A shell puts it in the background and ends, so that nobody has to wait for its end. To
    # import `subprocess` would take longer than all of this.
    arguments = ["sh", "-c", _START, "sh", *command]
    try:
        child = os.posix_spawn("/bin/sh", arguments, os.environ, setsid=True)
    except NotImplementedError:  # Not on every system.
        child = os.posix_spawn("/bin/sh", arguments, os.environ, setpgroup=0)
    os.waitpid(child, 0)


def look_after(store: Store) -> list[str]:
    """Returns what the actor should know once: that the remote cannot be reached. Starts what an
    earlier command asked for and nobody has served.
    """
    layout = store.layout
    if not is_allowed(layout):
        return ["records are exchanged in the background once you have run: queen sync"]
    said = []
    away, who = _Away.read(layout), store.actor_or_none or ""
    if away is not None and who not in away.told:
        said = [f"{away.why}; going on with what is here"]
        away.told.append(who)
        away.write(layout)
    with suppress(OSError, QueenError):
        if is_asked(layout) and not 0 <= _age_s(_asked(layout)) < _YOUNG_S:
            start(store)
    return said


# The request is renamed before an exchange and removed after it. A write in between makes a new
# one, and a kill in between leaves the renamed one: both are requests that are still there.


def begin_serving(layout: Layout) -> None:
    """Notes that an exchange begins, which will send all that was written before."""
    with suppress(FileNotFoundError):
        safe_open.replace(_asked(layout), _serving(layout))


def served(layout: Layout) -> None:
    """Notes that the exchange has ended well."""
    with suppress(FileNotFoundError):
        safe_open.unlink(_serving(layout))


def is_asked(layout: Layout) -> bool:
    """Returns whether a request is left."""
    return os.path.exists(_asked(layout)) or os.path.exists(_serving(layout))


def is_served(layout: Layout) -> bool:
    """Returns whether a process serves the requests now."""
    try:
        fd = safe_open.open_file(lock_path(layout), os.O_RDWR | os.O_CREAT)
    except OSError:
        return True  # Nobody could lock it, then.
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def wants_fetch(store: Store) -> bool:
    """Returns whether to fetch before reading: the settings say so, and the last fetch was longer
    ago than `sync.max_age`. An engine that all machines share has everything already.
    """
    layout = store.layout
    settings = layout.settings
    if store.engine.shared:
        return False
    if settings.sync_when != READ or fetched_s(layout) < settings.sync_max_age_s:
        return False
    return is_allowed(layout) and not is_resting(layout)


def note_fetch(layout: Layout) -> None:
    """Notes that the branch was fetched now, and so that the remote can be reached."""
    # The time of an empty file: to replace one that has a content waits for the disk.
    fd = safe_open.open_file(os.path.join(layout.remote_dir, "fetched"), os.O_RDWR | os.O_CREAT)
    try:
        os.utime(fd)
    finally:
        os.close(fd)
    with suppress(FileNotFoundError):
        safe_open.unlink(_away_path(layout))


def fetched_s(layout: Layout) -> float:
    """Returns how long ago the branch was fetched, by the wall clock; infinity if that is not
    known, or would be in the future.
    """
    ago_s = _age_s(os.path.join(layout.remote_dir, "fetched"))
    return ago_s if ago_s >= 0 else float("inf")


def note_away(layout: Layout, why: str) -> None:
    """Notes that the remote cannot be reached, for those who come next. Each is told once, until
    it can be reached again.
    """
    before = _Away.read(layout)
    told = before.told[-_MOST_TOLD:] if before is not None else []
    _Away(time.time_ns(), shortened(why, _WHY_CHARS), told).write(layout)


def is_resting(layout: Layout) -> bool:
    """Returns whether the remote could not be reached just now, and is left alone for a while."""
    away = _Away.read(layout)
    return away is not None and 0 <= (time.time_ns() - away.at_ns) / 1e9 < REST_S


class _Away:
    """That the remote could not be reached: when last, why, and who was told."""

    def __init__(self, at_ns: int, why: str, told: list[str]) -> None:
        self.at_ns = at_ns
        self.why = why
        self.told = told

    @classmethod
    def read(cls, layout: Layout) -> _Away | None:
        try:
            said = recall(_away_path(layout), _MOST_BYTES)
            return cls(int(said["at_ns"]), str(said["why"]), list(map(str, said["told"])))
        except (ValueError, KeyError, TypeError):
            return None

    def write(self, layout: Layout) -> None:
        keep(_away_path(layout), vars(self))


def _away_path(layout: Layout) -> str:
    return os.path.join(layout.remote_dir, "away")


def _here(layout: Layout) -> str:
    return os.path.join(layout.remote_dir, "here")


def _allowed(layout: Layout) -> str:
    return os.path.join(layout.remote_dir, "allowed")


def _asked(layout: Layout) -> str:
    return os.path.join(layout.remote_dir, "asked")


def _serving(layout: Layout) -> str:
    return os.path.join(layout.remote_dir, "serving")


def _age_s(path: str) -> float:
    """Returns the age of a file; infinity if there is none."""
    try:
        return time.time() - os.stat(path).st_mtime
    except OSError:
        return float("inf")
