"""Encoding and decoding of one line: which bytes are a usable line, and their fields.

Small inputs are decoded by the standard library and large ones by orjson, whose import takes 25 ms.
Both accept the same lines (a property test). `docs/format.md`, section "Lines"; ADR 0002.
"""

from __future__ import annotations

import gc
import json
import sys

from queenbee.errors import InvalidInput

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from queenbee.core.fold import Stated

MAX_LINE_BYTES = 1024 * 1024
SCANNED_LINE_BYTES = 64 * 1024 - 1
"""The longest line, without its ending, that Go's `bufio.Scanner` returns. The Go tool reads with
it, and gives up on the file at a longer one. ADR 0018.
"""
MAX_DEPTH = 128
"""orjson stops at 1,024 levels and the standard library near 1,000, both well above this."""

CONFLICT_MARKERS = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")
"""The beginnings of the lines that git writes around a merge conflict."""

_LARGE_BYTES = 1024 * 1024
_ORJSON_FROM_BYTES = 512 * 1024
"""From this size on, orjson saves more than its import costs: about 1,500 lines, measured with and
without click."""


_SOME_LINES = 32
"""How many lines are looked at together, whether one of them can be too long or too deep: two
counts for each line would take a third of the time of decoding it."""


class Unusable(ValueError):
    """A line without a record; the text says why."""


def decoder(size_bytes: int) -> Callable[[bytes], dict[str, object]]:
    """Returns the function that decodes one line, chosen for an input of this size.

    It raises `Unusable` for a line that is neither a record nor a migration.
    """
    loads = loads_for(size_bytes)
    return lambda raw: _checked(raw, loads)


def is_usable(line: bytes, decode: Callable[[bytes], object]) -> bool:
    """Returns whether `decode`, which `decoder` gave, can read a line."""
    try:
        decode(line)
    except Unusable:
        return False
    return True


def decode_records(
    lines: Sequence[bytes], size_bytes: int, others: list[Stated]
) -> Iterator[Stated]:
    """Yields the lines of an input of this size that hold a record, each with its fields.

    Usable lines of other kinds, which are migrations, are added to `others`. These are the lines
    that `decoder` accepts, in half the time: a call for each line and a reason for each unusable
    one would cost as much as decoding them.
    """
    loads, decode = loads_for(size_bytes), decoder(size_bytes)
    for begin in range(0, len(lines), _SOME_LINES):
        some = lines[begin : begin + _SOME_LINES]
        if not _are_plain(some):
            some = [raw for raw in some if _are_plain((raw,)) or is_usable(raw, decode)]
        for raw in some:
            try:
                fields = loads(raw)
            except (ValueError, RecursionError):
                continue
            if type(fields) is not dict:
                continue
            if "_migration" in fields:
                others.append((raw, fields))
            elif (identifier := fields.get("id")) and type(identifier) is str:
                yield raw, fields


def _are_plain(lines: Iterable[bytes]) -> bool:
    """Returns whether none of the lines can be too long, or nested too deep."""
    data = b"".join(lines)
    # Brackets inside strings count here too: a cheap test that never misses a deep line.
    return len(data) < MAX_LINE_BYTES and data.count(b"[") + data.count(b"{") <= MAX_DEPTH


class without_collection:  # noqa: N801 - it reads like a function
    """Disables garbage collection while a large input is decoded: records have no cycles, and
    looking for them takes as long as reading the records.
    """

    def __init__(self, size_bytes: int) -> None:
        self._pauses = size_bytes >= _LARGE_BYTES and gc.isenabled()

    def __enter__(self) -> None:
        if self._pauses:
            gc.disable()

    def __exit__(self, *error: object) -> None:
        if self._pauses:
            gc.enable()


def decode(raw: bytes) -> dict[str, object]:
    """Returns the fields of one line. Raises `Unusable`."""
    return decoder(len(raw))(raw)


def decode_exactly(raw: bytes) -> dict[str, object]:
    """Returns the fields of a usable line; integers of any length keep every digit."""
    fields = json.loads(raw.decode())
    assert isinstance(fields, dict)
    return fields


def encode(fields: Mapping[str, object]) -> bytes:
    """Returns the record as one line, without its line ending.

    Raises `InvalidInput` if the line would exceed 1 MiB, or if JSON cannot express a value (a
    lone surrogate: bytes that were not UTF-8 at their source).
    """
    raw = pack(fields)
    if len(raw) >= MAX_LINE_BYTES:
        raise InvalidInput(
            f"the record would take {len(raw):,} bytes; a line holds at most {MAX_LINE_BYTES:,}",
            hint="put the text in a file in the repository and send its path",
        )
    return raw


def fits(fields: Mapping[str, object]) -> bool:
    """Returns whether a record can be written as a line."""
    try:
        encode(fields)
    except InvalidInput:
        return False
    return True


