"""A process that shows no sign of life: its agent is asked, and gets some time to answer."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.timestamps import format_duration
from queenbee.errors import QueenError
from queenbee.git.unfinished import WorktreeKeeper
from queenbee.store.droids import presence, roster

if TYPE_CHECKING:
    from queenbee.workflows.complete_hive import Hive


class Silence:
    """How silent the process of an agent has been."""

    def __init__(self, home: Hive, droid: str) -> None:
        self._home = home
        self._droid = droid
        self._asked_s: float | None = None
        self.why: str = ""
        """Why its process is being stopped."""

    def look(self, since_ms: int) -> None:
        """Notes signs of life since an instant; asks an agent that is silent for long, and says
        later why it is stopped.
        """
        layout, now_ms = self._home.layout, self._home.now_ms()
        self._note_output(now_ms)
        settings = layout.settings
        last_ms = max(self._home.droids.seen_ms(self._droid) or 0, since_ms)
        keeper = WorktreeKeeper(self._home)
        if now_ms - last_ms < settings.quiet_after_s * 1000:
            self._asked_s = None
        elif self._asked_s is None:
            self._asked_s = time.monotonic()
            if not keeper.note_signs(self._droid):
                with suppress(QueenError):
                    self._home.nudges.nudge(self._droid)
        elif time.monotonic() <= self._asked_s + settings.answer_within_s:
            return
        elif keeper.note_signs(self._droid):
            self._asked_s = None
        else:
            silent = format_duration((now_ms - last_ms) / 1000)
            self.why = f"it was silent for {silent}, and was stopped"

    def _note_output(self, now_ms: int) -> None:
        layout = self._home.layout
        with suppress(OSError):
            log = roster.log_path(layout, self._droid)
            written_ms = min(os.stat(log).st_mtime_ns // 1_000_000, now_ms)
            if written_ms > (presence.last_ms(layout, self._droid) or 0):
                presence.note(layout, self._droid, written_ms)
