"""`queen guard check --staged` without the command line around it: git runs it at every commit.

It answers if the commit may pass and nothing is to be said about that. A refusal begins anew in
the whole command line, so there is one place that decides how it reads.
"""

from __future__ import annotations

import os
import sys

from queenbee._light import suppress
from queenbee.core.text import printable
from queenbee.git import guard as rules
from queenbee.workflows.hive import Hive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.store.memory.database import Progress

_INTERRUPTED = 130


def answer(arguments: Sequence[str], env: Mapping[str, str]) -> int | None:
    """Returns 0 for a commit that may pass, or None if the whole command line is to answer.

    Raises `QueenError` if it cannot be found out what is held.
    """
    if list(arguments) not in (["guard", "check"], ["guard", "check", "--staged"]):
        return None
    if env.get(rules.VARIABLE):
        return None  # What passes because of it is logged, once.
    try:
        return _passed(env)
    except KeyboardInterrupt:
        _say("queen: interrupted")
        return _INTERRUPTED


def _passed(env: Mapping[str, str]) -> int | None:
    opened: list[Hive] = []

    def open_hive() -> Hive:
        hive = Hive.open(env=env)
        hive.progress = _late_bar() if sys.stderr.isatty() else None
        opened.append(hive)
        return hive

    verdict = rules.check(rules.next_commit(os.getcwd()), open_hive, env)
    if verdict.held or verdict.notes or verdict.left_out:
        return None
    for hive in opened:
        if rules.is_sign_of_life(hive):
            hive.note_presence()
        for note in hive.notes():
            _say(f"queen: {printable(note)}")
    return 0


def _late_bar() -> Progress:
    """Returns a progress bar that is loaded when an index has to be built."""
    bars: list[Progress] = []

    def show(done: int, total: int) -> None:
        from queenbee.cli.terminal import Bar  # noqa: PLC0415 - start-up

        bars[:] = bars or [Bar()]
        bars[0](done, total)

    return show


def _say(text: str) -> None:
    with suppress(OSError):  # Nobody has to read it.
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
