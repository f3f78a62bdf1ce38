"""Grants that a command may wait for, and that the remote can confirm: `--wait` and `--confirm`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from queenbee.library.hive import Hive


def confirm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--confirm` and `--local-if-offline` to a command."""
    local = "With --confirm: if the remote is unreachable, grant it here"
    command = click.option("--local-if-offline", is_flag=True, help=local)(command)
    return click.option("--confirm", is_flag=True, help="Only if the git remote confirms it")(
        command
    )


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
    try:
        given = hive.grant(
            lambda left_s: attempt(left_s, watcher),
            confirm=confirm,
            local_if_offline=local_if_offline,
            timeout_s=wait_s or 0,
        )
        return list(given)
    finally:
        if watcher is not None:
            watcher(None)
