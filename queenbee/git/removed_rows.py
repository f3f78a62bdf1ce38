"""Rows of the tracker's file that a commit removed: these do not come back by themselves.

A row that git took away by `stash`, `reset`, `checkout` or `clean` is not meant to be gone. It is
if the commits that led to HEAD have had it, and HEAD has not. `docs/format.md`, section "Issues".
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from queenbee.errors import ExternalFailure
from queenbee.git.run import git, line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from queenbee.store.layout import Layout

_LIMIT_S = 10.0
_LOG = (
    *("log", "--format=", "--patch", "--unified=0", "--diff-merges=first-parent"),
    *("--no-textconv", "--no-ext-diff", "--no-color", "--no-renames", "HEAD", "--"),
)


def removed_rows(layout: Layout, issue_ids: Sequence[str]) -> set[str]:
    """Returns those of these issues whose row a commit removed from the file.

    Where git cannot tell, or takes too long, it is none: nothing is lost then.
    """
    folder, name = os.path.split(layout.issues_path)
    if layout.common_dir is None:
        return set()
    try:
        said = git(*_LOG, name, cwd=folder, limit_s=_LIMIT_S)
        had = set(_ids(each[1:] for each in said.split(b"\n") if each.startswith(b"-{")))
        removed = had.intersection(issue_ids)
        if removed and line("rev-parse", "--verify", "--quiet", f"HEAD:./{name}", cwd=folder):
            there = git("show", "--no-textconv", f"HEAD:./{name}", cwd=folder, limit_s=_LIMIT_S)
            removed.difference_update(_ids(there.split(b"\n")))
    except ExternalFailure:
        return set()
    return removed


def _ids(lines: Iterable[bytes]) -> Iterator[str]:
    for raw in lines:
        try:
            row = json.loads(raw)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("id"), str):
            yield row["id"]
