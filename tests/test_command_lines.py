"""Every process is started with a command line of `core.command_lines`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

import pytest
from git_words import assigned, git_functions, wrong_words
from hypothesis import given
from hypothesis import strategies as st

from queenbee.checks import Command
from queenbee.checks.noted_process import noted_line
from queenbee.cli.calling import _desktop_command
from queenbee.cli.commands.land import land
from queenbee.core.command_lines import (
    CommandLine,
    command_line,
    git_line,
    no_dash,
    shell_line,
)
from queenbee.errors import InvalidInput
from queenbee.git.hosts.client import Client
from queenbee.git.hosts.repository import Repository
from queenbee.starting.clients import CLIENTS, client_of
from queenbee.starting.landing_result import land_line

ROOT = Path(__file__).resolve().parent.parent / "queenbee"
BUILDERS = frozenset({
    "command_line", "git_line", "shell_line", "noted_line", "typed_line", "filled_line",
})  # fmt: skip
STARTS = frozenset({
    "subprocess.Popen", "subprocess.run", "os.posix_spawnp",
})  # fmt: skip
"""The calls that may start a process: each with a command line as its first argument."""
WAYS = frozenset({
    "subprocess", "os.posix_spawn", "os.posix_spawnp", "os.exec", "os.spawn", "os.system",
    "os.popen", "os.fork", "os.startfile", "pty", "multiprocessing", "asyncio.subprocess",
    "asyncio.create_subprocess", "webbrowser", "_posixsubprocess", "concurrent.futures.process",
    "concurrent.futures.ProcessPoolExecutor", "click.edit", "click.launch", "click.Editor",
    "pexpect", "importlib.import_module", "__import__",
})  # fmt: skip
"""What begins the name of all that starts a process, or could bring it in by another name."""
NAMES_ONLY = frozenset({
    "subprocess.DEVNULL", "subprocess.PIPE", "subprocess.STDOUT", "subprocess.TimeoutExpired",
    "subprocess.SubprocessError", "subprocess.CalledProcessError",
})  # fmt: skip
IMPORTS_BY_NAME = frozenset({"_lazy.py", "cli/app.py"})
"""Loads our own modules by their names."""
FORKS = frozenset({"cli/outliving.py"})
"""Goes on in a process of its own, which starts no other program."""
TYPED = frozenset({
    "checks/executing.py", "cli/calling.py", "core/command_lines.py",
})  # fmt: skip
"""A script of a check, the command of `--run`, and our own, with the arguments that started us."""


@cache
def modules() -> dict[str, ast.Module]:
    """Returns what each module of the package says."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(ROOT.rglob("*.py"))
    }


@cache
def nodes(tree: ast.Module) -> list[ast.AST]:
    """Returns all nodes of a module."""
    return list(ast.walk(tree))


