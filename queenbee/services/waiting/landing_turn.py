"""The turn at landing on a branch: it comes in the order of asking, and nobody keeps it for ever.

A place in the line is a file that its process locks, so that it ends with the process. The first
one has the turn. A process that is stopped keeps its lock: it is passed over when its entry has
shown no sign of life for `STALLED_S`, and finds that out before it moves anything. Whoever resolves
a conflict is not in the line; who comes back from that is the next, and whoever would overtake it
on the same lines stands back meanwhile. ADR 0025.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from queenbee.core.text import mentioned, shell_word
from queenbee.core.timestamps import format_duration, format_ms
from queenbee.errors import Busy
from queenbee.services.waiting import landing_steps
from queenbee.services.waiting.landing_record import LandingRecord
from queenbee.store import safe_open, waiting_line
from queenbee.store.files import wait_for_change
from queenbee.store.whole_files import recall

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from queenbee.core.fold import Fields
    from queenbee.services.open_store import Store

STALLED_S = 60.0
"""A process that runs shows that it does every second, whatever git or a check does meanwhile."""
_BEAT_S = 1.0
_LOOK_AGAIN_S = 1.0
_WORTH_TELLING_S = 3.0
_TELL_AGAIN_S = 10.0
_RESOLVES = "resolves a conflict on the same lines"


def lines_dir(store: Store) -> str:
    """Returns the folder of all lines. A step forged there would have a person's files removed."""
    return os.path.join(store.layout.private_dir, "landing")


def folder_of(store: Store, target: str) -> str:
    """Returns the folder of the line of those who land on a branch."""
    return os.path.join(lines_dir(store), name_of_line(target))


def name_of_line(target: str) -> str:
    """Returns the name of that folder, which is also in those of the checkouts for landings."""
    return "".join(char if char.isalnum() else "_" for char in target)


@dataclass(frozen=True, slots=True)
class Lander:
    """Somebody who lands on a branch, waits for that, or has a conflict to resolve first."""

    droid: str
    target: str
    since: str
    state: str
    """`landing`, `waiting`, or `resolving`."""
    doing: str = ""
    """The last line that the landing has printed, or for whom it stands back."""
    check_s: float | None = None
    """How long the last check took that passed on this branch, in seconds; None if none did."""

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return asdict(self)


def landers(store: Store) -> list[Lander]:
    """Returns those who land or wait for that now, in the order of their turns."""
    found = []
    for folder in _folders(store):
        found += [_lander(fields, "resolving") for fields in landing_steps.conflicts(folder)]
        check_s = _check_s(folder)
        for number, (_, fields) in enumerate(waiting_line.live(folder)):
            back = str(fields.get("back") or "")
            lander = _lander(fields, "waiting" if number or back else "landing")
            doing = back or _doing(store, fields)
            found.append(replace(lander, doing=doing, check_s=check_s))
    return found


def _doing(store: Store, fields: Fields) -> str:
    git_dir, home = str(fields.get("git_dir") or ""), store.layout.common_dir
    if home is None or not git_dir.startswith(f"{home}{os.sep}"):
        return ""
    record = LandingRecord(git_dir)
    return record.last_line() if record.is_under_way else ""


def _check_s(folder: str) -> float | None:
    said = recall(os.path.join(folder, landing_steps.PACE))
    check_s = said.get("check_s") if isinstance(said, dict) else None
    return check_s if isinstance(check_s, float) else None


def odd_files(store: Store) -> list[tuple[str, str, str]]:
    """Returns the files beside the lines that no landing has now, each with what it is and what
    removes it.
    """
    return [
        (path, what, f"rm -r {shell_word(path)}" if _is_full(path) else "queen land removes it")
        for folder in _folders(store)
        for path, what in landing_steps.odd(folder)
    ]


def _is_full(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path) and bool(safe_open.names_in(path))


def _folders(store: Store) -> list[str]:
    top = lines_dir(store)
    return [os.path.join(top, each) for each in safe_open.names_in(top)]


