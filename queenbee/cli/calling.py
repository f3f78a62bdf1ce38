"""How a person is called: a notification of the desktop, the bell of a terminal, or a command.

What others wrote is never part of a command: a command of yours gets it in its environment and on
its standard input, the desktop's as one argument.
"""

from __future__ import annotations

import html
import json
import os
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from queenbee.cli.terminal import aside
from queenbee.core.command_lines import command_line, typed_line
from queenbee.core.text import one_line, printable
from queenbee.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from queenbee.core.command_lines import CommandLine
    from queenbee.services.telling.people import Want

    Caller = Callable[[Want], None]

_TIMEOUT_S = 30.0
"""A command that hangs must not keep the next thing from being told."""
_SCRIPT = (
    *("-e", "on run argv"),
    *("-e", "display notification (item 2 of argv) with title (item 1 of argv)"),
    *("-e", "end run"),
)
"""For macOS: the texts are arguments of the script, never part of it."""


def by_command(line: str, root: str) -> Caller:
    """Returns what runs a command for each thing. Raises `InvalidInput` if there is none such."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InvalidInput(f"--run cannot be read: {error}") from error
    found = shutil.which(words[0]) if words else None
    if found is None:
        raise InvalidInput(
            f"--run: there is no command {words[0]!r}" if words else "--run needs a command",
            hint="it runs without a shell; for one, write: --run 'sh -c \"...\"'",
        )

    def call(want: Want) -> None:
        event = {**want.to_dict(), "hive": root}
        # Not QUEEN_DROID: a queen that the command runs would act as somebody else.
        named = {
            "QUEEN_EVENT" if key == "event" else f"QUEEN_EVENT_{key.upper()}": one_line(str(value))
            for key, value in event.items()
        }
        _run(typed_line([found, *words[1:]]), json.dumps(event) + "\n", {**os.environ, **named})

    return call


def by_desktop(title: str) -> Caller | None:
    """Returns what shows a notification of the desktop, or None where there is no such thing."""
    heading = f"QueenBee: {one_line(title)}"
    if _desktop_command(os.environ, heading, "") is None:
        return None

    def call(want: Want) -> None:
        command = _desktop_command(os.environ, heading, f"{want.text}")
        if command is not None:
            _run(command, "", os.environ)

    return call


def by_bell(want: Want) -> None:
    """Rings the bell of the terminal, if there is one."""
    if sys.stderr.isatty():
        aside("\a", end="")


def _desktop_command(env: Mapping[str, str], title: str, text: str) -> CommandLine | None:
    shown = any(env.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    send = shutil.which("notify-send")
    if send is not None and shown:
        values = [title, html.escape(text)]
        return command_line(send, "--app-name=QueenBee", values=values)
    script = shutil.which("osascript") if sys.platform == "darwin" else None
    if script is not None:
        return command_line(script, *_SCRIPT, values=[title, text])
    return None


def _run(command: CommandLine, stdin: str, env: Mapping[str, str]) -> None:
    """Runs a command; says on standard error if it failed, since the next may not."""
    name = printable(os.path.basename(command[0]))
    try:
        done = subprocess.run(
            command,
            input=stdin.encode(),
            env=env,
            timeout=_TIMEOUT_S,
            stdout=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        aside(f"queen: {name} failed: {error}")
        return
    if done.returncode != 0:
        aside(f"queen: {name} exited with status {done.returncode}")
