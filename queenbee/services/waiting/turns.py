"""Waiting for one's turn: an attempt, and another one whenever something relevant has changed."""

from __future__ import annotations

import time

from queenbee.core.timestamps import format_duration
from queenbee.errors import Busy, Conflict, IssueClosed
from queenbee.store.files import stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from queenbee.core.queue import Waiter, Want
    from queenbee.services.store import Store
    from queenbee.services.waiting.queue import Place, Queue

    Granted = TypeVar("Granted")
    OnProgress = Callable[["Progress"], None]

_TICK_S = 1.0
"""How often progress is reported."""


class Progress:
    """How a wait stands, for whoever shows it."""

    __slots__ = ("ahead", "refusal", "waited_s", "want", "whole_s")

    def __init__(
        self,
        want: Want,
        refusal: Conflict,
        ahead: Sequence[Waiter],
        waited_s: float,
        whole_s: float,
    ) -> None:
        self.want = want
        self.refusal = refusal
        self.ahead = ahead
        self.waited_s = waited_s
        self.whole_s = whole_s


def served(
    store: Store,
    queue: Queue,
    want: Want,
    attempt: Callable[[Place], Granted],
    *,
    wait_s: float,
    kinds: Sequence[str],
    files: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> Granted:
    """Returns what `attempt` returns, as soon as it is the actor's turn.

    `attempt` gets the place in the line, and raises `Conflict` if it is refused: because somebody
    holds what is wanted, or because of `Queue.ahead_of`. It takes the place, behind those whom it
    found ahead, in the transaction that refuses. A `circle` in the refusal's details ends the wait;
    `ends_ms` there says when another attempt makes sense even if nothing is written. `kinds` are
    the ledgers to watch, and `files` what else is. Raises `Busy` after `wait_s`.
    """
    with queue.place(want, wait_s) as place:
        turn = _Turn(store, queue, place, wait_s, kinds, on_progress, files)
        while True:
            turn.look()
            try:
                return attempt(place)
            except Conflict as refusal:
                # Neither gets better by waiting.
                if refusal.details.get("circle") or isinstance(refusal, IssueClosed):
                    raise
                turn.wait(refusal)


class _Turn:
    """One wait: what it watches, and when another attempt makes sense."""

    def __init__(
        self,
        store: Store,
        queue: Queue,
        place: Place,
        wait_s: float,
        kinds: Sequence[str],
        on_progress: OnProgress | None,
        files: Sequence[str],
    ) -> None:
        self._files = files
        self._store = store
        self._queue = queue
        self._place = place
        self._wait_s = wait_s
        self._on_progress = on_progress
        self._begun_s = time.monotonic()
        self._ledgers = [store.state(kind).ledger for kind in kinds]
        self._ahead: Sequence[Waiter] = ()
        """Those who are ahead of us; nobody can join them."""
        self._written: tuple[object, ...] = ()

    def look(self) -> None:
        """Notes what has been written before an attempt: more than that is worth another one."""
        self._written = self._stamp_of_ledgers()

    def wait(self, refusal: Conflict) -> None:
        """Returns when another attempt may succeed. Raises `Busy` at the deadline."""
        deadline_s, ends_s = self._begun_s + self._wait_s, self._ends_s(refusal)
        # As the attempt saw them: one that has left since then is a change.
        self._ahead = self._place.ahead
        attempted = seen = (self._written, tuple(each.name for each in self._ahead))
        while True:
            # Whoever is ahead is served first: until then, no write and no expiry helps us.
            until_s = deadline_s if seen[1] else min(deadline_s, ends_s)
            tick_s = self._report(refusal)
            self._store.wait(self._stamp, seen, min(until_s, tick_s))
            seen = self._stamp()
            now_s = time.monotonic()
            if now_s >= deadline_s and seen[1] == attempted[1]:
                raise Busy(
                    f"timed out after {format_duration(self._wait_s)}: {refusal.message}",
                    hint=refusal.hint,
                    **refusal.details,
                ) from refusal
            # At the deadline, the last attempt succeeds or says what is in the way by now.
            if now_s >= min(until_s, deadline_s) or (not seen[1] and seen != attempted):
                return

    def _ends_s(self, refusal: Conflict) -> float:
        """Returns when the first lease in the way expires, on the monotonic clock.

        The store's clock decides that, and it may be set while we wait.
        """
        ends_ms = refusal.details.get("ends_ms")
        if not isinstance(ends_ms, int):
            return self._begun_s + self._wait_s
        return time.monotonic() + max(0, ends_ms - self._store.now_ms()) / 1000

    def _report(self, refusal: Conflict) -> float:
        """Reports progress, if anybody wants it; returns when to do so again."""
        now_s = time.monotonic()
        if self._on_progress is None:
            return now_s + self._wait_s
        waited_s = now_s - self._begun_s
        self._on_progress(Progress(self._place.want, refusal, self._ahead, waited_s, self._wait_s))
        return now_s + _TICK_S

    def _stamp(self) -> tuple[tuple[object, ...], tuple[str, ...]]:
        self._ahead = self._queue.still(self._ahead)
        return self._stamp_of_ledgers(), tuple(each.name for each in self._ahead)

    def _stamp_of_ledgers(self) -> tuple[object, ...]:
        stamps = (stamp_of(path) for path in self._files)
        return (*(each.stamp() for each in self._ledgers), *stamps)
