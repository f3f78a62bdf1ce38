"""The page docs/api.md, written from the public names of the packages and their docstrings.

python tests/api_page.py            print the page
python tests/api_page.py --write    write it
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path

from queenbee import _light

_CACHED = cached_property | _light.cached_property
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
# The library, name by name

Read this page if you call QueenBee from Python. You can rely on these names; everything else may
change without notice. The [README](../README.md#from-python) has an example, and each kind of
document has a page of its own. The page is written from the docstrings by
`python tests/api_page.py --write`, so edit those.
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
    listed: set[object] = set()
    return "\n".join([_HEAD, *(line for package in PUBLIC for line in _package(package, listed))])


def _package(package: str, listed: set[object]) -> Iterator[str]:
    yield f"## `{package}`: {PUBLIC[package][:1].lower()}{PUBLIC[package][1:]}\n"
    yield "| name | what it is |\n|---|---|"
    for name in names_of(package):
        value = getattr(import_module(package), name)
        yield f"| `{name}{_signature(value)}` | {_first(value)} |"
        if inspect.isclass(value):
            yield from _members(name, value, listed)
    yield ""


def _members(owner: str, cls: type, listed: set[object]) -> Iterator[str]:
    """Yields a row for each public member that was not listed with another class."""
    for name, member in inspect.getmembers_static(cls):
        if name.startswith("_") or issubclass(cls, BaseException) or member in listed:
            continue
        if isinstance(member, property | _CACHED | classmethod) or callable(member):
            listed.add(member)
        if isinstance(member, property | _CACHED):
            yield f"| `{owner}.{name}` | {_first(member)} |"
        elif isinstance(member, classmethod | staticmethod) or inspect.isfunction(member):
            bound = getattr(cls, name)
            yield f"| `{owner}.{name}{_signature(bound)}` | {_first(bound)} |"


def _signature(value: object) -> str:
    if inspect.isclass(value) and (issubclass(value, BaseException | dict) or _hidden(value)):
        return ""
    if not callable(value):
        return ""
    parts = []
    keyword_only = False
    for each in inspect.signature(value).parameters.values():
        if each.name in ("self", "cls"):
            continue
        if each.kind is each.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        star = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        keyword_only = keyword_only or star == "*"
        parts.append(f"{star}{each.name}{'' if each.default is each.empty else '=…'}")
    return f"({', '.join(parts)})"


def _hidden(cls: type) -> bool:
    """Returns whether users never call the class: they are given its instances."""
    return not dataclasses.is_dataclass(cls) and cls.__module__.startswith(
        ("queenbee.core", "queenbee.services", "queenbee.workflows")
    )


def _first(value: object) -> str:
    """Returns the first sentence of a docstring."""
    if isinstance(value, str):
        return "The version, as text."
    if isinstance(value, _CACHED):
        value = value.func
    text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    return text.replace("|", "\\|")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
