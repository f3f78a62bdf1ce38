"""What each droid was told on this machine, and what the hive was like when it was last told.

`<state>/told/NAME` has a line for each thing that it was told, `<state>/seen/NAME` the stamps of
the files at that time. Without them, it is told again.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.names import EVERYONE, is_name
from queenbee.errors import QueenError
from queenbee.store import safe_open
from queenbee.store.files import read_at, stamp_of
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queenbee.store.carriers.engine import Engine
    from queenbee.store.layout import Layout

    Stamps = dict[str, object]

MESSAGES, LEASES, ISSUES, QUEUE = "messages", "reservations", "assignments", "queue"
"""What can bring news; the tracker's issues belong to the assignments."""
LANDING, LANDING_RECORD = "landing", "queenbee-landing"
"""The landing of the worktree, and the file in its git directory that says what became of it."""
_UNTIL, _MAIL = "until", "mail"
_MOST_BYTES = 64 * 1024
_KEPT = 1_000
"""Keys that stay when there are too many: older things are not looked at again."""


class Told:
    """The memory of one droid. Never raises: what cannot be read or written is not there.

    As a context manager, it gives the turn to tell the droid something: True, or False while
    another process has it. Where nothing can be written, everybody has it. `changed` needs the
    `engine` of a hive whose lines are in no file.
    """

    def __init__(self, layout: Layout, droid: str, engine: Engine | None = None) -> None:
        self._engine = engine
        self._layout = layout
        self._usable = is_name(droid)
        self._path = os.path.join(layout.state_dir, "told", droid)
        self._seen_path = os.path.join(layout.state_dir, "seen", droid)
        self._fd = -1

    def __enter__(self) -> bool:
        with suppress(OSError, QueenError):
            if self._usable:
                self._make(self._path)
                self._fd = safe_open.open_file(self._path, os.O_RDWR | os.O_CREAT)
        try:
            if self._fd >= 0:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except BaseException:
            self.__exit__()
            raise
        return True

    def __exit__(self, *error: object) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def known(self) -> list[str]:
        """Returns the keys of what the droid was told, oldest first."""
        if not self._usable:
            return []
        try:
            return safe_open.read(self._path).decode(errors="replace").split()
        except (OSError, QueenError):
            return []

    def add(self, keys: Iterable[str]) -> bool:
        """Remembers keys, which have no spaces; returns whether that worked."""
        lines = "".join(f"{key}\n" for key in keys)
        if not self._usable:
            return False
        try:
            self._make(self._path)
            safe_open.append(self._path, lines.encode(errors="replace"))
            # Only in our turn: else it could lose what another process adds meanwhile.
            if self._fd >= 0 and os.path.getsize(self._path) > _MOST_BYTES:
                kept = "".join(f"{key}\n" for key in self.known()[-_KEPT:])
                safe_open.write(self._path, kept.encode())
        except (OSError, QueenError):
            return False
        return True

    def changed(self, now_ms: int) -> Stamps:
        """Returns the sources that changed since `saw`, or whose time has come, with their stamps
        now. Raises `Unreadable`, and what the engine raises.
        """
        seen = self._seen()
        until_ms = seen.get(_UNTIL)
        due = not isinstance(until_ms, int) or now_ms >= until_ms
        return {
            name: stamp
            for name, stamp in self._stamps().items()
            if seen.get(name) != stamp or (name == LEASES and due)
        }

    def saw(self, stamps: Mapping[str, object], until_ms: int | None) -> None:
        """Remembers the stamps of sources that were looked at, as they were before that, and the
        time at which the leases are worth another look; None keeps the one that is known.
        """
        if not self._usable:
            return
        seen = {**self._seen(), **stamps}
        if until_ms is not None:
            seen[_UNTIL] = until_ms
        with suppress(OSError, QueenError):
            self._make(self._seen_path)
            keep(self._seen_path, seen)

    def new_mail(self) -> object | None:
        """Returns the stamp of the messages if some may have come since `saw_mail`; else None.

        Mail between others makes no command read all messages.
        """
        layout, engine = self._layout, self._engine
        paths = (layout.ledger_path(MESSAGES),)
        seen = self._seen().get(_MAIL)
        stamp: object = engine.ends([MESSAGES]).get(MESSAGES) if engine is not None else None
        if stamp is not None:
            return stamp if seen != stamp else None
        stamps = [list(stamp_of(path)) for path in paths]
        if not any(stamps) or seen == stamps or self._is_others(paths, seen, stamps):
            return None
        return stamps

    def _is_others(self, paths: Sequence[str], seen: object, stamps: list[list[int]]) -> bool:
        """Returns whether the files only grew, by lines that are to others."""
        try:
            for path, was, now in zip(paths, seen, stamps, strict=True):  # type: ignore[call-overload]
                if was != now and (was[0] != now[0] or not 0 < now[1] - was[1] <= _MOST_BYTES):
                    return False
                grown = read_at(path, was[1], now[1] - was[1]) if was != now else b""
                if any(map(self._may_be_mine, grown.split(b"\n"))):
                    return False
        except (IndexError, TypeError, ValueError, QueenError):
            return False
        return True

    def _may_be_mine(self, line: bytes) -> bool:
        mine = (os.path.basename(self._path), EVERYONE)
        if not any(each in line for each in (b"\\u", *(b'"%s"' % each.encode() for each in mine))):
            return False
        fields = json.loads(line)
        return not isinstance(fields, dict) or fields.get("to") in mine

    def saw_mail(self, stamp: object) -> None:
        """Remembers what `new_mail` returned before the messages were looked at."""
        self.saw({_MAIL: stamp}, None)

    def _stamps(self) -> Stamps:
        from queenbee.store.lock import is_held  # noqa: PLC0415 - start-up

        layout, engine = self._layout, self._engine
        paths = {kind: [layout.ledger_path(kind)] for kind in (MESSAGES, LEASES, ISSUES)}
        paths[ISSUES].append(layout.issues_path)
        stamps: Stamps = {
            kind: [list(stamp_of(path)) for path in each] for kind, each in paths.items()
        }
        ends = engine.ends(paths) if engine is not None else {}
        stamps.update({kind: [end, stamps[kind]] for kind, end in ends.items()})
        stamps[QUEUE] = safe_open.names_in(layout.queue_dir)
        if layout.git_dir is not None:
            # A process that is killed changes no file, and one that ends does so a moment before.
            path = os.path.join(layout.git_dir, LANDING_RECORD)
            stamps[LANDING] = [*stamp_of(path), is_held(path)]
        return stamps

    def _seen(self) -> Stamps:
        seen = recall(self._seen_path) if self._usable else None
        return seen if isinstance(seen, dict) else {}

    def _make(self, path: str) -> None:
        """Makes the folder of a file. Raises `OSError`, `QueenError`."""
        if not os.path.isdir(self._layout.state_dir):
            from queenbee.store.creating import make_state_dir  # noqa: PLC0415 - start-up

            make_state_dir(self._layout)
        safe_open.make_folder(os.path.dirname(path))


def key_of(text: str) -> str:
    """Returns a text as one word: ids from elsewhere can hold anything."""
    return "_".join(text.split()) or "_"
