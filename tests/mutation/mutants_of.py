"""The mutants of one module, as mutmut makes them: each is one changed expression or statement."""

from __future__ import annotations

import difflib

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

_SAME_BY_CONTRACT = "TYPE_CHECKING"
"""False at run time, whatever stands there in its place, and so are the blocks under it."""


class Mutants:
    """The mutants of a module's source, by number."""

    def __init__(self, source: str) -> None:
        self.source = source
        wrapper = MetadataWrapper(cst.parse_module(source))
        visitor = _Visitor()
        self._module = wrapper.visit(visitor)
        self._mutations = visitor.mutations
        self.lines: list[int] = visitor.lines
        """For each mutant, the line where what it changes begins."""

    def __len__(self) -> int:
        return len(self._mutations)

    def source_of(self, number: int) -> str:
        """Returns the source with one mutant in it."""
        mutation = self._mutations[number]
        changed = deep_replace(self._module, mutation.original_node, mutation.mutated_node)
        assert isinstance(changed, cst.Module)
        return changed.code

    def diff(self, number: int) -> str:
        """Returns the changed lines of a mutant, before and after."""
        before, after = self.source.splitlines(), self.source_of(number).splitlines()
        changes = difflib.unified_diff(before, after, lineterm="", n=0)
        return "\n".join(line for line in changes if not line.startswith(("---", "+++", "@@")))


class _Visitor(MutationVisitor):
    def __init__(self) -> None:
        super().__init__(mutation_operators, IgnoredCode(set(), set(), set()))
        self.lines: list[int] = []

    def _create_mutations(self, node: cst.CSTNode) -> None:
        super()._create_mutations(node)
        made = len(self.mutations) - len(self.lines)
        if made:
            position = self.get_metadata(PositionProvider, node, None) or self._position
            self.lines += [position.start.line] * made

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        position = self.get_metadata(PositionProvider, node, None)
        if position is not None:
            self._position = position
        if isinstance(node, cst.FunctionDef) and node.decorators:
            return False  # mutmut leaves them out because it cannot run them; we can.
        return _is_for_type_checking(node) or super()._skip_node_and_children(node)


def _is_for_type_checking(node: cst.CSTNode) -> bool:
    names: list[cst.CSTNode] = []
    if isinstance(node, cst.If):
        names = [node.test]
    elif isinstance(node, cst.Assign):
        names = [target.target for target in node.targets]
    return any(isinstance(name, cst.Name) and name.value == _SAME_BY_CONTRACT for name in names)
