"""What a Makefile includes that git does not have, as far as its lines name it."""

from __future__ import annotations

import glob
import os
import posixpath
import re
from typing import TYPE_CHECKING

from queenbee.store import safe_open

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_INCLUDES = re.compile(r"^ *(-include|sinclude|include)[ \t]+([^#\n]*)", re.M)
_WILDCARD = re.compile(r"\$[({]wildcard ([^$(){}]*)[)}]")
_MADE = (".d", ".dep", ".Po", ".Plo")
"""What compilers write for `make`: the files that a file was made of."""
_MOST_BYTES = 2**20


def included(
    tree: str, makefiles: Sequence[str], tracked: Collection[str]
) -> Iterator[tuple[str, bool]]:
    """Yields the files that Makefiles include, that are there, and that git does not have; each
    with whether `make` also works without it.

    Settings of a machine (`.env`) and what compilers write are not among those: projects keep them
    out of git, and cannot do without.
    """
    for path, how in _read(tree, makefiles, tracked):
        if how is not None:
            yield path, how != "include" and not _is_kept_out(path)


def makefiles_read(tree: str, makefiles: Sequence[str], tracked: Collection[str]) -> Iterator[str]:
    """Yields Makefiles, and those that git has of what they include."""
    return (path for path, how in _read(tree, makefiles, tracked) if how is None)


def text_of(path: str) -> str:
    """Returns a Makefile with its continued lines joined; "" if it cannot be read."""
    try:
        return os.fsdecode(safe_open.read(path, _MOST_BYTES)).replace("\\\n", " ")
    except OSError:
        return ""


def _read(
    tree: str, makefiles: Sequence[str], tracked: Collection[str]
) -> Iterator[tuple[str, str | None]]:
    """Yields the files that `make` reads: one that git has without, another one with the word that
    includes it.
    """
    todo, seen = [(each, posixpath.dirname(each)) for each in makefiles], set[str]()
    while todo:
        path, folder = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        yield path, None
        for how, word in _lines(os.path.join(tree, path)):
            for each in _files(tree, folder, word):
                if each in tracked:
                    todo.append((each, folder))
                elif os.path.isfile(os.path.join(tree, each)):
                    yield each, how


def _lines(path: str) -> Iterator[tuple[str, str]]:
    """Yields how each file is included, and the word that names it."""
    for how, words in _INCLUDES.findall(text_of(path)):
        for word in _WILDCARD.sub(r"\1", words).split():
            if "$" not in word:
                yield how, word


def _files(tree: str, folder: str, word: str) -> Iterator[str]:
    """Yields the files that a word names: from the folder where `make` runs, or the top."""
    for base in {folder, ""}:
        where = posixpath.normpath(posixpath.join(base, word))
        if not where.startswith(("/", "../")):
            pattern = os.path.join(glob.escape(tree), where)
            yield from (os.path.relpath(each, tree) for each in sorted(glob.glob(pattern)))


def _is_kept_out(path: str) -> bool:
    name = posixpath.basename(path)
    return name == ".env" or name.startswith(".env.") or name.endswith(_MADE)
