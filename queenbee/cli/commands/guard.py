"""`queen guard`: refuse commits and pushes of files that another droid holds."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from queenbee.cli.app import Answer, QueenGroup, Session, command
from queenbee.cli.render import printable, say
from queenbee.errors import InvalidInput, NoHive, QueenError, StoreError
from queenbee.git import changes, hooks
from queenbee.git import guard as rules
from queenbee.git.left_out import left_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.workflows.hive import Hive

_SHOWN = 20
_WAY_PAST = f"{rules.VARIABLE}=warn (it is logged)"


class Checked:
    """What the guard found."""

    def __init__(
        self,
        what: str,
        mode: str,
        paths: int,
        held: Sequence[rules.Refusal],
        *,
        nameless: bool = False,
    ) -> None:
        self.what = what
        self.mode = mode
        self.paths = paths
        self.held = held
        self.nameless = nameless
        """Whether nobody said who is committing."""

    def to_dict(self) -> dict[str, object]:
        """Returns what was looked at and what another droid holds of it."""
        held = [each.to_dict() for each in self.held]
        return {"checked": self.what, "mode": self.mode, "paths": self.paths, "held": held}


def _show_checked(checked: Checked) -> None:
    if not checked.held:
        return
    verb = "allowed all the same" if checked.mode == rules.WARN else "refused"
    say(f"queenbee guard: {checked.what} {verb}: another droid holds what it changes")
    for each in checked.held[:_SHOWN]:
        lease = each.lease
        issue = f" for {printable(lease.issue_id)}" if lease.issue_id else ""
        why = f" ({printable(lease.reason)})" if lease.reason else ""
        say(
            f"  {printable(each.path)}: held by {printable(lease.droid)}, "
            f"{printable(lease.pattern)}{issue}{why}, {each.left} left"
        )
    if len(checked.held) > _SHOWN:
        say(f"  and {len(checked.held) - _SHOWN} more")
    if checked.mode != rules.WARN:
        first = checked.held[0].lease
        verify = "git push --no-verify" if checked.what == "push" else "git commit --no-verify"
        say(f"  ask: queen msg send {printable(first.droid)} BODY, or wait until it is released")
        if checked.nameless:
            say("  if that is you: nobody said so; QUEEN_DROID=NAME, or queen whoami --set NAME")
        say(f"  to go on all the same: {_WAY_PAST}, or {verify}")


@command(
    "check",
    show=_show_checked,
    example="queen guard check --staged\nqueen guard check --range main..HEAD",
    takes="session",
)
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@click.option("--staged", is_flag=True, help="What the next commit changes (the default)")
@click.option("--range", "range_", metavar="A..B", help="What these commits change")
@click.option(
    "--pre-push",
    "remote",
    is_flag=False,
    flag_value="",
    metavar="REMOTE",
    help="What a push brings to REMOTE; reads the refs on standard input, as git's hook gets them",
)
def check(
    session: Session,
    paths: tuple[str, ...],
    staged: bool,
    range_: str | None,
    remote: str | None,
) -> Answer:
    """Ask whether changes may be committed or pushed

    Exit 0, or 1 if another droid holds some. Only exclusive reservations count. Without a hive,
    everything may.
    """
    if sum((bool(paths), staged, range_ is not None, remote is not None)) > 1:
        raise InvalidInput("give one of: --staged, --range, --pre-push, or paths")
    what = "push" if remote is not None else "commit"
    mode = rules.mode(os.environ)
    hive = None
    try:
        hive = session.hive
        if mode == rules.OFF:
            _log(hive, f"{what} by {_who(hive)}: not checked, {rules.VARIABLE}=off")
            return Answer(Checked(what, mode, 0, []), yes=True)
        changed = _changed(hive, paths, range_, remote)
        held = rules.refusals(hive, changed)
    except NoHive:
        return Answer(Checked(what, mode, 0, []), yes=True)
    except QueenError as error:
        return _unchecked(hive, what, mode, error)
    if not (paths or range_ or what == "push"):
        _tell_what_is_left_out(hive, changed)
    if held and mode == rules.WARN:
        names = ", ".join(f"{each.path} ({each.lease.droid})" for each in held[:_SHOWN])
        _log(hive, f"{what} by {_who(hive)}: let pass, {rules.VARIABLE}=warn: {names}")
    checked = Checked(what, mode, len(changed), held, nameless=hive.actor_or_none is None)
    return Answer(checked, yes=not held or mode == rules.WARN)


def _tell_what_is_left_out(hive: Hive, changed: Sequence[str]) -> None:
    # In a linked worktree the hive is not part of what is committed.
    ledgers = os.path.relpath(hive.layout.beads_dir, hive.layout.tree) + "/queen_"
    if not any(path.startswith(ledgers) for path in changed):
        return
    with suppress(QueenError):
        for each in left_out(hive):
            click.echo(f"queenbee guard: {printable(each.file)}: {each.message}", err=True)
            click.echo(f"  try: {printable(each.hint or '')}", err=True)


def _changed(hive: Hive, paths: Sequence[str], range_: str | None, remote: str | None) -> list[str]:
    cwd = os.getcwd()
    if paths:
        return [status.path for status in hive.reservations.check(paths)]
    if range_ is not None:
        return changes.in_range(cwd, range_)
    if remote is None:
        return changes.staged(cwd)
    if os.environ.get("PRE_COMMIT_TO_REF"):
        # The pre-commit framework keeps git's standard input and says by variables what it read.
        remote = remote or os.environ.get("PRE_COMMIT_REMOTE_NAME", "")
        ids = os.environ["PRE_COMMIT_TO_REF"], os.environ.get("PRE_COMMIT_FROM_REF") or "0"
        return changes.pushed(cwd, remote, [f"local {ids[0]} remote {ids[1]}"])
    updates = sys.stdin.buffer.read().decode(errors="surrogateescape").splitlines()
    return changes.pushed(cwd, remote, updates)


def _unchecked(hive: Hive | None, what: str, mode: str, error: QueenError) -> Answer:
    """Blocks where nobody can say what is held, unless a way past is set."""
    if mode == rules.ON:
        if isinstance(error, StoreError):
            way = f"to go on all the same: {_WAY_PAST}"
            error.hint = f"{error.hint}; {way}" if error.hint else way
        raise error
    click.echo(f"queenbee guard: {printable(error.message)}; {what} not checked", err=True)
    _log(hive, f"{what}: not checked, {rules.VARIABLE}={mode}: {error.message}")
    return Answer(Checked(what, mode, 0, []), yes=True)


def _log(hive: Hive | None, text: str) -> None:
    if not rules.log_bypass(hive, os.getcwd(), text):
        click.echo("queenbee guard: this could not be logged", err=True)


def _who(hive: Hive) -> str:
    return hive.actor_or_none or rules.NOBODY


def _show_hooks(value: dict[str, object]) -> None:
    states, snippet = value["hooks"], value["snippet"]
    assert isinstance(states, list)
    for each in states:
        more = f", then {printable(os.path.basename(each.chained))}" if each.chained else ""
        if each.state == hooks.OTHER:
            more = ", a hook without the guard"
        say(f"{each.hook:10} {each.state:9} {printable(each.path)}{more}")
    if snippet is not None and any(each.state != hooks.INSTALLED for each in states):
        config = value["config"] or f"the configuration of {value['framework']}"
        say(f"{value['framework']} writes the hooks here; add to {printable(str(config))}:")
        click.echo(snippet)


def _hooks_answer(
    folder: hooks.HookFolder, states: list[hooks.HookState], *, wanted: bool
) -> Answer:
    value = {
        "framework": folder.framework,
        "hooks": states,
        "config": folder.config(),
        "snippet": folder.snippet,
    }
    installed = all(each.state == hooks.INSTALLED for each in states)
    absent = all(each.state != hooks.INSTALLED for each in states)
    return Answer(value, yes=installed if wanted else absent)


@command("install", show=_show_hooks, example="queen guard install", takes="session")
def install(session: Session) -> Answer:
    """Put the guard into git's pre-commit and pre-push hooks

    A hook that is there already runs after the guard. Where lefthook or pre-commit writes the
    hooks, nothing is changed: what to add to its configuration is printed, and the exit is 1.
    """
    from queenbee.cli.commands.hive import tell_without_hive

    folder = hooks.HookFolder(os.getcwd())
    states = hooks.install(folder)
    tell_without_hive(session)
    return _hooks_answer(folder, states, wanted=True)


@command("uninstall", show=_show_hooks, example="queen guard uninstall", takes="session")
def uninstall(session: Session) -> Answer:
    """Take the guard out of git's hooks again

    What was there before is put back.
    """
    folder = hooks.HookFolder(os.getcwd())
    return _hooks_answer(folder, hooks.uninstall(folder), wanted=False)


@command("status", show=_show_hooks, example="queen guard status", takes="session")
def status(session: Session) -> Answer:
    """Show whether git asks the guard

    Exit 0 if both hooks do, 1 if not.
    """
    folder = hooks.HookFolder(os.getcwd())
    return _hooks_answer(folder, hooks.states(folder), wanted=True)


guard = QueenGroup("guard", help="Refuse commits and pushes of files that another droid holds")
for _each in (install, uninstall, status, check):
    guard.add_command(_each)
