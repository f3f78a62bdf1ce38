"""The calls of an `AsyncHive` that are under way, each for one task.

A step of a call runs in one of the few threads of `workers`; between two steps, it costs no thread:
`watcher` looks after what it waits for. A task that is cancelled, or whose time is over, sets the
event of its call, and goes on once nothing is left of that: no place in the line, and no lease.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from queenbee.errors import InvalidInput
from queenbee.library import watcher, workers
from queenbee.library.event_loops import signal
from queenbee.library.watcher import Watched
from queenbee.store import giving_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.library.event_loops import Signal
    from queenbee.services.waiting.pauses import Pause, Steps
    from queenbee.store.giving_up import Event

Found = TypeVar("Found")


class Calls:
    """The calls of one hive."""

    def __init__(self) -> None:
        self._under_way: dict[Signal, threading.Event] = {}
        self._is_closed = False

    async def run(
        self,
        steps: Steps[Found],
        undo: Callable[[Found], object] | None = None,
        *,
        event: threading.Event | None = None,
        is_long: bool = False,
    ) -> Found:
        """Returns what a call comes to. If the task is cancelled, sets the event, and undoes what
        the call did all the same, before the task goes on.
        """
        if self._is_closed:
            raise InvalidInput("this hive was closed", hint="AsyncHive.open opens another one")
        event, ended = event or threading.Event(), signal()
        self._under_way[ended] = event
        try:
            return await _Call(steps, event, undo).finish(is_long=is_long)
        finally:
            del self._under_way[ended]
            ended.set()

    async def close(self) -> None:
        """Gives up what is under way, and waits until that has ended."""
        self._is_closed = True
        under_way = [*self._under_way]
        for event in self._under_way.values():
            event.set()
        watcher.watcher.look()
        for each in under_way:
            await each.wait_to_the_end()


class _End(Generic[Found]):
    """That there is no further step, and what came of it."""

    def __init__(self, found: Found) -> None:
        self.found = found


class _Job(Generic[Found]):
    """What a thread does for a task, and what comes of it."""

    def __init__(self, call: Callable[[], Found]) -> None:
        self._call = call
        self._ended = signal()
        self._error: BaseException | None = None
        self._found: list[Found] = []

    def _run(self) -> None:
        try:
            self._found.append(self._call())
        except BaseException as error:  # noqa: BLE001 - it is raised where the call is awaited
            self._error = error
        self._ended.set()

    async def begin(self, *, is_long: bool = False) -> None:
        """Has it run, and returns once it has."""
        workers.workers.run(self._run, alone=is_long)
        await self._ended.wait()

    async def end(self) -> None:
        """Returns once it has run, also in a task that is cancelled."""
        await self._ended.wait_to_the_end()

    async def run_to_the_end(self) -> None:
        """Has it run, and returns once it has, also in a task that is cancelled."""
        workers.workers.run(self._run)
        await self.end()

    def found(self) -> Found:
        """Returns what came of it, or raises that."""
        if self._error is not None:
            raise self._error
        return self._found[0]


class _Call(Generic[Found]):
    """One call, and the steps that it still has."""

    def __init__(
        self, steps: Steps[Found], event: threading.Event, undo: Callable[[Found], object] | None
    ) -> None:
        self._steps = steps
        self._event = event
        self._undo = undo

    async def finish(self, *, is_long: bool) -> Found:
        """Does one step after the other."""
        next_step = partial(_step, self._steps, self._event, None)
        while True:
            step = _Job(next_step)
            try:
                await step.begin(is_long=is_long)
            except BaseException:
                self._event.set()
                await step.end()
                await _Job(partial(self._leave, step)).run_to_the_end()
                raise
            pause = step.found()
            if isinstance(pause, _End):
                found: Found = pause.found
                return found
            is_long = pause.is_long
            watched = await self._watched(pause)
            next_step = partial(_step, self._steps, self._event, watched)

    async def _watched(self, pause: Pause) -> Watched:
        """Returns a pause that has ended."""
        ended = signal()
        watched = Watched(pause, self._event, ended.set)
        if not pause.is_long:
            watcher.watcher.watch(watched)
            try:
                await ended.wait()
            except BaseException:
                watcher.watcher.forget(watched)
                await _Job(self._steps.close).run_to_the_end()
                raise
        return watched

    def _leave(self, step: _Job[Any]) -> None:
        """Leaves nothing of the call after a step."""
        self._steps.close()
        end = step.found()
        if isinstance(end, _End) and self._undo is not None:
            self._undo(end.found)


def _step(steps: Steps[Found], event: Event, watched: Watched | None) -> Pause | _End[Found]:
    """Does the next step of a call, after a pause; returns the pause behind it, or the end."""
    try:
        with giving_up.until(event):
            if watched is None:
                return next(steps)
            if watched.error is not None:
                return steps.throw(watched.error)
            return steps.send(watched.came)
    except StopIteration as end:
        return _End(end.value)
    except BaseException:
        steps.close()  # If it was given up before the step.
        raise
