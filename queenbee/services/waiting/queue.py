"""The queue: whoever waits first is served first, and everybody can see who waits for what.

A waiter is a process of this machine. It is in the line while it waits and no longer: one that is
killed is out of it at once, and one that is stopped keeps its place until the end of its wait.
ADR 0020.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from queenbee.core.queue import Waiter, Want, ahead, circle, clash
from queenbee.core.timestamps import format_ms
from queenbee.store import waiting_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from queenbee.services.open_store import Store

_GRACE_MS = 5_000
"""A waiter gives up by itself at its deadline. One that is stopped cannot, and is passed over."""


class PlaceInLine:
    """A droid's place in the line: none until `take`, and left when the block ends."""

    def __init__(self, queue: Queue, want: Want, wait_s: float) -> None:
        self.want = want
        self.ahead: Sequence[Waiter] = ()
        """Those whom the last refusal named as ahead of us."""
        self.queue = queue
        self.wait_s = wait_s
        self._patience = queue.store.patient(wait_s)
        self._entry: waiting_line.Entry | None = None

    @property
    def name(self) -> str | None:
        """The name of the entry, once it has been taken."""
        return self._entry.name if self._entry is not None else None

    def take(self, ahead: Sequence[Waiter] = ()) -> None:
        """Takes the last place, behind those who are ahead; later calls keep it.

        Call it in the transaction that refuses: then nobody can come in between. Raises
        `Unwritable`.
        """
        self.ahead = ahead
        if self._entry is None:
            self._entry = self.queue.enter(self.want, self.wait_s)

    def __enter__(self) -> PlaceInLine:
        self._patience.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._patience.__exit__(None, None, None)
        if self._entry is not None:
            self._entry.leave()


class Queue:
    """The waiters of a hive."""

    def __init__(
        self,
        store: Store,
        *,
        fold_case: Callable[[], bool],
        holders: Callable[[Want, str], list[str]],
    ) -> None:
        self.store = store
        self._fold_case = fold_case
        self._holders = holders
        """Returns the droids that hold what this wish of this droid needs."""

    def everything(self) -> list[Waiter]:
        """Returns everybody who waits now, in the order of the line."""
        found = []
        for name, fields in waiting_line.live(self.store.layout.queue_dir):
            waiter = Waiter.read(name, fields)
            if waiter is not None and self._is_patient(waiter):
                found.append(waiter)
        return found

    def still(self, waiters: Sequence[Waiter]) -> list[Waiter]:
        """Returns those of these who still wait; cheaper than `everything`."""
        folder = self.store.layout.queue_dir
        return [
            each
            for each in waiters
            if self._is_patient(each) and waiting_line.is_live(folder, each.name)
        ]

    def ahead_of(self, want: Want, *, before: str | None = None) -> list[Waiter]:
        """Returns the other droids' waiters that the actor has to let go first for this wish.

        `before` is the name of the actor's own place; without one, it would be the last.
        """
        actor, fold_case = self.store.actor, self._fold_case()
        return ahead(want, actor, self.everything(), before=before, fold_case=fold_case)

    def before(self, waiter: Waiter) -> list[Waiter]:
        """Returns those whom a waiter has to let go first."""
        line, fold_case = self.everything(), self._fold_case()
        return ahead(waiter.want, waiter.droid, line, before=waiter.name, fold_case=fold_case)

    def waiting_for(self, want: Want, *, droid: str) -> list[Waiter]:
        """Returns the other droids' waiters for something that a droid has."""
        fold_case = self._fold_case()
        return [
            each
            for each in self.everything()
            if each.droid != droid and clash(want, each.want, fold_case=fold_case) is not None
        ]

    def circle(self, first: Sequence[str | Waiter], *, own: str | None = None) -> list[Waiter]:
        """Returns the waiters that would wait for the actor, if it waited for `first`.

        Empty if waiting makes sense. With `own`, the name of the actor's place, also empty if
        another waiter of the circle came later: one has to give up, and that is the last.
        """
        line, fold_case = self.everything(), self._fold_case()

        def blockers(waiter: Waiter) -> list[str | Waiter]:
            earlier = ahead(
                waiter.want, waiter.droid, line, before=waiter.name, fold_case=fold_case
            )
            return [*self._holders(waiter.want, waiter.droid), *earlier]

        found = circle(self.store.actor, first, line, blockers)
        return [] if own is not None and any(each.name > own for each in found) else found

    def place(self, want: Want, wait_s: float) -> PlaceInLine:
        """Returns a context manager for the actor's place in the line, which is not taken yet."""
        return PlaceInLine(self, want, wait_s)

    @contextmanager
    def register(self, want: Want, wait_s: float) -> Iterator[PlaceInLine]:
        """Waits in the line until the block ends."""
        with self.place(want, wait_s) as place:
            place.take()
            yield place

    def enter(self, want: Want, wait_s: float) -> waiting_line.Entry:
        """Takes the last place in the line for the actor. Raises `Unwritable`."""
        now_ms = self.store.now_ms()
        fields = {
            "droid": self.store.actor,
            **want.to_dict(),
            "since": format_ms(now_ms),
            "until": format_ms(now_ms + round(wait_s * 1000)),
            "pid": os.getpid(),
        }
        return waiting_line.enter(self.store.layout.queue_dir, fields, now_ms)

    def _is_patient(self, waiter: Waiter) -> bool:
        return self.store.now_ms() <= waiter.until_ms + _GRACE_MS
