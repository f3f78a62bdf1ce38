"""A shell command that is noted while it runs, so that after a kill the next call ends it, with all
of its process group.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from functools import partial

from queenbee.core.command_lines import CommandLine, shell_line
from queenbee.errors import QueenError
from queenbee.store import safe_open
from queenbee.store.droids.liveness import described, is_running, space_and_id, was_given

_NOTES_ITSELF = (
    'echo "${2%% *} $$ $({ read -r it </proc/$$/stat && set -- $it && echo "${22}"; } 2>/dev/null)"'
    ' >"$1"; shift 2; exec 2>&1'
)
"""The shell notes itself, as `described` would, before it runs anything. `$2` is our own process,
in the same place.
"""
GRACE_S = 2.0
"""How long a command that was left has to end itself."""
_TICK_S = 0.05


def noted_line(command: str, note: str) -> CommandLine:
    """Returns the command line of a shell that notes itself in a file, and runs a command with one
    output.
    """
    return shell_line(f"{_NOTES_ITSELF}\n{command}", "queen", note, described(os.getpid()))


def forget(note: str) -> None:
    """Removes the note of a command that has ended. Never fails."""
    with suppress(OSError, QueenError):
        safe_open.unlink(note)


def end_left(note: str) -> None:
    """Ends the command that was noted by a call that was killed. Never fails."""
    try:
        noted = safe_open.read(note, 1 << 12).decode(errors="replace").strip()
        safe_open.unlink(note)
    except (OSError, QueenError):
        return
    pid = space_and_id(noted)[1]
    if not is_running(noted) or not was_given(pid, note):
        return
    end = partial(os.killpg, pid)
    with suppress(OSError):
        end(signal.SIGTERM)
        until_s = time.monotonic() + GRACE_S
        while time.monotonic() < until_s and is_running(noted):
            time.sleep(_TICK_S)
        end(signal.SIGKILL)
