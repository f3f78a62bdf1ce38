"""Commands that run all the time, without the command line around them: `queen prompt` before
every prompt of a shell, `queen guard check` at every commit.

click and the modules of the commands would be half of their time or more. A plain call with an
ordinary answer is answered here; every other call, every refusal and every error is left to the
whole command line, which begins anew.
"""

from __future__ import annotations

import gc
import os
import sys

from queenbee._light import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main() -> None:
    """Runs `queen`, and exits with its status."""
    attempt()
    from queenbee.cli.main import main as whole  # noqa: PLC0415 - start-up

    whole()


def attempt() -> None:
    """Answers a plain call, and then exits with its status; returns for any other call."""
    if "_QUEEN_COMPLETE" in os.environ or None in (sys.stdout, sys.stderr):
        return
    gc.disable()  # As in `cli.main`: the process ends with the answer.
    status = None
    # An error is met again by the whole command line, which says what it is.
    with suppress(Exception):
        status = _answer(sys.argv[1:])
    if status is not None:
        # As in `cli.main`: an orderly end frees only what the kernel frees anyway.
        os._exit(status)


def _answer(arguments: Sequence[str]) -> int | None:
    """Returns the exit status, or None if the whole command line is to answer."""
    if arguments[:1] == ["prompt"]:
        from queenbee.cli import quick_prompt  # noqa: PLC0415 - start-up

        return quick_prompt.answer(arguments)
    if arguments[:1] == ["guard"]:
        from queenbee.cli import quick_guard  # noqa: PLC0415 - start-up

        return quick_guard.answer(arguments, os.environ)
    return None
