"""Finds ignore rules that keep the ledgers out of commits: clones would never get them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from queenbee.core.text import suggested
from queenbee.errors import NotFound
from queenbee.services.diagnosis import Diagnosis
from queenbee.store.git_trees import git_tree
from queenbee.store.whole_files import read_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queenbee.store.git_trees import GitTree
    from queenbee.store.layout import Layout


def ignored_ledgers(layout: Layout, paths: Iterable[str]) -> Iterator[Diagnosis]:
    """Returns a note for each of these ledgers that an ignore file of the repository names.

    It does not look at rules outside the repository, or at whether the file was added anyway: that
    takes a git process. Raises `Unreadable`.
    """
    git = git_tree(layout.root)
    if git is None:
        return
    rules = _rules(git, layout.beads_dir)
    for path in paths:
        by = _ignored_by(path, git.tree, rules) if os.path.exists(path) else None
        if by is not None:
            yield Diagnosis(
                "ignored",
                path,
                f"{by} tells git to ignore this ledger: unless it was added by force, clones do "
                "not get it",
                hint=f"see the rule: {suggested('git check-ignore -v --no-index', path)}",
                severity="note",
            )


def _rules(git: GitTree, folder: str) -> list[tuple[str, str, GitIgnoreSpec]]:
    """Returns the ignore files that apply in a folder, the weakest first: base, path and rules."""
    bases = [git.tree]
    for name in os.path.relpath(folder, git.tree).split(os.sep):
        bases.append(os.path.join(bases[-1], name))
    files = [(git.tree, os.path.join(git.common_dir, "info", "exclude"))]
    files += [(base, os.path.join(base, ".gitignore")) for base in bases]
    found = []
    for base, path in files:
        try:
            text = read_document(path).decode(errors="surrogateescape")
        except NotFound:
            continue
        found.append((base, path, GitIgnoreSpec.from_lines(text.splitlines())))
    return found


def _ignored_by(path: str, tree: str, rules: list[tuple[str, str, GitIgnoreSpec]]) -> str | None:
    """Returns the file whose rule makes git ignore a path or a folder that it is in."""
    names = os.path.relpath(path, tree).split(os.sep)
    for count in range(1, len(names) + 1):
        each = os.path.join(tree, *names[:count])
        end = os.sep if count < len(names) else ""
        by = None
        for base, file, spec in rules:
            if each.startswith(base + os.sep):
                ignored = spec.check_file(os.path.relpath(each, base) + end).include
                if ignored is not None:
                    by = file if ignored else None
        if by is not None:  # A later rule cannot re-include a file in an ignored folder.
            return by
    return None
