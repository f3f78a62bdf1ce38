"""Proposes the check that must pass before anything lands: asks a person, tells everybody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from queenbee.checks.finding import check_setting, found_checks
from queenbee.cli.person import sits_here
from queenbee.store.settings_file.changing_text import set_value

if TYPE_CHECKING:
    from queenbee.cli.app import Invocation
    from queenbee.store.layout import Layout

_NONE = "-"


def settle_check(call: Invocation, layout: Layout) -> str:
    """Sets the check of a hive that has none, if a person at a terminal names it. Returns the
    command that does so, or "" if there is a check, or the person wants none.
    """
    if layout.settings.land_check or layout.settings.problem is not None:
        return ""
    found = found_checks(layout.tree)
    if not sits_here(is_json=call.json):
        return check_setting(found)
    asked = f"Which command must pass before anything lands? ({_NONE}: none)"
    default = found[0] if found else _NONE
    said = click.prompt(asked, default=default, err=True, value_proc=_checked)
    if said and said != _NONE:
        set_value(layout, "land.check", said, holder=call.actor or "queen init")
        call.tell(f"set: land.check = {said}")
    return ""


def _checked(said: str) -> str:
    """Returns the answer. Raises `UsageError` for the next command of a text that was pasted."""
    if said.split()[:1] == ["queen"]:
        raise click.UsageError("this is a command of queen; which one tests the repository?")
    return said.strip()
