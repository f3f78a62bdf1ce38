"""JSON as `json.loads` and `json.dumps` read and write it, without loading `json`: 8 ms.

The C module `_json` is used directly; for every text that it does not understand, `json` answers. A
property test holds the two together.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from queenbee.errors import QueenError

try:
    if hasattr(sys, "gettotalrefcount"):
        # A debug build ends if `_json` reports a fault while `json` is not loaded.
        raise ImportError
    from _json import encode_basestring, encode_basestring_ascii, make_encoder, make_scanner
except ImportError:
    make_scanner = make_encoder = None  # type: ignore[assignment, misc]
    encode_basestring = encode_basestring_ascii = str

_SPACE = " \t\n\r"
_CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": -float("inf")}


class _Rules:
    """How a scanner reads: the attributes that `_json.make_scanner` asks for."""

    strict = True
    object_hook = None
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None
    parse_float: Callable[[str], Any] = float
    parse_int: Callable[[str], Any] = int
    parse_constant: Callable[[str], Any] = _CONSTANTS.__getitem__


def reader(**rules: Callable[[Any], object] | None) -> Callable[[str | bytes], Any]:
    """Returns a function like `json.loads` with these keyword arguments: `parse_float`,
    `parse_int`, `parse_constant` and `object_pairs_hook`.
    """
    given = {name: rule for name, rule in rules.items() if rule is not None}
    scan = None
    if make_scanner is not None:
        wanted = _Rules()
        vars(wanted).update(given)
        try:
            scan = make_scanner(wanted)  # type: ignore[arg-type]
        except (AttributeError, TypeError):  # A Python whose scanner asks for more.
            scan = None

    def read(text: str | bytes) -> Any:
        if scan is not None:
            try:
                # Other encodings than UTF-8 have a NUL or a mark at the beginning.
                plain = text if isinstance(text, str) or b"\0" in text[:4] else text.decode()
                if isinstance(plain, str):
                    plain = plain.strip(_SPACE)
                    value, end = scan(plain, 0)
                    if end == len(plain):
                        return value
            except (StopIteration, SystemError, ValueError):
                pass  # `json` says what is wrong with it.
        import json  # noqa: PLC0415 - start-up

        return json.loads(text, **given)  # type: ignore[arg-type]

    return read


def writer(*, compact: bool = False) -> Callable[[object], str]:
    """Returns a function like `json.dumps`; a `compact` one writes neither spaces nor escapes, and
    raises `ValueError` for numbers that JSON does not have.
    """
    text = encode_basestring if compact else encode_basestring_ascii
    key, item = (":", ",") if compact else (": ", ", ")

    def write(value: object) -> str:
        if make_encoder is not None:
            try:
                # A new one for each value: it remembers the containers that it is in.
                encode = make_encoder({}, _refuse, text, None, key, item, False, False, not compact)
                return "".join(encode(value, 0))
            except TypeError:
                pass  # `json` says what is wrong; or the encoder of this Python asks for more.
        import json  # noqa: PLC0415 - start-up

        return json.dumps(
            value, ensure_ascii=not compact, allow_nan=not compact, separators=(item, key)
        )

    return write


def _refuse(value: object) -> object:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def to_plain(value: object) -> object:
    """Returns the value as JSON types."""
    if hasattr(value, "to_dict"):
        return to_plain(value.to_dict())
    if isinstance(value, dict):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    return value


def error_document(error: QueenError) -> dict[str, object]:
    """Returns the JSON form of a refusal."""
    document: dict[str, object] = {"code": error.code, "message": error.message}
    if error.hint:
        document["hint"] = error.hint
    document.update((key, to_plain(each)) for key, each in error.details.items())
    return {"error": document}


loads = reader()
dumps = writer()
