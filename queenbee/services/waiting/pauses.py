"""Waits in steps: what waits says what it waits for, and leaves the waiting to who runs it.

A wait is a generator: it yields a `Pause`, and goes on with whether it came. `waits` makes of it a
call that waits in its own thread; `library/watcher.py` looks after any number of pauses in one.
"""

from __future__ import annotations

import time

from queenbee.store import giving_up

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any, ParamSpec, TypeVar

    from queenbee.store.carriers.engine import Engine
    from queenbee.store.giving_up import Event

    P = ParamSpec("P")
    Found = TypeVar("Found")
    Steps = Generator["Pause", bool, Found]
    """What waits: nothing runs between two of its steps, and a step may run in any thread."""


class Pause:
    """Until `true()`, which is asked whenever something may have changed, or `until_s`, monotonic.

    What follows one that `is_long` may take its time: it waits for programs, or another machine.
    """

    __slots__ = ("engine", "is_long", "true", "until_s")

    def __init__(self, engine: Engine, true: Callable[[], bool], until_s: float) -> None:
        self.engine: Engine = engine
        """What knows when to look again."""
        self.true: Callable[[], bool] = true
        self.until_s: float = until_s
        self.is_long: bool = False

    def wait(self) -> bool:
        """Waits in this thread; returns whether it came. Raises `Cancelled`."""
        return self.engine.wait(self.true, False, self.until_s)


def long_step(engine: Engine) -> Pause:
    """Returns a pause without a wait, before a step that may take its time."""
    pause = Pause(engine, lambda: True, time.monotonic())
    pause.is_long = True
    return pause


def finish(steps: Steps[Found]) -> Found:
    """Returns what a wait comes to, in this thread."""
    go_on: Callable[[Any], Pause] = steps.send
    given: object = None
    while True:
        try:
            pause = go_on(given)
        except StopIteration as end:
            found: Found = end.value
            return found
        try:
            go_on, given = steps.send, pause.wait()
        except BaseException as error:  # noqa: BLE001 - the wait itself says what becomes of it
            go_on, given = steps.throw, error


def waits(call: Callable[P, Steps[Found]]) -> Callable[P, Found]:
    """Returns a call that finishes its steps, unless the event `cancel` is set before."""

    def finished(*given: P.args, **named: P.kwargs) -> Found:
        event: Event | None = named.get("cancel")  # type: ignore[assignment]
        with giving_up.until(event):
            return finish(call(*given, **named))

    said = call.__annotations__["return"]
    call.__annotations__["return"] = said.removeprefix("Steps[").removesuffix("]")
    for name in ("__doc__", "__name__", "__qualname__", "__module__", "__annotations__"):
        setattr(finished, name, getattr(call, name))
    finished.__wrapped__ = finished.steps = call  # type: ignore[attr-defined]
    return finished
