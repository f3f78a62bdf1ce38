"""Exit statuses: the status of each class of refusal. Only this module decides that.

`docs/scripting.md` documents the table.
"""

from __future__ import annotations

from queenbee import errors

DONE = 0
NO = 1
USAGE = 2
NOT_FOUND = 4
CONFLICT = 5
BUSY = 6
UNREADABLE = 7
EXTERNAL = 8
BUG = 70
INTERRUPTED = 130


class UsageError(errors.InvalidInput):
    """A call that matches no command."""

    code = "usage"


class Interrupted(errors.QueenError):
    """A command that the user interrupted."""

    code = "interrupted"


_BY_CLASS: tuple[tuple[type[errors.QueenError], int], ...] = (
    (errors.InvalidInput, USAGE),
    (errors.NotFound, NOT_FOUND),
    (errors.Conflict, CONFLICT),
    (errors.Busy, BUSY),
    (errors.StoreError, UNREADABLE),
    (errors.ExternalFailure, EXTERNAL),
    (Interrupted, INTERRUPTED),
)


def exit_code(error: errors.QueenError) -> int:
    """Returns the exit status of a refusal."""
    return next((code for kind, code in _BY_CLASS if isinstance(error, kind)), BUG)
