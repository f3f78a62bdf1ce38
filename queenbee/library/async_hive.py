"""The hive for programs on asyncio or trio: its calls, awaited, which can be cancelled.

A task that is cancelled, or whose time is over, goes on once its call has left nothing: no place in
the line, and no lease. What was granted in the very moment of that is given back. `calls` says what
a call runs on: nothing has a thread while it waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from queenbee.core.records import Assignment, Reservation
from queenbee.library.calls import Calls
from queenbee.library.hive import Hive
from queenbee.library.issues import TrackedIssues
from queenbee.library.worktrees import Worktrees
from queenbee.services.assignments import Assignments
from queenbee.services.changes import Follower, Wanted
from queenbee.services.leases.reservations import Reservations
from queenbee.services.messages import Messages
from queenbee.services.work.taking import Begin

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
    from typing import Self

    from queenbee.services.changes import Change
    from queenbee.services.waiting.pauses import Steps

P = ParamSpec("P")
Of = TypeVar("Of")
Found = TypeVar("Found")
_GIVEN_UP = "given up before it was begun"


class Awaited(Generic[Of]):
    """What is called in threads: `sync` is the hive, or one of its services."""

    def __init__(self, sync: Of, calls: Calls) -> None:
        self.sync = sync
        self._calls = calls


def awaited(
    call: Callable[Concatenate[Of, P], Found],
    undo: Callable[[Of, Found], None] | None = None,
    *,
    is_long: bool = False,
) -> Callable[Concatenate[Awaited[Of], P], Coroutine[Any, Any, Found]]:
    """Returns a call as a coroutine. `undo` gives back what it has granted to nobody. One that
    `is_long` runs programs, and gets a thread of its own.
    """
    takes_cancel = "cancel" in call.__annotations__
    steps: Callable[..., Steps[Found]] = getattr(call, "steps", partial(_in_one, call))

    async def awaits(self: Awaited[Of], /, *given: P.args, **named: P.kwargs) -> Found:
        event = threading.Event()
        more: dict[str, Any] = {"cancel": event} if takes_cancel else {}
        begun = steps(self.sync, *given, **{**named, **more})
        back = partial(undo, self.sync) if undo is not None else None
        return await self._calls.run(begun, back, event=event, is_long=is_long)

    awaits.__doc__ = call.__doc__
    awaits.__name__ = call.__name__
    awaits.__wrapped__ = call  # type: ignore[attr-defined] # `help` shows its parameters.
    return awaits


def _in_one(call: Callable[..., Found], *given: object, **named: object) -> Steps[Found]:
    """Does all of a call in one step."""
    yield from ()
    return call(*given, **named)


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


def _ungrant(hive: Hive, grants: Sequence[Assignment | Reservation]) -> None:
    _unreserve(hive.reservations, [each for each in grants if isinstance(each, Reservation)])
    for each in grants:
        if isinstance(each, Assignment):
            _unclaim(hive.assignments, each)


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
    send_many = awaited(Messages.send_many)
    answer = awaited(Messages.answer)
    reply = awaited(Messages.reply)
    inbox = awaited(Messages.inbox)
    get = awaited(Messages.get)
    since = awaited(Messages.since)
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
    import_ = awaited(TrackedIssues.import_, is_long=True)
    pull = awaited(TrackedIssues.pull, is_long=True)
    push = awaited(TrackedIssues.push, is_long=True)
    get = awaited(TrackedIssues.get)
    find = awaited(TrackedIssues.find)
    ready = awaited(TrackedIssues.ready)


class AsyncWorktrees(Awaited[Worktrees]):
    """The worktrees of the repository."""

    add = awaited(Worktrees.add, is_long=True)
    list = awaited(Worktrees.list)
    setup = awaited(Worktrees.setup, is_long=True)
    remove = awaited(Worktrees.remove, is_long=True)
    prune = awaited(Worktrees.prune, is_long=True)


class AsyncHive(Awaited[Hive]):
    """An open hive for one event loop, of asyncio or trio: the calls of `Hive`, awaited. `sync` is
    that hive.

    async with await AsyncHive.open(droid="ui") as hive:
        async with asyncio.timeout(60):
            begun = await hive.next(timeout_s=3600)
    """

    next = awaited(Hive.next, _untake)
    following = awaited(Hive.following, _untake)
    grant = awaited(Hive.grant, _ungrant, is_long=True)
    complete = awaited(Hive.complete, is_long=True)
    land = awaited(Hive.land, is_long=True)
    abort_landing = awaited(Hive.abort_landing, is_long=True)
    last_landing = awaited(Hive.last_landing)
    team = awaited(Hive.team, is_long=True)
    answer_review = awaited(Hive.answer_review, is_long=True)
    withdraw = awaited(Hive.withdraw, is_long=True)
    wait = awaited(Hive.wait)
    status = awaited(Hive.status, is_long=True)
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
        opened = _in_one(Hive.open, start, droid=droid, beads_dir=beads_dir, env=env)
        return cls(await Calls().run(opened, Hive.close))

    @classmethod
    async def init(
        cls,
        start: str | os.PathLike[str] | None = None,
        *,
        droid: str | None = None,
        beads_dir: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Self:
        """Makes a hive where there is none, and opens it, as `Hive.init` does."""
        made = _in_one(Hive.init, start, droid=droid, beads_dir=beads_dir, env=env)
        return cls(await Calls().run(made, Hive.close))

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

        def begun() -> Follower:
            wanted = Wanted.of(self.sync, droid, issue_id, kinds, path)
            return Follower(self.sync, since, wanted, timeout_s)

        follower = await self._calls.run(_in_one(begun))
        while (found := await self._calls.run(follower.further())) is not None:
            for each in found:
                yield each

    async def close(self) -> None:
        """Gives up what is under way, waits until that has ended, and closes the hive."""
        await self._calls.close()
        await Calls().run(_in_one(self.sync.close))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Async{self.sync!r}"
