"""Finds the command that makes a new worktree of a repository usable, from what its files say: from
lock files, else from the file of another tool, one source alone.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from queenbee.core.text import shell_word, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.checks.finding import TreeReader

CURSOR, CONDUCTOR = ".cursor/worktrees.json", "conductor.json"
CODEX = ".codex/environments/environment.toml"
_VENV = "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"
_MANAGERS: Sequence[Sequence[tuple[str, str]]] = (
    ((".gitmodules", "git submodule update --init"),),
    (
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
        ("yarn.lock", "yarn install --immutable"),
        ("bun.lock", "bun install --frozen-lockfile"),
        ("bun.lockb", "bun install --frozen-lockfile"),
        ("package-lock.json", "npm ci"),
        ("npm-shrinkwrap.json", "npm ci"),
    ),
    (
        ("uv.lock", "uv sync --frozen"),
        ("poetry.lock", "poetry install"),
        ("pdm.lock", "pdm install --frozen-lockfile"),
        ("Pipfile.lock", "pipenv sync"),
        ("requirements.txt", _VENV),
    ),
    (("Gemfile.lock", "bundle install"),),
    (("composer.lock", "composer install"),),
    (("mix.lock", "mix deps.get"),),
)
"""Of each row, the first file counts that is there: nobody installs twice."""
_YARN_1 = "# yarn lockfile v1"
_MOST_CHARS = 400
"""A longer text of another tool is nothing that somebody reads before a yes."""
_OPEN = re.compile(r"(\\|&&|\|\|?|\{|\(|\b(then|do|else|in))$|<<")
"""Ends of lines that go on in the next one."""


class FoundSetup(NamedTuple):
    """A command, and the files that it comes from."""

    command: str
    source: str


def found_setup(tree: str) -> FoundSetup | None:
    """Returns the command, or None if no file says one. That of lock files is one of a fixed list,
    whatever they say; that of another tool is in its file, and readable.
    """
    from queenbee.checks.finding import TreeReader  # noqa: PLC0415 - start-up

    read = TreeReader(tree)
    found = [each for row in _MANAGERS if (each := _first(read, row)) is not None]
    if found:
        return FoundSetup(
            " && ".join(command for _, command in found), ", ".join(name for name, _ in found)
        )
    for name, said_by in _OTHERS:
        lines = [line.strip() for each in said_by(read) for line in each.splitlines()]
        lines = [line for line in lines if line and not line.startswith("#")]
        text = (" && " if name == CURSOR else "; ").join(lines)
        is_fit = len(text) <= _MOST_CHARS and visible(text) and not any(map(_OPEN.search, lines))
        if text and is_fit:
            return FoundSetup(text, name)
    return None


def _first(read: TreeReader, row: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    name, command = next((each for each in row if read.has(each[0])), ("", ""))
    if name == "yarn.lock" and _YARN_1 in read.text(name):
        command = "yarn install --frozen-lockfile"
    return (name, command) if name else None


def _cursor(read: TreeReader) -> list[str]:
    said = _json(read, CURSOR)
    for name in ("setup-worktree-unix", "setup-worktree"):
        value = said.get(name)
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return value
        if isinstance(value, str) and value:  # A script beside that file.
            return [f"sh {shell_word(f'.cursor/{value}')}"]
    return []


def _conductor(read: TreeReader) -> list[str]:
    scripts = _json(read, CONDUCTOR).get("scripts")
    setup = scripts.get("setup") if isinstance(scripts, dict) else None
    return [setup] if isinstance(setup, str) else []


def _codex(read: TreeReader) -> list[str]:
    setup = read.toml(CODEX).get("setup")
    script = setup.get("script") if isinstance(setup, dict) else None
    return [script] if isinstance(script, str) else []


def _json(read: TreeReader, name: str) -> dict[str, object]:
    try:
        said = json.loads(read.text(name))
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


_OTHERS: Sequence[tuple[str, Callable[[TreeReader], list[str]]]] = (
    (CURSOR, _cursor),
    (CONDUCTOR, _conductor),
    (CODEX, _codex),
)
