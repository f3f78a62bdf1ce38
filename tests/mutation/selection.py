"""Which tests run a line: from a run of the tests under coverage, one context for each test."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterable

from pytest import ExitCode

from mutation.plugin import TIMES_TO, test_of

_RC = """\
[run]
data_file = {data}
source = {package}
parallel = true
patch = _exit
context = ${{PYTEST_CURRENT_TEST-}}
"""
"""A process that a test starts belongs to that test, which pytest names in its environment."""

Lines = dict[int, list[str]]

_TESTS = ["tests", "--ignore=tests/mutation"]


_ELSEWHERE = {"mcp": "mcp_surface"}  # A folder of tests called mcp would hide the library.


def tests_folder(package: str) -> str:
    """Returns the folder in `tests/` with the tests of a package."""
    return _ELSEWHERE.get(package, package)


class TestsFail(Exception):
    """The tests fail without any mutant: nothing can be learned from them."""


def measure(tree: str, work: str, env: dict[str, str]) -> None:
    """Runs all tests in `tree` but those of mutants; leaves `times.json` and `lines.json` in
    `work`.

    Tests that fail are left out, and pytest names them: no mutant counts as caught by one of them.
    Raises `TestsFail` if the run itself fails.
    """
    from coverage import CoverageData

    os.makedirs(work, exist_ok=True)
    for name in os.listdir(work):
        os.unlink(os.path.join(work, name))
    rc = os.path.join(work, "coveragerc")
    with open(rc, "w") as file:
        file.write(
            _RC.format(data=os.path.join(work, "data"), package=os.path.join(tree, "queenbee"))
        )
    times = os.path.join(work, "times.json")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "auto", "-p", "mutation.plugin", *_TESTS],
        cwd=tree,
        env={**env, "COVERAGE_PROCESS_START": rc, TIMES_TO: times},
    )
    if done.returncode not in (ExitCode.OK, ExitCode.TESTS_FAILED):
        raise TestsFail
    subprocess.run(
        [sys.executable, "-m", "coverage", "combine", "--quiet", "--rcfile", rc], check=True
    )
    data = CoverageData(os.path.join(work, "data"))
    data.read()
    with open(times) as file:
        known = json.load(file)
    found = {
        os.path.relpath(path, tree): {
            line: sorted({test_of(each) for each in contexts} & known.keys())
            for line, contexts in data.contexts_by_lineno(path).items()
        }
        for path in data.measured_files()
    }
    with open(os.path.join(work, "lines.json"), "w") as file:
        json.dump(found, file)


def header_of(source: str, line: int) -> tuple[range, bool]:
    """Returns the lines of the innermost statement at a line, without the statements inside it;
    and whether it belongs to a function, rather than to what runs at import.
    """
    found: ast.stmt | None = None
    in_function = False

    def descend(nodes: Iterable[ast.AST], inside: bool) -> None:
        nonlocal found, in_function
        for node in nodes:
            begin = min(
                (each.lineno for each in getattr(node, "decorator_list", ())),
                default=getattr(node, "lineno", 0),
            )
            if isinstance(node, ast.stmt):
                if not begin <= line <= (node.end_lineno or begin):
                    continue
                found, in_function = node, inside
            deeper = inside or (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                and line >= node.body[0].lineno
            )
            descend(ast.iter_child_nodes(node), deeper)

    descend(ast.parse(source).body, False)
    if found is None:
        return range(line, line + 1), False
    body = [each for each in ast.iter_child_nodes(found) if isinstance(each, ast.stmt)]
    end = min((each.lineno for each in body), default=(found.end_lineno or line) + 1)
    return range(min(line, found.lineno), max(line + 1, end)), in_function


def tests_for(source: str, line: int, lines: Lines) -> list[str]:
    """Returns the tests that run the statement at a line of a module.

    For what runs at import, which is no test's doing, those that run anything of the module.
    """
    header, in_function = header_of(source, line)
    chosen = {test for each in header for test in lines.get(each, ())} if in_function else set()
    if not chosen and (not in_function or any(each in lines for each in header)):
        chosen = {test for tests in lines.values() for test in tests}
    return sorted(chosen)
