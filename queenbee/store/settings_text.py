"""Changing values in the text of `queen.toml`, with everything else as it was."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def with_values(text: str, table: str, values: Mapping[str, str | None]) -> str | None:
    """Returns the settings with these values in a table, each as TOML, or None to remove it.

    None if the table is written in a way that this does not understand.
    """
    lines = text.splitlines()
    begin = next((n for n, each in enumerate(lines) if re.match(rf"\s*\[{table}\]", each)), None)
    if begin is None:
        lines += ["", f"[{table}]"]
        begin = len(lines) - 1
    end = next((n for n in range(begin + 1, len(lines)) if lines[n].lstrip()[:1] == "["), None)
    said = {name: value for name, value in values.items() if value is not None}
    named = re.compile(rf"\s*({'|'.join(values)})\s*=")
    kept = [each for each in lines[begin + 1 : end] if not named.match(each)]
    lines[begin + 1 : end] = [*(f"{name} = {value}" for name, value in said.items()), *kept]
    changed = "\n".join(lines) + "\n"
    if not said:
        changed = changed.removesuffix(f"\n[{table}]\n")
    try:
        before, after = tomllib.loads(text), tomllib.loads(changed)
        wanted = tomllib.loads("\n".join(f"{name} = {value}" for name, value in said.items()))
    except ValueError:
        return None
    rest = {name: each for name, each in before.get(table, {}).items() if name not in values}
    is_as_wanted = {table: {}, **after} == {**before, table: {**rest, **wanted}}
    return changed if is_as_wanted else None
