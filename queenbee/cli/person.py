"""Whether a person sits at this terminal.

An agent that runs `queen` in a pseudo-terminal is no person: its client says so in the
environment. This prevents accidents; a program that wants to pass for a person can.
"""

from __future__ import annotations

import os
import sys

from queenbee.store.droids.session_names import is_of_agent


def sits_here(*, is_json: bool) -> bool:
    """Returns whether a person runs this command, and can be asked."""
    streams = (sys.stdin, sys.stderr)
    is_terminal = all(each is not None and each.isatty() for each in streams)
    return is_terminal and not is_json and not is_of_agent(os.environ)