def imported(tree: ast.Module) -> dict[str, str]:
    """Returns what the names of a module stand for."""
    found = {}
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                whole = each.name if each.asname else each.name.partition(".")[0]
                found[each.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                found[each.asname or each.name] = f"{node.module}.{each.name}"
    return found


def dotted(node: ast.expr, names: dict[str, str]) -> str:
    """Returns the whole name of what an expression names, or ""."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id if node.id == "__import__" else "")
    if isinstance(node, ast.Attribute):
        before = dotted(node.value, names)
        return f"{before}.{node.attr}" if before else ""
    return ""


def uses(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yields each use of something that can start a process, with its whole name."""
    names = {
        name: whole
        for name, whole in imported(tree).items()
        if any(way.startswith(whole) or whole.startswith(way) for way in WAYS)
    }
    if not names and not any(
        isinstance(each, ast.Name) and each.id == "__import__" for each in nodes(tree)
    ):
        return
    inner = {id(node.value) for node in nodes(tree) if isinstance(node, ast.Attribute)}
    for node in nodes(tree):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            name = dotted(node, names)
            if any(name.startswith(way) for way in WAYS):
                yield name, node


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    yield from (each for each in nodes(tree) if isinstance(each, ast.FunctionDef))


def is_command_line(node: ast.expr, inside: ast.AST, tree: ast.Module) -> bool:
    """Returns whether an expression is a command line: built on the spot, or said to be one."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in BUILDERS
    if isinstance(node, ast.Attribute):
        annotated = {
            each.target.id: ast.unparse(each.annotation)
            for each in nodes(tree)
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        }
        return annotated.get(node.attr) == "CommandLine"
    if not isinstance(node, ast.Name) or not isinstance(inside, ast.FunctionDef):
        return False
    every = [*inside.args.args, *inside.args.kwonlyargs]
    if any(
        each.arg == node.id and each.annotation and ast.unparse(each.annotation) == "CommandLine"
        for each in every
    ):
        return True
    given = [
        each.value
        for each in ast.walk(inside)
        if isinstance(each, ast.Assign)
        and any(isinstance(name, ast.Name) and name.id == node.id for name in each.targets)
    ]
    return bool(given) and all(is_command_line(each, inside, tree) for each in given)


def wrongly_started(tree: ast.Module) -> list[str]:
    """Returns what starts a process, or may, other than with a command line."""
    used = list(uses(tree))
    calls = {
        id(call.func): (call, function)
        for function in ([tree, *functions(tree)] if used else [])
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
    }
    found = []
    for name, node in used:
        call, inside = calls.get(id(node), (None, tree))
        if name in NAMES_ONLY or (name in STARTS and call is None and is_type(node, tree)):
            continue
        if name not in STARTS or call is None or not is_right(name, call, inside, tree):
            found.append(f"{node.lineno}: {name}")
    return found


def is_right(name: str, call: ast.Call, inside: ast.AST, tree: ast.Module) -> bool:
    """Returns whether a call that starts a process does so with a command line, and no shell."""
    if name == "os.posix_spawnp":
        program, command = (ast.unparse(each) for each in call.args[:2])
        return program == f"{command}[0]" and is_command_line(call.args[1], inside, tree)
    others = any(each.arg in ("shell", "executable", None) for each in call.keywords)
    return bool(call.args) and not others and is_command_line(call.args[0], inside, tree)


def is_type(node: ast.expr, tree: ast.Module) -> bool:
    """Returns whether a name stands for a type: before brackets, or as what is returned."""
    return any(
        (isinstance(each, ast.Subscript) and each.value is node)
        or (isinstance(each, ast.FunctionDef) and each.returns is node)
        for each in nodes(tree)
    )


@pytest.mark.slow
def test_a_process_is_started_with_a_command_line_or_not_at_all() -> None:
    found = {
        path: wrong
        for path, tree in modules().items()
        if (wrong := wrongly_started(tree)) and path not in IMPORTS_BY_NAME | FORKS
    }
    assert found == {}


def test_only_one_module_makes_command_lines() -> None:
    made = {
        path
        for path, tree in modules().items()
        for node in nodes(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("CommandLine")
    }
    assert made == {"core/command_lines.py"}


def test_a_command_word_by_word_is_what_somebody_typed() -> None:
    used = {
        path
        for path, tree in modules().items()
        for node in nodes(tree)
        if isinstance(node, ast.Name) and node.id == "typed_line"
    }
    assert used <= TYPED


@cache
def constants() -> dict[str, list[ast.expr]]:
    """Returns the constants of the package that other modules use."""
    return {
        name: values
        for tree in modules().values()
        for name, values in assigned(tree.body).items()
        if name.isupper() and not name.startswith("_")
    }


@pytest.mark.slow
def test_no_value_is_an_option_of_git_or_of_another_program() -> None:
    """What stands before `--` is written in the code, or is refused if it begins with a dash."""
    found = {
        path: [f"{each.lineno}: {ast.unparse(each)}" for each in words]
        for path, tree in modules().items()
        if (words := list(wrong_words(tree, constants())))
    }
    assert found == {}


def test_git_is_run_only_where_the_test_looks() -> None:
    """Whoever hands on the words of another caller is found by itself; nobody else makes a line."""
    made = {
        path
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "git_line"
    }
    assert made == {"git/landing/commands.py", "git/objects.py", "git/run.py"}
    assert {"_git", "_text", "_line", "_network"} <= git_functions(
        modules()["git/remote/branch.py"]
    ).keys()


GIT = "from queenbee.git.run import git, line\n"
MAKES = "from queenbee.core.command_lines import command_line\n"


@pytest.mark.parametrize(
    "text",
    [
        "def f(branch): git('checkout', branch)",
        "def f(branch): git('checkout', *[branch])",
        "def f(branch): git('checkout', '-q', f'{branch}^', '--')",
        "def f(how): git(*how)",
        "def f(branch):\n    how = ('checkout', branch)\n    git(*how)",
        "def f(branches):\n    for each in branches: line('show', each)",
        "def f(given):\n    words = ['-q']\n    words.append(given)\n    git('log', *words)",
        "def f(given):\n    name = 'main'\n    name = given\n    git('log', name)",
        "def ask(*words): git('log', *words)\ndef f(given): ask(given)",
        "class A:\n  def ask(self, *words): git(*words)\n  def f(self, given): self.ask(given)",
        "def f(commands, branch): commands('merge', branch)",
        f"{MAKES}def f(title): command_line('queen', 'land', title)",
        "class A:\n    def f(self): git('merge', self.branch)",
    ],
)
def test_a_value_that_could_be_an_option_of_git_is_found(text: str) -> None:
    assert len(list(wrong_words(ast.parse(GIT + text), {}))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "def f(paths): git('add', '--', *paths)",
        "def f(branch): git('log', '--end-of-options', branch)",
        "def f(branch): git('log', f'refs/heads/{branch}')",
        "def f(branch): git('log', no_dash(branch), *map(no_dash, branch))",
        "def f(many): git('log', *(f'--not={each}' for each in many))",
        "ALL = ('-q', '--')\ndef f(path): git('log', *ALL, path)",
        "def ask(*words): git('log', *words)\ndef f(): ask('-q')",
    ],
)
def test_a_value_that_can_be_no_option_of_git_is_let_be(text: str) -> None:
    assert list(wrong_words(ast.parse(GIT + text), {})) == []


HOSTILE = st.one_of(
    st.sampled_from(
        ["-m", "--check=id", "--", "-", "--abort", "$(id)", "{options}", "{prompt}", "", " -m", "="]
    ),
    st.text(max_size=30),
).filter(lambda text: "\0" not in text)
PLAIN = "plain"
Build = Callable[[str], CommandLine]
LINES: dict[str, Build] = {
    "queen land": lambda text: command_line("queen", "land", values=[text], message=text),
    "git": lambda text: git_line(text, ("log", f"--format={text}", "--", text)),
    "a shell": lambda text: shell_line("exec cat", text, text),
    "a shell that notes itself": lambda text: noted_line("exec cat", text),
    "a check": lambda text: Command(text).argv,
    "a check of bash": lambda text: Command(text, "bash").argv,
    "a check of PowerShell": lambda text: Command(text, "pwsh").argv,
    "a program of one's own": lambda text: client_of(f"./{text}", {}).command(text),
    "notify-send": lambda text: desktop(text),
    "a code host": lambda text: Client(Repository(text, text), "").argv(text, text, text),
    **{
        f"{name} {how}": partial(build, client)
        for name, client in CLIENTS.items()
        for how, build in {
            "headless": lambda client, text: client.command(text, model=f"x{text}"),
            "resumed": lambda client, text: client.command(text, session="s-1"),
            "opened": lambda client, text: client.opened(text, ["--yolo"]),
        }.items()
    },
}
"""What makes a command line, of one text in all of its places."""
MAKERS = {
    "argv", "command", "opened", "_command", "_desktop_command", "command_line", "git_line",
    "shell_line", "noted_line", "typed_line", "filled_line", "land_line",
}  # fmt: skip
"""The functions that return a command line: those above. `_command` calls `command`, and what
somebody typed is theirs."""


def desktop(text: str) -> CommandLine:
    found = patch("shutil.which", lambda name: f"/usr/bin/{name}")
    with found, patch("sys.platform", "linux"), patch("html.escape", str):
        made = _desktop_command({"DISPLAY": ":0"}, text, text)
    assert made is not None
    return made


def test_the_law_below_is_about_all_that_returns_a_command_line() -> None:
    found = {
        node.name
        for tree in modules().values()
        for node in functions(tree)
        if node.returns is not None and "CommandLine" in ast.unparse(node.returns)
    }
    assert found == MAKERS


@pytest.mark.parametrize("build", LINES.values(), ids=LINES)
@given(text=HOSTILE)
def test_no_text_changes_the_words_that_are_no_values(build: Build, text: str) -> None:
    """With any text, a line has the words that it has with a harmless one, and in its place the
    text: joined to its name, behind `--`, as a command, or with a space before its dash.
    """
    with_plain, with_text = build(PLAIN), build(text)
    of_shell = 3 if with_plain[:2] == ("/bin/sh", "-c") else len(with_plain)
    for at, (word, other) in enumerate(zip(with_plain, with_text, strict=True)):
        if PLAIN not in word:
            assert other == word
        elif word != PLAIN:  # It begins with what the code says.
            assert not word.startswith(PLAIN)
            assert other == word.replace(PLAIN, text)
        elif "--" in with_plain[:at] or with_plain[at - 1] == "-C" or at >= of_shell:
            assert other == text
        else:
            assert other in (text, f" {text}")
            assert not other.startswith("-")


@given(issue_id=HOSTILE, title=HOSTILE)
def test_queen_reads_an_id_and_a_message_as_what_they_are(issue_id: str, title: str) -> None:
    line = land_line(issue_id, title)
    asked = land.make_context("land", list(line[2:])).params
    assert (asked["issue_ids"], asked["message"]) == ((issue_id,), title)
    assert not any(asked[name] for name in ("check", "unchecked", "abort", "go_on", "take_next"))


@pytest.mark.parametrize("name", ["-x", "--upload-pack=touch x", "--", "-"])
def test_a_name_with_a_dash_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="begins with a dash"):
        no_dash(name)
    assert no_dash(f"a{name}") == f"a{name}"


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess\nsubprocess.run(['a', title])",
        "import subprocess as s\ndef f(words): s.run(words)",
        "from subprocess import check_output as ask\nask(command_line('a'))",
        "import subprocess\nstart = subprocess.run",
        "import subprocess\nsubprocess.run(command_line('a'), shell=True)",
        "import subprocess\nsubprocess.run(command_line('a'), **how)",
        "import os\nos.system('a')",
        "import os\nos.posix_spawnp('a', ['a', title], {})",
        "from os import execv\nexecv('a', ['a'])",
        "import pty\npty.spawn(['a'])",
        "import asyncio\nasyncio.create_subprocess_exec('a')",
        "from multiprocessing import Process\nProcess()",
        "from concurrent.futures import ProcessPoolExecutor\nProcessPoolExecutor()",
        "import webbrowser\nwebbrowser.open(title)",
        "import click\nclick.edit(filename=title)",
        "__import__('subprocess').run(['a'])",
        "import importlib\nimportlib.import_module('subprocess')",
    ],
)
def test_another_way_of_starting_a_process_is_found(text: str) -> None:
    assert len(wrongly_started(ast.parse(text))) == 1
