"""Two versions of `queen.toml`: merged by key, and mended where git put both into one text."""

from __future__ import annotations

import re
import tomllib

import tomlkit

from queenbee.errors import QueenError
from queenbee.store.codec import CONFLICT_MARKERS
from queenbee.store.settings import FILE_NAME, by_name, is_readable
from queenbee.store.settings_file.changing_text import with_values

_TABLE = re.compile(r"\s*\[\s*([\w-]+)\s*\]\s*(#.*)?$")
_MARKS = tuple(each.decode() for each in CONFLICT_MARKERS)


def merged(base: str, ours: str, theirs: str) -> str | None:
    """Returns our settings with what `theirs` changed since `base`, or None if both changed one of
    them in different ways, or a text cannot be read. Lists get what either added.
    """
    try:
        before, here, there = (
            by_name(FILE_NAME, tomllib.loads(each)) for each in (base, ours, theirs)
        )
        changes: dict[str, object] = {}
        for name in {**before, **there}:
            was, now, then = before.get(name), here.get(name), there.get(name)
            if then in (was, now):
                continue
            both = _joined(now, then) if was != now else then
            if was != now and (both is None or _lacks(now, was) or _lacks(then, was)):
                return None
            changes[name] = both
        text = with_values(ours, changes)
    except (QueenError, ValueError, RecursionError):
        return None
    return text if is_readable(text) else None


def mended(text: str) -> str | None:
    """Returns settings in which every table is there once, with all that its parts say; None if
    they say different things, or something else is wrong.
    """
    lines = [each for each in re.findall(r".*\n|.+\Z", text) if not each.startswith(_MARKS)]
    parts: dict[str, list[str]] = {"": []}
    name, joined = "", dict[str, object]()
    try:
        for line in lines:
            header = _TABLE.match(line)
            if header is None:
                parts[name].append(line)
                continue
            name = header[1]
            if name in parts:
                name = f"{name} again {len(parts)}"
            parts[name] = [line]
        whole: dict[str, str] = {}
        for name, body in parts.items():
            table, again, _ = name.partition(" again ")
            if again:
                whole[table] = _with(whole[table], "".join(body[1:]), table, joined)
            else:
                whole[name] = "".join(body)
        changed = with_values("".join(whole.values()), joined)
    except (QueenError, ValueError, RecursionError):
        return None
    return changed if is_readable(changed) else None


def _with(first: str, second: str, table: str, joined: dict[str, object]) -> str:
    """Returns the text of a table with that of its second part; lists that both have are added to
    `joined`. Raises `ValueError` if the two say different things.
    """
    document = tomlkit.parse(second)
    known = tomllib.loads(first)
    known = known.get(table, known)
    for key, value in tomllib.loads(second).items():
        if key not in known:
            continue
        if value != known[key]:
            both = _joined(joined.get(f"{table}.{key}", known[key]), value)
            if both is None:
                raise ValueError(key)
            joined[f"{table}.{key}"] = both
        del document[key]
    end = len(first.rstrip()) + 1
    body = tomlkit.dumps(document).strip("\n")
    return f"{first[:end].rstrip()}\n{body}\n{first[end:]}" if body else first


def _joined(one: object, other: object) -> list[object] | None:
    """Returns a list with all that two have; None unless both are lists."""
    if not isinstance(one, list) or not isinstance(other, list):
        return None
    return [*one, *(each for each in other if each not in one)]


def _lacks(now: object, was: object) -> bool:
    """Returns whether a list lost something that it had."""
    return isinstance(was, list) and isinstance(now, list) and any(each not in now for each in was)
