"""Grants that a command may wait for, and that the remote can confirm: `--wait` and `--confirm`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli.app import tell
from queenbee.git.remote.terms import Terms

if TYPE_CHECKING:
    from queenbee.library.hive import Hive


def confirm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--confirm` and `--local-if-offline` to a command."""
    local = "With --confirm: if the remote is unreachable, grant it here"
    command = click.option("--local-if-offline", is_flag=True, help=local)(command)
    return click.option("--confirm", is_flag=True, help="Only if the git remote confirms it")(
        command
    )


def confirmation(hive: Hive, *, confirm: bool = False, local_if_offline: bool = False) -> Terms:
    """Returns how the grants of the running command are confirmed, if they are."""
    return Terms(hive, confirm=confirm, local_if_offline=local_if_offline, tell=tell)


def granted(
    hive: Hive,
    attempt: Callable[[float, Any], list[Any]],
    *,
    wait_s: int | None,
    confirm: bool,
    local_if_offline: bool,
) -> list[Any]:
    """Returns the grants that an attempt gets: it is given how long it may wait, and what shows on
    a terminal how the wait stands.
    """
    watcher = None
    if wait_s:
        from queenbee.cli.progress import waiting  # noqa: PLC0415 - start-up

        watcher = waiting()
    terms = confirmation(hive, confirm=confirm, local_if_offline=local_if_offline)
    try:
        return list(terms.granted(lambda left_s: attempt(left_s, watcher), wait_s=wait_s or 0))
    finally:
        if watcher is not None:
            watcher(None)
