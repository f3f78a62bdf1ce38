"""Where the clients of agents look, in a repository, for what they run: one table, for the landing
that names its changes and for the team that is started.

What is there is looked for in the file system: git lists nothing of a repository within, behind a
link or in a folder called `.git`.
"""

from __future__ import annotations

import os
import posixpath
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.errors import QueenError
from queenbee.git.run import git, names_in
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_OPENCODE = (
    *(".opencode/", "opencode.json", "opencode.jsonc", "tui.json", "tui.jsonc"),
    *(".claude/", ".agents/"),
)
_COMMON = "config.json"
"""Kilo reads it; elsewhere it is most often something else, so only who starts Kilo is asked."""
CLIENT_FILES: Mapping[str, Sequence[str]] = {
    "claude": (".claude/", ".mcp.json"),
    "codex": (".codex/", ".agents/"),
    "copilot": (".github/hooks/", ".github/copilot/", ".github/agents/", ".github/mcp.json",
                ".github/extensions/", ".github/skills/", ".github/plugin/",
                ".github/lsp.json", "lsp.json",
                ".mcp.json", ".vscode/mcp.json", ".claude/", ".agents/"),
    "cursor": (".cursor/", ".claude/", ".agents/"),
    "gemini": (".gemini/", ".agents/", ".env"),
    "kilo": (".kilo/", ".kilocode/", ".kilocodemodes", "kilo.json", "kilo.jsonc", _COMMON,
             *_OPENCODE),
    "opencode": _OPENCODE,
    "qwen": (".qwen/", ".agents/", ".lsp.json", ".env"),
}  # fmt: skip
"""By client: hooks, servers, plugins, helpers and variables; folders end with a slash."""
_NOT_READ = (".claude/state", ".claude/worktrees")
"""Gates, and Claude Code's own worktrees: no settings, but there may be folders of clients."""
_UNASKED = re.compile(
    r"\.env|(?:.*/)?\.[^/]+/(?:node_modules|package(?:-lock)?\.json|bun\.lockb?)",
    re.IGNORECASE,
)
"""Of what git ignores: each worktree may have variables of its own, and OpenCode fetches packages
into its folder when it begins.
"""
_PACKAGES = {"node_modules", ".venv"}
_OF_GIT = re.compile(
    r"(?:.*/)?\.git/(?:.*/)?(?:[^/.]*|[^/]*\.(?:sample|pack|idx|rev))", re.IGNORECASE
)
"""What git itself keeps in a repository; no client takes it for settings."""
MOST_FILES = 5000
"""So many files and folders behind a link among settings are looked at."""
_MOST_BEHIND = 50_000
"""So many behind another link that leads out of the tree, in search of settings."""
_MOST_NAMES = 1000
_SLASH = re.compile("/")
EVERY = tuple({each: None for row in CLIENT_FILES.values() for each in row if each != _COMMON})


def client_files(tree: str, client: str) -> list[str]:
    """Returns the files of a client in a working tree: all that is in its folders, wherever those
    are, and its files at the top. Of what git ignores no `.env`, and no packages of OpenCode. Of a
    program, those of every client.

    What a link to a folder leads to is named as what is in that folder. Only a link that leads out
    of the tree, or to too many files, is named itself.
    """
    found = sorted({*_Walk(tree, CLIENT_FILES.get(client, EVERY)).found()})
    unasked = ignored_of(tree, [each for each in found if _UNASKED.fullmatch(each)])
    return [each for each in found if each not in unasked]


def is_of_client(path: str) -> bool:
    """Returns whether a file is in one of the places where any client looks."""
    folded = f"/{path.lower()}/"
    return any(
        f"/{each}" in folded if each.endswith("/") else folded.startswith(f"/{each}/")
        for each in EVERY
    )


def is_of_git(path: str) -> bool:
    """Returns whether a file is one that git keeps in a repository of its own."""
    return _OF_GIT.fullmatch(path) is not None


def ignored_of(tree: str, names: Sequence[str]) -> set[str]:
    """Returns those of these files and folders that git ignores in a working tree."""
    found = set[str]()
    how = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--")
    for start in range(0, len(names), _MOST_NAMES):
        patterns = (f":(top,literal){each}" for each in names[start : start + _MOST_NAMES])
        found.update(names_in(git(*how, *patterns, cwd=tree, repository={})))
    return {
        name
        for name in names
        if name in found
        or any(f"{name}/"[: each.end()] in found for each in _SLASH.finditer(f"{name}/"))
    }


