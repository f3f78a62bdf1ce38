"""The open store that services share: its place, the actor, the time and the records.

A service reads by `state(kind)` and writes inside `transaction()`. Time, identity and directory
are fetched here, once, and passed down from here.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from contextlib import contextmanager

from queenbee.core.ids import MAX_MS, RANDOM_BYTES, following, ulid
from queenbee.core.kinds import ISSUES, KINDS
from queenbee.core.names import PERSON
from queenbee.errors import NotFound
from queenbee.store.droids import identity, presence, session_names
from queenbee.store.layout import discover, working_directory

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Self, TypeVar

    from queenbee.core.row_edits import Edit
    from queenbee.errors import InvalidInput
    from queenbee.services.writing.transaction import Keeps, Transaction
    from queenbee.store.carriers.engine import Engine
    from queenbee.store.layout import Layout
    from queenbee.store.memory.database import Progress
    from queenbee.store.memory.recorded import Recorded
    from queenbee.store.tracker.owned_copy import Origin
    from queenbee.store.tracker.tracker_memory import TrackerMemory
    from queenbee.store.trust import Proposal

    Found = TypeVar("Found")

_inherited: list[object] = []
"""What a forked child must neither use nor close."""


_NOTED_MS = 1_000
"""How long the note of a droid's presence is good enough: it is asked about in minutes."""


