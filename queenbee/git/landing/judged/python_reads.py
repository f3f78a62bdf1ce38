"""What Python would read in place of what git has: files of one worktree that it loads unasked, or
finds under the name of another module, and code that it compiled before.

A module that git does not have is common where it is generated, so it is only named, unless its
name is that of one which the check means to import from elsewhere.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from queenbee.errors import QueenError
from queenbee.store import safe_open

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_CACHE = "__pycache__"
_INIT = "__init__"
_PYTEST = frozenset({"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"})
"""What `pytest` reads from a folder of tests, or from one above, before any other settings."""
_AT_START = frozenset({"sitecustomize", "usercustomize"})
_STANDARD = sys.stdlib_module_names - {*sys.builtin_module_names, "test", "this", "antigravity"}
"""The names that a file can take away; `test.py` takes a package that nobody imports."""
_ENVIRONMENTS = (".venv", "venv")


@dataclass(frozen=True)
class PythonReads:
    """The folders of a worktree in which Python looks, as far as git has modules there."""

    tree: str
    tracked: Collection[str]
    """The files that git has, from the top of the tree."""
    instead: list[str] = field(default_factory=list)
    """Files that git does not have, and that are read unasked or in place of others."""
    beside: list[str] = field(default_factory=list)
    """Modules that git does not have, and that take no other's name."""

    @classmethod
    def of(cls, tree: str, tracked: Collection[str]) -> PythonReads:
        """Returns what there is now; nothing in a tree without modules."""
        reads = cls(tree, tracked)
        for folder in sorted(reads.folders):
            for name, module in _entries(os.path.join(tree, folder)):
                path = _join(folder, name)
                if path not in tracked:
                    (reads.instead if reads._takes(folder, name, module) else reads.beside).append(
                        path
                    )
        return reads

    @cached_property
    def modules(self) -> list[str]:
        """The modules that git has."""
        return [each for each in self.tracked if each.endswith(".py")]

    @cached_property
    def folders(self) -> set[str]:
        """The folders with modules, and those above them."""
        found = set[str]()
        for folder in {os.path.dirname(each) for each in self.modules}:
            above = folder
            while above not in found:
                found.add(above)
                above = os.path.dirname(above)
        return found

    def compiled(self) -> Iterator[str]:
        """Yields the files in which Python keeps code that it compiled from these modules."""
        for folder in self.folders:
            cache = _join(folder, _CACHE)
            if os.path.islink(os.path.join(self.tree, cache)):
                yield from () if cache in self.tracked else (cache,)
                continue
            for name in _names(os.path.join(self.tree, cache)):
                if name.endswith(".pyc") and _join(cache, name) not in self.tracked:
                    yield _join(cache, name)

    @cached_property
    def _roots(self) -> set[str]:
        """The folders from which Python imports by a name without dots."""
        return {"", *(self._root(os.path.dirname(each)) for each in self.modules)}

    def _root(self, folder: str) -> str:
        while folder and _join(folder, f"{_INIT}.py") in self.tracked:
            folder = os.path.dirname(folder)
        return folder

    @cached_property
    def _packages(self) -> set[str]:
        """The names of the packages that git has below a root."""
        inits = (os.path.dirname(each) for each in self.modules if each.endswith(f"{_INIT}.py"))
        return {os.path.basename(each) for each in inits if os.path.dirname(each) in self._roots}

    @cached_property
    def _installed(self) -> set[str]:
        places = [os.environ.get("VIRTUAL_ENV", ""), *_ENVIRONMENTS]
        found = set[str]()
        for place in (os.path.join(self.tree, each) for each in places if each):
            lib = os.path.join(place, "lib")
            sites = [os.path.join(lib, each, "site-packages") for each in _names(lib)]
            for site in (*sites, os.path.join(place, "Lib", "site-packages")):
                found.update(each.partition(".")[0] for each in _names(site))
        return found - {_CACHE}

    def _takes(self, folder: str, name: str, module: str) -> bool:
        """Returns whether a file is read unasked, or in place of another."""
        if module in (_INIT, "conftest") or name in _PYTEST:
            return True
        # A package and a compiled module come before a module of the same folder.
        if _join(folder, f"{module}.py") in self.tracked and not name.endswith(".pyc"):
            return True
        others = (_AT_START, _STANDARD, self._packages, self._installed)
        return folder in self._roots and any(module in each for each in others)


def remove_compiled(tree: str, tracked: Collection[str]) -> None:
    """Removes what Python has compiled from modules that git has: it does not look whether that is
    the code of its module, and makes it again.
    """
    for path in PythonReads(tree, tracked).compiled():
        with suppress(OSError, QueenError):
            safe_open.unlink(os.path.join(tree, path))


def _entries(folder: str) -> Iterator[tuple[str, str]]:
    """Yields the files of a folder that are modules or settings of `pytest`, with the name of the
    module; of a package, the file that makes it one.
    """
    for name in sorted(_names(folder)):
        module, _, kind = name.partition(".")
        if name in _PYTEST or (module.isidentifier() and _is_module(kind)):
            yield name, module
        elif not kind and module.isidentifier() and module != _CACHE:
            inside = sorted(_names(os.path.join(folder, name)))
            for each in inside:
                if each.startswith(f"{_INIT}.") and _is_module(each.partition(".")[2]):
                    yield f"{name}/{each}", module


def _is_module(kind: str) -> bool:
    return kind in ("py", "pyc", "so", "pyd") or kind.endswith((".so", ".pyd"))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
