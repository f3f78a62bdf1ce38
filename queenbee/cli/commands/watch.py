"""`queen watch`: the whole team on a screen that follows the hive."""

from __future__ import annotations

import gc
import os
import sys
from importlib.util import find_spec

import click

from queenbee.cli.app import Invocation, command
from queenbee.cli.exits import BUG
from queenbee.cli.terminal import say
from queenbee.core.text import suggested
from queenbee.errors import InvalidInput, MissingPackage

_IN_TERMINAL = {"textual": "textual 8.0 or later"}
_IN_BROWSER = {"uvicorn": "uvicorn 0.34 or later", "starlette": "starlette 0.46 or later"}


@command(
    show=lambda _: None, example="queen watch\nqueen watch --web --port 8765", opens_hive=False
)
@click.option("--web", is_flag=True, help="Show it in a browser on this machine instead")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="With --web: the port; by default, any that is free",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    help="With --web: an address of this machine that others reach, instead of 127.0.0.1",
)
def watch(call: Invocation, web: bool, port: int, host: str | None) -> None:
    """Watch the whole team on a screen

    Shows what waits for you, droids, issues, leases, mail, who waits, landings, conflicts and
    checks, and follows the hive. The keys are at the bottom; ? shows them all. Needs: pip install
    'queenbee-hive[watch]'

    With --web it prints an address for a browser, also on a phone. Whoever has that address acts in
    the hive under your name, or as human. Needs: pip install 'queenbee-hive[web]'
    """
    if call.json:
        raise InvalidInput("queen watch is a screen for people", hint="queen status --json")
    if not web and (port or host):
        asked = {"port": str(port) if port else None, "host": host}
        raise InvalidInput(
            "--port and --host are for --web", hint=suggested("queen watch --web", **asked)
        )
    for module, package in (_IN_BROWSER if web else _IN_TERMINAL).items():
        if find_spec(module) is None:
            name, extra = ("queen watch --web", "web") if web else ("queen watch", "watch")
            raise MissingPackage.of(name, package, extra)
    # It stays for hours, so that what it no longer needs has to be freed.
    gc.enable()
    if web:
        _serve(call, host, port)
        return
    hive = call.hive
    _check_terminal()
    # They say how large the terminal once was: the screen would never follow its window.
    os.environ.pop("COLUMNS", None)
    os.environ.pop("LINES", None)
    # Nothing else may write to the terminal.
    hive.progress = None
    call.arrive()
    from queenbee.tui.application import Board  # noqa: PLC0415 - start-up

    board = Board(hive)
    board.run()
    if board.return_code:
        raise click.exceptions.Exit(BUG)


def _serve(call: Invocation, host: str | None, port: int) -> None:
    """Serves the page until Ctrl-C."""
    from queenbee.web.server import hive_of_person, serve  # noqa: PLC0415 - start-up

    hive = hive_of_person(call.actor, call.beads_dir)
    call.use(hive)
    call.arrive()
    hive.progress, hive.asks_person = None, None
    try:
        serve(hive, lambda address: say(f"{address}\nCtrl-C ends it."), port=port, host=host)
    except OSError as error:
        raise InvalidInput(
            f"port {port} of {host or 'this machine'} cannot be used: {error.strerror}",
            hint="queen watch --web",
        ) from error


def _check_terminal() -> None:
    """Raises `InvalidInput` if nothing can be drawn or typed."""
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    if not all(each and each.isatty() for each in streams):
        hint = "queen status, or in a browser: queen watch --web"
        raise InvalidInput("queen watch needs a terminal", hint=hint)