class _Walk:
    """One look at all folders of a working tree, in each once."""

    def __init__(self, tree: str, wanted: Sequence[str]) -> None:
        self._tree = os.path.realpath(tree)
        self._here = git_tree(self._tree)
        # macOS and Windows find `.claude` as `.Claude`, too.
        self._folders = {each[:-1].lower() for each in wanted if each.endswith("/")}
        self._files = {each.lower() for each in wanted if not each.endswith("/")}
        every = {*self._folders, *self._files}
        self._ends = {posixpath.basename(each) for each in every}
        self._above = {posixpath.dirname(each) for each in every} - {""}
        self._seen = set[str]()
        self._todo = [("", self._tree)]
        self._links: list[tuple[str, str]] = []
        self._left = _MOST_BEHIND

    def found(self) -> Iterator[str]:
        """Yields the names of what clients read, from the top."""
        yield from self._below()
        for name, real in self._links:  # It grows meanwhile.
            is_new, is_out = real not in self._seen, not _is_in(real, self._tree)
            if is_new and (self._left >= 0 or not is_out):
                self._todo = [(name, real)]
                yield from self._below(is_out=is_out)
            if is_new and is_out and self._left < 0:
                yield name

    def _below(self, *, is_out: bool = False) -> Iterator[str]:
        while self._todo:
            above, real = self._todo.pop()
            if real in self._seen:
                continue
            self._seen.add(real)
            entries = _entries(real)
            if entries is None:
                yield above
            elif not any(each.name == ".git" for each in entries) or not self._asks_itself(above):
                self._left -= len(entries) if is_out else 0
                if is_out and self._left < 0:
                    return
                for entry in entries:
                    if entry.name.lower() in self._ends or not entry.is_file(follow_symlinks=False):
                        yield from self._place(above, entry)

    def _place(self, above: str, entry: os.DirEntry[str]) -> Iterator[str]:
        """Yields what clients read of one name in a folder; other folders are left for later."""
        folded, name = entry.name.lower(), posixpath.join(above, entry.name)
        is_folder, is_link = entry.is_dir(follow_symlinks=False), entry.is_symlink()
        if folded in self._ends and self._is_place(above, folded, name):
            yield from self._inside(name)
        elif folded in _PACKAGES or name == ".git":
            return
        elif is_folder:
            self._todo.append((name, entry.path))
        elif is_link and os.path.isdir(entry.path):
            self._links.append((name, os.path.realpath(entry.path)))
            for each in (_entries(entry.path) or ()) if folded in self._above else ():
                if self._is_place(name, each.name.lower(), posixpath.join(name, each.name)):
                    yield from self._inside(posixpath.join(name, each.name))

    def _is_place(self, above: str, folded: str, name: str) -> bool:
        with_above = f"{posixpath.basename(above).lower()}/{folded}"
        return bool({folded, with_above} & self._folders) or name.lower() in self._files

    def _inside(self, place: str) -> Iterator[str]:
        """Yields everything in a folder of a client; what is no folder, and a link out of the tree,
        itself.
        """
        todo = [place]
        while todo:
            name = todo.pop()
            path = os.path.join(self._tree, name)
            if os.path.islink(path):
                behind = self._followed(name)
                yield from [name] if behind is None else behind
            elif not os.path.isdir(path) or _is_package(name, place):
                yield name
            elif _is_not_read(name, place):
                self._todo.append((name, path))
            else:
                entries = _entries(path)
                names = [f"{name}/{each.name}" for each in entries or ()]
                yield from [name] if entries is None else ()
                todo += [each for each in names if not is_of_git(each)]

    def _followed(self, link: str) -> list[str] | None:
        """Returns what is behind a link; None if that is not to be named: no folder of the tree,
        or too much.
        """
        found, count = list[str](), 0
        todo = [(link, frozenset[str]())]
        while todo:
            name, before = todo.pop()
            path = os.path.join(self._tree, name)
            real = os.path.realpath(path) if os.path.islink(path) else path
            count += 1
            if count > MOST_FILES:
                return None
            if real in before:  # A loop.
                continue
            entries = _entries(real) if os.path.isdir(real) and _is_in(real, self._tree) else None
            if entries is None:
                found.append(name)
                continue
            chain = before | {real} if os.path.islink(path) else before
            names = [f"{name}/{each.name}" for each in entries]
            todo += [(each, chain) for each in names if not is_of_git(each)]
        return found

    def _asks_itself(self, name: str) -> bool:
        """Returns whether a folder is a worktree of the same repository, and no part of what is
        here: in the main worktree, or where Claude Code makes its own.
        """
        here, inner = self._here, os.path.join(self._tree, name)
        if not name or here is None:
            return False
        with suppress(QueenError):
            it = git_tree(inner)
            is_one = it is not None and (it.tree, it.linked, it.common_dir) == (
                *(inner, True),
                here.common_dir,
            )
            is_claudes = f"/{_NOT_READ[1]}/" in f"/{name.lower()}/"
            return is_one and (not here.linked or is_claudes)
        return False


def _is_package(name: str, place: str) -> bool:
    return posixpath.dirname(name) == place and _UNASKED.fullmatch(name) is not None


def _is_not_read(name: str, place: str) -> bool:
    end = posixpath.join(posixpath.basename(place), posixpath.relpath(name, place))
    return end.lower() in _NOT_READ


def _entries(folder: str) -> list[os.DirEntry[str]] | None:
    """Returns what is in a folder; nothing if nobody may enter it, None if it cannot be listed."""
    try:
        with os.scandir(folder) as found:
            return [*found]
    except FileNotFoundError:
        return []
    except OSError:
        return None if os.access(folder, os.X_OK) else []


def _is_in(path: str, tree: str) -> bool:
    return path == tree or path.startswith(f"{tree}/")
