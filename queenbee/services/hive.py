"""The hive: one open store, the services over it, and the one way to write to it.

with Hive.open(droid="ui-engineer") as hive:
    hive.assignments.claim("qb-42")
    hive.reservations.reserve(["src/components/Button/**"], issue_id="qb-42")
"""

from __future__ import annotations

import os
import threading
import time
from functools import cached_property

from queenbee.core.ids import RANDOM_BYTES, following, ulid
from queenbee.core.timestamps import format_ms
from queenbee.errors import NotFound
from queenbee.store import identity, layout
from queenbee.store.ledger.ledger import Ledger
from queenbee.store.opening import open_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

    from queenbee.core.fold import Fields
    from queenbee.services.assignments import Assignments
    from queenbee.services.documents import Documents
    from queenbee.services.droids import Droids
    from queenbee.services.history import Revision
    from queenbee.services.issues import Issues
    from queenbee.services.leases.reservations import Reservations
    from queenbee.services.messages import Messages
    from queenbee.services.transaction import Transaction
    from queenbee.store.layout import Layout
    from queenbee.store.ledger.rotation import Rotation
    from queenbee.store.records import Progress, Records

PREFIXES = {"messages": "qm", "assignments": "qa", "reservations": "qr", "verifications": "qv"}
KINDS = ("messages", "assignments", "reservations")
"""The kinds that every hive has; it gets the others when they are first written."""


