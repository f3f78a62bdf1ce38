"""The hive for programs on asyncio: its calls, awaited, which can be cancelled.

A call runs in a thread of its own, since it waits for disks, locks and programs. A task that is
cancelled, or whose time is over, sets the event of its call, and goes on once the thread has ended:
no thread, no place in the line and no lease outlives the task that asked for it. What was granted
in the very moment of that is given back.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from queenbee.errors import InvalidInput
from queenbee.library.hive import Hive
from queenbee.library.issues import TrackedIssues
from queenbee.library.worktrees import Worktrees
from queenbee.services.assignments import Assignments
from queenbee.services.leases.reservations import Reservations
from queenbee.services.messages import Messages
from queenbee.services.work.taking import Begin

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
    from typing import Self

    from queenbee.core.records import Assignment, Reservation
    from queenbee.services.changes import Change

P = ParamSpec("P")
Of = TypeVar("Of")
Found = TypeVar("Found")
Undo = Callable[[Any, Any], None]
_GIVEN_UP = "given up before it was begun"


class Awaited(Generic[Of]):
    """What is called in threads: `sync` is the hive, or one of its services."""

    def __init__(self, sync: Of, calls: Calls) -> None:
        self.sync = sync
        self._calls = calls


def awaited(
    call: Callable[Concatenate[Of, P], Found], undo: Callable[[Of, Found], None] | None = None
) -> Callable[Concatenate[Awaited[Of], P], Coroutine[Any, Any, Found]]:
    """Returns a call as a coroutine. `undo` gives back what it has granted to nobody."""
    takes_cancel = "cancel" in call.__annotations__

    async def awaits(self: Awaited[Of], /, *given: P.args, **named: P.kwargs) -> Found:
        event = threading.Event()
        more: dict[str, Any] = {"cancel": event} if takes_cancel else {}
        ready = partial(call, self.sync, *given, **{**named, **more})
        back = partial(undo, self.sync) if undo is not None else None
        return await self._calls.run(ready, event, back)

    awaits.__doc__ = call.__doc__
    awaits.__name__ = call.__name__
    return awaits


class Calls:
    """The calls of one hive that are under way."""

    def __init__(self) -> None:
        self._under_way: dict[asyncio.Future[Any], threading.Event] = {}
        self._is_closed = False

    async def run(
        self,
        call: Callable[[], Found],
        event: threading.Event,
        undo: Callable[[Found], None] | None = None,
    ) -> Found:
        """Returns what a call returns, in a thread. If the task is cancelled, sets the event, and
        undoes what the call did all the same, before the task goes on.
        """
        if self._is_closed:
            raise InvalidInput("this hive was closed", hint="AsyncHive.open opens another one")
        done = _begun(call)
        self._under_way[done] = event
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            event.set()
            await _ended(done)
            if undo is not None and done.exception() is None:
                await _ended(_begun(partial(undo, done.result())))
            raise
        finally:
            self._under_way.pop(done, None)

    async def close(self) -> None:
        """Gives up what is under way, and waits until that has ended."""
        self._is_closed = True
        for event in self._under_way.values():
            event.set()
        for each in list(self._under_way):
            await _ended(each)


def _begun(call: Callable[[], Found]) -> asyncio.Future[Found]:
    """Returns what becomes of a call that begins now, in a thread."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Found] = loop.create_future()

    def run() -> None:
        try:
            settle = partial(done.set_result, call())
        except BaseException as error:  # noqa: BLE001 - it is raised where the call is awaited
            settle = partial(done.set_exception, error)
        with suppress(RuntimeError):  # The loop was closed: nobody awaits it.
            loop.call_soon_threadsafe(settle)

    thread = threading.Thread(target=run, name="queenbee", daemon=True)
    done.add_done_callback(lambda _: thread.join())  # Telling that was the last thing it did.
    thread.start()
    return done


async def _ended(done: asyncio.Future[Any]) -> None:
    """Returns once a call has ended, however often the task is cancelled meanwhile."""
    while not done.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([done])
    done.exception()  # It was looked at.


def _unreserve(reservations: Reservations, leases: list[Reservation]) -> None:
    if made := [each.id for each in leases if each.rev == 1]:
        reservations.release(ids=made)


def _unclaim(assignments: Assignments, assignment: Assignment) -> None:
    if assignment.rev == 1:
        assignments.release(assignment.issue_id, reason=_GIVEN_UP)


def _untake(hive: Hive, found: object) -> None:
    if isinstance(found, Begin):
        for each in found.with_it:
            hive.assignments.release(each.id, reason=_GIVEN_UP)
        if not found.again:
            _unclaim(hive.assignments, found.assignment)


