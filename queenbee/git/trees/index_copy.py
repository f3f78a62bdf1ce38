"""Git with a copy of a worktree's index: it sees and stores all files, and changes nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from queenbee.git.run import git, without_programs
from queenbee.git.trees.hidden import looking, show_hidden
from queenbee.git.trees.submodules import show_unseen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queenbee.store.git_files.worktrees import Worktree

_LONG_AGO_S = (1, 1)


@contextmanager
def index_copy(place: Worktree, *, exactly: bool, limit_s: float) -> Iterator[Callable[..., bytes]]:
    """Yields what runs git in a worktree with a copy of its index, without filters, and
    with no file hidden; it takes the words of a command, and `config`.

    `exactly`: git reads every file, since a size and times can be those of another content. Raises
    `ExternalFailure` and `OSError`.
    """
    with tempfile.TemporaryDirectory(prefix="queen-index-") as folder:
        index = os.path.join(folder, "index")
        with suppress(FileNotFoundError):  # `git worktree add --no-checkout` makes none.
            # With its time, by which git knows which files it must read.
            shutil.copy2(os.path.join(place.git_dir, "index"), index)
            if exactly:  # All files are younger.
                os.utime(index, _LONG_AGO_S)
        repository = {
            "GIT_DIR": place.git_dir,
            "GIT_WORK_TREE": place.path,
            "GIT_INDEX_FILE": index,
        }
        said = {
            **without_programs(place.path, repository, limit_s=limit_s),
            **looking(place.path),
        }

        def run(*arguments: str, config: dict[str, str] | None = None) -> bytes:
            return git(
                *arguments,
                cwd=place.path,
                config={**said, **(config or {})},
                repository=repository,
                limit_s=limit_s,
            )

        show_hidden(place.path, repository)
        show_unseen(place.path, run)
        yield run
