"""The mutants of promises: each row of `tests/mutation/table/` breaks one line of a function.

A row says which tests must fail then, and which promise would be broken. Its old code is found by
structure: comments, line breaks and quotes may change, the code may not. If it is a part of a
string, such as a line of SQL or of a shell script, it must be in one string constant only.
"""

from __future__ import annotations

import ast
import os
import queue
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from mutation.running import Copy, caught
from mutation.selection import TestsFail

_LIMIT_S = 300
"""For the tests of one row: a mutant under which they do not end is noticed too."""

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "table")


class NotOnce(Exception):
    """The old code of a row is not exactly once in its function."""


@dataclass(frozen=True)
class Row:
    """One mutant of a promise."""

    module: str
    """The path from the repository's root."""
    function: str
    """The qualified name of a function or class; empty for the whole module."""
    old: str
    """An expression, or statements that follow one another; for `inside = "string"`, text."""
    new: str
    tests: tuple[str, ...]
    """Node ids without parameters."""
    promise: str
    inside: str = "code"
    """`string` if the old code is a part of a string constant."""

    def broken(self, source: str) -> str:
        """Returns the module's source with the new code in place of the old, without comments."""
        tree = ast.parse(source)
        self.found_in(tree)()
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"

    def found_in(self, tree: ast.Module) -> Callable[[], None]:
        """Returns what puts the new code into the tree; raises `NotOnce`."""
        scope = _scope(tree, self.function)
        found = list(_in_strings(scope, self) if self.inside == "string" else _in(scope, self))
        if len(found) != 1:
            raise NotOnce(f"{self.where}: found {len(found)} times: {self.old}")
        return found[0]

    @property
    def where(self) -> str:
        """The module and the function, for people."""
        return f"{self.module}::{self.function}"


def rows(folders: Sequence[str] = ()) -> list[Row]:
    """Returns all rows; with folders of `queenbee/`, those of their modules."""
    found = []
    for name in sorted(os.listdir(TABLE)):
        with open(os.path.join(TABLE, name), "rb") as file:
            found += [
                Row(**{**raw, "tests": tuple(raw["tests"])}) for raw in tomllib.load(file)["mutant"]
            ]
    return [row for row in found if not folders or row.module.split("/")[1] in folders]


def try_rows(repository: str, chosen: Sequence[Row], workers: int) -> list[tuple[Row, str]]:
    """Makes each mutant in a copy of the repository; returns the rows with their verdicts."""
    todo: queue.SimpleQueue[Row] = queue.SimpleQueue()
    for row in chosen:
        todo.put(row)
    verdicts: list[tuple[Row, str]] = []

    def work(copy: Copy) -> None:
        while True:
            try:
                row = todo.get_nowait()
            except queue.Empty:
                return
            with open(copy.path(row.module), encoding="utf-8") as file:
                source = row.broken(file.read())
            verdict = copy.try_source(row.module, source, row.tests, _LIMIT_S)
            verdicts.append((row, verdict))
            if not caught(verdict):
                print(f"{row.where}: {row.old!r} -> {row.new!r}: {verdict}", flush=True)

    # Outside of any repository: tests must find none above the folders that they make.
    with tempfile.TemporaryDirectory(prefix="queenbee-promises-") as folder:
        copies = [Copy(repository, os.path.join(folder, str(n))) for n in range(workers)]
        _check(copies[0], {test for row in chosen for test in row.tests})
        threads = [threading.Thread(target=work, args=(copy,)) for copy in copies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return verdicts


def _check(copy: Copy, tests: set[str]) -> None:
    """Runs the tests without any mutant; raises `TestsFail` if one fails or does not exist."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal"]
    if subprocess.run([*command, *sorted(tests)], cwd=copy.folder, env=copy.env).returncode:
        raise TestsFail


def _scope(tree: ast.Module, function: str) -> ast.AST:
    scope: ast.AST = tree
    for name in filter(None, function.split(".")):
        inner = [
            node
            for node in ast.walk(scope)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and node.name == name
        ]
        if len(inner) != 1:
            raise NotOnce(f"{len(inner)} functions or classes are called {function}")
        scope = inner[0]
    return scope


def _in(scope: ast.AST, row: Row) -> Iterator[Callable[[], None]]:
    old, new = ast.parse(row.old).body, ast.parse(row.new).body
    if len(old) == len(new) == 1 and isinstance(old[0], ast.Expr) and isinstance(new[0], ast.Expr):
        yield from _expressions(scope, old[0].value, new[0].value)
    else:
        yield from _statements(scope, old, new)


def _expressions(scope: ast.AST, old: ast.expr, new: ast.expr) -> Iterator[Callable[[], None]]:
    for node in ast.walk(scope):
        for field, value in ast.iter_fields(node):
            if _are_same(value, old):
                yield partial(setattr, node, field, new)
            elif isinstance(value, list):
                for number, each in enumerate(value):
                    if _are_same(each, old):
                        yield partial(value.__setitem__, number, new)


def _statements(
    scope: ast.AST, old: list[ast.stmt], new: list[ast.stmt]
) -> Iterator[Callable[[], None]]:
    for node in ast.walk(scope):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            for begin in range(len(block) - len(old) + 1) if isinstance(block, list) else ():
                end = begin + len(old)
                if all(map(_are_same, block[begin:end], old)):
                    yield partial(block.__setitem__, slice(begin, end), new)


def _are_same(one: object, other: ast.AST) -> bool:
    return type(one) is type(other) and ast.dump(one) == ast.dump(other)  # type: ignore[arg-type]


def _in_strings(scope: ast.AST, row: Row) -> Iterator[Callable[[], None]]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for _ in range(node.value.count(row.old)):
                yield partial(setattr, node, "value", node.value.replace(row.old, row.new))