class AsyncReservations(Awaited[Reservations]):
    """Who edits where."""

    reserve = awaited(Reservations.reserve, _unreserve)
    release = awaited(Reservations.release)
    renew = awaited(Reservations.renew)
    find = awaited(Reservations.find)
    check = awaited(Reservations.check)
    overlap = awaited(Reservations.overlap)
    conflicts = awaited(Reservations.conflicts)


class AsyncAssignments(Awaited[Assignments]):
    """Who works on which issue."""

    claim = awaited(Assignments.claim, _unclaim)
    assign = awaited(Assignments.assign)
    release = awaited(Assignments.release)
    note = awaited(Assignments.note)
    find = awaited(Assignments.find)


class AsyncMessages(Awaited[Messages]):
    """Messages between droids."""

    send = awaited(Messages.send)
    reply = awaited(Messages.reply)
    inbox = awaited(Messages.inbox)
    read_unread = awaited(Messages.read_unread)
    mark_read = awaited(Messages.mark_read)
    acknowledge = awaited(Messages.acknowledge)
    thread = awaited(Messages.thread)
    search = awaited(Messages.search)
    wait = awaited(Messages.wait)


class AsyncIssues(Awaited[TrackedIssues]):
    """The tracker's issues."""

    new = awaited(TrackedIssues.new)
    edit = awaited(TrackedIssues.edit)
    close = awaited(TrackedIssues.close)
    delete = awaited(TrackedIssues.delete)
    reopen = awaited(TrackedIssues.reopen)
    depend = awaited(TrackedIssues.depend)
    import_ = awaited(TrackedIssues.import_)
    pull = awaited(TrackedIssues.pull)
    push = awaited(TrackedIssues.push)
    get = awaited(TrackedIssues.get)
    find = awaited(TrackedIssues.find)
    ready = awaited(TrackedIssues.ready)


class AsyncWorktrees(Awaited[Worktrees]):
    """The worktrees of the repository."""

    add = awaited(Worktrees.add)
    list = awaited(Worktrees.list)
    setup = awaited(Worktrees.setup)
    remove = awaited(Worktrees.remove)
    prune = awaited(Worktrees.prune)


class AsyncHive(Awaited[Hive]):
    """An open hive for one event loop. Its calls are those of `Hive`, awaited; `sync` is that hive.

    async with await AsyncHive.open(droid="ui") as hive:
        async with asyncio.timeout(60):
            begun = await hive.next(timeout_s=3600)
    """

    next = awaited(Hive.next, _untake)
    following = awaited(Hive.following, _untake)
    complete = awaited(Hive.complete)
    land = awaited(Hive.land)
    answer_review = awaited(Hive.answer_review)
    withdraw = awaited(Hive.withdraw)
    wait = awaited(Hive.wait)
    status = awaited(Hive.status)
    show = awaited(Hive.show)
    log = awaited(Hive.log)
    undo = awaited(Hive.undo)
    cursor = awaited(Hive.cursor)

    def __init__(self, hive: Hive) -> None:
        super().__init__(hive, Calls())
        self.reservations = AsyncReservations(hive.reservations, self._calls)
        self.assignments = AsyncAssignments(hive.assignments, self._calls)
        self.messages = AsyncMessages(hive.messages, self._calls)
        self.issues = AsyncIssues(hive.issues, self._calls)
        self.worktrees = AsyncWorktrees(hive.worktrees, self._calls)

    @classmethod
    async def open(
        cls,
        start: str | os.PathLike[str] | None = None,
        *,
        droid: str | None = None,
        beads_dir: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Self:
        """Opens a hive, as `Hive.open` does."""
        opened = partial(Hive.open, start, droid=droid, beads_dir=beads_dir, env=env)
        return cls(await Calls().run(opened, threading.Event()))

    async def changes(
        self,
        since: str = "0",
        *,
        droid: str | None = None,
        issue_id: str | None = None,
        kinds: Sequence[str] = (),
        path: str | None = None,
        timeout_s: float | None = None,
    ) -> AsyncIterator[Change]:
        """Yields what `Hive.changes` does, until the task is cancelled."""
        event = threading.Event()
        ready = partial(self.sync.changes, since, timeout_s=timeout_s, cancel=event)
        wanted: dict[str, Any] = {"droid": droid, "issue_id": issue_id, "kinds": kinds}
        found = await self._calls.run(partial(ready, path=path, **wanted), event)
        while (change := await self._calls.run(partial(next, found, None), event)) is not None:
            yield change

    async def close(self) -> None:
        """Gives up what is under way, waits until that has ended, and closes the hive."""
        await self._calls.close()
        await asyncio.shield(_begun(self.sync.close))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Async{self.sync!r}"
