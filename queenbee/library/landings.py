"""The landings of this worktree beside the one that is asked for: an earlier one, and the last."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from queenbee.core.text import printable
from queenbee.errors import InvalidInput
from queenbee.git import landing as landings
from queenbee.git.landing.requests import Request, refuse_fallen
from queenbee.services.waiting.landing_record import LandingRecord
from queenbee.store.git_files.worktrees import commit_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from queenbee.workflows.complete_hive import Hive

_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class LandingResult:
    """What became of the last landing of a worktree that went on by itself."""

    under_way: bool
    status: int | None
    """The exit status of its `queen land`; None while it is under way, or if it was killed."""
    head: object
    droid: object
    since: object
    output: str
    errors: str

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return asdict(self)


def request(issue_ids: Sequence[str], timeout_s: int | None, **said: Any) -> Request:
    """Returns what is asked of a landing of some issues."""
    wait = None if timeout_s is None else f"{timeout_s}s"
    first = issue_ids[0] if issue_ids else None
    return Request(first, wait=wait, also=issue_ids[1:], **said)


def record_of(hive: Hive) -> LandingRecord:
    """Returns the record of the last landing of the worktree of a hive."""
    return LandingRecord(str(hive.layout.git_dir))


def last_landing(hive: Hive) -> LandingResult:
    """Returns what the last landing of this worktree has printed, and how it ended. Raises
    `InvalidInput` if there was none.
    """
    record = record_of(hive)
    said = record.read()
    if not said:
        raise InvalidInput("nothing was landed from this worktree yet", hint="queen land")
    record.is_new(str(said.get("droid")))
    status, (out, err) = said.get("status"), record.printed()
    return LandingResult(
        record.is_under_way,
        status if isinstance(status, int) else None,
        said.get("head"),
        said.get("droid"),
        said.get("since"),
        out.decode(errors="replace"),
        err.decode(errors="replace"),
    )


def abort(hive: Hive, tell: Callable[[str], None]) -> None:
    """Takes back the landing of this worktree that is under way, or its unfinished merge. Raises
    `InvalidInput` if it has landed already.
    """
    record = record_of(hive)
    if not record.is_under_way:
        landings.abort(hive, tell=tell)
    elif landed := record.take_back():
        raise InvalidInput(f"it has landed already, as {landed[:10]}", hint="queen land --result")


def after_earlier(
    hive: Hive,
    issues: Sequence[str],
    *,
    timeout_s: float,
    tell: Callable[[str], None],
    look: Callable[[LandingRecord, str | None], None] = lambda record, head: None,
) -> None:
    """Waits for an earlier landing of this worktree: this one stands on it. Raises `NotLanded` if
    that did not land. `look` is called before each look at it, with the commit that is to land.
    """
    record, head = record_of(hive), commit_at(hive.layout.tree)
    until_s = time.monotonic() + timeout_s
    is_told = False
    while True:
        look(record, head)
        if not record.is_under_way or time.monotonic() >= until_s:
            break
        if not is_told:
            tell("an earlier landing of this worktree is under way; waiting for it")
            is_told = True
        time.sleep(_AGAIN_S)
    refuse_fallen(hive, record, issues, str(head))
    if is_told and record.is_new(hive.actor):
        tell(f"it has ended: {printable(record.last_line())}")
