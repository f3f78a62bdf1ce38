"""Imports inside functions: each is marked, and each saves some hot command from loading it.

Start-up time is the only reason for an import inside a function. It is a reason if a command, a
hook or the library loads the importing module in a process that never loads the imported one.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from bead_files import put_bead, ralph_bead
from hives import commit_file, git, write_lines
from start_up import COMPLETION, HOOK, LIBRARY, QUEEN, edit_event, loaded
from test_cold_start import COMMANDS

import queenbee

PACKAGE = Path(queenbee.__file__).parent
MARK = "# noqa: PLC0415 - start-up"


class Import:
    """An import inside a function: who imports what, and whether its line has the mark."""

    def __init__(self, importer: str, imported: str, line: int, *, marked: bool) -> None:
        self.importer = importer
        self.imported = imported
        self.line = line
        self.marked = marked

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def imports_in_functions() -> Iterator[Import]:
    """Yields every import inside a function of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        importer = ".".join(["queenbee", *path.relative_to(PACKAGE).with_suffix("").parts])
        yield from imports_of(importer, path.read_text(encoding="utf-8"))


def imports_of(importer: str, source: str) -> Iterator[Import]:
    """Yields every import inside a function of one module, once for each imported module."""
    lines = source.splitlines()
    # A function in a function is walked twice: its imports count once.
    statements = {
        inner: None
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(function)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    }
    for statement in statements:
        marked = lines[statement.lineno - 1].endswith(MARK)
        for imported in sorted(set(modules_of(statement))):
            yield Import(
                importer.removesuffix(".__init__"), imported, statement.lineno, marked=marked
            )


