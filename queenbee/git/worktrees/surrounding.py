"""A worktree in the files of another repository, or of its own one: `git add -A` there would take
it for a repository of its own, and commit a link to it.
"""

from __future__ import annotations

import os

from queenbee.core.text import shell_word
from queenbee.git.run import line
from queenbee.store.git_trees import git_tree, is_bare


def hiding(path: str, main: str) -> str:
    """Returns the command that hides a worktree, and the checkout of landings beside the `main`
    one, from the repository in whose files it is; empty if that does not see it.
    """
    around = git_tree(os.path.dirname(path))
    if around is None or (is_bare(around.common_dir) and not around.linked):
        return ""
    if line("check-ignore", "--", path, cwd=around.tree, repository={}):
        return ""
    beside = f"{main}-landing-*"
    names = [os.path.relpath(each, around.tree) for each in (path, beside)]
    words = " ".join(shell_word(f"/{each}") for each in names if not each.startswith(".."))
    exclude = shell_word(os.path.join(around.common_dir, "info", "exclude"))
    return f"printf '%s\\n' {words} >> {exclude}"
