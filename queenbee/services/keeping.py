"""Whether the tracker's file has what the ledger of issues says: what every read and write asks.

The ledger `issues` has a line for each change that `queen` made of a row. `settling` compares the
rows that it folds to with the file, whenever one of the two has changed; a note says of what they
were when they were last in step. Where `bd` or `br` owns the tracker, none of this applies.
`docs/format.md`, section "Issues"; ADR 0037.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.store.files import stamp_of
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, Protocol

    from queenbee.core.row_edits import Compared
    from queenbee.store.engines.engine import Engine
    from queenbee.store.files import Stamp
    from queenbee.store.layout import Layout
    from queenbee.store.memory.recorded import Recorded

    Row = Mapping[str, object]
    Moment = tuple[Stamp, object]
    Noted = Mapping[str, Any]
    Removed = Mapping[str, Sequence[str]]
    """The versions of rows that commits removed, by id: when each had changed, as the row says."""
    RemovedRows = Callable[[Layout, int], tuple[Removed, bool]]
    """Returns the rows that commits since an instant removed, and whether that is all."""

    class Kept(Protocol):
        """What this needs from the store."""

        layout: Layout
        engine: Engine
        asks_git: RemovedRows | None

        @property
        def is_writing(self) -> bool: ...
        def state(self, kind: str) -> Recorded: ...
        def stamp(self, kind: str) -> object: ...


KIND = "issues"


class Answer:
    """What git said at one commit of the rows that commits removed since an instant."""

    def __init__(self, head: str, since_ms: int, removed: Removed, *, is_whole: bool) -> None:
        self.head = head
        self.since_ms = since_ms
        self.removed = removed
        self.is_whole = is_whole
        """Whether git has told of all of them: the history is not cut off, and not too long."""

    @classmethod
    def recalled(cls, path: str) -> Answer | None:
        """Returns the answer that `keep` kept, or None."""
        kept = recall(path)
        try:
            return cls(kept["head"], int(kept["since_ms"]), {**kept["removed"]},
                       is_whole=kept["is_whole"] is True)  # fmt: skip
        except (LookupError, TypeError, ValueError):
            return None


class Keeping:
    """The tracker's file and the ledger of one open store. Safe for threads."""

    def __init__(self, store: Kept) -> None:
        self.store = store
        self.path = store.layout.issues_path
        self._note_path = os.path.join(store.layout.state_dir, "issues.json")
        self._answer_path = os.path.join(store.layout.state_dir, "removed-rows.json")
        self.compared: tuple[Moment, Compared] | None = None
        """What the file and the ledger lacked of each other when they were compared last."""
        self._answer: Answer | None = None
        self._to_ask_ms: int | None = None
        """Since when git is to be asked once nobody waits for the lock any more."""
        self.head_of_write = ""
        """The commit by which the open write goes, whatever becomes HEAD meanwhile; or empty."""

    def moment(self) -> Moment:
        """Returns what changes whenever the file or the ledger does."""
        return stamp_of(self.path), self.store.stamp(KIND)

    def is_in_step(self, moment: Moment, noted: Noted | None = None) -> bool:
        """Returns whether the file has what the ledger says."""
        if not self.store.engine.has_lines(KIND):
            return True
        noted = self.noted() if noted is None else noted
        if noted.get("moment") != repr(moment):
            return self.is_owned()
        away = noted.get("removed")
        if not away or noted.get("head") == self._head():
            return True
        # Another commit: whether the rows that are left out were removed is asked again.
        answer = self.answer(noted.get("since_ms", 0))
        if answer is not None and answer.is_whole and not answer.removed.keys() >= {*away}:
            return False
        if answer is not None:
            keep(self._note_path, {**noted, "head": answer.head})
        return True

    def has_all(self, moment: Moment, noted: Noted) -> bool:
        """Returns whether the ledger has the rows of other programs, too, or is to have none."""
        is_noted = noted.get("moment") == repr(moment) and noted.get("all") is True
        return is_noted or not moment[0] or self.is_owned()

    def is_owned(self) -> bool:
        """Returns whether another program writes the tracker."""
        from queenbee.store.issues_file import owner_in  # noqa: PLC0415 - start-up

        return owner_in(self.store.layout.beads_dir) is not None

    def noted(self) -> Noted:
        """Returns the note."""
        noted = recall(self._note_path)
        return noted if isinstance(noted, dict) else {}

    def note(
        self, moment: Moment, removed: Collection[str], since_ms: int, *, has_all: bool
    ) -> None:
        """Notes that file and ledger are in step, but for the rows that commits removed."""
        self.compared = None
        noted: dict[str, object] = {"moment": repr(moment), "all": has_all}
        if removed:
            noted |= {"removed": sorted(removed), "since_ms": since_ms, "head": self._head()}
        keep(self._note_path, noted)

    def answer(self, since_ms: int) -> Answer | None:
        """Returns what git says of the rows that commits since then removed: once for each commit.
        None if it cannot be asked now: under the lock, all others would wait for it.
        """
        head, known = self._head(), self._answer or Answer.recalled(self._answer_path)
        if known is not None and known.head == head and known.since_ms <= since_ms:
            return known
        if self.store.is_writing and self.store.asks_git is not None:
            self._to_ask_ms = min(since_ms, self._to_ask_ms or since_ms)
        return None if self.store.is_writing else self._asked(head, since_ms)

    def begin_write(self) -> bool:
        """Lets a write go by the commit that is HEAD now; returns whether its rows are in step with
        the ledger, so that git need not be asked.
        """
        self.head_of_write = ""
        if self.store.asks_git is None or self.is_in_step(self.moment()):
            return True
        self.head_of_write = self._head()
        return False

    @property
    def has_to_ask(self) -> bool:
        """Whether there is something that git could not be asked during a write."""
        return self._to_ask_ms is not None

    def ask_now(self) -> bool:
        """Asks git what it could not be asked during a write; returns whether there was something.

        Call it without the lock.
        """
        since_ms, self._to_ask_ms, self.head_of_write = self._to_ask_ms, None, ""
        return since_ms is not None and self._asked(self._head(), since_ms) is not None

    def _asked(self, head: str, since_ms: int) -> Answer | None:
        if self.store.asks_git is None:
            return None
        removed, is_whole = self.store.asks_git(self.store.layout, since_ms)
        self._answer = Answer(head, since_ms, removed, is_whole=is_whole)
        keep(self._answer_path, vars(self._answer))
        return self._answer

    def _head(self) -> str:
        if self.head_of_write and self.store.is_writing:
            return self.head_of_write
        from queenbee.store.git_files.worktrees import commit_at  # noqa: PLC0415 - start-up

        return commit_at(self.store.layout.root)
