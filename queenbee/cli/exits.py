"""Exit statuses: the status of each class of refusal. Only this module decides that.

`docs/scripting.md` documents the table.
"""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee import errors

DONE = 0
NO = 1
USAGE = 2
NOTHING_LANDS = 3
NOT_FOUND = 4
CONFLICT = 5
BUSY = 6
UNREADABLE = 7
EXTERNAL = 8
GOES_ON = 9
BUG = 70
INTERRUPTED = 130
_BY_GIT = ("not_landed", "main_blocked")
"""The codes of landings that a git may have ended."""
_LEAST_BYTES = 2**16
"""With less room, git cannot write an index or a few objects."""


class UsageError(errors.InvalidInput):
    """A call that matches no command."""

    code = "usage"


class Interrupted(errors.QueenError):
    """A command that the user interrupted."""

    code = "interrupted"


_BY_CLASS: tuple[tuple[type[errors.QueenError], int], ...] = (
    (errors.InvalidInput, USAGE),
    (errors.NotFound, NOT_FOUND),
    (errors.NothingLands, NOTHING_LANDS),
    (errors.Conflict, CONFLICT),
    (errors.Busy, BUSY),
    (errors.Cancelled, BUSY),
    (errors.StoreError, UNREADABLE),
    (errors.ExternalFailure, EXTERNAL),
    (Interrupted, INTERRUPTED),
)


def exit_code(error: errors.QueenError) -> int:
    """Returns the exit status of a refusal."""
    return next((code for kind, code in _BY_CLASS if isinstance(error, kind)), BUG)


def on_a_full_disk(error: errors.QueenError) -> errors.QueenError:
    """Returns the refusal; of one that failed in a program such as git, which says why in words
    alone, whether it failed because a disk is full.
    """
    if isinstance(error, errors.ExternalFailure) or error.code in _BY_GIT:
        for folder in (os.curdir, os.environ.get("TMPDIR", os.curdir)):
            with suppress(OSError):
                disk = os.statvfs(folder)
                free = disk.f_bavail * disk.f_frsize
                if disk.f_blocks and free < _LEAST_BYTES:
                    where = os.path.realpath(folder)
                    said = f"the disk of {where} is full, {free // 1024} KiB are free"
                    hint = "make room there, then run it again"
                    return errors.Unwritable(f"{said}: {error.message}", hint=hint, path=where)
    return error
