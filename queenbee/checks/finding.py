"""Finds the command that tests a repository, from what its files say. Never guesses past them."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Sequence

from queenbee.core.text import suggested
from queenbee.errors import QueenError
from queenbee.store import safe_open

_MOST_BYTES = 2**20
_NPM_STUB = "no test specified"
"""What `npm init` writes where there is no test."""
_REQUIREMENTS = (
    *("pyproject.toml", "setup.cfg", "setup.py"),
    *("requirements.txt", "requirements-dev.txt", "requirements/dev.txt", "dev.txt"),
)


def found_checks(tree: str) -> list[str]:
    """Returns the commands that run the tests of a tree, the most complete first; each is one of a
    fixed list, whatever the files say.
    """
    read = TreeReader(tree)
    return [command for command, says_so in _SIGNS if says_so(read)]


def check_setting(found: Sequence[str]) -> str:
    """Returns the command that sets the first of these as the check of everybody."""
    return suggested("queen config set land.check", found[0] if found else "COMMAND")


class TreeReader:
    """Reads files of a tree, which may be hostile: no links, no devices, a bounded size."""

    def __init__(self, tree: str) -> None:
        self._tree = tree

    def text(self, *names: str) -> str:
        """Returns the files' texts, one after the other; "" for what cannot be read."""
        found = []
        for name in names:
            try:
                data = safe_open.read(os.path.join(self._tree, name), _MOST_BYTES)
            except (OSError, QueenError):
                continue
            found.append(data.decode(errors="replace"))
        return "\n".join(found)

    def has(self, name: str) -> bool:
        """Returns whether there is a regular file of this name that can be read."""
        try:
            safe_open.read(os.path.join(self._tree, name), 1)
        except (OSError, QueenError):
            return False
        return True

    def toml(self, name: str) -> dict[str, object]:
        """Returns what a TOML file says, or nothing."""
        try:
            return tomllib.loads(self.text(name))
        except (ValueError, RecursionError):
            return {}

    def says(self, pattern: str, *names: str) -> bool:
        """Returns whether a pattern matches in one of these files."""
        return re.search(pattern, self.text(*names), re.M) is not None

    def has_tool(self, name: str) -> bool:
        """Returns whether `pyproject.toml` sets up a tool."""
        tool = self.toml("pyproject.toml").get("tool")
        return isinstance(tool, dict) and name in tool


def _pytest(read: TreeReader) -> bool:
    return (
        read.has_tool("pytest")
        or read.says(r"^\[(tool:)?pytest\]", "pytest.ini", "tox.ini", "setup.cfg")
        or read.says(r"(^|[\s\"'])pytest([\s\"'<>=~!\[,;]|$)", *_REQUIREMENTS)
    )


def _npm(read: TreeReader) -> bool:
    try:
        said = json.loads(read.text("package.json"))
    except (ValueError, RecursionError):
        return False
    scripts = said.get("scripts") if isinstance(said, dict) else None
    test = scripts.get("test") if isinstance(scripts, dict) else None
    return isinstance(test, str) and bool(test.strip()) and _NPM_STUB not in test


_SIGNS: tuple[tuple[str, Callable[[TreeReader], bool]], ...] = (
    (
        "make test",
        lambda read: read.says(r"^test\s*:(?!=)", "GNUmakefile", "makefile", "Makefile"),
    ),
    ("just test", lambda read: read.says(r"^@?test(\s[^:=]*)?:(?!=)", "justfile", "Justfile")),
    ("tox", lambda read: read.says(r"^\[(tox|testenv)\b", "tox.ini") or read.has_tool("tox")),
    ("nox", lambda read: bool(read.text("noxfile.py"))),
    ("pytest", _pytest),
    ("npm test", _npm),
    ("cargo test", lambda read: bool({"package", "workspace"} & read.toml("Cargo.toml").keys())),
    ("go test ./...", lambda read: read.says(r"^module\s", "go.mod")),
)