def is_landing(store: Store, token: str) -> bool:
    """Returns whether a token is that of a landing which is under way now, of this worktree or in
    this checkout.
    """
    name, _, entry = token.rpartition("/")
    fields = dict(waiting_line.live(folder_of(store, name))).get(entry)
    wanted = (fields.get("tree"), fields.get("checkout")) if fields is not None else ()
    return store.layout.tree in wanted


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
        self.is_next: bool = False
        """Whether this one comes back from a conflict, and so stands before the others."""
        self.checkout = ""
        """Where it is merged and checked with others."""
        self.is_answered: Callable[[], bool] = lambda: False
        """Returns whether it need not wait any more: somebody else has landed it, say."""
        self.is_first: bool = False
        """Whether it is the turn of this one."""
        self.lets_go_first: Callable[[], str | None] = lambda: None
        """Returns the droid to let go first, although the turn has come; None if there is none."""
        self.entered: Callable[[], None] = lambda: None
        """Is called once it stands in the line."""
        self._back: waiting_line.Entry | None = None
        """What shows that it has left the line for somebody, while it has."""
        self._store = store
        self._target = target
        self._wait_s = wait_s
        self._tell = tell
        self._interrupted = interrupted
        self._tree = store.layout.tree
        self.folder: str = folder_of(store, target)
        self._entry: waiting_line.Entry | None = None
        self._ended = threading.Event()
        self._seen: dict[str, tuple[int, float]] = {}

    @property
    def name(self) -> str:
        """The name of the place in the line."""
        return self._entry.name if self._entry is not None else ""

    @property
    def token(self) -> str:
        """What `is_landing` recognizes while it is in the line."""
        return f"{self._target}/{self.name}"

    def check(self) -> None:
        """Raises `Busy` if the turn went to somebody else, because this process did not move."""
        if self._entry is None or self._entry.is_lost:
            raise Busy(
                f"the turn to land on {self._target} was given on, because this process was not "
                f"responding for {format_duration(STALLED_S)}; nothing was landed",
                hint="queen land",
            )

    def behind(self) -> list[tuple[str, Fields]]:
        """Returns those who wait, in their order."""
        return [each for each in waiting_line.live(self.folder) if each[0] > self.name]

    def still(self, names: Collection[str]) -> bool:
        """Returns whether all of these wait."""
        return set(names) <= {name for name, _ in waiting_line.live(self.folder)}

    def __enter__(self) -> LandingTurn:
        self._enter()
        self.entered()
        threading.Thread(target=self._beat, daemon=True).start()
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _enter(self) -> None:
        with self._store.transaction():  # The order is that of the lock.
            self._entry = waiting_line.enter(
                self.folder, self._fields(), self._store.now_ms(), is_next=self.is_next
            )

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        for each in (self._entry, self._back):
            if each is not None:
                each.leave()

    def _fields(self) -> dict[str, object]:
        return {
            "droid": self._store.actor,
            "target": self._target,
            "tree": self._tree,
            "git_dir": self._store.layout.git_dir,
            "checkout": self.checkout,
            "since": format_ms(self._store.now_ms()),
            "pid": os.getpid(),
        }

    def _wait(self) -> None:
        begun_s = time.monotonic()
        deadline_s = begun_s + self._wait_s
        told, had, again_s = None, dict[str, None](), begun_s
        while True:
            self._interrupted()
            seen = self._stamp()
            ahead = self._ahead()
            self.is_first = ahead is None
            is_answered = ahead is not None and self.is_answered()
            if ahead is None or is_answered:
                # Who lands with others waited for their check, whose time is told.
                if (
                    told
                    and not is_answered
                    and (waited_s := time.monotonic() - begun_s) >= _WORTH_TELLING_S
                ):
                    who = ", ".join(had)
                    self._tell(f"waited {format_duration(waited_s)} for the turn, which {who} had")
                return
            if ahead != told or time.monotonic() >= again_s:
                told, again_s = ahead, time.monotonic() + _TELL_AGAIN_S
                had[ahead[0]] = None
                self._tell(f"waiting for {told[0]}, who {told[1]}")
            if time.monotonic() >= deadline_s:
                raise Busy(
                    f"timed out after {format_duration(self._wait_s)}: {' '.join(ahead)}",
                    hint="queen land --wait 10m",
                )
            until_s = min(deadline_s, time.monotonic() + _LOOK_AGAIN_S)
            wait_for_change(self._stamp, seen, until_s)

    def _ahead(self) -> tuple[str, str] | None:
        """Returns who has to be waited for and what it does, or None if it is the actor's turn."""
        assert self._entry is not None
        if self._back is not None:
            if (first := self.lets_go_first()) is not None:
                return first, _RESOLVES
            self._back.leave()
            self._back, self.is_next = None, True  # Behind whoever lands by now.
            self._enter()
        if self._entry.is_lost:  # Stopped while it waited.
            self._entry.leave()
            self._enter()
        for name, fields in waiting_line.live(self.folder):
            if name == self._entry.name:
                return self._stand_back()
            droid = mentioned(str(fields.get("droid")))
            if not self._is_stalled(name):
                return droid, f"lands on {self._target}"
            self._tell(f"passing over {droid}, whose process is not responding")
            waiting_line.remove(self.folder, name)
        return self._ahead() if self._entry.is_lost else None

    def _stand_back(self) -> tuple[str, str] | None:
        """Leaves the line for somebody who is to go first; returns who that is, or None."""
        first = self.lets_go_first()
        if first is None or self._entry is None:
            return None
        fields = {**self._fields(), "back": f"waiting for {first}, who {_RESOLVES}"}
        self._entry.leave()
        self._back = waiting_line.enter(f"{self.folder}.back", fields, self._store.now_ms())
        return first, _RESOLVES

    def _is_stalled(self, name: str) -> bool:
        """Returns whether an entry has shown no sign of life for as long as this process watches.

        By this process's own clock: a clock that is set cannot end a turn.
        """
        beaten_ns, now_s = waiting_line.beaten_ns(self.folder, name), time.monotonic()
        if self._seen.get(name, (-1, 0.0))[0] != beaten_ns:
            self._seen[name] = (beaten_ns, now_s)
        return now_s - self._seen[name][1] >= STALLED_S

    def _beat(self) -> None:
        while not self._ended.wait(_BEAT_S):
            if self._entry is not None:
                self._entry.beat()
            self._store.note_presence()

    def _stamp(self) -> tuple[object, ...]:
        return tuple(waiting_line.names(self.folder))


def _lander(fields: Fields, state: str) -> Lander:
    droid, target, since = (str(fields.get(each) or "") for each in ("droid", "target", "since"))
    return Lander(droid, target, since, state)
