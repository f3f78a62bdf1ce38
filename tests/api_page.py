"""The page docs/api.md: which names of which packages users may rely on.

python tests/api_page.py --write    write it

What each name does is in its docstring; `make docs` makes the reference from those.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "api.md"

PUBLIC = {
    "queenbee": "The hive and its records",
    "queenbee.services": "The services of a hive",
    "queenbee.errors": "Refusals",
    "queenbee.workflows": "Verifying, running and completing",
    "queenbee.checks": "Checks",
    "queenbee.documents": "What documents share",
    "queenbee.documents.plans": "Plans",
    "queenbee.documents.sprints": "Sprint beads",
    "queenbee.documents.ralph": "Ralph beads",
    "queenbee.documents.gates": "Phase gates",
    "queenbee.documents.sessions": "Team sessions",
}
"""The packages whose names users may rely on, each with its heading."""

_HEAD = """\
# The library

Read this page if you call QueenBee from Python. You can rely on the names below; everything else
may change without notice. The [tutorial](tutorial.md#from-python) has an example, and each kind of
document has a page of its own.

Each name has a docstring: `help(queenbee.Hive)`, or the reference that `make docs` builds from
them. If your program forks, open a hive in each process, after the fork.

| package | what is in it | names |
|---|---|---|
"""


def names_of(package: str) -> list[str]:
    """Returns the public names of a package: its `__all__`, or else what it imports by name."""
    module = import_module(package)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and name != "annotations" and not inspect.ismodule(value)
    ]
    return sorted(names, key=str.lower)


def page() -> str:
    """Returns the whole page."""
    return _HEAD + "".join(_rows())


def _rows() -> Iterator[str]:
    for package, heading in PUBLIC.items():
        names = " ".join(f"`{name}`" for name in names_of(package))
        yield f"| `{package}` | {heading} | {names} |\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
