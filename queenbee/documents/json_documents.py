"""JSON documents kept whole: a write changes only what it must.

Unknown keys, the order of keys and integers of any size survive. The standard library's `json`
is used here, and not orjson, which turns an integer of more than 64 bits into a float and hides
a key that occurs twice.
"""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

from queenbee.documents.json_text import Container, Style, begin, cut, insert
from queenbee.errors import NotFound, QueenError, Unreadable
from queenbee.store import safe_open
from queenbee.store.whole_files import read_document, write_document

Lock = Callable[[], AbstractContextManager[object]]
"""Keeps other processes out while a document is rewritten; no program runs under it."""

MAX_DEPTH = 100
"""Levels of nesting: far more than a document needs, far fewer than Python's stack allows."""


_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def parse_json(data: bytes, source: str) -> Any:
    """Returns the JSON value in `data`; a leading byte order mark is accepted, UTF-16's too.

    Raises `Unreadable`, which names `source`, if it is not JSON, or has a key twice in one
    object, a number beyond a float's range, or more than `MAX_DEPTH` levels.
    """
    try:
        value = json.loads(
            _decode(data),
            object_pairs_hook=_object,
            parse_float=_finite,
            parse_constant=_not_json,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Unreadable(f"{source} is not JSON: {error.msg} ({where})", path=source) from error
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Unreadable(f"{source} is not usable JSON: {reason}", path=source) from error
    if _is_too_deep(value):
        raise Unreadable(f"{source} has more than {MAX_DEPTH} levels of nesting", path=source)
    return value


def format_json(document: object) -> bytes:
    """Returns the document as UTF-8 with an indent of two, in the order of its keys."""
    try:
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8 form; only an escape can hold it.
        return json.dumps(document, indent=2, allow_nan=False).encode() + b"\n"


def read_json(path: str) -> Any:
    """Returns the JSON value in a file. Raises `NotFound` or `Unreadable`."""
    if "\0" in path:
        raise NotFound(f"{path!r} does not exist: a file name cannot contain a NUL", path=path)
    return parse_json(read_document(path), path)


def read_object(path: str) -> dict[str, Any]:
    """Returns the JSON object in a file. Raises `NotFound`, or `Unreadable` for anything else."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise Unreadable(f"{path} is not a JSON object", path=path)
    return value


def rewrite_object(path: str, document: dict[str, Any]) -> bytes:
    """Makes the object in a file `document`, and returns the bytes; see `edited`."""
    data = edited(safe_open.read(path), document)
    write_document(path, data)
    return data


def write_object(path: str, document: dict[str, Any]) -> None:
    """Replaces the file by the document in one step. Raises `Unwritable`."""
    write_document(path, format_json(document))


def edited(data: bytes, document: dict[str, Any]) -> bytes:
    """Returns the bytes of a JSON object changed to those of `document`: what is not different
    keeps each byte, as do the byte order mark, the indentation and the line ends.
    """
    with suppress(Unreadable, ValueError):
        code = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8")
        text = data.decode(code)
        changed = _edited(text, [], parse_json(data, ""), document).encode(code)
        if parse_json(changed, "") == document:
            return changed
    return format_json(document)


def _edited(text: str, keys: list[str], before: dict[str, Any], after: dict[str, Any]) -> str:
    """Returns the text with one of its objects, under these keys, changed."""
    for key in [*after, *(each for each in before if each not in after)]:
        old, new = before.get(key), after.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            text = _edited(text, [*keys, key], old, new)
        elif isinstance(old, list) and isinstance(new, list) and _begins(new, old):
            for value in new[len(old) :]:
                path = _way(text, [*keys, key])
                text = insert(text, path[-1], None, value, len(path))
        elif key not in before or key not in after or repr(old) != repr(new):
            path = _way(text, keys)
            item = path[-1].member(key)
            if item is None:
                text = insert(text, path[-1], key, new, len(path))
            elif key not in after:
                text = cut(text, path, path[-1].items.index(item)) or "{}"
            else:
                lines = Style(text).lines(new, Style(text).indent * len(path))
                text = text[: item.value] + lines + text[item.end :]
    return text


def _begins(new: list[Any], old: list[Any]) -> bool:
    return bool(old) and repr(new[: len(old)]) == repr(old)


def _way(text: str, keys: list[str]) -> list[Container]:
    """Returns the containers under these keys, from the outermost."""
    path = [Container(text, begin(text))]
    for key in keys:
        path.append(Container(text, path[-1].member(key).value))  # type: ignore[union-attr]
    return path


def read_folder(folder: str) -> Iterator[tuple[str, Any]]:
    """Yields each `*.json` file of a folder with its value, or with the error that it raises."""
    for path in json_files(folder):
        try:
            yield path, read_json(path)
        except QueenError as error:
            yield path, error


def json_files(folder: str) -> list[str]:
    """Returns the paths of the `*.json` files in a folder, sorted; none if it is missing."""
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise Unreadable(f"{folder} cannot be read: {error.strerror}", path=folder) from error
    return [
        os.path.join(folder, name)
        for name in names
        if name.endswith(".json") and not name.startswith(".")
    ]


def _decode(data: bytes) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        # Written by redirection in Windows PowerShell.
        return data.decode("utf-16")
    return data.removeprefix(codecs.BOM_UTF8).decode()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice[:80]!r} occurs twice in one object")
    return result


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {digits[:40]} is out of range")
    return number


def _not_json(constant: str) -> float:
    raise ValueError(f"{constant} is not a JSON value")


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        if not inner:
            return False
        level = inner
    return True
