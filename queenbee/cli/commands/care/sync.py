"""`queen sync`: exchanges the records with a branch of a git remote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from queenbee.cli.app import command
from queenbee.cli.terminal import say
from queenbee.core.text import printable
from queenbee.errors import InvalidInput

if TYPE_CHECKING:
    from queenbee.git.remote.moving import Moved
    from queenbee.git.remote.syncing import Synced
    from queenbee.workflows.hive import Hive


def _show(done: Synced) -> None:
    where = printable(f"{done.branch} of {done.remote}")
    if done.only_there:
        say(f"{done.only_there} lines are only on {where}, from clones whose records are in files")
        say("next, in those clones: git pull, then queen engine use postgres")
    if not (done.taken or done.sent or done.confirmed or done.refused):
        say(f"in step with {where}")
        return
    say(f"{where}: {done.taken} lines taken in, {done.sent} sent")
    if done.confirmed or done.refused:
        say(f"  requests confirmed: {done.confirmed}, ended: {done.refused}")


def _show_moved(moved: Moved) -> None:
    if not (moved.files or moved.untracked or moved.tracked):
        say("nothing was changed")
        return
    for path in moved.files:
        say(f"changed {printable(path)}")
    if moved.untracked:
        say(f"git no longer tracks {len(moved.untracked)} ledgers; their files are still there")
    if moved.tracked:
        say(f"git tracks {len(moved.tracked)} ledgers again")
    say("next: git commit -m 'Move the ledgers' -- .beads")


@command(
    "sync",
    show=lambda value: _show_moved(value) if hasattr(value, "untracked") else _show(value),
    example="queen sync\nqueen sync setup",
)
@click.argument("what", required=False, type=click.Choice(["setup"]), metavar="[setup]")
@click.option("--undo", is_flag=True, help="With setup: let git carry the ledgers with the code")
def sync(hive: Hive, what: str | None, undo: bool) -> Synced | Moved:
    """Exchange records with other machines, through git

    The records are on a branch of the git remote that holds nothing else. It fetches the branch,
    takes in what is new there, and pushes what is new here. No worktree and no branch of yours is
    touched. Exit 6: the remote cannot be reached.

    If the records are in a database, the branch gets a copy of them, and nothing is taken in.

    queen sync setup takes the ledgers out of the code's branch, so that only that branch has them:
    it changes .beads/.gitignore and queen.toml, and the index. You commit that.
    """
    if undo and what is None:
        raise InvalidInput("--undo goes with setup", hint="queen sync setup --undo")
    if what is not None:
        from queenbee.git.remote import moving  # noqa: PLC0415 - start-up

        return moving.undo(hive) if undo else moving.set_up(hive)
    from queenbee.git.remote.syncing import sync as exchange  # noqa: PLC0415 - start-up

    return exchange(hive)
