"""`queen watch`: the whole team on a screen that follows the hive."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from queenbee.cli.app import Invocation, command
from queenbee.cli.exits import BUG
from queenbee.cli.terminal import say
from queenbee.core.command_lines import typed_line
from queenbee.errors import InvalidInput, MissingPackage

if TYPE_CHECKING:
    from queenbee.library.hive import Hive

_IN_TERMINAL = {"textual": "textual 8.0 or later"}
_IN_BROWSER = {**_IN_TERMINAL, "textual_serve": "textual-serve 1.1.3 or later"}
_DRIVER = "TEXTUAL_DRIVER"
"""Set by textual-serve for the processes that draw for a browser, without a terminal."""


@command(
    show=lambda _: None, example="queen watch\nqueen watch --web --port 8765", opens_hive=False
)
@click.argument("places", nargs=-1, metavar="[DIR]...")
@click.option("--web", is_flag=True, help="Show it in a browser on this machine instead")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="With --web: the port; by default, any that is free",
)
def watch(call: Invocation, places: tuple[str, ...], web: bool, port: int) -> None:
    """Watch the whole team on a screen

    Shows droids, issues, leases, mail, who waits, landings, conflicts and checks, and follows the
    hive. The keys are at the bottom; ? shows them all. Needs: pip install 'queenbee-hive[watch]'

    With folders of several hives, it shows what waits for you and who is at work in each, and Enter
    opens one of them.

    With --web it prints an address for a browser on this machine. Whoever has that address acts in
    the hive under your name.
    """
    if call.json:
        raise InvalidInput("queen watch is a screen for people", hint="queen status --json")
    if port and not web:
        raise InvalidInput("--port is for --web", hint=f"queen watch --web --port {port}")
    for module, package in (_IN_BROWSER if web else _IN_TERMINAL).items():
        if find_spec(module) is None:
            raise MissingPackage.of("queen watch", package, "watch")
    if places:
        _watch_all(call, places)
        return
    hive = call.hive
    # It stays for hours, so that what it no longer needs has to be freed.
    gc.enable()
    if web:
        _serve(call, hive.layout.root, port)
        return
    _check_terminal()
    call.arrive(("watch",))
    _board(hive)


def _board(hive: Hive) -> None:
    """Shows one hive until that is ended."""
    # Nothing else may write to the terminal.
    hive.progress = None
    from queenbee.tui.application import Board  # noqa: PLC0415 - start-up

    board = Board(hive, parent=os.getppid() if _DRIVER in os.environ else None)
    board.run()
    if board.return_code:
        raise click.exceptions.Exit(BUG)


def _watch_all(call: Invocation, places: Sequence[str]) -> None:
    """Shows several hives, and one after the other that is chosen there."""
    from queenbee.library.hive import Hive  # noqa: PLC0415 - start-up
    from queenbee.library.hives import glimpses  # noqa: PLC0415 - start-up
    from queenbee.tui.hives import Hives  # noqa: PLC0415 - start-up

    _check_terminal()
    gc.enable()
    while (root := Hives(partial(glimpses, places, droid=call.actor)).run()) is not None:
        with Hive.open(root, droid=call.actor) as hive:
            _board(hive)


def _serve(call: Invocation, root: str, port: int) -> None:
    """Serves the same command, without `--web`, for each window of a browser."""
    from queenbee.tui.web import serve  # noqa: PLC0415 - start-up

    options = [f"--as={call.actor}"] if call.actor else []
    options += [f"--beads-dir={call.beads_dir}"] if call.beads_dir else []
    # Started as we were: what cleans Python's path does so for the screens, too.
    ours = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    try:
        serve(
            typed_line([sys.executable, *ours, *options, "watch"]),
            f"queen watch: {os.path.basename(root)}",
            port,
            lambda address: say(f"{address}\nCtrl-C ends it."),
        )
    except OSError as error:
        raise InvalidInput(
            f"port {port} cannot be used: {error.strerror}", hint="queen watch --web"
        ) from error


def _check_terminal() -> None:
    """Raises `InvalidInput` if nothing can be drawn or typed."""
    if _DRIVER in os.environ:
        return
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    if not all(each and each.isatty() for each in streams):
        hint = "queen status, or in a browser: queen watch --web"
        raise InvalidInput("queen watch needs a terminal", hint=hint)
    # They say how large the terminal once was: the screen would never follow its window.
    os.environ.pop("COLUMNS", None)
    os.environ.pop("LINES", None)
