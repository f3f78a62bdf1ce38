"""The application: it follows the hive, and does what its keys ask for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual.app import App
from textual.timer import Timer

from queenbee.core.text import printable
from queenbee.errors import QueenError
from queenbee.library.hive import Hive
from queenbee.tui.dialogs import Draft, Help, Question, Reading, Writing
from queenbee.tui.listing import Listing
from queenbee.tui.reading import Page, issue_page, thread_page
from queenbee.tui.team import Team
from queenbee.watch.acts import Act, do, give_back, nudge
from queenbee.watch.cells import Target
from queenbee.watch.facts import Facts, Follower, Reader, foreseen
from queenbee.watch.view import runs_out_within

_TICK_S = 10.0
_FAST_TICK_S = 1.0
_COMPARE_EVERY_S = 60.0
_ENDS_SOON_MS = 120_000
"""As `cells.left` shows seconds from here on."""


class Board(App[None]):
    """`queen watch` over an open hive, which it neither opens nor closes."""

    CSS_PATH = "board.tcss"
    TITLE = "queen watch"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS: ClassVar[str | None] = None

    def __init__(self, hive: Hive) -> None:
        super().__init__()
        self._hive = hive
        self._facts: Facts | None = None
        self._ended = False
        self._team = Team()
        self._follower = Follower(
            Reader(hive), partial(self._soon, self._take), partial(self._soon, self._team.refuse)
        )
        self._comparing = False
        self._compared_s = float("-inf")
        self._timer: Timer | None = None
        self._every_s = 0.0

    def get_default_screen(self) -> Team:
        """Returns the board."""
        return self._team

    def on_ready(self) -> None:
        """Begins to follow, now that there is something to show it on."""
        self._follower.start()
        self._time(_TICK_S)

    def on_unmount(self) -> None:
        """Ends the thread that follows."""
        self._ended = True
        self._follower.end()

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """Opens what a row is about."""
        target = event.row.target
        if target.message_id is not None:
            self._open(Reading(None, target.message_id))
        elif target.issue_id is not None:
            self._open(Reading(target.issue_id, None))
        else:
            self._say("nothing to open in this row", wrong=True)

    def action_write(self) -> None:
        """Writes to the droid of the row, about its issue, or about that of the page."""
        target = self._target
        self._write(target.droid or "", target.issue_id)

    def action_answer(self) -> None:
        """Answers the message of the row or the page, or the last one about the page's issue."""
        message_id = self._target.message_id
        if message_id is not None:
            self._answer(message_id)
        elif isinstance(self.screen, Reading):
            self._say("nobody has written about this: m writes", wrong=True)
        else:
            self._say("no message in this row to answer: 4 goes to the mail", wrong=True)

    def action_release(self) -> None:
        """Gives back the issue or the lease of the row, once that is confirmed."""
        act = give_back(self._target)
        if act is None:
            self._say("no issue or lease in this row to release", wrong=True)
        else:
            self._ask(act)

    def action_nudge(self) -> None:
        """Asks the droid of the row for a sign of life, once that is confirmed."""
        droid = self._target.droid
        if droid is None:
            self._say("no droid in this row to nudge", wrong=True)
        else:
            self._ask(nudge(droid))

    def action_foresee(self) -> None:
        """Looks for conflicts now."""
        self._foresee()
        self._say("comparing the worktrees")

    def action_keys(self) -> None:
        """Shows the keys."""
        self.push_screen(Help())

    @property
    def _target(self) -> Target:
        page = self.screen
        if isinstance(page, Reading):
            return Target(page.issue_id, message_id=page.page.answer_to if page.page else None)
        row = self._team.row
        return row.target if row is not None else Target()

    def _write(self, to: str, issue_id: str | None) -> None:
        def send(draft: Draft) -> str:
            self._hive.messages.send(draft.to, draft.body, issue_id=issue_id)
            return f"sent to {draft.to}"

        about = f" about {printable(issue_id)}" if issue_id else ""
        self._compose(Writing(f"A message{about}", to, answer=False), send)

    def _answer(self, message_id: str) -> None:
        try:
            parent = self._hive.messages.get(message_id)
            to = self._hive.messages.correspondent(parent)
        except QueenError as error:
            self._refuse(error)
            return

        def send(draft: Draft) -> str:
            self._hive.messages.reply(message_id, draft.body)
            return f"answered {draft.to}"

        title = f"Answer: {printable(parent.subject)}"
        self._compose(Writing(title, to, answer=True), send)

    def _compose(self, dialog: Writing, send: Callable[[Draft], str]) -> None:
        def written(draft: Draft | None) -> None:
            if draft is not None:
                self._do(lambda: send(draft))

        self.push_screen(dialog, written)

    def _ask(self, act: Act) -> None:
        def decided(yes: bool | None) -> None:
            if yes:
                self._do(lambda: do(self._hive, act.name, act.about, ""))

        self.push_screen(Question(act.question), decided)

    def _do(self, act: Callable[[], str]) -> None:
        """Writes to the hive on a thread, so that the screen never waits for a lock."""

        def run() -> None:
            try:
                self._soon(self._say, act())
            except QueenError as error:
                self._soon(self._refuse, error)

        self.run_worker(run, thread=True)

    def _open(self, page: Reading) -> None:
        self.push_screen(page)
        self._read(page)

    def _read(self, page: Reading) -> None:
        """Reads a page on a thread, and shows it if it is still open."""
        hive = self._hive

        def put(found: Page) -> None:
            if page.is_mounted and page in self.screen_stack:
                page.put(found)

        def run() -> None:
            try:
                if page.message_id is not None:
                    found = thread_page(hive, page.message_id)
                else:
                    found = issue_page(hive, page.issue_id or "")
            except QueenError as error:
                self._soon(self._refuse, error)
            else:
                self._soon(put, found)

        self.run_worker(run, thread=True, group="reading", exclusive=True)

    def _take(self, facts: Facts) -> None:
        self._facts = facts
        self._team.take(facts, self._hive.now_ms())
        if time.monotonic() - self._compared_s >= _COMPARE_EVERY_S:
            self._foresee()
        for page in self.screen_stack:
            if isinstance(page, Reading):
                self._read(page)
        self._pace()

    def _foresee(self) -> None:
        """Compares the worktrees on a thread that nobody waits for: git may take long."""

        def look() -> None:
            found = foreseen(self._hive)
            self._comparing, self._compared_s = False, time.monotonic()
            self._soon(self._team.foresee, *found)

        if not self._comparing:
            self._comparing = True
            threading.Thread(target=look, name="queen-watch-conflicts", daemon=True).start()

    def _tick(self) -> None:
        self._team.tick(self._hive.now_ms())
        self._pace()

    def _pace(self) -> None:
        """Counts seconds only while something is about to run out."""
        facts, now_ms = self._facts, self._hive.now_ms()
        soon = facts is not None and runs_out_within(facts, now_ms, _ENDS_SOON_MS)
        self._time(_FAST_TICK_S if soon else _TICK_S)

    def _time(self, every_s: float) -> None:
        if every_s != self._every_s:
            self._every_s = every_s
            if self._timer is not None:
                self._timer.stop()
            self._timer = self.set_interval(every_s, self._tick)

    def _soon(self, function: Callable[..., object], *values: object) -> None:
        """Has the application call a function; for other threads."""
        if not self._ended:
            self.call_later(function, *values)

    def _refuse(self, error: QueenError) -> None:
        hint = f"\ntry: {error.hint}" if error.hint else ""
        self._say(f"{error.message}{hint}", wrong=True)

    def _say(self, text: str, *, wrong: bool = False) -> None:
        shown = printable(text, keep_newlines=True)
        self.notify(shown, severity="error" if wrong else "information", markup=False)
