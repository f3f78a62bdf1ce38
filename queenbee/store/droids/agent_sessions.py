"""Which sessions of agents work in a worktree: files in the untracked state.

The name that a worktree remembers belongs to the first of its sessions that are at work. A file's
own time is that of the last event. Without these files, each session counts as the first.
"""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee.errors import Busy, Unreadable, Unwritable
from queenbee.store import safe_open
from queenbee.store.droids.liveness import caller, callers, is_running
from queenbee.store.whole_files import is_unfinished, keep, recall

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Collection

    from queenbee.store.layout import Layout

QUIET_MS = 12 * 3_600_000
"""So long after its last event, a session whose agent still runs counts as over: some agents are
left open for days, and some never say that a session has ended."""
QUIET_UNSEEN_MS = 3_600_000
"""The same if it cannot be told whether the agent runs."""
_NOTED_EVERY_MS = 30_000
"""Most events follow another one at once, and cost nothing but a look."""
_HANDED_ON_MS = 60_000
"""So soon after a session was cleared, the next one of the same process continues it."""
_KEPT_MS = 24 * 3_600_000
_LOCK_TIMEOUT_S = 2.0
_MOST_BYTES = 2_048
_NAME_CHARS = 80
SAME_AGENT = frozenset(("clear", "compact", "fork", "resume"))
"""Why a session starts that continues another one of the same process, under a new id."""


class Session:
    """One session in one worktree."""

    __slots__ = ("agent", "first", "handed_on", "last_ms", "part", "path", "process")

    def __init__(self, path: str, part: str, *, first: bool, process: str, last_ms: int) -> None:
        self.path: str = path
        self.agent: str = ""
        """Which agent it is a session of, as names begin."""
        self.part: str = part
        """What tells its name from those of other sessions."""
        self.first: bool = first
        """Whether the worktree's name is its own."""
        self.process: str = process
        self.last_ms: int = last_ms
        self.handed_on: bool = False
        """Whether it ended only to go on under another id."""

    def has_id(self, session_id: str) -> bool:
        """Returns whether this is the session with an id."""
        return os.path.basename(self.path) == _plain(session_id)

    def at_work(self, now_ms: int) -> bool:
        """Returns whether the session may still act, or is about to go on under another id."""
        running = is_running(self.process) if self.process else None
        if self.handed_on:
            return running is True and now_ms - self.last_ms < _HANDED_ON_MS
        if running is False:
            return False
        return now_ms - self.last_ms < (QUIET_MS if running else QUIET_UNSEEN_MS)


def current(layout: Layout, session_id: str, now_ms: int) -> Session | None:
    """Returns a session that has begun in this worktree, and notes that it is at work now."""
    session = _read(path_of(layout, session_id))
    if session is None or session.handed_on:
        return None
    if abs(now_ms - session.last_ms) < _NOTED_EVERY_MS:
        return session
    if session.process and is_running(session.process) is False:
        # Its events come from elsewhere: it was resumed, or its hooks have a runner of their own.
        session.process = ""
        _write(session)
    with suppress(OSError, Unreadable):
        safe_open.touch(session.path, now_ms)
    return session


def noted(layout: Layout, session_id: str) -> Session | None:
    """Returns a session that has begun in this worktree, and notes nothing."""
    return _read(path_of(layout, session_id))


def around(layout: Layout, ids: Collection[str], now_ms: int) -> Session | None:
    """Returns the session in this worktree whose agent runs this process, and notes nothing.

    It is the one of the nearest process above us that has any. If that has several, or none that
    can be seen, it is the one whose id is in `ids`.
    """
    try:
        beside = _all_beside(path_of(layout, ""))
    except OSError:
        return None
    working = [each for each in beside if not each.handed_on and each.at_work(now_ms)]
    named = [each for each in working if any(each.has_id(one) for one in ids)]
    for process in callers() if working else ():
        same = [each for each in working if each.process == process]
        if same:
            chosen = same if len(same) == 1 else [each for each in same if each in named]
            return chosen[0] if len(chosen) == 1 else None
    return named[0] if named else None


def newest(layout: Layout) -> str:
    """Returns the id of the session in this worktree that was last at work, or ""."""
    folder = os.path.dirname(path_of(layout, "x"))
    try:
        found = _all_beside(path_of(layout, "x"))
    except OSError:
        return ""
    last = max(found, key=lambda each: each.last_ms, default=None)
    return os.path.relpath(last.path, folder) if last is not None else ""


def are_at_work(layout: Layout, now_ms: int) -> bool:
    """Returns whether any session of this worktree may still act."""
    try:
        return any(each.at_work(now_ms) for each in _all_beside(path_of(layout, "")))
    except OSError:
        return False


def take_ended(layout: Layout) -> list[Session]:
    """Returns the sessions of this worktree whose agent has ended without a word, once each."""
    try:
        beside = _all_beside(path_of(layout, ""))
    except OSError:
        return []
    ended = [each for each in beside if each.process and is_running(each.process) is False]
    for each in ended:
        with suppress(OSError, Unreadable):
            safe_open.unlink(each.path)
    return ended


