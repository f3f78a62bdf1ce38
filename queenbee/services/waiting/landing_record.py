"""The landing of one worktree that goes on by itself: of which commit, what it printed, and how it
ended. It is kept until the next one begins.

The record is locked as long as its process lives, so nobody guesses from a process id.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from queenbee.core.text import last_said
from queenbee.errors import Busy, Unreadable
from queenbee.store import safe_open
from queenbee.store.droids.liveness import has_open
from queenbee.store.droids.told import LANDING_RECORD
from queenbee.store.git_files.worktrees import worktrees

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.core.fold import Fields
    from queenbee.store.layout import Layout

_MOST_BYTES = 2**20
_MOST_SHOWN_BYTES = 2**22
_PATIENCE_S, _AGAIN_S = 1.0, 0.02


class LandingRecord:
    """The record in the git directory of a worktree."""

    def __init__(self, git_dir: str) -> None:
        self.path: str = os.path.join(git_dir, LANDING_RECORD)
        self.outputs: tuple[str, str] = (f"{self.path}.out", f"{self.path}.err")
        """What it prints to its two outputs."""
        self._fd = -1

    def read(self) -> Fields:
        """Returns what it says; nothing if there is none, or none that can be read."""
        try:
            said = json.loads(safe_open.read(self.path, _MOST_BYTES) or b"{}")
        except (OSError, Unreadable, ValueError, RecursionError):
            return {}
        return said if isinstance(said, dict) else {}

    @property
    def is_under_way(self) -> bool:
        """Whether its process lives."""
        from queenbee.store.lock import is_held  # noqa: PLC0415 - start-up

        return is_held(self.path)

    @property
    def issues(self) -> list[str]:
        """The issues that it completes, or was to complete."""
        said = self.read().get("issues")
        return [each for each in said if isinstance(each, str)] if isinstance(said, list) else []

    def begin(self, **said: object) -> tuple[int, int]:
        """Begins one, of this process; returns descriptors for what it prints. Raises `Busy` if
        there is another.
        """
        self._fd = safe_open.open_file(self.path, os.O_RDWR | os.O_CREAT)
        until_s = time.monotonic() + _PATIENCE_S  # Whoever looks at it has it for a moment.
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until_s:
                    raise Busy(
                        "a landing of this worktree is under way", hint="queen land --result"
                    ) from None
                time.sleep(_AGAIN_S)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        out, err = (safe_open.open_file(each, flags) for each in self.outputs)
        self._write({**said, "pid": os.getpid()})
        return out, err

    def end(self, status: int, *, is_told: bool, said: str, **commits: str | None) -> None:
        """Says how it ended, in one line, with which commit it `landed`, which one its worktree
        `followed`, and whether somebody saw that.
        """
        self._write({**self.read(), "status": status, "told": is_told, "said": said, **commits})
        os.close(self._fd)  # Whoever shows it sees its end at once, and not that of the process.

    def take_back(self) -> str | None:
        """Has its process take it back, as Ctrl-C does, and waits until that has ended; returns the
        commit with which it has landed all the same.
        """
        said = self.read()
        if self.is_under_way:
            with suppress(OSError, ValueError):
                pid = int(str(said.get("pid")))
                if has_open(pid, self.path):
                    from signal import SIGINT  # noqa: PLC0415 - start-up

                    os.kill(pid, SIGINT)
        while self.is_under_way:
            time.sleep(_AGAIN_S)
        landed = self.read().get("landed")
        return str(landed) if landed else None

    def answers(self, head: str | None, droid: str) -> bool:
        """Returns whether what it does, or did without anybody to see it, is what a landing of this
        commit would do again.
        """
        said = self.read()
        if self.is_under_way:
            return said.get("head") == head
        is_untold = said.get("told") is False and said.get("droid") == droid
        return is_untold and head in map(said.get, ("head", "landed", "followed"))

    def has_news(self, droid: str) -> bool:
        """Returns whether it has ended, also by a kill, and nobody was there to see that."""
        said = self.read()
        is_told = said.get("told", not said)
        return not is_told and said.get("droid") == droid and not self.is_under_way

    def is_new(self, droid: str) -> bool:
        """Returns the same, once."""
        if not self.has_news(droid):
            return False
        said = self.read()
        self._fd = safe_open.open_file(self.path, os.O_RDWR)
        self._write({**said, "told": True})
        os.close(self._fd)
        return True

    def printed(self) -> tuple[bytes, bytes]:
        """Returns the end of what it has printed so far."""
        out, err = (_end_of(each) for each in self.outputs)
        return out, err

    def last_line(self) -> str:
        """Returns why it did not land, or the last line that it has printed."""
        said = str(self.read().get("said") or "")
        printed = (last_said(each.decode(errors="replace")) for each in self.printed())
        return next(filter(None, (said, *printed)), "").strip()

    def _write(self, said: Fields) -> None:
        line = json.dumps(said).encode(errors="surrogatepass") + b"\n"
        os.pwrite(self._fd, line, 0)
        os.ftruncate(self._fd, len(line))


def issues_landing(layout: Layout, droid: str) -> list[str]:
    """Returns the issues of a droid that a landing of this worktree completes, which is under way:
    the droid goes on with others meanwhile.
    """
    if layout.git_dir is None:
        return []
    record = LandingRecord(layout.git_dir)
    is_its_own = record.read().get("droid") == droid and record.is_under_way
    return record.issues if is_its_own else []


def lands_meanwhile(layout: Layout) -> bool:
    """Returns whether another process lands from this worktree: what it has committed is on its way
    to the main branch.
    """
    if layout.git_dir is None:
        return False
    record = LandingRecord(layout.git_dir)
    return record.is_under_way and record.read().get("pid") != os.getpid()


@dataclass(frozen=True, slots=True)
class FailedLanding:
    """A landing that has ended, and landed nothing."""

    droid: str
    issues: Sequence[str]
    tree: str
    """The worktree."""
    said: str
    """Why it did not land, or the last line that it printed."""
    token: str
    """Another one if it fails again."""

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return asdict(self)


def failed_landings(
    layout: Layout, held: Mapping[str, str], is_quiet: Callable[[str], bool]
) -> list[FailedLanding]:
    """Returns the last landing of each worktree that failed or was killed, if its droid still has
    one of the issues and is quiet: else it mends that itself. `held` has the droid of each.
    """
    found = []
    for each in worktrees(layout) if held else ():
        record = LandingRecord(each.git_dir)
        said = record.read()
        droid, issues = str(said.get("droid")), record.issues
        ended = said and said.get("status") != 0 and not said.get("landed")
        has_it = any(held.get(one) == droid for one in issues)
        if ended and not record.is_under_way and has_it and is_quiet(droid):
            token = f"{said.get('head')}:{said.get('pid')}"
            found.append(FailedLanding(droid, issues, each.path, record.last_line(), token))
    return found


def _end_of(path: str) -> bytes:
    try:
        return safe_open.read(path, _MOST_SHOWN_BYTES)
    except (OSError, Unreadable):
        return b""
