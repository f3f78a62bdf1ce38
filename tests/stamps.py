"""Timestamps as the format documents them: RFC 3339 in UTC, milliseconds and `Z`.

An instant is an integer, milliseconds since 1970. `docs/format.md`, section "Timestamps".
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_ms(instant_ms: int) -> str:
    """Returns the timestamp of an instant, as `queen` writes it."""
    instant = _EPOCH + timedelta(milliseconds=instant_ms)
    return instant.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def parse_ms(text: str) -> int:
    """Returns the instant of a timestamp; one without an offset is in UTC."""
    instant = datetime.fromisoformat(text)
    since = (instant if instant.tzinfo else instant.replace(tzinfo=UTC)) - _EPOCH
    return since // timedelta(milliseconds=1)
