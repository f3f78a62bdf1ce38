"""Which files of a repository a command reads, as far as its words say.

The words that are files, what some programs read by their own rules, and the modules that Python
looks for in the folder where it begins; and all settings, if another program is started.
"""

from __future__ import annotations

import os
import posixpath
import shlex
from typing import TYPE_CHECKING

from queenbee.git.landing.judged.settings_read import is_unknown

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
    "pnpm": ("package.json", ".npmrc", "pnpm-workspace.yaml", ".pnpmfile.cjs"),
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
    "cargo": (".cargo/config.toml", ".cargo/config", "rust-toolchain", "rust-toolchain.toml"),
    "go": ("go.work",),
    "uv": ("uv.toml", "pyproject.toml"),
}
"""The files, at the top or in a folder that the command names, that say what a program does. Of
any other program, all that look like settings count (`settings_read`).
"""
_MOST_LINKS = 10


def read_by(command: str) -> set[str]:
    """Returns all that a command may read, as paths from the top of the repository; few of them are
    there.
    """
    words = [each for each in _words(command) if each and "\0" not in each]
    found, folders = _named(words), _folders(words)
    for name in map(posixpath.basename, words):
        found.update(folder + each for folder in folders for each in READS.get(name, ()))
    for module in (each.replace(".", "/") for each in _modules(words)):
        parents = module.split("/")[:-1]
        found.update((f"{module}/__init__.py", f"{module}/__main__.py", f"{module}.py"))
        found.update("/".join([*parents[:n], "__init__.py"]) for n in range(1, len(parents) + 1))
    return found


def settings_folders(command: str) -> list[str]:
    """Returns the folders in which all that looks like settings may be read, since nobody here
    knows what a program of a command reads.
    """
    return _folders(_words(command)) if is_unknown(command, READS) else []


def _named(words: Iterable[str]) -> set[str]:
    return {posixpath.normpath(each) for each in words if each.strip("./")}


def _folders(words: Iterable[str]) -> list[str]:
    """Returns the top, and what words name that may be a folder, each with its slash."""
    return ["", *(f"{each}/" for each in _named(words))]


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
