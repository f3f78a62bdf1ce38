"""What `make` would take for made: a file with the name of a target, which git does not have.

Only for targets that a command names, or the first one, that a Makefile has a rule for, that are
not phony, and that the recipe itself does not write, as far as its lines say.
"""

from __future__ import annotations

import getopt
import os
import posixpath
import re
import shlex
from typing import TYPE_CHECKING

from queenbee.git.landing.judged.included import makefiles_read, text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_MAKES = ("make", "gmake")
_FILES = ("GNUmakefile", "makefile", "Makefile")
_VALUES = (
    *("directory=", "file=", "makefile=", "include-dir=", "old-file=", "assume-old="),
    *("new-file=", "assume-new=", "what-if=", "eval="),
)
_SHORT = "C:f:I:o:W:E:bBdehikLmnpqrRsStvw"
_INSTALLED = ("node_modules", "vendor", "venv")
"""What package managers fill, whatever the recipe says."""
_NUMBERS = re.compile(r"-[jlO][\w.]*|[\d.]+")
_RULE = re.compile(
    r"^([^\s#:=$%.][^#:=$%\n]*):{1,2}(?![:=])([^\n]*(?:\n(?:\t[^\n]*|[ ]*)(?=\n|$))*)", re.M
)
_PHONY = re.compile(r"^\.PHONY[ ]*:([^#\n]*)", re.M)


def taken_for_made(commands: Sequence[str], tree: str, tracked: Collection[str]) -> set[str]:
    """Returns the files and folders of a worktree that `make` would take for its targets."""
    found = set[str]()
    for folder, files, targets in (each for one in commands for each in _runs(one)):
        names = [posixpath.normpath(posixpath.join(folder, each)) for each in files or _FILES]
        first = [each for each in names if each in tracked][: None if files else 1]
        rules = _Rules(tree, makefiles_read(tree, first, tracked))
        for target in targets or rules.first:
            path = posixpath.normpath(posixpath.join(folder, target))
            if rules.stop_at(target) and os.path.lexists(os.path.join(tree, path)):
                found.add(path)
    return {each for each in found if not _is_tracked(each, tracked)}


def _is_tracked(path: str, tracked: Collection[str]) -> bool:
    is_out = path.startswith(("/", "../"))
    return is_out or path in tracked or any(each.startswith(f"{path}/") for each in tracked)


class _Rules:
    """The rules of some Makefiles, as far as their lines name the targets."""

    def __init__(self, tree: str, paths: Iterator[str]) -> None:
        text = "\n".join(text_of(os.path.join(tree, each)) for each in paths)
        self._phony = {word for line in _PHONY.findall(text) for word in line.split()}
        self._rules = {
            word: rule for words, rule in reversed(_RULE.findall(text)) for word in words.split()
        }
        self.first = [word for words, _ in _RULE.findall(text)[:1] for word in words.split()[:1]]
        """What is made where no target is named."""

    def stop_at(self, target: str) -> bool:
        """Returns whether nothing is run for a target that is there."""
        rule = self._rules.get(target)
        # A variable may name anything.
        if (
            rule is None
            or target in {*self._phony, *_INSTALLED}
            or any("$" in each for each in self._phony)
        ):
            return False
        own = rf"\$@|(-o|>|touch|mkdir|-p|venv)[ ]*{re.escape(target)}(?![\w.-])"
        return re.search(own, rule) is None


def _runs(command: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields what a command makes: the folder, the Makefiles and the targets that it names."""
    folder = ""
    for line in command.split("\n"):
        for words in _simple(line):
            for word in words:
                if len(word.split()) > 1 and word != command:
                    yield from _runs(word)
            if words[:1] == ["cd"] and len(words) == 2:
                folder = posixpath.join(folder, words[1])
            names = [posixpath.basename(each) for each in words]
            at = next((n for n, name in enumerate(names) if name in _MAKES), None)
            if at is not None:
                yield from _run(folder, words[at + 1 :])


def _simple(line: str) -> Iterator[list[str]]:
    """Yields the words of each command in a line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = [*lexer]
    except ValueError:  # A quote that is not closed.
        words = []
    found: list[str] = []
    for word in [*words, ";"]:
        if set(word) <= set("();<>|&"):
            if found:
                yield found
            found = []
        else:
            found.append(word)


def _run(folder: str, words: Sequence[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    long = {f"--{each[:-1]}" for each in _VALUES}
    words = [
        each
        for each in words
        if not _NUMBERS.fullmatch(each)
        and (not each.startswith("--") or each.partition("=")[0] in long)
    ]
    try:
        options, rest = getopt.gnu_getopt(words, _SHORT, [*_VALUES])
    except getopt.GetoptError:
        return
    files = [value for name, value in options if name in ("-f", "--file", "--makefile")]
    for name, value in options:
        if name in ("-C", "--directory"):
            folder = posixpath.join(folder, value)
    yield folder, files, [each for each in rest if "=" not in each]
