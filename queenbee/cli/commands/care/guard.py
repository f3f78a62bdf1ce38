"""`queen guard`: refuses commits and pushes of files that another droid holds."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import BytesIO

import click

from queenbee.cli.app import Answer, Invocation, QueenGroup, command, group
from queenbee.cli.commands.care.hive import tell_without_hive
from queenbee.cli.rendering import paragraph, purpose
from queenbee.cli.terminal import aside
from queenbee.core.text import HINT, mentioned, printable, shell_word, some, suggested
from queenbee.errors import InvalidInput
from queenbee.git import changes, hooks
from queenbee.git import guard as rules
from queenbee.services.leases.paths import path_of

_SHOWN = 20


def _show_verdict(verdict: rules.Verdict) -> None:
    if not verdict.held:
        _show_own_worktree(verdict)
        return
    verb = "allowed anyway" if verdict.mode == rules.WARN else "refused"
    what, it_changes = verdict.what, "it changes"
    if verdict.is_history:
        what, it_changes = "commits", "they change"
    paragraph(f"queenbee guard: {what} {verb}: another droid holds files that {it_changes}")
    for each in verdict.held[:_SHOWN]:
        lease = each.lease
        paragraph(
            f"  {mentioned(printable(each.path))}: held by {mentioned(printable(lease.droid))}, "
            f"{mentioned(printable(lease.pattern))}{purpose(lease)}, {each.left} left"
        )
    if len(verdict.held) > _SHOWN:
        paragraph(f"  and {len(verdict.held) - _SHOWN} more")
    if verdict.mode != rules.WARN:
        holder = printable(verdict.held[0].lease.droid)
        ask = suggested("queen msg send", holder, "BODY")
        paragraph(f"  ask: {ask}, or wait until it is released")
        if verdict.nameless:
            paragraph("  if that is you, say so: QUEEN_DROID=NAME, or queen hive whoami --set NAME")
        if verdict.is_history:
            paragraph(f"  to pass anyway: {rules.BYPASS}")
            return
        applied = verdict.what == rules.COMMIT and changes.is_applied(os.getcwd())
        way = "git am --continue" if applied else f"or git {verdict.what} --no-verify"
        paragraph(f"  to proceed anyway: {rules.BYPASS}{' for ' if applied else ', '}{way}")


def _show_own_worktree(verdict: rules.Verdict) -> None:
    own = verdict.own_worktree
    if own is None:
        return
    verb = "allowed anyway" if verdict.mode == rules.WARN else "refused"
    who = mentioned(printable(str(own.droid)))
    fault = f"{who} has a worktree of its own, and what it commits here has passed no check"
    way = f"commit there, and land it: cd {shell_word(own.path)} && queen land -m TEXT"
    if verdict.overwritten:
        lost = some([mentioned(printable(each)) for each in verdict.overwritten], _SHOWN)
        fault = f"it deletes, or removes commits from, what is not {who}'s own: {lost}"
        way = f"add to it instead: cd {shell_word(own.path)} && git fetch && queen land"
    paragraph(f"queenbee guard: {verdict.what} {verb}: {fault}")
    if verdict.mode != rules.WARN:
        paragraph(f"  {way}")
        paragraph(f"  to proceed anyway: {rules.BYPASS}, or git {verdict.what} --no-verify")


@command(
    show=_show_verdict,
    example="queen guard check --staged\nqueen guard check --range main..HEAD",
    opens_hive=False,
)
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@click.option("--staged", is_flag=True, help="Check what the next commit changes (the default)")
@click.option("--range", "range_", metavar="A..B", help="Check what these commits change")
@click.option("--branch", metavar="NAME", help="With --range: whose droids' files count as theirs")
@click.option(
    "--pre-push",
    "remote",
    is_flag=False,
    flag_value="",
    metavar="REMOTE",
    help="Check what a push sends to REMOTE; refs are read from standard input, as in git's hook",
)
def check(
    call: Invocation,
    paths: tuple[str, ...],
    staged: bool,
    range_: str | None,
    branch: str | None,
    remote: str | None,
) -> Answer:
    """Check whether changes may be committed or pushed

    Exit 0 if they may, 1 if another droid holds some of the files. Only exclusive reservations
    count. Without a hive, everything may. A droid whose reservation was made on the branch of
    --branch does not hold the files against it.
    """
    if sum((bool(paths), staged, range_ is not None, remote is not None)) > 1:
        raise InvalidInput("give one of: --staged, --range, --pre-push, or paths")
    if branch and range_ is None:
        raise InvalidInput(
            "--branch is for --range", hint="queen guard check --range A..B --branch NAME"
        )
    change = _change(paths, range_, remote)
    change.branch = branch or ""
    verdict = rules.check(change, lambda: call.hive, os.environ, droid=call.actor)
    for note in verdict.notes:
        aside(f"queenbee guard: {printable(note)}")
    for each in verdict.left_out:
        aside(f"queenbee guard: {printable(each.file)}: {each.message}")
        aside(f"{HINT}{printable(each.hint or '')}")
    return Answer(verdict, yes=verdict.passes)


def _change(paths: Sequence[str], range_: str | None, remote: str | None) -> rules.Change:
    cwd = os.getcwd()
    if paths:
        return rules.Change(
            rules.COMMIT, lambda tree: [path_of(each, tree=tree, cwd=cwd) for each in paths]
        )
    if range_ is not None:
        return rules.Change(rules.COMMIT, lambda _: changes.in_range(cwd, range_), is_history=True)
    if remote is not None:
        # It is None if it is closed: then git told nothing, and nothing is pushed.
        stdin = sys.stdin.buffer if sys.stdin is not None else BytesIO()
        return rules.push(cwd, remote, os.environ, stdin)
    return rules.next_commit(cwd)


def _show_hooks(value: dict[str, object]) -> None:
    states, snippet = value["hooks"], value["snippet"]
    assert isinstance(states, list)
    for each in states:
        more = f", then {printable(os.path.basename(each.chained))}" if each.chained else ""
        if each.state == hooks.OTHER:
            more = ", a hook without the guard"
        if each.state == hooks.OUTDATED:
            more = ", with the guard of an earlier version"
        if each.state == hooks.NOT_RUN:
            more = ", not installed here: git finds nothing that it can run"
        paragraph(f"{each.hook:18} {each.state:9} {printable(each.path)}{more}")
    written = (hooks.INSTALLED, hooks.NOT_RUN)
    if snippet is not None and any(each.state not in written for each in states):
        config = value["config"] or f"the configuration of {value['framework']}"
        paragraph(f"{value['framework']} manages the hooks here; add to {printable(str(config))}:")
        click.echo(snippet)
    elif value["cure"]:
        paragraph(f"to have git run the guard: {printable(str(value['cure']))}")
    if value["to_commit"]:
        paragraph(printable(str(value["to_commit"])))


def _hooks_answer(
    folder: hooks.HookFolder, states: list[hooks.HookState], *, wanted: bool
) -> Answer:
    installed = all(each.state == hooks.INSTALLED for each in states)
    value = {
        "framework": folder.framework,
        "hooks": states,
        "config": folder.config(),
        "snippet": folder.snippet,
        "to_commit": folder.to_commit(),
        "cure": "" if installed or not wanted else hooks.cure(os.getcwd()),
    }
    absent = all(each.state != hooks.INSTALLED for each in states)
    return Answer(value, yes=installed if wanted else absent)


_shared = click.option(
    "--shared", is_flag=True, help="Also in a folder with the hooks of other repositories"
)


@command(show=_show_hooks, example="queen guard install", opens_hive=False)
@_shared
def install(call: Invocation, shared: bool) -> Answer:
    """Put the guard into git's hooks for commits and pushes

    The hooks are pre-commit, prepare-commit-msg (for revert and cherry-pick), pre-applypatch
    (for am) and pre-push. An existing hook runs after the guard; where git tracks the hooks, the
    guard is a block in their files, for you to commit. If lefthook or pre-commit
    manages the hooks, nothing is changed: the command prints what to add to their configuration
    and exits with status 1.
    """
    folder = hooks.HookFolder(os.getcwd())
    states = hooks.install(folder, shared=shared)
    tell_without_hive(call)
    return _hooks_answer(folder, states, wanted=True)


@command(show=_show_hooks, example="queen guard uninstall", opens_hive=False)
@_shared
def uninstall(call: Invocation, shared: bool) -> Answer:
    """Remove the guard from git's hooks

    Restores the hooks that were there before.
    """
    folder = hooks.HookFolder(os.getcwd())
    return _hooks_answer(folder, hooks.uninstall(folder, shared=shared), wanted=False)


@command(show=_show_hooks, example="queen guard status", opens_hive=False)
def status(call: Invocation) -> Answer:
    """Show whether git's hooks run the guard

    Exit 0 if all do, 1 if not.
    """
    folder = hooks.HookFolder(os.getcwd())
    return _hooks_answer(folder, hooks.states(folder), wanted=True)


guard: QueenGroup = group(
    "guard",
    [install, uninstall, status, check],
    help="Refuse commits and pushes of files that another droid holds",
    example="queen guard install",
)
