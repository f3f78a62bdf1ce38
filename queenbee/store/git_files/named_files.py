"""Files that the user named: a link that a clone brought does not decide what is read."""

from __future__ import annotations

import os

from queenbee.core.text import mentioned, shell_word
from queenbee.errors import InvalidInput
from queenbee.store import safe_open
from queenbee.store.git_files.ignore_files import is_ignored_by_git
from queenbee.store.git_trees import git_tree
from queenbee.store.whole_files import MAX_BYTES, read_document


def read_named(path: str, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Reads a file as `read_document` does. Raises as `refuse_led` does."""
    refuse_led(path)
    return read_document(path, max_bytes=max_bytes)


def refuse_led(path: str) -> None:
    """Raises `Unreadable` if a link of a clone leads out of it, and `InvalidInput` if one leads to
    what git ignores: nobody meant that to spread.
    """
    real = safe_open.resolved(path)
    here = git_tree(os.path.dirname(real)) if real != os.path.abspath(path) else None
    if here is None:
        return
    name = os.path.relpath(real, here.tree) + "/" * os.path.isdir(real)
    if is_ignored_by_git(here, name, os.environ):
        raise InvalidInput(
            f"{mentioned(path)} is a link to {mentioned(name)}, which git ignores",
            hint=f"if you mean that file, name it: {shell_word(real)}",
        )
