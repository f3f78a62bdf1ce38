"""Awaiting what happens in a thread, under asyncio or trio.

These are the two things that the calls need of a loop; the library that hides the difference costs
more to import than all of `AsyncHive`. ADR 0049.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Protocol

    class Signal(Protocol):
        """What one thread sets, and one task awaits."""

        def set(self) -> None:
            """Sets it, from any thread, also if the loop has ended."""

        async def wait(self) -> None:
            """Returns once it is set; raises if the task is cancelled."""

        async def wait_to_the_end(self) -> None:
            """Returns once it is set, however often the task is cancelled meanwhile."""


def signal() -> Signal:
    """Returns a signal for the loop that runs here."""
    if (trio := sys.modules.get("trio")) is not None:
        with suppress(RuntimeError):  # What runs here is no loop of trio's.
            return _OfTrio(trio)
    return _OfAsyncio()


class _OfAsyncio:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def set(self) -> None:
        with suppress(RuntimeError):  # The loop was closed.
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> None:
        await self._event.wait()

    async def wait_to_the_end(self) -> None:
        while not self._event.is_set():
            with suppress(asyncio.CancelledError):
                await self._event.wait()


class _OfTrio:
    def __init__(self, trio: Any) -> None:
        self._trio = trio
        self._token = trio.lowlevel.current_trio_token()
        self._event = trio.Event()

    def set(self) -> None:
        with suppress(self._trio.RunFinishedError):
            self._token.run_sync_soon(self._event.set)

    async def wait(self) -> None:
        await self._event.wait()

    async def wait_to_the_end(self) -> None:
        with self._trio.CancelScope(shield=True):
            await self._event.wait()
