"""Grants as the settings or the caller want them: of this machine alone, or confirmed.

What a command, a tool of `queen mcp` and the library share. It loads what talks to a remote only
if a confirmation is asked for. ADR 0029.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from queenbee.errors import Busy, ExternalFailure, IssueClosed, NotReady, Taken
from queenbee.services.waiting.pauses import finish, long_step
from queenbee.store import giving_up

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.core.records import Assignment, Reservation
    from queenbee.services.hive import Services
    from queenbee.services.waiting.pauses import Steps
    from queenbee.services.work import Begin, Nothing
    from queenbee.services.work.waiting import OnProgress

    Grant = Assignment | Reservation

_ATTEMPTS = 8
"""How often another issue is tried when other machines are faster."""


class Terms:
    """Whether grants need the remote's confirmation, and what to do if it cannot be reached.

    `confirm` asks for it in any case; otherwise the setting `sync.confirm` decides. `tell` gets
    what the actor should know beside the answer.
    """

    def __init__(
        self,
        hive: Services,
        *,
        confirm: bool = False,
        local_if_offline: bool = False,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        said = hive.layout.settings.sync_confirm == "remote"
        self.hive = hive
        # A carrier that decides every write has confirmed it, and waits for a turn by itself.
        self.confirm: bool = (confirm or local_if_offline or said) and hive.engine.carrier is None
        self.local_if_offline = local_if_offline
        self.tell = tell

    def granted(
        self, grant: Callable[[float], Sequence[Grant]], *, wait_s: float = 0
    ) -> Sequence[Grant]:
        """Returns what `grant` grants, confirmed by the remote if that is asked for.

        `grant` gets the seconds that it may wait. Raises what `grant` raises, and, if it is to be
        confirmed, what `confirmed` raises.
        """
        left_s = _left(wait_s)
        if not self.confirm:
            return grant(left_s())
        from queenbee.git.remote.confirmed_grants import confirmed  # noqa: PLC0415 - start-up

        return confirmed(
            self.hive,
            lambda: grant(left_s()),
            local_if_offline=self.local_if_offline,
            tell=self.tell,
            left_s=left_s,
        )

    def take_next(
        self,
        *,
        patterns: Sequence[str] = (),
        wait_s: float = 0,
        on_progress: OnProgress | None = None,
        whole_share: bool = False,
    ) -> Steps[Begin | Nothing]:
        """Takes the next issue, as `git.touched.take_next` does, or the next best one if another
        machine was faster. With `whole_share`, also what is offered with it.
        """
        from queenbee.git import touched  # noqa: PLC0415 - start-up
        from queenbee.services.work import Begin  # noqa: PLC0415 - start-up

        answers: list[Begin | Nothing] = []
        following = touched.following(self.hive, on_progress, self.tell)

        def grant(left_s: float) -> Steps[Sequence[Grant]]:
            asked: Any = {"patterns": patterns, "wait_s": left_s, "on_progress": following}
            taken = yield from touched.take_next(self.hive, **asked)
            answers.append(taken)
            if not isinstance(taken, Begin):
                return []
            return [taken.assignment, *(lease for lease in taken.leases if not lease.token)]

        left_s = _left(wait_s)
        given: Sequence[Grant] = ()
        for attempt in range(_ATTEMPTS):
            try:
                given = yield from self._given(grant, left_s())
                break
            except Taken:
                if attempt == _ATTEMPTS - 1:
                    raise
        taken = answers[-1]
        if isinstance(taken, Begin):
            taken.settle(given)
            if whole_share:
                self._take_share(taken)
        self._settle(taken, has_waited=wait_s > 0)
        return taken

    def _given(
        self, grant: Callable[[float], Steps[Sequence[Grant]]], wait_s: float
    ) -> Steps[Sequence[Grant]]:
        if not self.confirm:
            return (yield from grant(wait_s))
        yield long_step(self.hive.engine)  # It talks to another machine while it waits.
        return self.granted(lambda left_s: finish(grant(left_s)), wait_s=wait_s)

    def _settle(self, taken: Begin | Nothing, *, has_waited: bool) -> None:
        from queenbee.services.work import Nothing  # noqa: PLC0415 - start-up

        self.hive.messages.drop_merged()
        taken.take_mail(self.hive)
        if has_waited and isinstance(taken, Nothing) and taken.state == "done":
            self._close(taken)

    def _take_share(self, taken: Begin) -> None:
        for each in [*taken.share]:
            # The issue itself is granted: who gives up now gives all of it back.
            with giving_up.not_now(), suppress(Taken, NotReady, IssueClosed):
                self.granted(lambda _, key=each.id: [self.hive.assignments.claim(key)])  # type: ignore[misc]
                taken.add(each)

    def take_following(
        self, wait_s: float = 0, on_progress: OnProgress | None = None
    ) -> Steps[Begin | Nothing | None]:
        """Takes the next issue after another one was completed: that has been done, so what keeps
        the remote from confirming the next one is only told. Returns None then. Waits for so long
        while others are at work. Where there is none, commits the records.
        """
        from queenbee.services.work import Nothing  # noqa: PLC0415 - start-up

        found = yield from self._following(wait_s, on_progress)
        if isinstance(found, Nothing):
            self._close(found)
        return found

    def _close(self, found: Nothing) -> None:
        """Commits the records at the end of a loop; another droid may do that at the same time."""
        from queenbee.git import landed  # noqa: PLC0415 - start-up

        if why := landed.commit_records(self.hive, is_end=found.state == "done"):
            self.tell(why)
        if found.uncommitted_records is not None:
            found.uncommitted_records = landed.uncommitted_records(self.hive.layout)

    def _following(
        self, wait_s: float, on_progress: OnProgress | None
    ) -> Steps[Begin | Nothing | None]:
        try:
            if wait_s > 0:
                with suppress(Busy):
                    return (yield from self.take_next(wait_s=wait_s, on_progress=on_progress))
            return (yield from self.take_next())
        except (Busy, ExternalFailure, Taken) as error:
            if not self.confirm:
                raise
            self.tell(f"no next issue was taken: {error.message}; try: queen next")
            return None


def _left(wait_s: float) -> Callable[[], float]:
    """Returns what tells how much of a wait is left, in seconds: it may take several attempts."""
    deadline_s = time.monotonic() + wait_s
    return lambda: max(0.0, deadline_s - time.monotonic()) if wait_s > 0 else 0.0
