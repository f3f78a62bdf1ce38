"""Nothing grows past what one can hold in the head: functions, modules, packages.

Ruff holds parameters, statements and branches (`pyproject.toml`); this holds what it does not.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "queenbee"
MODULES = sorted(PACKAGE.glob("**/*.py"))

MOST_LINES_OF_A_FUNCTION = 40
"""Its docstring, which may be the help of a command, not counted."""
MOST_MODULES_OF_A_PACKAGE = 16
"""Beside `__init__`."""


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Returns how many lines a function has, from `def` on, without its docstring."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        assert first.end_lineno is not None
        lines -= first.end_lineno - first.lineno + 1
    return lines


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_function_is_longer_than_a_screen(path: Path) -> None:
    sizes = {each.name: lines_of(each) for each in functions(path)}
    assert {name: n for name, n in sizes.items() if n > MOST_LINES_OF_A_FUNCTION} == {}


def test_no_package_has_more_modules_than_fit_on_a_screen() -> None:
    counts = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    crowded = {path.relative_to(PACKAGE).as_posix(): n for path, n in counts.items()
               if n > MOST_MODULES_OF_A_PACKAGE}  # fmt: skip
    assert crowded == {}


def test_a_function_that_is_too_long_would_be_noticed() -> None:
    tree = ast.parse("def f():\n    'about'\n" + "    x = 1\n" * 40)
    (found,) = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))
    assert lines_of(found) == 41