class Store:
    """An open store. Safe for threads; every read sees all earlier writes."""

    def __init__(
        self,
        layout: Layout,
        *,
        actor: str | None = None,
        cwd: str | None = None,
        clock: Callable[[], int] | None = None,
        allow_secrets: bool = False,
    ) -> None:
        self.layout = layout
        self.allow_secrets = allow_secrets
        """Whether texts that look like credentials may be written."""
        self.cwd: str = os.path.realpath(cwd or layout.tree)
        """The directory that patterns and paths given to the services are relative to."""
        self.progress: Progress | None = None
        """Called while an index is built."""
        self.grant_marks: dict[str, object] = {}
        """Fields that every new grant gets: whoever confirms grants elsewhere marks them so."""
        self.long_lines: list[str] = []
        """Records written here since the last notice whose lines other tools cannot read."""
        self.has_commit: Callable[[Layout, str], bool] | None = None
        """Tells whether the branch of this worktree has a commit."""
        self.changed_by: Callable[[Layout, Collection[str], bool], set[str]] | None = None
        """Tells in which files droids have unmerged work, in worktrees of their own."""
        self.look_again: Callable[[], bool] | None = None
        """Takes in what others have pushed, and tells whether it looked."""
        self.asks_person: Callable[[Sequence[Proposal]], bool | None] | None = None
        """Shows commands to a person who sits here, and tells whether they may run."""
        self._actor = actor
        self._contradiction: InvalidInput | None = None
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        from queenbee.store.carriers.engine import Engine  # noqa: PLC0415 - start-up

        self._process = os.getpid()
        self.engine: Engine = Engine(self.layout)
        """Where the lines are kept."""
        self._states: dict[str, Recorded] = {}
        self._writing = allocate_lock()
        self._minting = allocate_lock()
        self._waits_s: list[float] = []
        """How long those wait who are `patient` now, after what is usual."""
        self._last_id = (-1, "")
        self._noted_ms = -_NOTED_MS
        self._tracker: TrackerMemory | None = None

    def _reopen_after_fork(self) -> None:
        """Begins anew in a forked child: what other threads of the parent held or changed at that
        moment stays held and half changed here, and SQLite does not survive a fork.
        """
        if self._process != os.getpid():
            # Closing a database or a connection would disturb the parent's.
            _inherited.extend((self._states, self.engine))
            self._begin()

    @classmethod
    def open(
        cls,
        start: str | os.PathLike[str] | None = None,
        *,
        droid: str | None = None,
        beads_dir: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        clock: Callable[[], int] | None = None,
    ) -> Self:
        """Returns the hive that the directory `start` (default: the working directory) is in.

        `droid` is who acts; by default, as the environment or this worktree says. `clock` returns
        milliseconds since 1970. Raises `NoHive` if there is none.
        """
        env = os.environ if env is None else env
        cwd = os.fspath(start) if start is not None else working_directory()
        given = os.fspath(beads_dir) if beads_dir is not None else None
        found = discover(cwd, env, beads_dir=given)
        actor = session_names.find_actor(found, env, droid)
        opened = cls(
            found,
            actor=actor[0] if actor else None,
            cwd=cwd,
            clock=clock,
            allow_secrets=env.get("QUEEN_ALLOW_SECRET") == "1",
        )
        opened._contradiction = identity.contradiction(found, actor)
        return opened

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the memory; the next question opens it again."""
        self._reopen_after_fork()
        self._states.clear()
        self.engine.close()

    @property
    def is_writing(self) -> bool:
        """Whether a thread of this process writes at this moment."""
        return self._writing.locked()

    @property
    def actor(self) -> str:
        """Who is acting. Raises `NoActor` if that is not set, and `UnknownDroid`."""
        if self._actor is None:
            raise identity.nobody()
        return identity.checked_droid(self.layout, self._actor)

    @property
    def author(self) -> str:
        """Who describes work: a person without a name can. Raises `UnknownDroid`."""
        return PERSON if self._actor is None else self.actor

    @property
    def own_actor(self) -> str:
        """Who is acting, for what changes whose an issue is. Raises as `actor`, and as
        `refuse_two_names`.
        """
        self.refuse_two_names()
        return self.actor

    def refuse_two_names(self) -> None:
        """Raises `InvalidInput` if the environment says another name than the worktree."""
        if self._contradiction is not None:
            raise self._contradiction

    @property
    def actor_or_none(self) -> str | None:
        """Who is acting, or None if that is not set."""
        return self._actor

    def note_presence(self) -> None:
        """Notes that the actor is active on this machine, to the second. Never fails."""
        now_ms = self.now_ms()
        if not 0 <= now_ms - self._noted_ms < _NOTED_MS:
            presence.note(self.layout, self._actor, now_ms)
            self._noted_ms = now_ms

    def now_ms(self) -> int:
        """Returns the present, in ms since 1970."""
        return self._clock() if self._clock is not None else self.engine.now_ms()

    def present_ms(self) -> int:
        """Returns the present as far as this machine can tell, in case its clock is behind.

        A clock that was given to `open` is taken at its word.
        """
        if self._clock is not None:
            return self._clock()
        return self.engine.present_ms(self.engine.now_ms())

    def state(self, kind: str) -> Recorded:
        """Returns the folded state of one kind of record, as of now.

        Raises `Unreadable` if the repository was moved or deleted while it was open.
        """
        self._reopen_after_fork()
        self.layout.refuse_if_moved()
        state = self._states.get(kind)
        if state is None:
            from queenbee.store.memory.recorded import Recorded  # noqa: PLC0415 - start-up

            state = self._states.setdefault(kind, Recorded(kind, self.engine.memory))
        self.engine.memory.progress = self.progress
        state.refresh()
        return state

    def tracker(self) -> TrackerMemory:
        """Returns the tracker's rows, as of now. Raises `Unreadable`."""
        self.state(ISSUES)
        path = self.rows_path()
        if self._tracker is None or self._tracker.path != path:
            from queenbee.store.tracker.tracker_memory import TrackerMemory  # noqa: PLC0415 - start-up

            memory, beads_dir = self.engine.memory, self.layout.beads_dir
            self._tracker = TrackerMemory(memory, path, beads_dir)
        self._tracker.refresh()
        return self._tracker

    def rows_path(self) -> str:
        """Returns the file with the tracker's rows: `issues.jsonl`, or the copy of a database's."""
        from queenbee.store.tracker.issue_owner import OWNED, owner_in  # noqa: PLC0415 - start-up

        owner = owner_in(self.layout.beads_dir)
        if owner is not None and not self.is_writing:  # No program runs while others wait.
            self.ask_owner()
        copy = os.path.join(self.layout.state_dir, OWNED)
        return copy if owner == "dolt" and os.path.exists(copy) else self.layout.issues_path

    def ask_owner(self) -> None:
        """Brings the copy of the rows that another program has up to date; here, nobody is asked:
        the edit hook waits for no program.
        """

    def check_rows(self) -> None:
        """Raises `ExternalFailure` if the rows of issues may be old, so that nobody takes an issue
        by them.
        """

    def origin(self) -> Origin | None:
        """Returns where the rows of issues are from, if another program keeps them."""
        return None

    def opened(self) -> list[Recorded]:
        """Returns the states that have been opened so far."""
        return list(self._states.values())

    def looked_for(self, ask: Callable[[], Found]) -> Found:
        """Returns what `ask` returns; what it misses, others may have pushed just now."""
        try:
            return ask()
        except NotFound:
            if self.look_again is None or self.grant_marks or not self.look_again():
                raise
            return ask()

    def stamp(self, kind: str) -> object:
        """Returns a value that changes whenever lines of a kind come or go; for cheap polling."""
        return self.engine.memory.stamp(kind)

    def kinds(self) -> list[str]:
        """Returns the kinds of record that this hive has a ledger for, ours first."""
        ours = [kind.name for kind in KINDS.values() if kind.everywhere]
        return list(dict.fromkeys([*ours, *self.engine.memory.all_kinds()]))

    def rebuild_memory(self) -> None:
        """Folds every record anew, from the lines."""
        self.engine.memory.progress = self.progress
        self.engine.memory.rebuild()

    def transaction(self) -> Transaction:
        """Returns a context manager in which nobody else writes: read, check, then append.

        All appends are recorded together when the block ends without an error, and are on disk
        when the `with` statement returns. Raises `Busy`, `Unwritable`, and `Unreadable` while the
        settings cannot be read and were never known here.
        """
        from queenbee.services.writing.transaction import Transaction  # noqa: PLC0415 - start-up

        self._reopen_after_fork()
        self.layout.settings.refuse_guesses()
        return Transaction(self, self._writing)

    @contextmanager
    def patient(self, wait_s: float) -> Iterator[None]:
        """Waits for each turn at writing as long as a command says that it waits, if that is longer
        than usual. Threads of one store may wait at the same time.
        """
        settings, waits_s = self.layout.settings, self._waits_s
        with self._minting:
            if not waits_s:
                waits_s.append(settings.lock_timeout_s)
            waits_s.append(wait_s)
            settings.lock_timeout_s = max(settings.lock_timeout_s, wait_s)
        try:
            yield
        finally:
            with self._minting:
                waits_s.remove(wait_s)
                settings.lock_timeout_s = max(waits_s)
                if len(waits_s) == 1:
                    waits_s.clear()

    def wait_for_change(
        self, stamp: Callable[[], object], before: object, deadline_s: float
    ) -> bool:
        """Returns True as soon as `stamp()` is no longer `before`, or False at the deadline, on the
        monotonic clock.
        """
        return self.engine.wait(stamp, before, deadline_s)

    def look(self, fields: Mapping[str, object]) -> None:
        """Raises `LooksLikeSecret` if a text to be written seems to hold a credential.

        The transaction asks again. Asked before it, a long text keeps nobody waiting.
        """
        from queenbee.store import codec  # noqa: PLC0415 - start-up

        if (
            sum(len(each) for each in fields.values() if isinstance(each, str))
            >= codec.MAX_LINE_BYTES
        ):
            codec.encode(fields)  # It says how large it is. To look through it would take seconds.
        if not self.allow_secrets:
            from queenbee.services.writing.secrets import refuse_secrets  # noqa: PLC0415 - start-up

            refuse_secrets(fields)

    def issue_lines(self, edits: Sequence[Edit], keeps: Keeps) -> list[bytes]:
        """Returns the lines of the ledger of issues for a transaction with these edits."""
        keeps = "all" if self.engine.carrier is not None else keeps
        if not edits and keeps == "edits":
            return []
        from queenbee.services.writing.issue_changes import lines_of  # noqa: PLC0415 - start-up

        return lines_of(self.tracker(), self.state(ISSUES), edits, keeps, self._look_at_row)

    def _look_at_row(self, changes: Mapping[str, object]) -> None:
        """Raises `LooksLikeSecret` for a row that would go to a database, whoever wrote it: what a
        ledger gets is looked at before it leaves this machine.
        """
        if self.engine.carrier is not None and not self.allow_secrets:
            from queenbee.services.writing.secrets import (  # noqa: PLC0415 - start-up
                refuse_secrets_in_row,
            )

            refuse_secrets_in_row(changes)

    def granted(self, lines: Sequence[bytes]) -> None:
        """Called with the lines of assignments that a transaction has recorded, without any lock,
        to tell the program that owns the tracker. Raises `Taken` and `ExternalFailure` for grants
        that do not remain.
        """

    def committed(self, kinds: Sequence[str]) -> None:
        """Called when a transaction has recorded lines of these kinds, without any lock."""

    def note_step(self, tx: Transaction) -> None:
        """Called with a transaction that has recorded new lines."""

    def wrote(self) -> None:
        """Called when a transaction has recorded new lines, and not only brought files in step."""

    def wrote_elsewhere(self, program: str) -> None:
        """Called when a program has written issues to its own database."""

    def mint(self, kind: str) -> str:
        """Returns a new id; ids minted by one store sort in the order they were minted."""
        self._reopen_after_fork()
        with self._minting:
            now_ms = min(max(self.now_ms(), 0), MAX_MS)
            last_ms, last = self._last_id
            fresh = following(last) if now_ms == last_ms else ulid(now_ms, os.urandom(RANDOM_BYTES))
            self._last_id = (now_ms, fresh)
        return f"{KINDS[kind].prefix}-{fresh}"
