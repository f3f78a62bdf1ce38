"""`--confirm`: the option of commands whose grants the remote can confirm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from queenbee.cli.app import tell

if TYPE_CHECKING:
    from queenbee.core.records import Assignment, Reservation
    from queenbee.workflows.hive import Hive

    Grants = Sequence[Assignment | Reservation]


def confirm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--confirm` and `--local-if-offline` to a command."""
    for option in (
        click.option(
            "--local-if-offline",
            is_flag=True,
            help="With --confirm: else grant it here, unconfirmed",
        ),
        click.option("--confirm", is_flag=True, help="Only if the git remote confirms it"),
    ):
        command = option(command)
    return command


def granted(
    hive: Hive, grant: Callable[[], Grants], *, confirm: bool, local_if_offline: bool
) -> Grants:
    """Returns what `grant` grants, confirmed by the remote if that is asked for."""
    if not (confirm or local_if_offline or hive.layout.settings.sync_confirm == "remote"):
        return grant()
    from queenbee.git.remote.confirming import confirmed  # noqa: PLC0415 - start-up

    return confirmed(hive, grant, local_if_offline=local_if_offline, tell=tell)
