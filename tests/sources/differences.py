"""Writes docs/differences.md from the tests of the source documents, so that it cannot go stale.

Each module in this folder is a document: its docstring is the document's title, each class a
heading, and each mark `differs(source, here, why)` of a test a difference.

    python tests/sources/differences.py             writes the page
    python tests/sources/differences.py --headings  prints every heading with its tests
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "differences.md"
DOCUMENTS = {
    "test_records.py": "[records](format.md)",
    "test_sprint_beads.py": "[sprint beads](sprint-beads.md) and [plans](plans.md)",
    "test_ralph_bead.py": "[Ralph beads](ralph-beads.md)",
    "test_team_session.py": "[team sessions](sessions.md)",
    "test_phase_gate.py": "[phase gates](gates.md)",
}
"""The modules in the order of the page, each with the pages about what it tests."""
_BEGIN = """\
# What differs from the source documents

QueenBee implements five documents. Each heading that says something has tests. Where QueenBee does
otherwise, the test of it says so, and this page is made from those tests.
"""


@dataclass(frozen=True)
class Heading:
    """A heading of a document: its text, the names of its tests, and (source, here, why) of each
    difference.
    """

    text: str
    tests: tuple[str, ...]
    differences: tuple[tuple[str, str, str], ...]


def read(path: Path) -> tuple[str, list[Heading]]:
    """Returns the title of the document that a module tests, and its headings."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
    return ast.get_docstring(module) or "", [
        Heading(
            ast.get_docstring(each) or "",
            tuple(test.name for test in _tests(each)),
            tuple(mark for test in _tests(each) for mark in _marks(test)),
        )
        for each in classes
    ]


def page() -> str:
    """Returns the whole page."""
    parts = [_BEGIN]
    for name, about in DOCUMENTS.items():
        title, headings = read(HERE / name)
        rows = [f"| {' | '.join(each)} |" for h in headings for each in h.differences]
        parts.append(f"\n## {title}\n\n{about[0].upper() + about[1:]}; {len(headings)} headings.\n")
        parts.append("\n| source | here | why |\n|---|---|---|\n")
        parts.append("\n".join(rows) + "\n")
    return "".join(parts)


def headings() -> Iterator[str]:
    """Yields a line for each heading: done or different, and by which tests."""
    for name in DOCUMENTS:
        title, found = read(HERE / name)
        yield f"## {title}"
        for each in found:
            state = "different" if each.differences else "done"
            yield f"| {each.text} | {state} | {', '.join(each.tests)} |"


def _tests(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [
        each
        for each in node.body
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    ]


def _marks(test: ast.FunctionDef) -> Iterator[tuple[str, str, str]]:
    for each in test.decorator_list:
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "pytest.mark.differs":
            source, here, *why = (ast.literal_eval(word) for word in each.args)
            yield source, here, why[0] if why else ""


if __name__ == "__main__":
    if "--headings" in sys.argv:
        print("\n".join(headings()))
    else:
        PAGE.write_text(page(), encoding="utf-8")
