"""`queen sync`: exchanges the records with a branch of a git remote."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from queenbee.checks.processes import Interrupts
from queenbee.cli.app import command, invocation, tell
from queenbee.cli.terminal import columns, say
from queenbee.core.text import lines_counted, printable, shortened, suggested
from queenbee.errors import InvalidInput
from queenbee.store.droids.agent_callers import is_by_agent

if TYPE_CHECKING:
    from queenbee.git.remote.alongside import State
    from queenbee.git.remote.relocating import Moved
    from queenbee.git.remote.syncing import Synced
    from queenbee.library.hive import Hive


def _show(done: Synced) -> None:
    from queenbee.git.remote.withheld import sentence  # noqa: PLC0415 - start-up

    for each in done.withheld:
        say(sentence(each))
    where = printable(f"{done.branch} of {done.remote}")
    if done.only_there:
        count = f"{lines_counted(done.only_there)} {'is' if done.only_there == 1 else 'are'}"
        say(f"{count} only on {where}, from clones whose records are in files")
        say("next, in those clones: git pull, then queen hive engine use postgres")
    if not (done.taken or done.sent or done.confirmed or done.refused):
        say(f"in step with {where}" if done.number else f"nothing to send, and no {where} yet")
        return
    say(f"{where}: {lines_counted(done.taken)} taken in, {done.sent} sent")
    if done.issues_taken or done.issues_sent:
        say(f"  issues: {done.issues_taken} came, {done.issues_sent} went")
    for issue_id in done.made_twice:
        shown = suggested("queen hive history", issue_id)
        say(f"  {printable(issue_id)} was made in two clones, and mixes both: {printable(shown)}")
    if done.confirmed or done.refused:
        say(f"  requests confirmed: {done.confirmed}, ended: {done.refused}")


def _show_any(value: Any) -> None:
    if hasattr(value, "untracked"):
        _show_moved(value)
    elif not hasattr(value, "away"):  # Whoever watched has seen all of it.
        _show(value)


def _watched(hive: Hive) -> State:
    from queenbee.git.remote.alongside import watch  # noqa: PLC0415 - start-up

    settings = hive.layout.settings
    where = printable(f"{settings.sync_branch} of {settings.sync_remote}")
    over = sys.stdout.isatty()
    as_json = invocation().json

    def show(state: State) -> None:
        if as_json:
            return
        text = f"{where}: {lines_counted(state.taken)} taken in, {state.sent} sent"
        if state.away is not None:
            text = f"{text}; {printable(state.away)}; trying on"
        if not over:
            say(text)
            sys.stdout.flush()
            return
        click.echo("\r\x1b[K" + shortened(text, max(20, (columns() or 80) - 1)), nl=False)

    with Interrupts() as interrupts:
        try:
            return watch(hive, stopped=lambda: interrupts.count > 0, show=show)
        finally:
            if over and not as_json:
                click.echo()


def _show_moved(moved: Moved) -> None:
    if not (moved.files or moved.untracked or moved.tracked or moved.commit):
        say("nothing was changed")
        return
    for path in moved.files:
        say(f"changed {printable(path)}")
    if moved.untracked:
        several, files = ("s", "files are") if len(moved.untracked) > 1 else ("", "file is")
        count = f"{len(moved.untracked)} ledger{several}; the {files} still there"
        say(f"git no longer tracks {count}")
    if moved.tracked:
        say(f"git tracks {len(moved.tracked)} ledger{'s' * (len(moved.tracked) > 1)} again")
    if moved.commit:
        say(f"next: {printable(moved.commit)}")


@command(show=_show_any, example="queen sync\nqueen sync setup")
@click.argument("what", required=False, type=click.Choice(["setup"]), metavar="[setup]")
@click.option("--undo", is_flag=True, help="With setup: let git carry the ledgers with the code")
@click.option("--watch", is_flag=True, help="Go on until stopped")
def sync(hive: Hive, what: str | None, undo: bool, watch: bool) -> Synced | Moved | State:
    """Exchange records with other machines, through git

    The records are on a branch of the git remote that holds nothing else. It fetches the branch,
    takes in what is new there, and pushes what is new here. No worktree and no branch of yours is
    touched. Exit 6: the remote cannot be reached.

    If the records are in a database, the branch gets a copy of them, and nothing is taken in.

    queen sync setup takes the ledgers out of the code's branch, so that only that branch has them:
    it changes .beads/.gitignore and queen.toml, and stages that. You commit it.

    With --watch, it sends what is written here at once, and looks for what others push every few
    seconds, until it gets Ctrl-C or SIGTERM. It shows its state in one line.
    """
    if watch and what is not None:
        raise InvalidInput("--watch goes without setup", hint="queen sync --watch")
    if undo and what is None:
        raise InvalidInput("--undo goes with setup", hint="queen sync setup --undo")
    from queenbee.services import unasked  # noqa: PLC0415 - start-up

    if not is_by_agent(hive.layout):
        unasked.allow(hive.layout)
    if watch:
        return _watched(hive)
    if what is not None:
        from queenbee.git.remote import relocating  # noqa: PLC0415 - start-up

        return relocating.undo(hive) if undo else relocating.set_up(hive)
    from queenbee.git.hosts.issue_exchange import exchange  # noqa: PLC0415 - start-up
    from queenbee.git.remote.syncing import sync as synced  # noqa: PLC0415 - start-up

    done = synced(hive, at_first=True)
    exchange(hive, tell)
    return done
