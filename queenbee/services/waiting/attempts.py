"""Waiting: until something is there, and until it is one's turn. ADR 0020."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.timestamps import format_duration
from queenbee.errors import Busy, Conflict, IssueClosed
from queenbee.services.waiting.pauses import Pause
from queenbee.store.files import stamp_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from queenbee.core.queue import Waiter, Want
    from queenbee.services.open_store import Store
    from queenbee.services.waiting.pauses import Steps
    from queenbee.services.waiting.queue import PlaceInLine

    Granted = TypeVar("Granted")
    Found = TypeVar("Found")
    OnProgress = Callable[["Progress"], None]

_TICK_S = 1.0
"""How often progress is reported."""


class Watch:
    """Ledgers and files, whose changes end a wait.

    While it waits, `on_tick` is called about once a second with the seconds since it began; an
    exception that it raises ends the wait.
    """

    def __init__(
        self,
        store: Store,
        kinds: Sequence[str],
        files: Sequence[str] = (),
        on_tick: Callable[[float], None] | None = None,
    ) -> None:
        self._store = store
        self._kinds = kinds
        self._files = files
        self._on_tick = on_tick
        self._begun_s = time.monotonic()
        self._seen: tuple[object, ...] = ()

    def look(self) -> None:
        """Remembers what there is now; call it before reading."""
        self._seen = self._stamp()

    def has_changed(self) -> bool:
        """Returns whether something was written since it last looked."""
        return self._stamp() != self._seen

    def wait(self, until_s: float, true: Callable[[], bool] | None = None) -> Steps[bool]:
        """Comes to True as soon as `true()` (default: `has_changed`), asked at every change, or
        to False at `until_s` on the monotonic clock.
        """
        while (now_s := time.monotonic()) < until_s:
            tick_s = until_s
            if self._on_tick is not None:
                self._on_tick(now_s - self._begun_s)
                tick_s = min(until_s, now_s + _TICK_S)
            if (yield Pause(self._store.engine, true or self.has_changed, tick_s)):
                return True
        return False

    def _stamp(self) -> tuple[object, ...]:
        return (*(self._store.stamp(kind) for kind in self._kinds), *map(stamp_of, self._files))


def until(
    watch: Watch, look: Callable[[], Found], timeout_s: float, again_s: float = float("inf")
) -> Steps[Found]:
    """Comes to the first true value of `look()`, or its last one at the timeout.

    It looks whenever something has changed, and every `again_s`.
    """
    deadline_s = time.monotonic() + timeout_s
    while True:
        watch.look()
        found = look()
        now_s = time.monotonic()
        if found or now_s >= deadline_s:
            return found
        yield from watch.wait(min(deadline_s, now_s + again_s))


@dataclass(frozen=True, slots=True)
class Progress:
    """How a wait stands, for whoever shows it."""

    want: Want
    refusal: Conflict
    ahead: Sequence[Waiter]
    waited_s: float
    whole_s: float


def served(
    place: PlaceInLine,
    attempt: Callable[[PlaceInLine], Granted],
    *,
    kinds: Sequence[str],
    files: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> Steps[Granted]:
    """Comes to what `attempt` returns, as soon as it is the actor's turn.

    `attempt` gets the place in the line, and raises `Conflict` if it is refused: because somebody
    holds what is wanted, or because of `Queue.ahead_of`. It takes the place, behind those whom it
    found ahead, in the transaction that refuses. A `circle` in the refusal's details ends the wait;
    `ends_ms` there says when another attempt makes sense even if nothing is written. `kinds` are
    the ledgers to watch, and `files` what else is. Raises `Busy` after the wait of the place.
    """
    with place:
        turn = _Turn(place, kinds, files, on_progress)
        deadline_s = time.monotonic() + place.wait_s
        while True:
            turn.watch.look()
            try:
                return attempt(place)
            except Conflict as refusal:
                # Neither gets better by waiting.
                if refusal.details.get("circle") or isinstance(refusal, IssueClosed):
                    raise
                is_over = time.monotonic() >= deadline_s
                if is_over or not (yield from turn.wait(refusal, deadline_s)):
                    raise Busy(
                        f"timed out after {format_duration(place.wait_s)}: {refusal.message}",
                        hint=refusal.hint,
                        **refusal.details,
                    ) from refusal


class _Turn:
    """What one wait for a turn watches, and when another attempt makes sense."""

    def __init__(
        self,
        place: PlaceInLine,
        kinds: Sequence[str],
        files: Sequence[str],
        on_progress: OnProgress | None,
    ) -> None:
        self._place = place
        self._store = place.queue.store
        self._on_progress = on_progress
        self._refusal = Conflict("")
        self._ahead: Sequence[Waiter] = ()
        tick = self._report if on_progress is not None else None
        self.watch = Watch(self._store, kinds, files, tick)

    def wait(self, refusal: Conflict, deadline_s: float) -> Steps[bool]:
        """Comes to whether another attempt may succeed, or would be refused by somebody else; False
        at the deadline.
        """
        self._refusal, self._ahead = refusal, self._place.ahead
        until_s, ends_ms = deadline_s, refusal.details.get("ends_ms")
        # Whoever is ahead is served first: until then, no write and no expiry helps us.
        if not self._ahead and isinstance(ends_ms, int):
            # The store's clock decides when a lease expires, and it may be set while we wait.
            left_s = max(0, ends_ms - self._store.now_ms()) / 1000
            until_s = min(deadline_s, time.monotonic() + left_s)
        has_changed = yield from self.watch.wait(until_s, self._is_ours if self._ahead else None)
        self._ahead = self._place.queue.still(self._ahead)  # Those behind the first may have left.
        return has_changed or until_s < deadline_s or self._ahead != self._place.ahead

    def _is_ours(self) -> bool:
        """Returns whether all who were ahead have left; nobody can join them."""
        queue = self._place.queue
        while self._ahead and not queue.still(self._ahead[:1]):
            self._ahead = self._ahead[1:]
        return not self._ahead

    def _report(self, waited_s: float) -> None:
        assert self._on_progress is not None
        place, ahead = self._place, self._place.queue.still(self._ahead)
        self._on_progress(Progress(place.want, self._refusal, ahead, waited_s, place.wait_s))
