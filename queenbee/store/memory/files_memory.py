"""The memory of a hive in files: it reads after the ledgers, and is written before them.

`docs/format.md`, "Memory"; ADR 0042.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from queenbee.errors import DurabilityUnknown, QueenError, Unwritable
from queenbee.store import safe_open
from queenbee.store.files import Appender, size_of, stamp_of
from queenbee.store.memory import sqlite
from queenbee.store.memory.folding import Folding
from queenbee.store.memory.intake import (
    Due,
    Intake,
    Tracked,
    is_behind,
    look_at_everything_again,
    note_recorded,
    recalled,
)
from queenbee.store.memory.memory import Memory, refusal
from queenbee.store.memory.old_journal import forget_old_journals

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from queenbee.store.layout import Layout
    from queenbee.store.memory.database import Database

_KEPT_FROM_BYTES = 64 * 1024
"""A shorter history is read again by each command that writes nothing: it leaves no file behind."""


class FilesMemory(Memory):
    """The memory of the ledgers of one hive. Writing needs the hive's lock."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout.memory_path)
        self._layout = layout
        self._tracked: dict[str, Tracked] = {}
        self._stamps: dict[str, object] = {}

    def tracked(self, kind: str) -> Tracked:
        """Returns the tracked files of a kind."""
        found = self._tracked.get(kind)
        if found is None:
            path = self._layout.ledger_path(kind)
            found = self._tracked[kind] = Tracked(path, self._layout.journal_path(kind))
        return found

    def close(self) -> None:
        self._stamps.clear()
        super().close()

    def refresh(self, kind: str) -> None:
        """Takes in what the tracked files of a kind have that is new. Raises `Unreadable`."""
        tracked = self.tracked(kind)
        stamp = tracked.stamp()
        database = self.database
        if database.is_behind():
            self.close()
        if not database.may_create and not os.path.lexists(database.path):
            self._keep_long(tracked.size_bytes())
        seen = stamp, self.asked(database.version)
        if self._stamps.get(kind) == seen:
            return
        self.asked(lambda: self._take_in(kind, tracked))
        self._stamps[kind] = seen

    def _take_in(self, kind: str, tracked: Tracked) -> None:
        if is_behind(self.database, kind, tracked):
            try:
                with self.database.turn():
                    Intake(self.database, kind, tracked, self.progress).take_in()
            finally:
                if self.progress is not None:
                    self.progress(1, 1)
            self.database.shorten_log()

    def _replace(self) -> None:
        kinds = [*self._stamps]
        self._stamps.clear()
        super()._replace()
        for kind in kinds:
            self.refresh(kind)

    def _restore(self, database: Database) -> None:
        if not (paths := database.damaged()):
            return
        from queenbee.store.memory.salvage import salvaged  # noqa: PLC0415 - start-up

        for path in paths:
            for kind, lines in salvaged(path).lines.items():
                folding = Folding(database, kind)
                folding.take(lines)
                folding.finish()

    def make_room(self, path: str) -> None:
        if not self.database.may_create and not os.path.lexists(self.database.path):
            self._keep_long(size_of(path))

    def _keep_long(self, size_bytes: int) -> None:
        """Lets the memory of a long history be kept, if it can be, though nothing was written here:
        also one that was begun in this process alone.
        """
        if size_bytes < _KEPT_FROM_BYTES:
            return
        from queenbee.store.creating import make_state_dir  # noqa: PLC0415 - start-up

        with suppress(QueenError):
            make_state_dir(self._layout)
            self.database.may_create = True
            self.close()

    def stamp(self, kind: str) -> object:
        return self.tracked(kind).stamp()

    def all_kinds(self) -> list[str]:
        # Also those that only the memory has: git may have removed the ledger.
        begin, end = "queen_", ".jsonl"
        names = safe_open.names_in(self._layout.beads_dir)
        found = {each for each in names if each.startswith(begin) and each.endswith(end)}
        tracked = {each.removeprefix(begin).removesuffix(end) for each in found}
        every = tracked.union(self.kinds())
        return sorted(each for each in every if each == each.lower())  # As tables, those are one.

    def unusable(self, kind: str) -> int:
        path = self.tracked(kind).path
        return self.asked(lambda: recalled(self.database, kind, path).unusable)

    def lacking(self, kind: str) -> list[bytes]:
        """Returns the recorded lines that the ledger lacks."""
        self.refresh(kind)

        def found() -> list[bytes]:
            with self.database.turn():
                return Intake(self.database, kind, self.tracked(kind)).lacking_at_all()

        return self.asked(found)

    def rebuild(self) -> None:
        """Folds every record anew, from the lines, and compares all tracked files with them."""
        super().rebuild()

        def look_again() -> None:
            with self.database.turn():
                look_at_everything_again(self.database)

        self.asked(look_again)
        self._stamps.clear()
        for kind in self.kinds():
            self.refresh(kind)

    def differing(self, kind: str, known: Collection[int]) -> int:
        self.refresh(kind)
        return self.asked(lambda: Intake(self.database, kind, self.tracked(kind)).differing(known))

    # Writing.

    def write(self, lines: Mapping[str, Sequence[bytes]]) -> None:
        """Records lines of several kinds, all or none, and brings their ledgers up to date.

        Needs the hive's lock. `sync` waits for the disk, once the lock is released. Raises
        `Unwritable`.
        """
        files: dict[str, Appender] = {}
        try:
            # 1. A ledger that cannot be written refuses the write as a whole.
            for kind in lines:
                files[kind] = _opened(self.tracked(kind).path)
            self._record(lines, files)
        except (sqlite.Error, OSError) as error:
            raise refusal(self.database.path, error) from error
        finally:
            for file in files.values():
                file.close()

    def _record(self, lines: Mapping[str, Sequence[bytes]], files: Mapping[str, Appender]) -> None:
        database = self.database
        database.may_create = True
        if database.is_behind() or not database.is_durable:
            self.close()
        self.asked(database.keep_log)
        if not database.is_durable:
            raise Unwritable(
                f"{database.path} cannot be written; nothing was recorded", path=database.path
            )
        # 2. The memory first, all kinds at once: what it has is recorded.
        due = self.changed(lambda: self._remember(lines, files))
        # 3. The ledgers. What a kill leaves out, the next write appends.
        try:
            for kind, file in files.items():
                _append(file, due[kind])
        except BaseException:
            self._take_back(due)
            for file in files.values():
                file.take_back()
            raise
        # What cannot be noted, the next write sees in the ledger: these lines count.
        late = [kind for kind, file in files.items() if file.stamp() != due[kind].stamp]
        if late:
            with suppress(sqlite.Error), database.turn():
                for kind in late:
                    note_recorded(database, kind, files[kind], due[kind].numbers.stop - 1)
        self._forget_old_journals(lines)

    def _remember(
        self, lines: Mapping[str, Sequence[bytes]], files: Mapping[str, Appender]
    ) -> dict[str, Due]:
        """Records lines in the memory; returns what each ledger is to get."""
        due: dict[str, Due] = {}
        now_ns = time.time_ns()
        with self.database.turn():
            for kind, new in lines.items():
                intake = Intake(self.database, kind, self.tracked(kind), self.progress)
                if not intake.is_in_step(files[kind]):
                    intake.take_in(for_good=True)
                due[kind] = intake.record(new, files[kind], now_ns)
        return due

    def _forget_old_journals(self, kinds: Iterable[str]) -> None:
        old = [path for kind in kinds if stamp_of(path := self.tracked(kind).old_journal)]
        with suppress(OSError):  # Then they stay until the next write.
            if old:
                self.database.sync()
                forget_old_journals(old)

    def _take_back(self, due: Mapping[str, Due]) -> None:
        with self.database.turn():
            for kind, each in due.items():
                folding = Folding(self.database, kind)
                folding.forget(each.numbers)
                folding.finish()

    def sync(self) -> None:
        """Returns when what was written is on disk. Raises `DurabilityUnknown`."""
        try:
            self.database.sync()
        except OSError as error:
            raise DurabilityUnknown(
                f"{self.database.path} was written, but the disk did not confirm it: "
                f"{error.strerror}",
                hint="check the disk, then read the record back before you rely on it",
                path=self.database.path,
            ) from error


def _append(file: Appender, due: Due) -> None:
    """Appends to a ledger what it is to get. It is then as it was noted beforehand, unless somebody
    else changed it meanwhile, or only its owner can give it a time.
    """
    if due.data:
        file.append(due.data)
        if due.stamp:
            file.date(due.stamp[2])


def _opened(path: str) -> Appender:
    """Opens a ledger, in a folder that a checkout may remove at this very moment."""
    try:
        return Appender(path)
    except Unwritable as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        try:
            safe_open.make_folder(os.path.dirname(path))
        except OSError:
            raise error from error.__cause__
        return Appender(path)