def modules_of(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yields the modules that an import loads: the submodule, if the name is one."""
    for alias in statement.names:
        if isinstance(statement, ast.Import):
            yield alias.name
        else:
            assert statement.module is not None
            yield submodule(statement.module, alias.name) or statement.module


def submodule(package: str, name: str) -> str | None:
    """Returns the full name of a submodule, or None if the name is something else."""
    spec = find_spec(package)
    is_package = spec is not None and spec.submodule_search_locations is not None
    return f"{package}.{name}" if is_package and find_spec(f"{package}.{name}") else None


def needless(imports: Iterable[Import], runs: Iterable[set[str]]) -> list[str]:
    """Returns the imports whose target is loaded in every run that loads the importer."""
    known = list(runs)
    return [
        str(each)
        for each in imports
        if all(each.imported in run for run in known if each.importer in run)
    ]


def bare_python() -> set[str]:
    """Returns what is loaded before any program begins, whatever is installed beside Python."""
    command = [sys.executable, "-PS", "-c", "import sys; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def hook_runs(tree: Path, outside: Path) -> Iterator[set[str]]:
    """Yields what `queen-hook` loads for the events that agents send all the time."""
    events = (
        edit_event(tree, "src/x.py"),
        *[edit_event(tree, "src/x.py")] * 3,  # The last one is permitted.
        edit_event(tree, "docs/x"),
        edit_event(outside, "x.py"),
        edit_event(tree, "src/x.py", tool_name="Read"),
        edit_event(tree, "", hook_event_name="UserPromptSubmit", tool_name=""),
        edit_event(tree, "", hook_event_name="UserPromptSubmit", tool_name=""),  # Nothing new.
        edit_event(tree, "", hook_event_name="Stop", tool_name=""),
        edit_event(tree, "", hook_event_name="SessionStart"),
        edit_event(tree, "", hook_event_name="SessionEnd"),
    )
    for event in events:
        yield loaded(tree, HOOK, stdin=event)
    # What others do in a file is compared after the edit, if the agent can be told of it.
    loaded(tree, QUEEN, "reserve", "src/shared.py", "--shared")
    linked = outside / "linked"
    git(tree, "worktree", "add", "-q", str(linked))
    for place in (tree, linked):
        (place / "src").mkdir(exist_ok=True)
        (place / "src" / "shared.py").write_text(place.name)
    for name in ("PostToolUse", "afterFileEdit"):
        event = edit_event(linked, "src/shared.py", hook_event_name=name)
        yield loaded(linked, HOOK, stdin=event)


def hot_runs(small: Path, outside: Path) -> Iterator[set[str]]:
    """Yields what each hot command, each event and each use of the library loads."""
    yield from hook_runs(small, outside)
    for use in LIBRARY:
        yield loaded(small, use)
    yield loaded(small, "import queenbee.mcp.server")  # A client gets its first answer from that.
    # Of a pull request there is one host, and most beads have no schema of their own.
    rare = "queenbee.git.proposing.answering, queenbee.documents.sprints.sprint_bead"
    yield loaded(small, f"import {rare}")
    for line in ("prompt", "prompt --json"):
        yield loaded(small, QUEEN, *line.split(" "))
    yield loaded(small, COMPLETION)
    # Help, completion and the search for a mistyped name load the modules of all commands.
    helps = ("--help", "hive --help", "worktree --help", "bead --help", "msg --help")
    for line in (*COMMANDS, *helps, "guard check --staged"):
        yield loaded(small, QUEEN, *line.split(" "))
    lands = outside / "lands"
    git(small, "worktree", "add", "-q", str(lands))
    commit_file(lands, "lands.txt", "x\n")
    yield loaded(lands, QUEEN, "land", "--unchecked", "--as", "nobody-else")
    plain = outside / "plain"  # A team in worktrees reserves nothing.
    (plain / ".beads").mkdir(parents=True)
    write_lines(plain / ".beads" / "issues.jsonl", {"id": "qb-1", "status": "open"})
    yield loaded(plain, QUEEN, "next")
    put_bead(small, ralph_bead("gt-1", "true"))
    for line in (
        "issue ready",
        "claim qb-1",
        "msg inbox",
        "reserve check src/x.py",
        "show qb-1",
        "complete qb-1",
    ):
        yield loaded(small, QUEEN, *line.split(" "))
    rows = [{"id": f"qm-{n}", "to": "ui-engineer", "body": "x" * 1000} for n in range(200)]
    write_lines(small / ".beads" / "queen_messages.jsonl", *rows)
    for _ in range(2):  # An index is built, then used.
        yield loaded(small, QUEEN, "msg", "inbox")
    many = ({"id": f"qb-{n}", "status": "open", "title": "x" * 1000} for n in range(400))
    write_lines(plain / ".beads" / "issues.jsonl", *many)
    for _ in range(2):
        yield loaded(plain, QUEEN, "status")


def test_every_import_inside_a_function_is_marked() -> None:
    unmarked = [str(each) for each in imports_in_functions() if not each.marked]
    assert not unmarked, "\n".join(unmarked)


@pytest.mark.slow
@pytest.mark.thorough
def test_every_import_inside_a_function_spares_some_hot_command(
    small: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    bare = bare_python()
    runs = [bare | run for run in hot_runs(small, outside)]
    found = needless(imports_in_functions(), runs)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("run", "found"),
    [
        ({"queenbee.a"}, False),
        ({"queenbee.a", "json"}, True),
        ({"json"}, True),
    ],
)
def test_an_import_is_needless_if_no_run_does_without_it(run: set[str], found: bool) -> None:
    imports = list(imports_of("queenbee.a", f"def f():\n    import json  {MARK}\n"))
    assert bool(needless(imports, [run, {"queenbee.a", "json"}])) == found


def test_an_import_without_the_mark_is_noticed() -> None:
    source = f"def f():\n    import json\n    def g():\n        from os import path  {MARK}\n"
    found = {each.imported: each.marked for each in imports_of("queenbee.a", source)}
    assert found == {"json": False, "os": True}


def test_a_submodule_counts_as_itself() -> None:
    source = "def f():\n    from queenbee.core import names, text\n    from click import echo\n"
    found = [each.imported for each in imports_of("queenbee.a", source)]
    assert found == ["queenbee.core.names", "queenbee.core.text", "click"]
