"""What needs git itself: the guard and its hooks, and what git lacks of a hive.

`run` starts git; `changes` asks it what a commit or a push changes; `guard` decides whether that
may pass; `hooks` and `hook_scripts` make git run the guard; `left_out` finds what was not
committed. `unmerged` knows what each worktree has that the main branch lacks: from it, `touched`
tells who else works in a file, `lines` where two changes of it meet, and `collisions` which
worktrees conflict.
"""

from __future__ import annotations

import os
from functools import partial

from queenbee.core.command_lines import no_dash

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Collection

    from queenbee.services.hive import Services
    from queenbee.store.layout import Layout


def let_ask(store: Services) -> None:
    """Lets an open store ask git."""
    store.has_commit = _has_commit
    store.changed_by = _changed_by
    store.look_again = partial(_look_again, store)


def _has_commit(layout: Layout, commit: str) -> bool:
    from queenbee.git.run import line  # noqa: PLC0415 - start-up

    merged = os.path.join(layout.git_dir or "", "MERGE_HEAD")  # Of a merge that is under way.
    more = ["MERGE_HEAD"] if os.path.exists(merged) else []
    asked = ("merge-base", no_dash(commit), "HEAD", *more)
    return line(*asked, cwd=layout.tree, repository={}, limit_s=2.0) == commit


def _look_again(store: Services) -> bool:
    from queenbee.git.remote.alongside import freshen  # noqa: PLC0415 - start-up
    from queenbee.services.unasked import wants_fetch  # noqa: PLC0415 - start-up

    if not wants_fetch(store, anew=True):
        return False
    freshen(store, anew=True)
    return True


def _changed_by(layout: Layout, droids: Collection[str], own: bool) -> set[str]:
    from queenbee.git.touched import changed_by  # noqa: PLC0415 - start-up

    return changed_by(layout, droids, own=own)
