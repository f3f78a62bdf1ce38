"""`queen watch`: the whole team on a screen that follows the hive."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec

import click

from queenbee.cli.app import Invocation, command
from queenbee.cli.exits import BUG
from queenbee.cli.terminal import say
from queenbee.core.names import PERSON
from queenbee.core.text import suggested
from queenbee.errors import InvalidInput, MissingPackage
from queenbee.library.hive import Hive
from queenbee.store.callers.agent_above import is_agent

_IN_TERMINAL = {"textual": "textual 8.0 or later"}
_IN_BROWSER = {"uvicorn": "uvicorn 0.34 or later", "starlette": "starlette 0.46 or later"}


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
@click.option(
    "--host",
    metavar="ADDRESS",
    help="With --web: an address of this machine that others reach, instead of 127.0.0.1",
)
def watch(
    call: Invocation, places: tuple[str, ...], web: bool, port: int, host: str | None
) -> None:
    """Watch the whole team on a screen

    Shows what waits for you, droids, issues, leases, mail, who waits, landings, conflicts and
    checks, and follows the hive. The keys are at the bottom; ? shows them all. Needs: pip install
    'queenbee-hive[watch]'

    With folders of several hives, it shows what waits for you and who is at work in each, and Enter
    opens one of them.

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
    if web and places:
        raise InvalidInput("--web shows one hive", hint="in its repository: queen watch --web")
    for module, package in (_IN_BROWSER if web else _IN_TERMINAL).items():
        if find_spec(module) is None:
            name, extra = ("queen watch --web", "web") if web else ("queen watch", "watch")
            raise MissingPackage.of(name, package, extra)
    if places:
        _watch_all(call, places)
        return
    # It stays for hours, so that what it no longer needs has to be freed.
    gc.enable()
    if web:
        _serve(call, host, port)
        return
    hive = call.hive
    _check_terminal()
    call.arrive(("watch",))
    _board(hive)


def _board(hive: Hive) -> None:
    """Shows one hive until that is ended. A person without a name acts as human."""
    if hive.actor_or_none is None and not is_agent():
        layout = hive.layout
        hive = Hive.open(layout.tree, droid=PERSON, beads_dir=layout.beads_dir)
    # Nothing else may write to the terminal.
    hive.progress = None
    from queenbee.tui.application import Board  # noqa: PLC0415 - start-up

    board = Board(hive)
    board.run()
    if board.return_code:
        raise click.exceptions.Exit(BUG)


def _watch_all(call: Invocation, places: Sequence[str]) -> None:
    """Shows several hives, and one after the other that is chosen there."""
    from queenbee.library.hives import glimpses  # noqa: PLC0415 - start-up
    from queenbee.tui.hives import Hives  # noqa: PLC0415 - start-up

    _check_terminal()
    gc.enable()
    while (root := Hives(partial(glimpses, places, droid=call.actor)).run()) is not None:
        with Hive.open(root, droid=call.actor) as hive:
            _board(hive)


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
    is_dumb = os.environ.get("TERM") == "dumb"
    if is_dumb or not all(each and each.isatty() for each in streams):
        hint = "queen status, or in a browser: queen watch --web"
        raise InvalidInput(
            f"queen watch needs a terminal{', and TERM=dumb says there is none' * is_dumb}",
            hint=hint,
        )
    # They say how large the terminal once was: the screen would never follow its window.
    os.environ.pop("COLUMNS", None)
    os.environ.pop("LINES", None)
