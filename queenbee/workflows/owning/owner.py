"""The program that owns the tracker's file: Beads' `bd` or `br`, where a repository uses one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from queenbee.checks.consent import Consent
from queenbee.core.beads import changed_ms
from queenbee.core.command_lines import command_line, no_dash
from queenbee.core.text import one_line, shell_word
from queenbee.core.timestamps import format_ms
from queenbee.errors import ExternalFailure, InvalidInput, Untrusted
from queenbee.store.codec import encode
from queenbee.store.creating import make_state_dir
from queenbee.store.git_files.host_tokens import without_tokens
from queenbee.store.git_trees import git_tree
from queenbee.store.layout import BEADS
from queenbee.store.safe_open import unlink
from queenbee.store.tracker.issue_owner import OF_BR, owner_in
from queenbee.store.whole_files import take_name

if TYPE_CHECKING:
    from queenbee.services.hive import Services

_TIMEOUT_S = 30
_LAST_CHARS = 300
_PROGRAMS = ("bd", "br")
_ELSEWHERE = frozenset({"BEADS_DB", "BD_DB"})
"""Variables that would have `bd` take another database than that of `BEADS_DIR`."""


class Owner:
    """The program that owns the tracker's file, and how to call it."""

    def __init__(self, name: str, hive: Services) -> None:
        self.name = name
        self._hive = hive
        self._layout = hive.layout

    @classmethod
    def of(cls, hive: Services) -> Owner | None:
        """Returns the owner, or None if the file belongs to nobody.

        Both programs leave a database or a configuration beside the file. Dolt is `bd`'s, and a
        history of the file `br`'s; otherwise it is the one of the two that is installed.
        """
        kind = owner_in(hive.layout.beads_dir)
        if kind is None:
            return None
        if kind == "dolt":
            return cls("bd", hive)
        if os.path.isdir(os.path.join(hive.layout.beads_dir, OF_BR)):
            return cls("br", hive)
        installed = [name for name in _PROGRAMS if _path_of(name, hive.layout.tree)]
        return cls((installed or _PROGRAMS)[0], hive)

    def close(self, issue_id: str, reason: str | None, *, actor: str) -> None:
        """Closes an issue. Raises `ExternalFailure`."""
        why = [f"--reason={one_line(reason)}"] if reason else []
        self.change("close", *why, values=[issue_id], actor=actor)

    def put(self, rows: Sequence[Mapping[str, object]], *, actor: str) -> None:
        """Adds and updates whole rows. Raises `ExternalFailure`; the rows are then in a file, which
        the hint names. Raises `InvalidInput` for `br`, which would drop their metadata.
        """
        if self.name != "bd":
            title = shell_word(str(rows[0].get("title")))
            raise InvalidInput(
                f"the tracker belongs to {self.name}, which keeps no metadata of an issue",
                hint=f"add the issues by hand: {self.name} create -- {title}",
            )
        make_state_dir(self._layout)
        path = os.path.join(self._layout.state_dir, "rows-for-bd.jsonl")
        lines = (encode({**row, "updated_at": _next_second(row)}) for row in rows)
        take_name(path, b"".join(line + b"\n" for line in lines))
        self.change("import", "-i", no_dash(path), actor=actor)
        unlink(path)

    @property
    def anyway(self) -> tuple[str, ...]:
        """What has it begin an issue although that waits for others."""
        return ("--force",) if self.name == "br" else ()

    def done_statuses(self) -> set[str]:
        """Returns the statuses of its users' own that mean done; none from an older version."""
        try:
            said = json.loads(self._run("--readonly", "statuses", "--json"))
        except (ExternalFailure, ValueError):
            return set()
        said = said.get("data", said) if isinstance(said, dict) else {}
        custom = said.get("custom_statuses") if isinstance(said, dict) else None
        return {
            str(each.get("name"))
            for each in (custom if isinstance(custom, list) else [])
            if isinstance(each, dict) and each.get("category") == "done"
        }

    def rows(self) -> bytes:
        """Returns all rows, one a line; none of `br`, which writes them to the file. Raises
        `ExternalFailure`.
        """
        if self.name == "br":
            self._run("sync", "--flush-only")
            return b""
        try:
            return self._run("--readonly", "export", "--all")
        except ExternalFailure as error:
            if "status" not in error.details:
                raise
            return self._run("export")  # An older version, which knows no such words.

    def change(self, *words: str, values: Sequence[str] | None = None, actor: str) -> str:
        """Does as `call` for what the actor asked for, which `queen undo` cannot take back."""
        said = self.call(*words, values=values, actor=actor)
        self._hive.wrote_elsewhere(self.name)
        return said

    def call(self, *words: str, values: Sequence[str] | None = None, actor: str) -> str:
        """Runs the program and returns what it printed. Raises as `_run` does."""
        return self._run(*words, values=values, actor=actor).decode(errors="replace")

    def _run(
        self, *words: str, values: Sequence[str] | None = None, actor: str | None = None
    ) -> bytes:
        """Runs the program and returns what it printed. It gets no tokens of code hosts. Raises
        `ExternalFailure`, and `Untrusted` for a hook of `bd` that nobody here has seen.
        """
        asked = command_line(self.name, *words, values=values)
        shown = " ".join(map(shell_word, asked))
        program = _path_of(self.name, self._layout.tree)
        if program is None:
            raise ExternalFailure(
                f"the tracker belongs to {self.name}, which is not installed here",
                hint=f"where it is installed: {shown}",
            )
        self._require_found(shown)
        if self.name == "bd":
            self._require_seen(shown)
        by = [f"--actor={actor}"] if actor is not None else []
        try:
            done = subprocess.run(
                command_line(program, *by, *words, values=values),
                cwd=os.path.dirname(self._layout.beads_dir),
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            timed_out = isinstance(error, subprocess.TimeoutExpired)
            why = f"timed out after {_TIMEOUT_S} s" if timed_out else str(error)
            raise ExternalFailure(f"{shown}: {why}", hint=shown, timed_out=timed_out) from error
        if done.returncode != 0:
            said = one_line((done.stderr or done.stdout).decode(errors="replace").strip())
            raise ExternalFailure(
                f"{shown} exited with status {done.returncode}: {said[-_LAST_CHARS:]}",
                hint=shown,
                status=done.returncode,
            )
        return done.stdout

    def _environment(self) -> dict[str, str]:
        """Returns the environment without tokens, and with this hive alone."""
        env = without_tokens(os.environ, self._layout.common_dir)
        kept = {name: value for name, value in env.items() if name not in _ELSEWHERE}
        return {**kept, "BEADS_DIR": self._layout.beads_dir}

    def _require_found(self, shown: str) -> None:
        """Raises `ExternalFailure` unless the program finds the same hive, also an older version
        that looks from the working directory.
        """
        beads_dir = self._layout.beads_dir
        redirect = os.path.join(beads_dir, "redirect")
        if os.path.basename(beads_dir) != BEADS:
            why, way = f"{beads_dir} is not called {BEADS}", f"rename it to {BEADS}"
        elif os.path.lexists(redirect):
            why, way = f"there is {redirect}", "remove that file"
        else:
            return
        raise ExternalFailure(
            f"{self.name} was not called, as it may take another hive: {why}",
            hint=f"{way}; then: {shown}",
        )

    def _require_seen(self, shown: str) -> None:
        from queenbee.workflows.proposed import of_tracker  # noqa: PLC0415 - start-up

        try:
            Consent.of(self._hive).require_still(lambda: of_tracker(self._layout))
        except Untrusted as error:
            error.hint = f"a person looks at it: queen config trust; then: {shown}"
            raise


def _next_second(row: Mapping[str, object]) -> str:
    """Returns a time after the row's: of two rows of one second, `bd` keeps the one that it has."""
    return format_ms((changed_ms(row) // 1000 + 1) * 1000)


def _path_of(name: str, tree: str) -> str | None:
    """Returns the path of a program; one in a worktree of the repository is not ours to run."""
    path = shutil.which(name)
    if path is None:
        return None
    folder = os.path.dirname(os.path.realpath(path))
    here, there = git_tree(tree), git_tree(folder)
    ours = here is not None and there is not None and here.common_dir == there.common_dir
    return None if ours or folder.startswith(tree) else path
