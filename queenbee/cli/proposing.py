"""Proposes the check that must pass before anything lands, and the command that sets up a new
worktree: asks a person, tells everybody else.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import click

from queenbee.checks.finding import check_setting, found_checks
from queenbee.checks.setup_finding import found_setup
from queenbee.cli.app import Invocation
from queenbee.cli.person import sits_here
from queenbee.core.text import suggested
from queenbee.errors import NotFound
from queenbee.git.contents.landing_messages import other_message
from queenbee.git.hooks import HookFolder
from queenbee.git.worktrees.copying import included
from queenbee.services.writing.seeing import set_value
from queenbee.store.git_files.ignore_files import is_ignored_by_git
from queenbee.store.layout import Layout
from queenbee.store.settings import FILE_NAME

_NONE = "-"
_ENV = ".env"


def settle_check(call: Invocation, layout: Layout, said: str = "") -> str:
    """Sets the check of a hive as it was `said`, or, if it has none, as a person at a terminal
    names it. Returns the command that does so, or "" if there is a check.
    """
    if not said:
        if layout.settings.land_check or layout.settings.problem is not None:
            return ""
        found = found_checks(layout.tree)
        if not _asks(call):
            return check_setting(found)
        none = f"{_NONE}: none, then nothing lands, unless with --unchecked"
        asked = f"Which command must pass before anything lands? ({none}; to check nothing: true)"
        default = found[0] if found else _NONE
        said = click.prompt(asked, default=default, err=True, value_proc=_checked)
    if not said or said == _NONE:
        return check_setting(found_checks(layout.tree))
    set_value(layout, "land.check", said, holder=call.actor or "queen init")
    call.tell(f"set: land.check = {said}")
    return ""


def settle_setup(call: Invocation, layout: Layout) -> str:
    """Sets the set-up of a hive that has none, if files of the repository say one and a person at a
    terminal agrees. Returns the command that does so, or "".
    """
    if layout.settings.worktree_setup or layout.settings.problem is not None:
        return ""
    found = found_setup(layout.tree)
    if found is None:
        return ""
    if not _asks(call):
        return suggested("queen config set worktree.setup", found.command)
    asked = f"Which command makes a new worktree usable, by {found.source}? ({_NONE}: none)"
    said = click.prompt(asked, default=found.command, err=True, value_proc=_checked)
    if said and said != _NONE:
        set_value(layout, "worktree.setup", said, holder=call.actor or "queen init")
        call.tell(f"set: worktree.setup = {said}")
    return ""


def _asks(call: Invocation) -> bool:
    """Returns whether a person sits here, who sees what the command prints."""
    return sits_here(is_json=call.json) and sys.stdout.isatty()


def tell_lacking(call: Invocation, layout: Layout) -> None:
    """Says what this repository has that needs a setting: a file that worktrees lack, and a hook
    that judges what commits say; and if git ignores the hive itself.
    """
    said, path = layout.settings, os.path.join(layout.root, _ENV)
    own = os.path.relpath(os.path.join(layout.beads_dir, FILE_NAME), layout.tree)
    if not own.startswith(os.pardir) and is_ignored_by_git(layout, own, os.environ):
        way = suggested("git check-ignore -v", own)
        call.tell(
            f"git ignores {own}, so clones get no settings and no records; see the rule: {way}"
        )
    if said.problem is not None:
        return
    is_copied = said.worktree_copy or included(layout.root)
    if os.path.isfile(path) and not is_copied and is_ignored_by_git(layout, _ENV, os.environ):
        way = suggested("queen config set worktree.copy", _ENV)
        call.tell(f"git ignores {_ENV}, so worktrees lack it; if tests need it: {way}")
    hook = ""
    with suppress(NotFound):  # Without git installed.
        hook = HookFolder(layout.root).path("commit-msg")
    if os.path.isfile(hook) and not said.land_message:
        way = other_message("land.message")
        call.tell(f"a hook judges what commits say; for those of QueenBee: {way}")


def _checked(said: str) -> str:
    """Returns the answer. Raises `UsageError` for the next command of a text that was pasted."""
    if said.split()[:1] == ["queen"]:
        raise click.UsageError("this is a command of queen, and none of the repository")
    return said.strip()