def pack(fields: Mapping[str, object]) -> bytes:
    """Returns a record of any size as JSON: several lines may fold to more than a line holds.

    Raises `InvalidInput` for a value that JSON cannot express.
    """
    fields = fields if isinstance(fields, dict) else dict(fields)  # Those of a record.
    try:
        if "orjson" in sys.modules:
            import orjson  # noqa: PLC0415 - start-up

            try:
                raw = orjson.dumps(fields)
            except TypeError:  # An integer beyond 64 bits, which only the library below writes.
                raw = _dumps(fields)
        else:
            raw = _dumps(fields)
    except (UnicodeEncodeError, ValueError) as error:
        raise InvalidInput(f"the record cannot be written as JSON: {error}") from error
    return raw


def unpack(raw: bytes) -> dict[str, object]:
    """Returns the fields that `pack` was given."""
    if "orjson" in sys.modules:
        import orjson  # noqa: PLC0415 - start-up

        fields = orjson.loads(raw)
    else:
        fields = _strict_loads(raw)
    assert isinstance(fields, dict)
    return fields


def is_migration(fields: Mapping[str, object]) -> bool:
    """Returns whether a usable line is bookkeeping about the ledger instead of a record."""
    return "_migration" in fields


def named(line: bytes) -> str | None:
    """Returns the id of the record that a line is of; "" for a migration, None without a record."""
    try:
        fields = decode(line)
    except Unusable:
        return None
    return "" if is_migration(fields) else str(fields["id"])


def lost_precision(value: object) -> bool:
    """Returns whether a decoded value holds a number that decoding may have rounded."""
    if isinstance(value, float):
        return abs(value) >= 2**63
    if isinstance(value, dict):
        return any(map(lost_precision, value.values()))
    return isinstance(value, list) and any(map(lost_precision, value))


def loads_for(size_bytes: int) -> Callable[[bytes], object]:
    """Returns what reads JSON of this size best. It raises `ValueError` or `RecursionError`."""
    if "orjson" in sys.modules or size_bytes >= _ORJSON_FROM_BYTES:
        import orjson  # noqa: PLC0415 - start-up

        return orjson.loads
    return _strict_loads


def _checked(raw: bytes, loads: Callable[[bytes], object]) -> dict[str, object]:
    if len(raw) >= MAX_LINE_BYTES:
        raise Unusable(f"longer than {MAX_LINE_BYTES:,} bytes")
    try:
        fields = loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unusable(_why_not_json(raw)) from error
    if not isinstance(fields, dict):
        raise Unusable("not a JSON object")
    # Brackets inside strings count here too: a cheap first test that never misses a deep line.
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _depth(fields) > MAX_DEPTH:
        raise Unusable(f"nested more than {MAX_DEPTH} levels deep")
    identifier = fields.get("id")
    if not (isinstance(identifier, str) and identifier) and "_migration" not in fields:
        raise Unusable("no id")
    return fields


def _why_not_json(raw: bytes) -> str:
    if raw.startswith(CONFLICT_MARKERS):
        return "a conflict marker"
    if b"\0" in raw:
        return "NUL bytes"
    try:
        raw.decode()
    except UnicodeDecodeError:
        return "not valid UTF-8"
    return "not JSON"


def _depth(value: object) -> int:
    """Returns how deep the containers nest, without recursion."""
    deepest, level = 0, [value]
    while level:
        deepest += 1
        below: list[object] = []
        for each in level:
            if isinstance(each, dict):
                below.extend(v for v in each.values() if isinstance(v, dict | list))
            elif isinstance(each, list):
                below.extend(v for v in each if isinstance(v, dict | list))
        level = below
    return deepest


_write = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _dumps(fields: Mapping[str, object]) -> bytes:
    return _write(fields).encode()


def _strict_loads(raw: bytes) -> object:
    escapes = b"\\u" in raw
    text = raw.decode()  # UTF-16 would be read from bytes.
    value = _read_escaped(text) if escapes else _read(text)
    if escapes:
        _dumps({"": value})
    return value


def _text_only(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Returns the object if all of it is valid text: a lone surrogate can be escaped, but is not.

    It checks all values of a repeated key, of which only the last one remains.
    """
    _dumps({"": pairs})
    return dict(pairs)


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError("number out of range")
    return number


def _within_64_bits(digits: str) -> int | float:
    if len(digits) < 19:
        return int(digits)
    if len(digits) > 400:
        return _finite(digits)
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else _finite(digits)


_read, _read_escaped = (
    json.JSONDecoder(
        parse_constant=_refuse,
        parse_float=_finite,
        parse_int=_within_64_bits,
        object_pairs_hook=hook,
    ).decode
    for hook in (None, _text_only)
)
