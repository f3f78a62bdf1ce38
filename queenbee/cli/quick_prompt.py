"""`queen prompt` without the command line around it: it runs before every prompt of a shell."""

from __future__ import annotations

import os
import sys

from queenbee.core import plain_json
from queenbee.core.prompt_line import TARGETS, line_of
from queenbee.errors import NoHive
from queenbee.services.hive import Services
from queenbee.services.telling.glance import glance
from queenbee.store.layout import discover, working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.core.prompt_line import Glance


class Asked:
    """The options of one `queen prompt`."""

    def __init__(
        self,
        *,
        target: str = "plain",
        ascii_only: bool = False,
        droid: str | None = None,
        beads_dir: str | None = None,
    ) -> None:
        self.target = target
        self.ascii_only = ascii_only
        self.droid = droid
        self.beads_dir = beads_dir

    def shown(self, glance: Glance | None) -> str:
        """Returns the line for a glance, or "" outside a hive."""
        if glance is None:
            return ""
        return line_of(glance, target=self.target, ascii_only=self.ascii_only)


def answer(arguments: Sequence[str]) -> int | None:
    """Prints the line, and returns the exit status; None for what only the whole command line
    understands. Raises `QueenError`, and what a line that cannot be printed raises.
    """
    asked = read(arguments[1:]) if arguments[:1] == ["prompt"] else None
    if asked is None:
        return None
    line = asked.shown(look(asked, os.environ))
    sys.stdout.write(f"{line}\n" if line else "")
    sys.stdout.flush()
    return 0


def read(arguments: Sequence[str]) -> Asked | None:
    """Returns the options, or None for any that only the whole command line understands."""
    names = {"--for": "target", "--as": "droid", "--beads-dir": "beads_dir"}
    asked, rest = Asked(), list(arguments)
    while rest:
        word, equals, value = rest.pop(0).partition("=")
        if word == "--ascii" and not equals:
            asked.ascii_only = True
        elif word in names and (equals or rest):
            setattr(asked, names[word], value if equals else rest.pop(0))
        else:
            return None
    return asked if asked.target in TARGETS else None


def look(asked: Asked, env: Mapping[str, str]) -> Glance | None:
    """Returns a droid's state at a glance, or None outside a hive. Nobody is told anything by it.

    For Claude Code, standard input says which session in which folder asks.
    """
    folder = droid = None
    try:
        if asked.target == "claude":
            folder, droid = _of_session(asked, env)
        hive = Services.open(folder, droid=asked.droid or droid, beads_dir=asked.beads_dir, env=env)
    except NoHive:
        return None
    return glance(hive)


def _of_session(asked: Asked, env: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Returns the folder of the session that standard input describes, and its name."""
    from queenbee.hook.acting_names import known_name  # noqa: PLC0415 - start-up

    if sys.stdin is None or sys.stdin.isatty():
        return None, None
    try:
        fields = plain_json.loads(sys.stdin.buffer.read())
    except (ValueError, RecursionError):
        return None, None
    session = fields.get("session_id") if isinstance(fields, dict) else None
    place = fields.get("cwd") if isinstance(fields, dict) else None
    folder = place if isinstance(place, str) and os.path.isdir(place) else working_directory()
    layout = discover(folder, env, beads_dir=asked.beads_dir)
    return folder, known_name(layout, env, session if isinstance(session, str) else "")
