"""Which files of a repository a command reads, as far as its words say.

Only what can be said for certain: the words that are files, what some programs read by their own
rules, and the modules that Python looks for in the folder where it begins.
"""

from __future__ import annotations

import os
import posixpath
import shlex
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_PYTEST = ("pytest.ini", ".pytest.ini", "conftest.py", "pyproject.toml", "tox.ini", "setup.cfg")
_READS = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "npm": ("package.json", ".npmrc"),
    "pnpm": ("package.json", ".npmrc"),
    "yarn": ("package.json", ".yarnrc.yml"),
    "tox": ("tox.ini", "setup.cfg", "pyproject.toml"),
    "nox": ("noxfile.py",),
    "pytest": _PYTEST,
    "py.test": _PYTEST,
    "cargo": (".cargo/config.toml", ".cargo/config"),
    "go": ("go.work",),
    "uv": ("uv.toml", "pyproject.toml"),
}
"""The files, at the top or in a folder that the command names, that say what a program does."""
_FIRST_OF = frozenset({"make", "just"})
"""The programs that read the first of these files, and no other."""
_OFTEN_LOCAL = frozenset(
    {".npmrc", ".yarnrc.yml", ".cargo/config.toml", ".cargo/config", "go.work"}
)
"""What people keep out of git, with their tokens and paths."""
_ALONE = frozenset({"pytest.ini", ".pytest.ini", "conftest.py"})
"""What is read also where none of the others is there."""
_MOST_LINKS = 10


class Family(NamedTuple):
    """Files of one program, of which it reads the first, or all."""

    files: list[str]
    is_first: bool

    def instead_of(self, known: set[str]) -> Iterator[str]:
        """Yields those that would be read in place of known ones, or beside them."""
        first = next((n for n, each in enumerate(self.files) if each in known), None)
        for number, each in enumerate(self.files):
            if posixpath.basename(each) in _ALONE:
                yield each
            elif first is None or each.endswith(tuple(_OFTEN_LOCAL)):
                continue
            elif number < first or not self.is_first:
                yield each


class CommandReads:
    """What one command reads, as paths from the top of the repository."""

    def __init__(self, command: str) -> None:
        words = [each for each in _words(command) if each and "\0" not in each]
        self.words = [posixpath.normpath(each) for each in words if each.strip("./")]
        """Those that may be paths."""
        self.modules = [each.replace(".", "/") for each in _modules(words)]
        """The modules that Python runs, as paths without an end."""
        folders = ["", *(f"{each}/" for each in dict.fromkeys(self.words))]
        self.families = [
            Family([folder + each for each in _READS[name]], name in _FIRST_OF)
            for name in dict.fromkeys(map(posixpath.basename, words))
            if name in _READS
            for folder in folders
        ]

    @property
    def names(self) -> set[str]:
        """All that it may read; few of them are there."""
        found = {*self.words}
        for family in self.families:
            found.update(family.files)
        for module in self.modules:
            found.update(forms(module))
            parents = module.split("/")[:-1]
            found.update(
                "/".join([*parents[:n], "__init__.py"]) for n in range(1, len(parents) + 1)
            )
        return found


def forms(module: str) -> list[str]:
    """Returns the files that a module may be: a package is found first."""
    return [f"{module}/__init__.py", f"{module}/__main__.py", f"{module}.py"]


def with_links(tree: str, path: str) -> Iterator[str]:
    """Yields a path and its folders, and what they lead to where a tree has links there."""
    for _ in range(_MOST_LINKS):
        parts = path.split("/")
        above = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
        yield from above
        link = next((each for each in above if each and os.path.islink(f"{tree}/{each}")), None)
        if link is None:
            return
        leads_to = posixpath.join(posixpath.dirname(link), os.readlink(f"{tree}/{link}"))
        path = posixpath.normpath(leads_to + path[len(link) :])


def _words(command: str) -> Iterator[str]:
    """Yields the words of a command, also of those within quotes, and what is after a `=`."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = [*lexer]
    except ValueError:  # A quote that is not closed.
        words = command.split()
    for word in words:
        yield word
        yield word.partition("=")[2]
        if word != command and len(word.split()) > 1:
            yield from _words(word)


def _modules(words: list[str]) -> Iterator[str]:
    """Yields the names after `-m`."""
    for word, following in zip(words, [*words, ""][1:], strict=True):
        name = following if word == "-m" else word[2:] if word.startswith("-m") else ""
        if all(part.isidentifier() for part in name.split(".")):
            yield name
