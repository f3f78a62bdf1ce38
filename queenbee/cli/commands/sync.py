"""`queen sync`: exchanges the records with a branch of a git remote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.cli.app import command
from queenbee.cli.terminal import say
from queenbee.core.text import printable

if TYPE_CHECKING:
    from queenbee.git.remote.syncing import Synced
    from queenbee.workflows.hive import Hive


def _show(done: Synced) -> None:
    where = printable(f"{done.branch} of {done.remote}")
    if not (done.taken or done.sent or done.confirmed or done.refused):
        say(f"in step with {where}")
        return
    say(f"{where}: {done.taken} lines taken in, {done.sent} sent")
    if done.confirmed or done.refused:
        say(f"  requests confirmed: {done.confirmed}, ended: {done.refused}")


@command("sync", show=_show, example="queen sync")
def sync(hive: Hive) -> Synced:
    """Exchange the records with other machines, through a branch of the git remote

    It fetches the branch, takes in what is new there, and pushes what is new here. No worktree and
    no branch of yours is touched. Exit 6: the remote cannot be reached.
    """
    from queenbee.git.remote.syncing import sync as exchange  # noqa: PLC0415 - start-up

    return exchange(hive)
