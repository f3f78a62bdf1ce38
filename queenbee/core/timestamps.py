"""Instants and durations: RFC 3339 in and out, `1h30m` in and out.

Inside QueenBee an instant is an integer, milliseconds since 1970 in UTC (`_ms`); on disk it is
`2024-12-14T10:30:00.000Z`. `docs/format.md`, section "Timestamps".
"""

from __future__ import annotations

from queenbee.errors import InvalidInput

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    import datetime as _library
else:
    try:
        # The very classes of `datetime`: Python 3.11 also runs the same in Python when it is
        # imported, which takes 1.5 ms.
        import _datetime as _library
    except ImportError:
        import datetime as _library

datetime: type[_library.datetime] = _library.datetime
timedelta: type[_library.timedelta] = _library.timedelta
UTC = _library.timezone.utc  # noqa: UP017 - the module in C has no other name for it
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
LAST_MS = 253_402_300_799_999
"""The last instant of the year 9999, which is the last that a timestamp can hold."""
_FIRST_MS = -62_135_596_800_000
_asked: tuple[object, int | None] = (None, None)
"""The field that was read last, and its instant: often, another question is about the same one."""
_latest = (0, "1970-01-01T00:00:00")
"""The second that was formatted last, and its text: records are made many in a second."""
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def format_ms(instant_ms: int) -> str:
    """Returns the instant as UTC, RFC 3339 with milliseconds and `Z`.

    Before the year 1 and after 9999, returns the nearest instant that a timestamp can hold.
    """
    global _latest  # noqa: PLW0603 - a pair that is replaced whole
    second, ms = divmod(min(max(instant_ms, _FIRST_MS), LAST_MS), 1_000)
    known, text = _latest
    if second != known:
        text = (_EPOCH + timedelta(seconds=second)).isoformat().removesuffix("+00:00")
        _latest = second, text
    return f"{text}.{ms:03d}Z"


def parse_ms(text: str) -> int:
    """Returns any RFC 3339 timestamp in milliseconds since 1970, UTC; digits beyond are cut.

    A timestamp without an offset is read as UTC. Raises `InvalidInput` for anything else.
    """
    candidate = text.upper()
    if len(candidate) < 19 or candidate[10] not in "T " or "\0" in candidate:
        raise _not_a_timestamp(text)
    # A datetime cannot hold a leap second; use the last instant before it.
    if candidate[17:19] == "60":
        candidate = candidate[:17] + "59.999" + candidate[19:].lstrip(".0123456789")
    try:
        instant = datetime.fromisoformat(candidate)
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        elif instant.tzinfo is not UTC:
            # It must be in range in UTC too: an offset may push it out.
            instant = instant.astimezone(UTC)
        return (instant - _EPOCH) // _MS
    except (ValueError, OverflowError) as reason:
        raise _not_a_timestamp(text) from reason


def instant_ms(value: object) -> int | None:
    """Returns the instant that a field of a record holds, or None if it holds none."""
    global _asked  # noqa: PLW0603 - a pair that is replaced whole
    field, instant = _asked
    if value is field:
        return instant
    if not isinstance(value, str):
        return None
    try:
        instant = parse_ms(value)
    except InvalidInput:
        return None
    _asked = value, instant
    return instant


def parse_duration_s(text: str) -> int:
    """Returns the seconds in `90s`, `15m`, `2h`, `1d` or `1h30m`. Raises `InvalidInput`."""
    total, digits, seen = 0, "", False
    for char in text.strip().lower():
        if char in "0123456789" and len(digits) < 10:
            digits += char
        elif char in _UNITS_S and digits:
            total, digits, seen = total + int(digits) * _UNITS_S[char], "", True
        else:
            raise _not_a_duration(text)
    if digits or not seen:
        raise _not_a_duration(text)
    return total


def parse_since_ms(text: str, now_ms: int) -> int:
    """Returns the instant of a timestamp, or a duration (`2h`) before now.

    Raises `InvalidInput`.
    """
    is_date = text[4:5] == "-"
    return parse_ms(text) if is_date else now_ms - parse_duration_s(text) * 1000


def format_duration(seconds: float) -> str:
    """Returns a length of time for people, in at most two units: `2h`, `1h 05m`, `40s`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    for large, small in (("d", "h"), ("h", "m"), ("m", "s")):
        if whole >= _UNITS_S[large]:
            count, rest = divmod(whole, _UNITS_S[large])
            part = rest // _UNITS_S[small]
            return f"{count}{large} {part:02d}{small}" if part else f"{count}{large}"
    raise AssertionError(whole)


def _not_a_timestamp(text: str) -> InvalidInput:
    return InvalidInput(
        f"{text!r} is not an RFC 3339 timestamp", hint="write it as 2024-12-14T10:30:00Z"
    )


def _not_a_duration(text: str) -> InvalidInput:
    return InvalidInput(f"{text!r} is not a duration", hint="write it as 90s, 15m, 2h, 1d or 1h30m")
