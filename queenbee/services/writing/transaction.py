"""One turn at writing: wait for it, read, check, append, end it, wait for the disk."""

from __future__ import annotations

from queenbee.core.fold import MAX_REV, Line, following
from queenbee.core.kinds import ISSUES, kind_of
from queenbee.core.timestamps import format_ms
from queenbee.errors import Busy, Conflict, NotFound
from queenbee.store import codec, giving_up

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Literal, Protocol

    from queenbee.core.fold import Fields
    from queenbee.core.row_edits import Edit
    from queenbee.store.carriers.engine import Engine
    from queenbee.store.carriers.write import Write
    from queenbee.store.layout import Layout
    from queenbee.store.memory.recorded import Recorded

    Keeps = Literal["edits", "changed", "all"]
    """What a write takes into the ledger of issues: the edits alone, or also what other programs
    changed in its rows, or also the rows that only the file has."""

    class Written(Protocol):
        """What a transaction needs from the store that it writes to."""

        layout: Layout
        long_lines: list[str]
        engine: Engine

        @property
        def actor_or_none(self) -> str | None: ...
        def now_ms(self) -> int: ...
        def present_ms(self) -> int: ...
        def note_presence(self) -> None: ...
        def state(self, kind: str) -> Recorded: ...
        def mint(self, kind: str) -> str: ...
        def look(self, fields: Mapping[str, object]) -> None: ...
        def issue_lines(self, edits: Sequence[Edit], keeps: Keeps) -> list[bytes]: ...
        def granted(self, lines: Sequence[bytes]) -> None: ...
        def committed(self, kinds: Sequence[str]) -> None: ...
        def wrote(self) -> None: ...
        def note_step(self, tx: Transaction) -> None: ...


_TRIES = 1_000
"""Half of all lines sort behind another that is as new; somebody may have sought one for long."""


class Transaction:
    """One write: nobody else writes, the state is fresh, appends are all or nothing."""

    def __init__(self, store: Written, mutex: threading.Lock) -> None:
        self._store = store
        self._mutex = mutex
        self.lines: dict[str, list[bytes]] = {}
        """By kind, what it writes at the end of the block; nothing if it is not entered."""
        self.edits: list[Edit] = []
        """The changes of issues' rows that it writes."""
        self._keeps: Keeps = "edits"
        self._long: list[str] = []
        self._in_vain = set[str]()
        self._write: Write | None = None
        self.now_ms: int = 0
        """The instant of this write, in ms since 1970, read once nobody else can write."""

    @property
    def now(self) -> str:
        """The instant of this write, as records hold it."""
        return format_ms(self.now_ms)

    def present_ms(self) -> int:
        """Returns the present as far as this machine can tell, in case its clock is behind."""
        return self._store.present_ms()

    def append(self, kind: str, fields: Mapping[str, object]) -> Fields:
        """Adds a line, to be written at the end of the block, and returns its fields."""
        line = {name: value for name, value in fields.items() if value is not None}
        raw = codec.encode(line)
        self.lines.setdefault(kind, []).append(raw)
        if len(raw) > codec.SCANNED_LINE_BYTES and kind_of(kind).everywhere:
            self._long.append(str(line.get("id")))
        return line

    def put_issue(self, row: Mapping[str, object], was: Mapping[str, object] | None = None) -> None:
        """Adds a change of an issue's row, or a new row, to be written at the end of the block.
        `was` is the row that the change was made on.

        Whoever makes the row from somebody's text looks at that before: `Store.look`.
        """
        from queenbee.core.row_edits import Edit  # noqa: PLC0415 - start-up

        edit = Edit(row, was)
        # What others made too large for the file can be changed and deleted in the ledger.
        codec.encode(row if was is None or codec.fits(was) else edit.changes)
        self.edits.append(edit)

    def keep_issues(self, which: Keeps) -> None:
        """Takes into the ledger what other programs changed in the tracker's file since; with
        `all`, also the rows that only the file has.
        """
        self._keeps = which

    def mint(self, kind: str) -> str:
        """Returns an id for a record to create in this write."""
        return self._store.mint(kind)

    def touch(self, kind: str) -> None:
        """Brings the memory and a ledger up to date with each other without adding a line."""
        self.lines.setdefault(kind, [])

    def create(
        self, kind: str, fields: Mapping[str, object], *, identifier: str | None = None
    ) -> Fields:
        """Adds a new record at revision 1 with an id and `created_at`."""
        self._store.look(fields)
        begun = {"id": identifier or self.mint(kind), "created_at": self.now}
        return self.append(kind, {**begun, **fields, "rev": 1})

    def update(self, kind: str, identifier: str, changes: Mapping[str, object]) -> Fields:
        """Adds the next revision of a record: the whole record, unknown fields included."""
        fields = self._store.state(kind).exact(identifier)
        if fields is None:
            raise NotFound(f"no record has the id {identifier!r}")
        self._store.look(changes)
        rev = fields["rev"]
        assert isinstance(rev, int)
        line = {**fields, **changes, "rev": following(rev)}
        return self.append(kind, line if line["rev"] != rev else self._last(kind, line))

    def _last(self, kind: str, fields: Fields) -> Fields:
        """Returns a line of the last revision that counts after those of its record that have it
        too, of which one may be dated in the future.
        """
        last = self._store.state(kind).last_key(str(fields["id"]))
        said = {name: value for name, value in fields.items() if value is not None}
        again: Fields = {"again_at": format_ms(last[2])} if last[2] >= 0 else {}
        for number in range(_TRIES):
            tried = {**said, **again, "again": number} if number else said
            if Line(codec.encode(tried), tried, MAX_REV).key > last:
                return tried
        self._in_vain.add(str(fields["id"]))
        return said

    def refuse_in_vain(self, identifiers: Iterable[str]) -> None:
        """Raises `Conflict` if a change of one of these records would not count."""
        if found := sorted(self._in_vain.intersection(identifiers)):
            raise Conflict(
                f"{found[0]} has a line of the last revision, which counts whatever is written",
                hint="remove that line as docs/security.md says (Purging a secret)",
            )

    def __enter__(self) -> Transaction:
        self._store.look({})  # What looks for secrets is loaded before others have to wait for it.
        timeout_s = self._store.layout.settings.lock_timeout_s
        if not self._mutex.acquire(timeout=timeout_s):
            raise Busy(
                f"timed out after {timeout_s:g} s: another thread of this process is writing",
                hint="try again; nothing was written (do not nest transactions)",
            )
        try:
            self._write = self._store.engine.writing(self._store.actor_or_none or "somebody")
            self._write.begin()
        except BaseException:
            self._mutex.release()
            raise
        self.now_ms = self._store.now_ms()
        return self

    def _record(self, write: Write) -> None:
        giving_up.refuse()
        rows = self._store.issue_lines(self.edits, self._keeps)
        if rows:
            self.lines.setdefault(ISSUES, []).extend(rows)
        write.record(self.lines)

    def __exit__(self, kind: object, *error: object) -> None:
        assert self._write is not None
        try:
            if kind is None:
                self._record(self._write)
        finally:
            self._write.end()
            self._mutex.release()
        # After the write: waiting for the disk must not make others wait for theirs.
        self._write.settle()
        if kind is None and self.lines:
            self._store.note_presence()
            self._store.long_lines += self._long
            self._store.committed(list(self.lines))
            if any(self.lines.values()):
                self._store.wrote()
                self._store.note_step(self)
            if self.lines.get("assignments"):
                self._store.granted(self.lines["assignments"])
