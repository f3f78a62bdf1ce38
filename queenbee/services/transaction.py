"""One turn at writing: take the lock, read, check, append, let go, wait for the disk."""

from __future__ import annotations

import os

from queenbee.core.timestamps import format_ms
from queenbee.errors import Busy, NotFound, Unwritable
from queenbee.services.secrets import refuse_secrets
from queenbee.store import issues_file, setup
from queenbee.store.files import size_of
from queenbee.store.ledger import codec
from queenbee.store.lock import KernelLock, hive_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from queenbee.core.fold import Fields
    from queenbee.services.hive import Hive
    from queenbee.store.layout import Layout
    from queenbee.store.ledger.ledger import Receipt


class Transaction:
    """One turn at writing: the lock is held, the state is fresh, appends are all or nothing."""

    def __init__(self, hive: Hive, mutex: threading.Lock) -> None:
        self._hive = hive
        self._mutex = mutex
        self._lines: dict[str, list[bytes]] = {}
        self._rows: list[bytes] = []
        self._lock: KernelLock | None = None
        self.now_ms = 0
        """The instant of this turn, in ms since 1970, read once the lock is held."""

    @property
    def now(self) -> str:
        """The instant of this turn, as records hold it."""
        return format_ms(self.now_ms)

    def not_before(self, instants_ms: Iterable[int]) -> None:
        """Moves this turn behind what it follows, where the clock was set back in between.

        A grant that seemed older than the end of the one before it would lose to it.
        """
        self.now_ms = max([self.now_ms, *instants_ms])

    def behind(self, instants_ms: Iterable[int]) -> None:
        """Moves this turn behind what a clock that is ahead of ours wrote."""
        self.not_before(instant + 1 for instant in instants_ms if instant > self.now_ms)

    def append(self, kind: str, fields: Mapping[str, object]) -> Fields:
        """Adds a line, to be written at the end of the block, and returns its fields."""
        line = {name: value for name, value in fields.items() if value is not None}
        self._lines.setdefault(kind, []).append(codec.encode(line))
        return line

    def append_issue(self, row: Mapping[str, object]) -> None:
        """Adds a row to the tracker's file, to be written at the end of the block.

        It takes the place of the row with its id; no other row is touched.
        """
        self._rows.append(codec.encode(row))

    def mint(self, kind: str) -> str:
        """Returns an id for a record that is to be created in this turn."""
        return self._hive.mint(kind)

    def touch(self, kind: str) -> None:
        """Lets a ledger and its journal catch up with each other, though nothing is added."""
        self._lines.setdefault(kind, [])

    def create(
        self, kind: str, fields: Mapping[str, object], *, identifier: str | None = None
    ) -> Fields:
        """Adds a new record at revision 1 with an id and `created_at`."""
        self._refuse_secrets(fields)
        begun = {"id": identifier or self.mint(kind), "created_at": self.now}
        return self.append(kind, {**begun, **fields, "rev": 1})

    def update(self, kind: str, identifier: str, changes: Mapping[str, object]) -> Fields:
        """Adds the next revision of a record: the whole of it, unknown fields included."""
        fields = self._hive.state(kind).exact(identifier)
        if fields is None:
            raise NotFound(f"no record has the id {identifier!r}")
        self._refuse_secrets(changes)
        rev = fields["rev"]
        assert isinstance(rev, int)
        return self.append(kind, {**fields, **changes, "rev": rev + 1})

    def _refuse_secrets(self, fields: Mapping[str, object]) -> None:
        if not self._hive.allow_secrets:
            refuse_secrets(fields)

    def __enter__(self) -> Transaction:
        places = self._hive.layout
        timeout_s = places.settings.lock_timeout_s
        if not self._mutex.acquire(timeout=timeout_s):
            raise Busy(
                f"another thread of this process is writing for longer than {timeout_s:g} s",
                hint="try again; nothing was written (a transaction inside another one never ends)",
            )
        try:
            setup.make_beads_dir(places)
            setup.make_state_dir(places)
            self._lock = hive_lock(
                places.lock_path,
                holder=self._hive.actor_or_none or "somebody",
                timeout_s=timeout_s,
            )
            self._lock.__enter__()
        except BaseException as error:
            self._mutex.release()
            add_hint(error, places)
            raise
        self.now_ms = self._hive.now_ms()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._lock is not None
        receipts: list[Receipt | issues_file.Added] = []
        try:
            if error is None:
                self._write(receipts)
        finally:
            self._lock.__exit__(kind, error, trace)
            self._mutex.release()
        # Behind the lock: waiting for the disk must not make others wait for their turn.
        try:
            if self._hive.layout.settings.durability == "synced":
                for receipt in receipts:
                    receipt.sync()
        finally:
            for receipt in receipts:
                receipt.close()
        if error is None and self._lines:
            self._rotate_what_is_due()

    def _rotate_what_is_due(self) -> None:
        limit = self._hive.layout.settings.rotate_at_bytes
        path = self._hive.layout.ledger_path
        large = [kind for kind in self._lines if limit and size_of(path(kind)) >= limit]
        if large:
            from queenbee.services.care.rotation import rotate_what_is_due

            rotate_what_is_due(self._hive, large)

    def _write(self, receipts: list[Receipt | issues_file.Added]) -> None:
        assert self._lock is not None
        try:
            self._lock.confirm()
            # The issues first: killed behind them, an assignment still stands and can be ended
            # again; the other way round, an issue would be open that nobody has any more.
            if self._rows:
                path = self._hive.layout.issues_path
                receipts.append(issues_file.append_rows(path, self._rows))
            for kind, lines in self._lines.items():
                receipts.append(self._hive.state(kind).append(lines))
        except BaseException as error:
            # The lock is still ours: what stands in the first ledgers can be taken back.
            for receipt in receipts:
                receipt.take_back()
                receipt.close()
            receipts.clear()
            add_hint(error, self._hive.layout)
            raise


def add_hint(error: BaseException, places: Layout) -> None:
    """Says which folder to grant, where the store itself could only say what failed."""
    if isinstance(error, Unwritable) and error.hint is None:
        path = error.details.get("path")
        folder = os.path.dirname(path) if isinstance(path, str) else places.beads_dir
        error.hint = setup.what_to_grant(places, folder)
