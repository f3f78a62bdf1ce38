"""The hive's own files in what is to be committed or landed: could everybody still read them?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import suggested
from queenbee.errors import ExternalFailure, Unreadable
from queenbee.git.run import git
from queenbee.store.settings import FILE_NAME, loaded

if TYPE_CHECKING:
    from collections.abc import Iterable

_OURS = re.compile(r"(?:^|/)\.beads/(queen\.toml|queen_\w+\.jsonl|issues\.jsonl)(/.*)?$")

_RECORD = re.compile(r"\.beads/(?:queen_\w+\.jsonl|issues\.jsonl|archive/[\w.]+\.jsonl)")


def is_record(path: str) -> bool:
    """Returns whether a file is a ledger, its archive, or the tracker."""
    return _RECORD.fullmatch(path) is not None


def refuse_unreadable(tree: str, revision: str, changed: Iterable[str]) -> None:
    """Raises `Unreadable` if a commit, or with an empty `revision` the index, has settings that
    cannot be used, or a folder in place of settings, of a ledger or of the tracker.
    """
    for path in changed:
        found = _OURS.search(path)
        if found is not None and found[2]:
            raise Unreadable(
                f"{path[: -len(found[2])]} would be a folder",
                hint=suggested("git restore", path),
                path=path,
            )
        if found is not None and found[1] == FILE_NAME:
            try:
                data = git("cat-file", "blob", no_dash(f"{revision}:{path}"), cwd=tree)
            except ExternalFailure:
                continue  # It is removed: the defaults count.
            loaded(path, data, {})
