"""Checks of commits in copies that nobody works in."""

from __future__ import annotations

import os
import queue
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.git.landing.commands import git
from queenbee.git.landing.together.checked import run_check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.checks.processes import Interrupts
    from queenbee.git.landing.together.checked import Check, Verdict


class Copies:
    """Copies of commits in temporary folders, as many as are checked at once.

    Each is a repository of its own that reads the objects of the others: nothing of theirs changes.
    It has what git tracks, and nothing else.
    """

    def __init__(
        self, check: Check, objects: Sequence[str], jobs: int, interrupts: Interrupts
    ) -> None:
        self._check = check
        self._objects = objects
        self.jobs: int = max(1, jobs)
        self._interrupts = interrupts
        self._free: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stack = ExitStack()

    def __enter__(self) -> Copies:
        for _ in range(self.jobs):
            folder = tempfile.TemporaryDirectory(prefix="queenbee-", ignore_cleanup_errors=True)
            tree = self._stack.enter_context(folder)
            git("init", "-q", "--template=", cwd=tree)
            info = os.path.join(tree, ".git", "objects", "info")
            os.makedirs(info, exist_ok=True)
            with open(os.path.join(info, "alternates"), "w", encoding="utf-8") as file:
                file.writelines(f"{each}\n" for each in self._objects)
            self._free.put(tree)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def verdicts(self, commits: Sequence[str]) -> list[Verdict]:
        """Checks commits, side by side."""
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(self._verdict, commits))

    def _verdict(self, commit: str) -> Verdict:
        tree = self._free.get()
        try:
            how = ("checkout", "-q", "--force", "--detach", no_dash(commit), "--")
            git(*how, cwd=tree)
            git("clean", "-ffdxq", cwd=tree)  # Also what was compiled.
            return run_check(self._check, tree, self._interrupts)
        finally:
            self._free.put(tree)
