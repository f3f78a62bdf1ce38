"""The program that owns the tracker's file: Beads' `bd` or `br`, where a repository uses one."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from queenbee.core.text import one_line, shell_word
from queenbee.errors import ExternalFailure
from queenbee.store.git_trees import git_tree
from queenbee.store.issues_file import owner_in

if TYPE_CHECKING:
    from queenbee.store.layout import Layout

_TIMEOUT_S = 30
_LAST_CHARS = 300
_PROGRAMS = ("bd", "br")


class Owner:
    """The program that owns the tracker's file, and how to call it."""

    def __init__(self, name: str, layout: Layout) -> None:
        self.name = name
        self._layout = layout

    @classmethod
    def of(cls, layout: Layout) -> Owner | None:
        """Returns the owner, or None if the file belongs to nobody.

        Both programs leave a database or a configuration beside the file. Dolt is `bd`'s;
        otherwise it is the one of the two that is installed.
        """
        kind = owner_in(layout.beads_dir)
        if kind is None:
            return None
        if kind == "dolt":
            return cls("bd", layout)
        installed = [name for name in _PROGRAMS if _path_of(name, layout.tree)]
        return cls((installed or _PROGRAMS)[0], layout)

    def close(self, issue_id: str, reason: str | None, *, actor: str) -> None:
        """Closes an issue. Raises `ExternalFailure`."""
        why = [f"--reason={one_line(reason)}"] if reason else []
        self.call("close", *why, "--", issue_id, actor=actor)

    def call(self, command: str, *arguments: str, actor: str) -> str:
        """Runs the program and returns what it printed. Raises `ExternalFailure`."""
        shown = " ".join(shell_word(each) for each in (self.name, command, *arguments))
        program = _path_of(self.name, self._layout.tree)
        if program is None:
            raise ExternalFailure(
                f"the tracker's file belongs to {self.name}, which is not installed here",
                hint=f"where it is installed: {shown}",
            )
        try:
            done = subprocess.run(
                [program, f"--actor={actor}", command, *arguments],
                cwd=os.path.dirname(self._layout.beads_dir),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            timed_out = isinstance(error, subprocess.TimeoutExpired)
            why = f"timed out after {_TIMEOUT_S} s" if timed_out else str(error)
            raise ExternalFailure(f"{shown}: {why}", hint=shown) from error
        if done.returncode != 0:
            said = one_line((done.stderr or done.stdout).decode(errors="replace").strip())
            raise ExternalFailure(
                f"{shown} exited with status {done.returncode}: {said[-_LAST_CHARS:]}", hint=shown
            )
        return done.stdout.decode(errors="replace")


def _path_of(name: str, tree: str) -> str | None:
    """Returns the path of a program; one in a worktree of the repository is not ours to run."""
    path = shutil.which(name)
    if path is None:
        return None
    folder = os.path.dirname(os.path.realpath(path))
    here, there = git_tree(tree), git_tree(folder)
    ours = here is not None and there is not None and here.common_dir == there.common_dir
    return None if ours or folder.startswith(tree) else path
