"""The complete hive: the services, and what beads and gates say about issues. ADR 0008.

`queenbee.library.hive.Hive` adds to this class; the edit hook uses the services' own hive.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from functools import cached_property

from queenbee.errors import QueenError
from queenbee.services.hive import Services
from queenbee.store.tracker.issue_owner import owner_in

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queenbee.services.writing.transaction import Transaction
    from queenbee.store.tracker.owned_copy import Origin
    from queenbee.workflows.document_answers import HiveDocuments
    from queenbee.workflows.owning.owned_rows import OwnedRows


class Hive(Services):
    """An open hive whose beads count as issues and whose gates hold phases back. What is written
    through it can be taken back.
    """

    _owned: tuple[str, OwnedRows | None] | None = None
    _step: tuple[str, str] | None = None
    """The key and the name of the command that is under way."""

    @cached_property
    def documents(self) -> HiveDocuments:
        """The beads and gates of this hive."""
        from queenbee.workflows.document_answers import HiveDocuments  # noqa: PLC0415 - start-up

        return HiveDocuments(self)

    @property
    def owned(self) -> OwnedRows | None:
        """The issues in another program's database, if there is one here that is asked."""
        kind = owner_in(self.layout.beads_dir)
        if kind is None:
            return None
        if self._owned is None or self._owned[0] != kind:
            from queenbee.workflows.owning.owned_rows import OwnedRows  # noqa: PLC0415 - start-up

            self._owned = kind, OwnedRows.of(self)
        return self._owned[1]

    def ask_owner(self) -> None:
        """Asks the program with the issues for its rows, if they have changed."""
        if (owned := self.owned) is not None:
            owned.refresh()

    def check_rows(self) -> None:
        """Raises `ExternalFailure` if the program with the issues cannot be asked."""
        if (owned := self.owned) is not None:
            owned.check()

    def origin(self) -> Origin | None:
        """Where the tracker's rows are from, if they are another program's. Raises
        `ExternalFailure` if nothing is known of them.
        """
        if (owned := self.owned) is None:
            return None
        owned.refresh()
        return owned.origin

    def granted(self, lines: Sequence[bytes]) -> None:
        """Tells the program with the issues of claims."""
        if (owned := self.owned) is not None:
            owned.granted(lines)

    @contextmanager
    def one_step(self, command: str) -> Iterator[None]:
        """Has `undo` take back as one what is written in this block, by a command of this name.
        Within another such block, that one counts.
        """
        before = self._step
        self._step = before or (os.urandom(8).hex(), command)
        try:
            yield
        finally:
            self._step = before

    def note_step(self, tx: Transaction) -> None:
        """Notes what can be taken back."""
        from queenbee.services.undo.step import note  # noqa: PLC0415 - start-up

        note(self.layout, self.actor_or_none, tx, *self._step or (os.urandom(8).hex(), ""))

    def wrote_elsewhere(self, program: str) -> None:
        from queenbee.services.undo.step import Step  # noqa: PLC0415 - start-up

        key, command = self._step or ("", "")
        step = Step(key, command, self.now_ms(), program=program)
        step.keep(self.layout, self.actor_or_none)

    def notes(self, *, mail: bool = False) -> list[str]:
        """Returns notices for the actor, each of them once; with `mail`, also who has written."""
        from queenbee.services.telling import notices  # noqa: PLC0415 - start-up

        told = notices.notes(self)
        with suppress(QueenError):
            stamp = notices.new_mail(self) if mail else None
            if stamp is not None:
                from queenbee.services.telling import news  # noqa: PLC0415 - start-up

                told += news.of_mail(self, stamp)
        return told