def begin(
    layout: Layout, session_id: str, part: str, *, agent: str, source: str, now_ms: int
) -> Session | None:
    """Returns the session, from now on at work in this worktree; None if that cannot be noted.

    One that was cleared or resumed goes on as it was: with its part, and as the first if it was.
    """
    from queenbee.store.creating import make_state_dir  # noqa: PLC0415 - start-up
    from queenbee.store.lock import KernelLock  # noqa: PLC0415 - start-up

    path = path_of(layout, session_id)
    try:
        make_state_dir(layout)
        safe_open.make_folder(os.path.dirname(path))
    except (OSError, Unreadable, Unwritable):
        return None

    lock = os.path.join(layout.sessions_dir, "lock")
    try:
        with KernelLock(lock, holder=session_id[:64], timeout_s=_LOCK_TIMEOUT_S):
            return _begin(path, (agent, part), source, now_ms)
    except (OSError, Unreadable, Unwritable, Busy):
        return None


def _begin(path: str, new: tuple[str, str], source: str, now_ms: int) -> Session | None:
    """Decides who the session is, under the lock: two that begin at once are not both the first."""
    process = caller()
    others = [each for each in _all_beside(path) if each.path != path]
    before = _read(path) or _continued(others, process, source, now_ms)
    if before is not None and before.path != path:
        others.remove(before)
        with suppress(OSError):
            safe_open.unlink(before.path)
    taken = any(each.first and each.at_work(now_ms) for each in others)
    goes_on = before is not None and before.at_work(now_ms)
    session = Session(
        path,
        before.part if before is not None else new[1],
        first=not taken and (before.first if before is not None and goes_on else True),
        process=process,
        last_ms=now_ms,
    )
    session.agent = new[0]
    if not _write(session):
        return None
    safe_open.touch(path, now_ms)
    for each in others:
        # A first one that was over until now must not come back as the first.
        if now_ms - each.last_ms > _KEPT_MS or (session.first and each.first):
            with suppress(OSError):
                safe_open.unlink(each.path)
    return session


def _continued(others: list[Session], process: str, source: str, now_ms: int) -> Session | None:
    """Returns the session that a new one of the same process continues, if that is certain."""
    if not process or source not in SAME_AGENT:
        return None
    same = [each for each in others if each.process == process]
    ended = [each for each in same if each.handed_on and each.at_work(now_ms)]
    if ended:
        return max(ended, key=lambda each: each.last_ms)
    # Some agents do not wait for the hook of the end. One that has several sessions in one process
    # does not say which of them goes on.
    working = [each for each in same if each.at_work(now_ms)]
    return working[0] if len(working) == 1 else None


def end(layout: Layout, session_id: str, *, reason: str, now_ms: int) -> None:
    """Notes that a session is over in this worktree. Never fails."""
    path = path_of(layout, session_id)
    with suppress(OSError, Unreadable):
        session = _read(path)
        if session is not None and reason in SAME_AGENT:
            session.handed_on = True
            _write(session)
            safe_open.touch(path, now_ms)
        else:
            safe_open.unlink(path)


def path_of(layout: Layout, session_id: str) -> str:
    """Returns the file of a session in this worktree."""
    # A worktree's own git directory has a name that no other worktree of the repository has.
    tree = os.path.basename(os.path.dirname(layout.identity_path)).lstrip(".") or "tree"
    return os.path.join(layout.sessions_dir, _plain(tree), _plain(session_id))


def _plain(text: str) -> str:
    """Returns a file name for a text: another one for each text, unless they are very long."""
    plain = "".join(
        char if char.isascii() and (char.isalnum() or char in "-_") else f"%{ord(char):x}"
        for char in text
    )
    return plain[-_NAME_CHARS:]


def _all_beside(path: str) -> list[Session]:
    folder = os.path.dirname(path)
    names = (name for name in sorted(os.listdir(folder)) if not is_unfinished(name))
    found = (_read(os.path.join(folder, name)) for name in names)
    return [session for session in found if session is not None]


def _read(path: str) -> Session | None:
    fields = recall(path, _MOST_BYTES)
    if not isinstance(fields, dict):
        return None
    try:
        last_ms = os.stat(path, follow_symlinks=False).st_mtime_ns // 1_000_000
    except OSError:
        return None
    part, process = fields.get("part"), fields.get("process")
    if not isinstance(part, str) or not isinstance(process, str):
        return None
    first = fields.get("first") is True
    session = Session(path, part, first=first, process=process, last_ms=last_ms)
    session.handed_on = fields.get("handed_on") is True
    agent = fields.get("agent")
    session.agent = agent if isinstance(agent, str) else ""
    return session


def _write(session: Session) -> bool:
    """Replaces the session's file, also without the lock; returns whether that worked."""
    fields: dict[str, object] = {
        "agent": session.agent, "part": session.part,
        "first": session.first, "process": session.process,
    }  # fmt: skip
    if session.handed_on:
        fields["handed_on"] = True
    return keep(session.path, fields)
