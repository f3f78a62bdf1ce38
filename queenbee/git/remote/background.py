"""What happens without being asked for: exchanges behind answers, and looks before reading.

Neither makes a command fail. A remote that cannot be reached is left alone for a while, and the
next answers say so once. ADR 0029.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.errors import Busy, QueenError, Unreachable
from queenbee.git.remote.syncing import sync, take_in
from queenbee.services import behind
from queenbee.store import safe_open
from queenbee.store.lock import KernelLock

if TYPE_CHECKING:
    from queenbee.services.hive import Services

_BRIEF_S = 4.0
"""How long a command that reads waits for the remote at most."""
_TURN_S = 0.5
"""Longer than anybody looks whether the lock is held; who serves holds it for longer."""
_NICE = 5
"""The command whose answer this is behind comes first."""


def serve(hive: Services) -> int:
    """Exchanges until no request is left; returns how often. Returns at once if another process
    serves the requests of this machine.
    """
    with suppress(OSError):
        os.nice(_NICE)
    rounds = 0
    # Who asked while we held the lock started nobody: so look once more after it is released.
    while behind.is_asked(hive.layout):
        try:
            with lock(hive, timeout_s=_TURN_S):
                while behind.is_asked(hive.layout):
                    if not _exchange(hive):
                        return rounds
                    rounds += 1
        except Busy:
            break
    return rounds


def lock(hive: Services, *, timeout_s: float) -> KernelLock:
    """Returns the lock of the process that serves the requests of this machine."""
    safe_open.make_folder(hive.layout.remote_dir)
    path = behind.lock_path(hive.layout)
    return KernelLock(path, holder=hive.actor_or_none or "somebody", timeout_s=timeout_s)


def _exchange(hive: Services) -> bool:
    """Exchanges once; returns whether that went well."""
    try:
        sync(hive)
    except QueenError as error:
        behind.note_away(hive.layout, error.message)
        return False
    return True


def freshen(hive: Services) -> None:
    """Takes in what others pushed, if what is here is older than the settings allow."""
    age_s = hive.layout.settings.sync_max_age_s
    try:
        take_in(hive, older_than_s=age_s, most_s=_BRIEF_S)
    except QueenError as error:
        if isinstance(error, Busy) and not isinstance(error, Unreachable):
            return  # Another process exchanges everything now.
        behind.note_away(hive.layout, error.message)
        with suppress(OSError, QueenError):
            # After a while, a process that has more time catches up.
            behind.request(hive.layout)
