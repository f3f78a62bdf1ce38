"""A folder that has no `.git`, neither itself nor above it.

Git may take it for a working tree all the same, if `GIT_DIR` says so, as for dotfiles. Nothing of
ours goes by that: an agent would have to say it at each command of its own.
"""

from __future__ import annotations

import os

from queenbee.core.text import mentioned, shell_word, suggested
from queenbee.errors import InvalidInput
from queenbee.git.run import line


def outside_git(folder: str) -> InvalidInput:
    """Returns the error for a folder outside git, with how it gets in. Git is asked with what the
    environment says of a repository. Raises `NotTrusted`.
    """
    git_dir = line("rev-parse", "--absolute-git-dir", cwd=folder)
    if git_dir is None:
        return InvalidInput("this is not a git repository", hint="git init")
    tree = line("rev-parse", "--show-toplevel", cwd=folder) or folder
    dot_git = shell_word(os.path.join(tree, ".git"))
    return InvalidInput(
        f"{mentioned(tree)} has no .git: only the environment or git's settings say that its "
        f"repository is {mentioned(git_dir)}",
        hint=f"{suggested('git --git-dir', git_dir)} config core.bare false && "
        f"echo gitdir: {shell_word(git_dir)} > {dot_git}",
    )
