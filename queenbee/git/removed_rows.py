"""Rows of the tracker's file that commits removed: these do not come back by themselves.

A row that git took away by `stash`, `reset`, `checkout` or `clean` is not meant to be gone. It is
if the commits that led to HEAD have had it, and HEAD has not. `docs/format.md`, section "Issues".
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from queenbee.core.row_edits import STAMP
from queenbee.errors import ExternalFailure
from queenbee.git.run import git, line
from queenbee.services.keeping import KIND

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queenbee.services.keeping import Removed
    from queenbee.store.layout import Layout

_LIMIT_S = 5.0
"""How long git may take: nobody waits for a lock meanwhile, but somebody for the command."""
_LOG = (
    *("log", "--format=%x00%s", "--patch", "--unified=0", "--full-history"),
    *("--diff-merges=dense-combined", "--no-textconv", "--no-ext-diff", "--no-color"),
    "--no-renames",
)


def removed_rows(layout: Layout, since_ms: int) -> tuple[Removed, bool]:
    """Returns the rows that commits since then removed from the file: when each of the versions
    that went had changed, by id. And whether that is all: else, git cannot tell more.
    """
    if layout.common_dir is None:
        return {}, True
    asked = _Asked(layout, since_ms)
    try:
        removed = asked.by_commits()
        is_whole = not asked.is_cut_off()
        if not is_whole:
            # What a commit has in the ledger, and not in the file, somebody removed before that.
            removed = {**_versions(asked.at_head(layout.ledger_path(KIND))), **removed}
        there = _versions(asked.at_head(layout.issues_path)) if removed else {}
        return {key: removed[key] for key in removed if key not in there}, is_whole
    except ExternalFailure:
        return {}, not asked.has_commits()


class _Asked:
    """Questions to git about one repository; all of them together take so long at most."""

    def __init__(self, layout: Layout, since_ms: int) -> None:
        self._layout = layout
        self._since = [f"--since=@{since_ms // 1000} +0000"] if since_ms > 0 else []
        self._until_s = time.monotonic() + _LIMIT_S

    def _git(self, *arguments: str) -> bytes:
        left_s = max(0.1, self._until_s - time.monotonic())
        return git(*arguments, cwd=self._layout.root, limit_s=left_s)

    def by_commits(self) -> Removed:
        """Returns the versions of rows that commits took out, those of before included.

        The last commit that took a row out counts, and none that put another in its place. A merge
        that takes the file of one side removes no row of the other: it has a `-` for each parent
        with the line. A commit that takes out what the ledger says of a row, too, meant neither:
        somebody committed an older state of all files. Nor did a revert: it is about other files.
        """
        layout, found, are_meant = self._layout, dict[str, list[str]](), dict[str, bool]()
        paths = (layout.issues_path, layout.ledger_path(KIND))
        names = [os.path.relpath(each, layout.root) for each in paths]
        for commit in self._git(*_LOG, *self._since, "HEAD", "--", *names).split(b"\0"):
            gone: tuple[list[bytes], list[bytes]] = ([], [])
            there: list[bytes] = []
            of_ledger = False
            subject, *lines = commit.split(b"\n")
            is_revert = subject.startswith(b'Revert "')
            for each in lines:
                if each.startswith(b"diff "):
                    of_ledger = each.endswith(os.fsencode(names[1]))
                elif (row := each.lstrip(b"-")) != each and row.startswith(b"{"):
                    gone[of_ledger].append(row)
                elif not of_ledger and (row := each.lstrip(b"+ ")) != each:
                    there.append(row)
            of_rows, of_lines = _versions(gone[0]), _versions(gone[1])
            for key, versions in of_rows.items():
                found.setdefault(key, []).extend(versions)
            for key in of_rows.keys() - _versions(there).keys():
                are_meant.setdefault(key, not (is_revert or key in of_lines))
        return {key: found[key] for key, is_meant in are_meant.items() if is_meant}

    def is_cut_off(self) -> bool:
        """Returns whether the clone lacks some of the commits since then: a shallow one."""
        assert self._layout.common_dir is not None
        if not os.path.exists(os.path.join(self._layout.common_dir, "shallow")):
            return False
        return bool(self._git("rev-list", "--max-parents=0", *self._since, "HEAD"))

    def at_head(self, path: str) -> list[bytes]:
        """Returns the lines of a file in HEAD; none if it is not there."""
        name = f"HEAD:./{os.path.relpath(path, self._layout.root)}"
        if not line("rev-parse", "--verify", "--quiet", name, cwd=self._layout.root):
            return []
        return self._git("show", "--no-textconv", name).split(b"\n")

    def has_commits(self) -> bool:
        """Returns whether there is anything that git could tell of."""
        try:
            asked = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
            return line(*asked, cwd=self._layout.root, limit_s=_LIMIT_S) is not None
        except ExternalFailure:
            return True


def _versions(lines: Iterable[bytes]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in _rows(lines):
        if isinstance(identifier := row.get("id"), str):
            found.setdefault(identifier, []).append(str(row.get(STAMP)))
    return found


def _rows(lines: Iterable[bytes]) -> Iterator[dict[str, object]]:
    for raw in lines:
        try:
            row = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row
