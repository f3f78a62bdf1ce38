"""ULIDs: 26 characters of Crockford base 32, 48 bits of time before 80 bits of randomness.

Sixteen lines that follow the ULID specification, because importing python-ulid costs 34 ms, three
times as much as the interpreter itself; the library is the oracle in the tests (ADR 0002).
"""

from __future__ import annotations

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
RANDOM_BYTES = 10
_MAX_MS = (1 << 48) - 1
_RANDOM_BITS = 80


def ulid(instant_ms: int, random: bytes) -> str:
    """Returns the ULID of an instant (ms since 1970, UTC) and ten random bytes."""
    if not 0 <= instant_ms <= _MAX_MS or len(random) != RANDOM_BYTES:
        raise ValueError("a ULID takes 48 bits of milliseconds and 10 random bytes")
    number = instant_ms << _RANDOM_BITS | int.from_bytes(random, "big")
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def following(identifier: str) -> str:
    """Returns the next ULID after this one, so that ids minted within a millisecond sort."""
    number = 0
    for char in identifier:
        number = number << 5 | _ALPHABET.index(char)
    number = (number + 1) & ((1 << 128) - 1)
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def ulid_ms(identifier: str) -> int:
    """Returns the instant in a ULID, in ms since 1970; -1 for a text that is none."""
    number = 0
    for char in identifier:
        digit = _ALPHABET.find(char)
        if digit < 0:
            return -1
        number = number << 5 | digit
    instant_ms = number >> _RANDOM_BITS
    return instant_ms if len(identifier) == 26 and instant_ms <= _MAX_MS else -1
