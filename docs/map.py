"""Prints every module of QueenBee with the first line of its docstring: `make map`."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]

for path in sorted(ROOT.glob("queenbee/**/*.py"), key=lambda each: (each.parent, each.name)):
    about = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[
        0
    ]
    if path.name == "__init__.py":
        print(f"\n{path.parent.relative_to(ROOT)}/  {about}")
    else:
        print(f"  {path.name:24} {about}")
