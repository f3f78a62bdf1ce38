"""One turn at writing to a hive in a database: one transaction under the hive's advisory lock."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.errors import Busy, QueenError
from queenbee.store import creating
from queenbee.store.carriers.postgres import faults
from queenbee.store.carriers.postgres.agreed import refuse_unagreed
from queenbee.store.carriers.write import Write
from queenbee.store.layout import note_engine, noted_hive

if TYPE_CHECKING:
    from queenbee.store.carriers.carrier import Lines
    from queenbee.store.carriers.postgres.carried_memory import CarriedMemory
    from queenbee.store.layout import Layout


class CarriedWrite(Write):
    """A turn that the carrier gives, in place of the lock of this machine."""

    def __init__(self, layout: Layout, memory: CarriedMemory, holder: str) -> None:
        super().__init__(layout, memory, holder)
        self._carried = memory
        self._holder = holder
        self._process = os.getpid()
        self._births = set[tuple[object, ...]]()

    def end(self) -> None:
        if self._process == os.getpid():  # A forked child leaves it to its parent.
            self._carried.carrier.end()

    def _begin(self) -> None:
        """Begins the turn, with the note that the hive is in a database."""
        layout, hive = self._layout, self._carried.carrier.hive
        layout.refuse_if_moved()
        refuse_unagreed(layout, hive)
        try:
            if noted_hive(layout) != hive:
                self._carried.carrier.asked(lambda _: None)  # Refuses what only the files have.
                creating.make_state_dir(layout)
                note_engine(layout, hive)
            self._births = self._carried.begin(self._holder)
        except QueenError as error:
            faults.nothing_written(error)
            raise

    def _confirm(self, lines: Lines) -> None:
        if self._process != os.getpid():
            raise Busy(
                "this process was forked during a write, which is its parent's",
                hint="try again; nothing was written",
            )
        added = [kind for kind, each in lines.items() if each]
        for kind in added:
            self._carried.refresh(kind)
        if added and not self._births <= self._carried.births():
            raise faults.overtaken()  # What was read in this turn may be another database's.
