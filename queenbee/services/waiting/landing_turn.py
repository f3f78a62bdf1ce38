"""The turn at landing on a branch: it comes in the order of asking, and nobody keeps it for ever.

A place in the line is a file that its process locks, so that it ends with the process. A process
that is stopped keeps its lock: it is passed over when its entry has shown no sign of life for
`STALLED_S`, and finds that out before it moves anything. A conflict leaves the turn with its droid
for a while, without a process: that is written down. ADR 0025.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from queenbee.core.text import mentioned
from queenbee.core.timestamps import format_duration, format_ms
from queenbee.errors import Busy, QueenError
from queenbee.store import safe_open, waiting_line
from queenbee.store.droids import presence
from queenbee.store.files import wait_for_change
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.core.fold import Fields
    from queenbee.services.open_store import Store

STALLED_S = 60.0
"""A process that runs shows that it does every second, whatever git or a check does meanwhile."""
_BEAT_S = 1.0
_LOOK_AGAIN_S = 1.0
_KEPT = "kept"
_KEPT_AT_MOST = 6
"""Activity prolongs a turn that is kept, up to so many times what it is kept for."""
_MOST_BYTES = 64 * 1024


def folder_of(store: Store, target: str) -> str:
    """Returns the folder of the line of those who land on a branch."""
    name = "".join(char if char.isalnum() else "_" for char in target)
    return os.path.join(store.layout.state_dir, "landing", name)


@dataclass(frozen=True, slots=True)
class Lander:
    """Somebody who lands on a branch, waits for that, or has a conflict to resolve first."""

    droid: str
    target: str
    since: str
    state: str
    """`landing`, `waiting`, or `resolving`."""

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return asdict(self)


def landers(store: Store) -> list[Lander]:
    """Returns those who land or wait for that now, in the order of their turns."""
    top = os.path.join(store.layout.state_dir, "landing")
    try:
        folders = sorted(os.listdir(top))
    except OSError:
        return []
    found = []
    for folder in (os.path.join(top, each) for each in folders):
        kept = _Kept.read(store, folder)
        keeps = kept is not None and kept.holds()
        if kept is not None and keeps and not kept.runs():
            found.append(kept.lander())
        for number, (_, fields) in enumerate(waiting_line.live(folder)):
            first = str(fields.get("droid")) == kept.droid if kept and keeps else number == 0
            found.append(_lander(fields, "landing" if first else "waiting"))
    return found


def is_turn(store: Store, token: str) -> bool:
    """Returns whether a token is that of a landing of this worktree, whose turn it is now."""
    name, _, entry = token.rpartition("/")
    folder = folder_of(store, name)
    first = next(waiting_line.live(folder), None)
    kept = _Kept.read(store, folder)
    keeps = kept is not None and kept.holds() and kept.entry == entry and kept.runs()
    if not keeps and (first is None or first[0] != entry):
        return False
    fields = dict(waiting_line.live(folder)).get(entry)
    return fields is not None and fields.get("tree") == store.layout.tree


class LandingTurn:
    """The actor's turn at landing on a branch; `with` waits for it, and gives it on at the end."""

    def __init__(
        self,
        store: Store,
        target: str,
        wait_s: float,
        tell: Callable[[str], None],
        interrupted: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._target = target
        self._wait_s = wait_s
        self._tell = tell
        self._interrupted = interrupted
        self._tree = store.layout.tree
        self.folder = folder_of(store, target)
        self._entry: waiting_line.Entry | None = None
        self._ended = threading.Event()
        self._seen: dict[str, tuple[int, float]] = {}

    @property
    def name(self) -> str:
        """The name of the place in the line."""
        return self._entry.name if self._entry is not None else ""

    @property
    def token(self) -> str:
        """What `is_turn` recognizes while the turn lasts."""
        return f"{self._target}/{self.name}"

    def check(self) -> None:
        """Raises `Busy` if the turn went to somebody else, because this process did not move."""
        if self._entry is None or self._entry.is_lost:
            raise Busy(
                f"the turn to land on {self._target} was given on, because this process was not "
                f"responding for {format_duration(STALLED_S)}; nothing was landed",
                hint="queen land",
            )

    def keep(self, keep_s: float) -> None:
        """Keeps the turn for the actor for so long after its process has ended, and for as long
        again after each of its commands; at most six times as long.
        """
        if keep_s:
            with self._store.transaction():
                if self._entry is not None and not self._entry.is_lost:
                    _Kept.write(self._store, self.folder, self._fields(), keep_s)

    def __enter__(self) -> LandingTurn:
        with self._store.transaction():  # The order is that of the lock.
            now_ms = self._store.now_ms()
            self._entry = waiting_line.enter(self.folder, self._fields(), now_ms)
        threading.Thread(target=self._beat, daemon=True).start()
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._entry is not None:
            self._entry.leave()

    def drop(self) -> None:
        """Ends a turn that is kept for this worktree, if it is."""
        kept = _Kept.read(self._store, self.folder)
        if kept is not None and kept.is_of(self._tree):
            kept.remove()

    def _fields(self) -> dict[str, object]:
        return {
            "droid": self._store.actor,
            "target": self._target,
            "tree": self._tree,
            "since": format_ms(self._store.now_ms()),
            "pid": os.getpid(),
        }

    def _wait(self) -> None:
        deadline_s = time.monotonic() + self._wait_s
        told = None
        while True:
            self._interrupted()
            seen = self._stamp()
            ahead = self._ahead()
            if ahead is None and self._begin():
                return
            if ahead is None:
                continue
            if ahead != told:
                told = ahead
                self._tell(f"waiting for {told[0]}, who {told[1]}")
            if time.monotonic() >= deadline_s:
                raise Busy(
                    f"timed out after {format_duration(self._wait_s)}: {' '.join(ahead)}",
                    hint="queen land --wait 10m",
                )
            until_s = min(deadline_s, time.monotonic() + _LOOK_AGAIN_S)
            wait_for_change(self._stamp, seen, until_s)

    def _begin(self) -> bool:
        """Begins the turn if nobody is ahead; under the lock, since a turn can also be kept."""
        assert self._entry is not None
        with self._store.transaction():
            if self._entry.is_lost:  # Stopped while it waited.
                self._entry.leave()
                now_ms = self._store.now_ms()
                self._entry = waiting_line.enter(self.folder, self._fields(), now_ms)
            if self._ahead() is not None:
                return False
            kept = _Kept.read(self._store, self.folder)
            if kept is None:
                return True
            if kept.is_of(self._tree) and kept.holds():
                kept.goes_on(self._entry.name)
            else:
                kept.remove()
            return True

    def _ahead(self) -> tuple[str, str] | None:
        """Returns who has to be waited for and what it does, or None if it is the actor's turn."""
        assert self._entry is not None
        kept = _Kept.read(self._store, self.folder)
        if kept is not None and kept.entry and self._is_stalled(kept.entry):
            waiting_line.remove(self.folder, kept.entry)
        if kept is not None and kept.holds():
            if kept.is_of(self._tree) and not kept.runs():
                return None
            if not kept.is_of(self._tree):
                what = "lands on" if kept.runs() else "resolves a conflict with"
                return mentioned(kept.droid), f"{what} {self._target}"
        for name, fields in waiting_line.live(self.folder):
            if name == self._entry.name:
                return None
            droid = mentioned(str(fields.get("droid")))
            if not self._is_stalled(name):
                return droid, f"lands on {self._target}"
            self._tell(f"passing over {droid}, whose process is not responding")
            waiting_line.remove(self.folder, name)
        return None

    def _is_stalled(self, name: str) -> bool:
        """Returns whether an entry has shown no sign of life for as long as this process watches.

        By this process's own clock: a clock that is set cannot end a turn.
        """
        beaten_ns, now_s = waiting_line.beaten_ns(self.folder, name), time.monotonic()
        if self._seen.get(name, (0, 0.0))[0] != beaten_ns:
            self._seen[name] = (beaten_ns, now_s)
        return now_s - self._seen[name][1] >= STALLED_S

    def _beat(self) -> None:
        while not self._ended.wait(_BEAT_S):
            if self._entry is not None:
                self._entry.beat()
            self._store.note_presence()

    def _stamp(self) -> tuple[object, ...]:
        kept = os.path.join(self.folder, _KEPT)
        return waiting_line.names(self.folder), os.path.exists(kept)


class _Kept:
    """A turn that was left with its droid after a conflict."""

    def __init__(self, store: Store, folder: str, fields: Fields) -> None:
        self._store = store
        self._folder = folder
        self._fields = fields
        self.droid = str(fields.get("droid"))
        self.entry = str(fields.get("entry") or "")
        """The place of the process that goes on with it, or empty."""

    @staticmethod
    def write(store: Store, folder: str, fields: dict[str, object], keep_s: float) -> None:
        """Keeps the turn from now on. Never fails: it is then given on."""
        said = {**fields, "kept_ms": store.now_ms(), "keep_s": keep_s}
        keep(os.path.join(folder, _KEPT), said)

    @classmethod
    def read(cls, store: Store, folder: str) -> _Kept | None:
        fields = recall(os.path.join(folder, _KEPT), _MOST_BYTES)
        return cls(store, folder, fields) if isinstance(fields, dict) else None

    def is_of(self, tree: str) -> bool:
        return self._fields.get("tree") == tree

    def runs(self) -> bool:
        """Returns whether a process goes on with it."""
        return bool(self.entry) and waiting_line.is_live(self._folder, self.entry)

    def holds(self) -> bool:
        """Returns whether the turn still belongs to its droid."""
        if self.entry:
            return self.runs()
        kept_ms, keep_s = self._fields.get("kept_ms"), self._fields.get("keep_s")
        if not isinstance(kept_ms, int) or not isinstance(keep_s, int | float):
            return False
        if not os.path.isdir(str(self._fields.get("tree"))):
            return False
        seen_ms = presence.last_ms(self._store.layout, self.droid) or 0
        longest_ms = kept_ms + _KEPT_AT_MOST * keep_s * 1000
        until_ms = min(max(kept_ms, seen_ms) + keep_s * 1000, longest_ms)
        return kept_ms <= self._store.now_ms() < until_ms

    def goes_on(self, entry: str) -> None:
        """Notes the process that goes on with it: from here on, the turn ends with that."""
        keep(os.path.join(self._folder, _KEPT), {**self._fields, "entry": entry})

    def remove(self) -> None:
        with suppress(OSError, QueenError):
            safe_open.unlink(os.path.join(self._folder, _KEPT))

    def lander(self) -> Lander:
        return _lander(self._fields, "resolving")


def _lander(fields: Fields, state: str) -> Lander:
    droid, target, since = (str(fields.get(each) or "") for each in ("droid", "target", "since"))
    return Lander(droid, target, since, state)
