"""What programs rely on: the signatures of the library and the schemas, and what breaks them.

python tests/contract.py            keep those of now as those of the release
python tests/contract.py --notes    print what the release notes must name
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from api_page import OFFERED, PUBLIC, names_of

from queenbee.library.schemas import schema
from queenbee.version import __version__

RELEASED = Path(__file__).parent / "library" / "released.json"
_BELOW = {"Services": "Hive", "Store": "Hive", "Issues": "TrackedIssues"}
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def contract() -> dict[str, Any]:
    """Returns the calls, each with its parameters, and the schemas, as they are now."""
    calls = {name: parameters for package in PUBLIC for name, parameters in _calls(package)}
    return {"calls": calls, "schemas": schema()["$defs"]}


def _calls(package: str) -> Iterator[tuple[str, list[str] | None]]:
    module = import_module(package)
    for name in names_of(package):
        value = getattr(module, name)
        yield f"{package}.{name}", _parameters(value)
        said = OFFERED.get(_BELOW.get(name, name))
        offered = said.split() if said is not None else dir(value)
        for each in offered if inspect.isclass(value) else ():
            if not each.startswith("_") and hasattr(value, each):
                found = inspect.getattr_static(value, each)
                yield f"{package}.{name}.{each}", _parameters(getattr(found, "__func__", found))


def _parameters(value: object) -> list[str] | None:
    """Returns the parameters of a call: `=` behind one that may be left out, and in front of one
    that is given by name alone; None if it is no call.
    """
    if not callable(value):
        return None
    try:
        found = inspect.signature(value).parameters.values()
    except ValueError:
        return None
    named = [each for each in found if each.name not in ("self", "cls")]
    return [
        ("" if each.kind in _POSITIONAL else "=")
        + each.name
        + ("=" if each.default is not each.empty or each.kind.name.startswith("VAR") else "")
        for each in named
    ]


def breaks(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yields what programs that were written for `before` cannot rely on any more."""
    for name, parameters in before["calls"].items():
        if name not in now["calls"]:
            yield name
        elif parameters is not None:
            found = now["calls"][name] or []
            known = [each.strip("=") for each in found]
            for number, each in enumerate(parameters):
                bare, is_named = each.strip("="), each.startswith("=")
                if bare not in known or (not is_named and known.index(bare) != number):
                    yield f"{name}({bare})"
            old = [each.strip("=") for each in parameters]
            yield from (
                f"{name}({each.strip('=')})"
                for each in found
                if not each.endswith("=") and each.strip("=") not in old
            )
    for name, said in before["schemas"].items():
        if name not in now["schemas"]:
            yield f"queen schema {name}"
        else:
            yield from _lost(said, now["schemas"][name], f"queen schema {name}")


def _lost(before: Any, now: Any, where: str) -> Iterator[str]:
    """Yields where readers of `now` meet what `before` told them nothing of."""
    if not isinstance(before, dict) or not isinstance(now, dict):
        return
    if {*_list(before.get("required"))} - {*_list(now.get("required"))}:
        yield f"{where}: required"
    if "type" in before and not {*_list(now.get("type"))} <= {*_list(before["type"])}:
        yield f"{where}: type"
    if "type" in before and "type" not in now:
        yield f"{where}: type"
    for name, said in before.get("properties", {}).items():
        if name not in now.get("properties", {}):
            yield f"{where}.{name}"
        else:
            yield from _lost(said, now["properties"][name], f"{where}.{name}")
    yield from _lost(before.get("items"), now.get("items"), f"{where}[]")
    if "$ref" in before and before["$ref"] != now.get("$ref"):
        yield f"{where}: $ref"
    if len(now.get("anyOf", ())) > len(before.get("anyOf", now.get("anyOf", ()))):
        yield f"{where}: anyOf"
    for number, (said, found) in enumerate(
        zip(before.get("anyOf", ()), now.get("anyOf", ()), strict=False)
    ):
        yield from _lost(said, found, f"{where}|{number}")


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def notes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Returns what breaks since a release, and what is new, as sections of the changelog."""
    new = [name for name in now["calls"] if name not in before["calls"]]
    new += [f"queen schema {name}" for name in now["schemas"] if name not in before["schemas"]]
    sections = {"What breaks": [*breaks(before, now)], "Added": new}
    return "\n".join(
        f"### {heading}\n\n" + "".join(f"- `{name}`\n" for name in names or ["nothing"])
        for heading, names in sections.items()
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--notes"]:
        sys.exit(print(notes(json.loads(RELEASED.read_text("utf-8")), contract())))
    parts = {"version": __version__, **contract()}
    rows = {
        name: "{\n"
        + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in part.items())
        + "\n}"
        for name, part in parts.items()
        if isinstance(part, dict)
    }
    said = ",\n".join(f"{json.dumps(name)}: {text}" for name, text in rows.items())
    RELEASED.write_text(f'{{"version": "{__version__}",\n{said}\n}}\n')
