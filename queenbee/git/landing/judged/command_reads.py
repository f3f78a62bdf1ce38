"""Which files of a repository a command reads, as far as its words say.

The words that are files, what some programs read by their own rules, and the modules that Python
looks for in the folder where it begins; and all settings, if another program is started. Each of
these counts in every folder that a word names, since the command may go there first.
"""

from __future__ import annotations

import os
import posixpath
import re
import shlex
import sys
from dataclasses import dataclass
from itertools import dropwhile
from typing import TYPE_CHECKING

from queenbee.git.landing.judged.settings_read import is_setting, is_unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PYTEST = (
    *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "conftest.py"),
    *("pyproject.toml", "tox.ini", "setup.cfg"),
)
_MAKE = ("GNUmakefile", "makefile", "Makefile")
_GRADLE = (
    *("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    *("gradle.properties", "gradle/wrapper/gradle-wrapper.properties"),
    "gradle/wrapper/gradle-wrapper.jar",
)
_MAVEN = (
    *("pom.xml", ".mvn/jvm.config", ".mvn/maven.config", ".mvn/extensions.xml"),
    ".mvn/wrapper/maven-wrapper.properties",
)
_PNPM = (
    *("package.json", "package.json5", "package.yaml", ".npmrc", "pnpm-workspace.yaml"),
    *(".pnpmfile.cjs", ".pnpmfile.mjs"),
)
_CARGO = (
    *(".cargo/config.toml", ".cargo/config", "rust-toolchain", "rust-toolchain.toml"),
    *("Cargo.toml", "build.rs", ".config/nextest.toml"),
)
_RAKE = ("Rakefile", "rakefile", "Rakefile.rb", "rakefile.rb")
_TASK = tuple(
    f"{name}{of}.{end}"
    for name in ("Taskfile", "taskfile")
    for of in ("", ".dist")
    for end in ("yml", "yaml")
)
READS = {
    "make": _MAKE,
    "gmake": _MAKE,
    "just": ("justfile", "Justfile", ".justfile"),
    "npm": ("package.json", ".npmrc"),
    "pnpm": _PNPM,
    "yarn": ("package.json", ".yarnrc.yml", ".yarnrc", ".pnp.cjs"),
    "bun": ("package.json", "bunfig.toml"),
    "deno": ("deno.json", "deno.jsonc"),
    "composer": ("composer.json",),
    "rake": _RAKE,
    "task": _TASK,
    "mvn": _MAVEN,
    "mvnw": _MAVEN,
    "gradle": _GRADLE,
    "gradlew": _GRADLE,
    "tox": ("tox.ini", "tox.toml", "setup.cfg", "pyproject.toml"),
    "nox": ("noxfile.py",),
    "pytest": _PYTEST,
    "py.test": _PYTEST,
    "cargo": _CARGO,
    "go": ("go.work", "go.mod"),
    "uv": ("uv.toml", "pyproject.toml"),
}
"""The files, at the top or in a folder that the command names, that say what a program does. Of
any other program, all that look like settings count (`settings_read`).
"""
_NODE = frozenset({"node", "bun", "deno", "tsx", "ts-node"})
_OF_NODE = ("package.json", "index.js", "index.mjs", "index.cjs", "index.ts")
_PYTHON = re.compile(r"(python|pypy)[\d.]*|py")
_OF_PYTHON = frozenset(
    {
        "__main__.py",
        *(f"{each}{end}" for each in sys.stdlib_module_names for end in (".py", "/__init__.py")),
    }
)
"""What Python runs of a folder, and what it takes in place of a module of its own."""
_RUNS_ALL = "run-parts"
_UNKNOWN = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\$\w+|`[^`]*`")
"""What stands in a word for a text that nobody here knows, such as `$PWD`."""
_GLOB = frozenset("*?[")
_MOST_LINKS = 10


@dataclass(frozen=True)
class Reads:
    """What a command may read."""

    folders: frozenset[str]
    """Words that may be folders, and the folders of those that may be files."""
    names: frozenset[str]
    """Paths, from the top or from one of these folders; few of them are there."""
    has_python: bool
    """Whether also what Python takes in place of a module of its own."""
    has_settings: bool
    """Whether also all that looks like settings there: nobody here knows what a program reads."""

    def has(self, path: str) -> bool:
        """Returns whether a path is one of them, from the top of the repository."""
        patterns = [each for each in self.names if _GLOB.intersection(each)]
        starts = [0]
        for at in (each.start() for each in re.finditer("/", path)):
            if any(path[start:at] in self.folders for start in starts):
                starts.append(at + 1)
        return any(
            rest in self.names
            or (self.has_python and rest in _OF_PYTHON)
            or (self.has_settings and is_setting(rest))
            or any(_is_like(rest, each) for each in patterns)
            for rest in (path[start:] for start in starts)
        )

    def linked(self, tree: str) -> Iterator[str]:
        """Yields the names, also in the folders that a tree has, and what they lead to there."""
        there = [f"{each}/" for each in self.folders if os.path.isdir(f"{tree}/{each}")]
        for folder in ("", *there):
            for name in self.names:
                yield from with_links(tree, folder + name)


def read_by(command: str) -> Reads:
    """Returns what a command may read."""
    words = [each for each in _words(command) if each and "\0" not in each]
    named = {*_named(words)}
    folders = frozenset({*named, *map(posixpath.dirname, named)} - {""})
    names = {*named}
    programs = {*map(posixpath.basename, words)}
    for program in programs:
        names.update(READS.get(program, ()))
        names.update(_OF_NODE if program in _NODE else ())
        names.update(f"{each}/*" for each in named if program == _RUNS_ALL)
    for module in (each.replace(".", "/") for each in _modules(words)):
        parents = module.split("/")[:-1]
        names.update((f"{module}/__init__.py", f"{module}/__main__.py", f"{module}.py"))
        names.update("/".join([*parents[:n], "__init__.py"]) for n in range(1, len(parents) + 1))
    has_python = any(map(_PYTHON.fullmatch, programs))
    return Reads(folders, frozenset(names), has_python, is_unknown(command, READS))


def _named(words: Iterable[str]) -> Iterator[str]:
    """Yields the paths that words may be, also without what may lead to the top before them."""
    for word in words:
        path = posixpath.normpath(_UNKNOWN.sub("*", word))
        if word.strip("./") and path.strip("*/"):
            yield path
            rest = "/".join(dropwhile(("", "..", "*").__contains__, path.split("/")))
            yield from [rest] if rest else []


def _is_like(path: str, pattern: str) -> bool:
    from pathlib import PurePosixPath  # noqa: PLC0415 - start-up

    plain, wanted = PurePosixPath(path), PurePosixPath(pattern)
    return len(plain.parts) == len(wanted.parts) and plain.match(str(wanted))


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
    """Yields the words of a command, also of those within quotes, and what is after a `=` or
    stands right behind an option of one letter.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = [*lexer]
    except ValueError:  # A quote that is not closed.
        words = command.split()
    for word in words:
        yield word
        yield word.partition("=")[2]
        if word[:1] == "-" and word[1:2].isalpha():
            yield word[2:]  # As in `make -fFILE`.
        if word != command and len(word.split()) > 1:
            yield from _words(word)


def _modules(words: list[str]) -> Iterator[str]:
    """Yields the names after `-m`."""
    for word, following in zip(words, [*words, ""][1:], strict=True):
        name = following if word == "-m" else word[2:] if word.startswith("-m") else ""
        if all(part.isidentifier() for part in name.split(".")):
            yield name
