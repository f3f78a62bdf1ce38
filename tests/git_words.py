"""Which words of the package's command lines stand before `--` and are not literal."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

ENDS = frozenset({"--", "--end-of-options"})
"""What stands behind these is no option."""
REFUSES = "no_dash"
"""The function that refuses what begins with a dash."""
GIT = frozenset({"git", "line", "user_git", "as_the_user", "network"})
"""What runs git with the words that it is called with; so do an instance of `Commands`, and each
function that hands its own words on to one of these."""


def assigned(body: list[ast.stmt] | list[ast.AST]) -> dict[str, list[ast.expr]]:
    """Returns the values that are given to names; of a loop over a literal, each of its values."""
    found: dict[str, list[ast.expr]] = {}
    for node in body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _give(found, target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
            _give(found, node.target, node.value)
        elif isinstance(node, ast.For | ast.comprehension):
            values = node.iter.elts if isinstance(node.iter, ast.Tuple | ast.List) else [UNKNOWN]
            for value in values:
                _give(found, node.target, value)
        elif isinstance(node, ast.Call) and called(node) == "append":
            assert isinstance(node.func, ast.Attribute)
            _give(found, node.func.value, ast.List(node.args))
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            _give(found, node.optional_vars, UNKNOWN)
    return found


UNKNOWN = ast.Name("?")


def _give(found: dict[str, list[ast.expr]], target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Name | ast.Attribute):
        found.setdefault(ast.unparse(target), []).append(value)
    elif isinstance(target, ast.Tuple):
        is_literal = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        values = value.elts if is_literal else [UNKNOWN] * len(target.elts)  # type: ignore[attr-defined]
        for each, its in zip(target.elts, values, strict=True):
            _give(found, each, its)


class Words:
    """Looks at the words of calls in one function, with the constants of the package."""

    def __init__(self, local: dict[str, list[ast.expr]], constants: dict[str, list[ast.expr]]):
        self._local = local
        self._constants = constants
        self._open: set[str] = set()

    def wrong(self, words: list[ast.expr]) -> Iterator[ast.expr]:
        """Yields the words that could be an option and are not written in the code."""
        for node in self._flat(words):
            if isinstance(node, ast.Constant) and node.value in ENDS:
                return
            if not self._is_literal(node):
                yield node

    def _flat(self, nodes: list[ast.expr]) -> Iterator[ast.expr]:
        """Yields the words, also those of literal sequences that are unpacked among them."""
        for node in nodes:
            if not isinstance(node, ast.Starred):
                yield node
                continue
            value = node.value
            if len(values := self._values(ast.unparse(value))) == 1:
                value = values[0]
            if isinstance(value, ast.Tuple | ast.List):
                yield from self._flat(value.elts)
            else:
                yield node

    def _values(self, name: str) -> list[ast.expr]:
        return self._local.get(name) or self._constants.get(name) or []

    def _is_literal(self, node: ast.expr) -> bool:
        """Returns whether a word is written in the code, or at least its beginning."""
        match node:
            case ast.Constant(str()):
                return True
            case ast.JoinedStr([ast.Constant(str(text)), *_]) if text not in ("", "-", "--"):
                return True
            case ast.JoinedStr([ast.Constant("--"), _, ast.Constant(str(text)), *_]):
                return text.startswith("=")
            case ast.BinOp(left, ast.Add() | ast.Mult(), _):
                return self._is_literal(left)
            case ast.IfExp(_, one, other):
                return self._is_literal(one) and self._is_literal(other)
            case ast.Call(ast.Name(name)):
                return name == REFUSES
            case ast.Starred(value):
                return self._are_literal(value)
            case ast.Name() | ast.Attribute():
                return self._is_named(ast.unparse(node), self._is_literal)
        return False

    def _are_literal(self, node: ast.expr) -> bool:
        match node:
            case ast.Tuple(elts) | ast.List(elts):
                return all(map(self._is_literal, elts))
            case ast.IfExp(_, one, other):
                return self._are_literal(one) and self._are_literal(other)
            case ast.JoinedStr([ast.Constant("--"), _, ast.Constant(str(text)), *_]):
                return text.startswith("=")
            case ast.BinOp(left, ast.Add(), right):
                return self._are_literal(left) and self._are_literal(right)
            case ast.Subscript(ast.Name(name)):
                return all(
                    isinstance(each, ast.Dict) and all(map(self._are_literal, each.values))
                    for each in self._values(name) or [UNKNOWN]
                )
            case ast.GeneratorExp(elt) | ast.ListComp(elt):
                return self._is_literal(elt)
            case ast.Call(ast.Name("map"), [ast.Name(name), _]):
                return name == REFUSES
            case ast.Name() | ast.Attribute():
                return self._is_named(ast.unparse(node), self._are_literal)
        return False

    def _is_named(self, name: str, question: object) -> bool:
        values = self._values(name)
        if not values or name in self._open:
            return False
        self._open.add(name)
        try:
            return all(map(question, values))  # type: ignore[call-overload]
        finally:
            self._open.discard(name)


def called(call: ast.Call) -> str:
    """Returns the last part of the name of what is called."""
    func = call.func
    return func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")


def own_arguments(function: ast.FunctionDef) -> int:
    """Returns how many arguments stand before the words of git."""
    names = [each.arg for each in function.args.args]
    return len(names) - (names[:1] == ["self"])


def git_functions(tree: ast.Module) -> dict[str, int]:
    """Returns what runs git in a module, and how many other arguments it has before the words.

    An instance of `Commands` is called so; a module may make a `git` of its own from the first.
    Behind its program, a `command_line` has such words, too, and so has what calls `bd`.
    """
    runs = {"commands": 0, "owner.call": 0} | dict.fromkeys(GIT & set(assigned(tree.body)), 0)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("queenbee.git"):
            runs |= {each.asname or each.name: 0 for each in node.names if each.name in GIT}
        if isinstance(node, ast.ImportFrom) and node.module == "queenbee.core.command_lines":
            runs |= {each.name: 1 for each in node.names if each.name == "command_line"}
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    known = 0
    while len(runs) > known:
        known = len(runs)
        runs |= {each.name: own_arguments(each) for each in functions if hands_on(each, runs)}
    return runs


def hands_on(function: ast.FunctionDef, runs: Collection[str]) -> bool:
    """Returns whether a function runs git with the words that it is called with."""
    rest = function.args.vararg
    return rest is not None and any(
        isinstance(each, ast.Starred) and isinstance(each.value, ast.Name)
        and each.value.id == rest.arg and runner(call) in runs
        for call in ast.walk(function) if isinstance(call, ast.Call)
        for word in call.args for each in ast.walk(word)
    )  # fmt: skip


def runner(call: ast.Call) -> str:
    """Returns the name under which `git_functions` has what is called."""
    name = ast.unparse(call.func)
    known = {"self._commands": "commands", "self.owner.call": "owner.call"}
    return known.get(name) or called(call)


def wrong_words(tree: ast.Module, constants: dict[str, list[ast.expr]]) -> Iterator[ast.expr]:
    """Yields the words of a module's calls of git that could be options."""
    runs = git_functions(tree)
    fields = assigned(list(ast.walk(tree)))
    constants = constants | assigned(tree.body)
    constants |= {name: its for name, its in fields.items() if name.startswith("self.")}
    for function, calls in calls_by_function(tree).items():
        local = assigned(list(ast.walk(function)))
        rests = {
            f"*{each.args.vararg.arg}"
            for each in ast.walk(function)
            if isinstance(each, ast.FunctionDef) and each.args.vararg and each.name in runs
        }
        for call in calls:
            if runner(call) not in runs or not is_ours(call):
                continue
            for node in Words(local, constants).wrong(call.args[runs[runner(call)] :]):
                if ast.unparse(node) not in rests:
                    yield node


def is_ours(call: ast.Call) -> bool:
    """Returns whether a function of the module is called, or a method of its own object."""
    func = call.func
    return isinstance(func, ast.Name) or (
        isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name | ast.Attribute)
    )


def calls_by_function(tree: ast.Module) -> dict[ast.AST, list[ast.Call]]:
    """Returns the calls, by the outermost function that each is in."""
    found: dict[ast.AST, list[ast.Call]] = {}
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        for each in inner:
            found[each] = [call for call in ast.walk(each) if isinstance(call, ast.Call)]
    return found
