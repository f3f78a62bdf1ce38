"""Nudges: asking a droid that has gone quiet, and taking over from one that does not answer.

A nudge is a message, so that its recipient reads it, and everybody can see later who asked when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.records import Message
from queenbee.core.text import some, suggested
from queenbee.core.timestamps import format_duration
from queenbee.errors import Conflict, NotFound
from queenbee.services.messages import stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.services.droids import Droids
    from queenbee.services.open_store import Store

_SHOWN = 5


class Nudges:
    """Who may be asked, who has been, and whom anybody may take over from."""

    def __init__(
        self,
        store: Store,
        droids: Droids,
        *,
        holdings: Callable[[str], tuple[list[str], list[str]]],
    ) -> None:
        self._store = store
        self._droids = droids
        self._holdings = holdings
        """Returns the issues and the patterns that a droid has."""

    def nudge(self, droid: str) -> Message:
        """Asks a quiet droid for a sign of life; returns the message, the same one until it
        answers. Raises `NotFound` if nobody of this name has acted here, and `Conflict` if the
        droid is active.
        """
        actor, now_ms = self._store.actor, self._store.now_ms()
        seen_ms = self._droids.seen_ms(self._droids.check(droid))
        if seen_ms is None:
            raise NotFound(
                f"nobody called {droid} has acted in this hive", hint="queen reserve list"
            )
        quiet = format_duration((now_ms - seen_ms) / 1000)
        if droid == actor or not self._droids.is_quiet(droid):
            patience_s = self._droids.patience_s(droid)
            left_s = patience_s - (now_ms - seen_ms) // 1000
            raise Conflict(
                f"{droid} was last seen {quiet} ago, and counts as quiet after "
                f"{format_duration(patience_s)} without a sign of life",
                hint=f"nudge it in {format_duration(max(1, left_s))}, or ask it: "
                f"{suggested('queen msg send', droid, 'BODY')}",
            )
        body = self._question(droid, actor, quiet)
        with self._store.transaction() as tx:
            asked = self.unanswered(droid)
            if asked is not None:
                return asked
            fields: dict[str, object] = {
                "subject": f"Are you still there? {actor} needs what you have",
                "body": body,
                "importance": "high",
                "nudge": True,
            }
            return stage(tx, actor, [droid], fields)[0]

    def unanswered(self, droid: str) -> Message | None:
        """Returns the oldest nudge of a droid, by anybody, since its last sign of life."""
        seen_ms = self._droids.seen_ms(droid)
        rows = self._store.state("messages").select({"to": droid}, since_ms=seen_ms)
        return next((Message(row) for row in rows if row.get("nudge") is True), None)

    def may_take_over(self, droid: str) -> str | None:
        """Returns why anybody may take over from a droid now, as a reason to record, or None.

        It is quiet, and has shown no sign of life for `answer_within` since somebody nudged it.
        """
        if not self._droids.is_quiet(droid):
            return None
        asked, now_ms = self.unanswered(droid), self._store.now_ms()
        if asked is None or now_ms - asked.created_ms < self._answer_s * 1000:
            return None
        since_ms = self._droids.seen_ms(droid) or asked.created_ms
        return (
            f"no sign of life from {droid} for {format_duration((now_ms - since_ms) / 1000)}, and "
            f"no answer to {asked.from_}'s nudge {asked.id}"
        )

    def next_step(self, droid: str, take_over: str) -> str | None:
        """Returns the hint for whoever waits for a droid: to nudge it, or, with the command
        `take_over`, to take over; None while the droid is active.
        """
        if not self._droids.is_quiet(droid):
            return None
        if self.may_take_over(droid) is not None:
            return f"{droid} did not answer a nudge; take over: {take_over}"
        if self.unanswered(droid) is not None:
            answer = format_duration(self._answer_s)
            return f"{droid} was nudged and has {answer} to answer; after that: {take_over}"
        return f"ask whether it is still there: {suggested('queen msg nudge', droid)}"

    def take_overs(self, droid: str) -> list[str]:
        """Returns the commands that take over what a droid has."""
        issues, patterns = self._holdings(droid)
        commands = [
            suggested("queen issue assign", each, self._store.actor, force=True) for each in issues
        ]
        commands += [suggested("queen reserve", each, force=True) for each in patterns]
        return commands[:_SHOWN] + ["queen status"] * (not 0 < len(commands) <= _SHOWN)

    def _question(self, droid: str, actor: str, quiet: str) -> str:
        held = [each for some in self._holdings(droid) for each in some]
        what = f" You have {some(held, _SHOWN)}." if held else ""
        return (
            f"{actor} needs what you have, and has seen no sign of you for {quiet}.{what} Any "
            "queen command is an answer. If you are done, give it back: queen release ISSUE, "
            "queen reserve release --all. Without an answer, others may take over in "
            f"{format_duration(self._answer_s)}."
        )

    @property
    def _answer_s(self) -> int:
        """How long a nudged droid has: any sign of life is an answer."""
        return self._store.layout.settings.answer_within_s
