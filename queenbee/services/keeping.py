"""Whether the tracker's file has what the ledger of issues says: what every read and write asks.

The ledger `issues` has a line for each change that `queen` made of a row. `settling` compares the
rows that it folds to with the file, whenever one of the two has changed; a note says of what they
were when they were last in step. Where `bd` or `br` owns the tracker, none of this applies.
`docs/format.md`, section "Issues"; ADR 0037.
"""

from __future__ import annotations

import os

from queenbee.store.files import stamp_of
from queenbee.store.whole_files import keep, recall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, Protocol

    from queenbee.store.engines.engine import Engine
    from queenbee.store.files import Stamp
    from queenbee.store.layout import Layout
    from queenbee.store.ledger.ledger import Ledger
    from queenbee.store.questions import Records

    Row = Mapping[str, object]
    Moment = tuple[Stamp, tuple[Stamp, Stamp]]
    RemovedRows = Callable[[Layout, Sequence[str]], Collection[str]]
    """Returns those of these issues whose row a commit removed."""

    class Kept(Protocol):
        """What this needs from the store."""

        layout: Layout
        engine: Engine
        asks_git: RemovedRows | None

        def state(self, kind: str) -> Records: ...
        def ledger(self, kind: str) -> Ledger: ...


KIND = "issues"


class Keeping:
    """The tracker's file and the ledger of one open store. Safe for threads."""

    def __init__(self, store: Kept) -> None:
        self.store = store
        self.path = store.layout.issues_path
        self._note_path = os.path.join(store.layout.state_dir, "issues.json")

    def moment(self) -> Moment:
        """Returns what changes whenever the file or the ledger does."""
        return stamp_of(self.path), self.store.ledger(KIND).stamps()

    def is_in_step(self, moment: Moment) -> bool:
        """Returns whether the file has what the ledger says."""
        if not any(stamp and stamp[1] for stamp in moment[1]):
            return True
        return self.noted().get("moment") == repr(moment) or self.is_owned()

    def has_all(self) -> bool:
        """Returns whether the ledger has the rows of other programs, too, or is to have none."""
        noted, moment = self.noted(), self.moment()
        is_noted = noted.get("moment") == repr(moment) and noted.get("all") is True
        return is_noted or not moment[0] or self.is_owned()

    def is_owned(self) -> bool:
        """Returns whether another program writes the tracker."""
        from queenbee.store.issues_file import owner_in  # noqa: PLC0415 - start-up

        return owner_in(self.store.layout.beads_dir) is not None

    def noted(self) -> dict[str, Any]:
        """Returns the note."""
        noted = recall(self._note_path)
        return noted if isinstance(noted, dict) else {}

    def removed(self) -> set[str]:
        """Returns the issues whose rows are known to have been removed on purpose."""
        return {each for each in self.noted().get("removed", ()) if isinstance(each, str)}

    def note(self, moment: Moment, removed: Collection[str], *, has_all: bool) -> None:
        """Notes that file and ledger are in step."""
        noted = {"moment": repr(moment), "removed": sorted(removed), "all": has_all}
        keep(self._note_path, noted)

    def note_asked(self, moment: Moment, removed: Collection[str]) -> None:
        """Notes what git said of the rows that this version of the file lacks."""
        asked = {"asked": repr(moment[0]), "removed": sorted(removed)}
        keep(self._note_path, {**self.noted(), **asked})