class Hive:
    """An open hive. Safe for threads; every read sees what others have written by then."""

    def __init__(
        self,
        places: Layout,
        *,
        actor: str | None = None,
        cwd: str | None = None,
        clock: Callable[[], int] | None = None,
        allow_secrets: bool = False,
    ) -> None:
        self.layout = places
        self.allow_secrets = allow_secrets
        """Whether texts that look like credentials may be written."""
        self.cwd = os.path.realpath(cwd or places.tree)
        """The directory that patterns and paths given to the services are relative to."""
        self.progress: Progress | None = None
        """Told how far the building of an index has come."""
        self._actor = actor
        self._clock = clock or (lambda: time.time_ns() // 1_000_000)
        self._states: dict[str, Records] = {}
        self._writing = threading.Lock()
        self._minting = threading.Lock()
        self._last_id = (-1, "")

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

        `droid` is who acts; without it, the environment or what this worktree remembers.
        `clock` returns milliseconds since 1970. Raises `NoHive` where there is none.
        """
        env = os.environ if env is None else env
        cwd = os.fspath(start) if start is not None else layout.working_directory()
        given = os.fspath(beads_dir) if beads_dir is not None else None
        places = layout.discover(cwd, env, beads_dir=given)
        found = identity.find_actor(places, env, droid)
        return cls(
            places,
            actor=found[0] if found else None,
            cwd=cwd,
            clock=clock,
            allow_secrets=env.get("QUEEN_ALLOW_SECRET") == "1",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forgets what was read, and closes the indexes that answered."""
        states, self._states = self._states, {}
        for state in states.values():
            state.close()

    @cached_property
    def messages(self) -> Messages:
        """Messages between droids."""
        from queenbee.services.messages import Messages

        return Messages(self)

    @cached_property
    def assignments(self) -> Assignments:
        """Who works on which issue."""
        from queenbee.services.assignments import Assignments

        return Assignments(self)

    @cached_property
    def reservations(self) -> Reservations:
        """Who edits where."""
        from queenbee.services.leases.reservations import Reservations

        return Reservations(self)

    @cached_property
    def issues(self) -> Issues:
        """The tracker's issues, read only."""
        from queenbee.services.issues import Issues

        return Issues(self)

    @cached_property
    def documents(self) -> Documents:
        """What documents beside the tracker say about issues: here nothing (ADR 0008)."""
        from queenbee.services.documents import Documents

        return Documents()

    @cached_property
    def droids(self) -> Droids:
        """The names that this hive knows."""
        from queenbee.services.droids import Droids

        return Droids(self)

    @property
    def actor(self) -> str:
        """Who is acting. Raises `NoActor` where nobody said, `UnknownDroid` for a stranger."""
        if self._actor is None:
            raise identity.nobody()
        self.droids.check(self._actor)
        return self._actor

    @property
    def actor_or_none(self) -> str | None:
        """Who is acting, or None where nobody said and nobody needs to know."""
        return self._actor

    def now_ms(self) -> int:
        """Returns the present, in ms since 1970."""
        return self._clock()

    def state(self, kind: str) -> Records:
        """Returns the folded state of one kind of record, as of now."""
        state = self._states.get(kind)
        if state is None:
            state = self._states.setdefault(kind, self._open_records(kind))
        state.refresh()
        return state

    def ledger(self, kind: str) -> Ledger:
        """Returns the files of one kind of record, unread."""
        return Ledger(self.layout.ledger_path(kind), self.layout.journal_path(kind))

    def _open_records(self, kind: str) -> Records:
        path = self.layout.index_path(kind)
        return open_records(kind, self.ledger(kind), path, progress=self.progress)

    def rebuild_indexes(self) -> None:
        """Throws every index away and builds anew those that their ledgers' sizes call for."""
        from queenbee.store.index.tables import remove

        self.close()
        for kind in self.kinds():
            remove(self.layout.index_path(kind))
            self._open_records(kind).close()

    def rotate(self, *, older_than_s: int | None = None) -> dict[str, Rotation]:
        """Moves what has been closed for so long (default: the setting `archive_after`) from the
        ledgers to the archive, and returns by kind what was done. Raises `Busy`, `Unwritable`.
        """
        from queenbee.services.care.rotation import rotate

        return {kind: rotate(self, kind, older_than_s=older_than_s) for kind in self.kinds()}

    def transaction(self) -> Transaction:
        """Returns a context manager in which nobody else writes: read, check, then append.

        What is appended inside is recorded as a whole when the block ends without an error, and
        on disk when the `with` statement returns. Raises `Busy` and `Unwritable`.
        """
        from queenbee.services.transaction import Transaction

        return Transaction(self, self._writing)

    def find(self, identifier: str) -> tuple[str, Fields]:
        """Returns the kind and the folded fields of any record. Raises `NotFound`."""
        prefix = identifier.partition("-")[0]
        likely = [kind for kind in PREFIXES if PREFIXES[kind] == prefix]
        for kind in dict.fromkeys([*likely, *PREFIXES]):
            fields = self.state(kind).get(identifier)
            if fields is not None:
                return kind, fields
        raise NotFound(
            f"no record has the id {identifier!r}",
            hint="ids begin with qm-, qa-, qr- or qv-; see: queen msg inbox, queen assignments, "
            "queen reserved, queen show",
        )

    def history(self, identifier: str) -> list[Revision]:
        """Returns every line of a record in order. Raises `NotFound`."""
        from queenbee.services.history import revisions

        kind, _ = self.find(identifier)
        return revisions(kind, self.state(kind).history(identifier))

    def notes(self) -> list[str]:
        """Returns what the actor should know besides the answer, each thing once."""
        from queenbee.services.notices import notices

        told = notices(self)
        return told + [
            f"{state.unusable} of the lines in {state.ledger.path} cannot be used; "
            "they are left alone; see: queen doctor"
            for state in self._states.values()
            if state.unusable
        ]

    def kinds(self) -> list[str]:
        """Returns the kinds of record that this hive has a ledger for, ours first."""
        try:
            files = os.listdir(self.layout.beads_dir)
        except OSError:
            files = []
        named = [
            name.removeprefix("queen_").removesuffix(".jsonl")
            for name in sorted(files)
            if name.startswith("queen_") and name.endswith(".jsonl")
        ]
        return list(dict.fromkeys([*KINDS, *named]))

    def migrate(self, kind: str, name: str) -> bool:
        """Records that a ledger's schema was upgraded; returns False if that stands there.

        `spec` section "Migration": new fields are optional and old lines stay valid, so nothing
        is rewritten.
        """
        with self.transaction() as tx:
            if any(each.get("_migration") == name for each in self.state(kind).migrations):
                return False
            tx.append(kind, {"_migration": name, "at": format_ms(self.now_ms())})
        return True

    def mint(self, kind: str) -> str:
        """Returns a new id; ids minted by one hive sort in the order of their minting."""
        with self._minting:
            now_ms = self.now_ms()
            last_ms, last = self._last_id
            fresh = following(last) if now_ms == last_ms else ulid(now_ms, os.urandom(RANDOM_BYTES))
            self._last_id = (now_ms, fresh)
        return f"{PREFIXES[kind]}-{fresh}"
