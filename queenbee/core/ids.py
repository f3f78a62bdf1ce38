"""ULIDs: 26 characters of Crockford base 32, 48 bits of time before 80 bits of randomness.

Records made within hours begin alike, so lists show the shortest end that no other id has.
Importing python-ulid costs 34 ms; it is the oracle in the tests (ADR 0002).
"""

from __future__ import annotations

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterable

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_AS_PYTHON_READS = bytes.maketrans(
    bytes(range(256)),
    bytes(b"0123456789abcdefghijklmnopqrstuv."[_ALPHABET.find(chr(each))] for each in range(256)),
)
"""For what is no digit, a point, which is none there either."""
RANDOM_BYTES = 10
MAX_MS = (1 << 48) - 1
_RANDOM_BITS = 80
_SHIFTS = tuple(range(125, -1, -5))


def ulid(instant_ms: int, random: bytes) -> str:
    """Returns the ULID of an instant (ms since 1970, UTC) and ten random bytes."""
    if not 0 <= instant_ms <= MAX_MS or len(random) != RANDOM_BYTES:
        raise ValueError("a ULID takes 48 bits of milliseconds and 10 random bytes")
    number = instant_ms << _RANDOM_BITS | int.from_bytes(random, "big")
    return _spelled(number)


def following(identifier: str) -> str:
    """Returns the next ULID after this one, so that ids minted within a millisecond sort."""
    last = _ALPHABET.index(identifier[-1])
    if last < 31:
        return identifier[:-1] + _ALPHABET[last + 1]
    number = 0
    for char in identifier:
        number = number << 5 | _ALPHABET.index(char)
    return _spelled((number + 1) & ((1 << 128) - 1))


def _spelled(number: int) -> str:
    return "".join([_ALPHABET[number >> shift & 31] for shift in _SHIFTS])


WHOLE = 26
"""Characters of a ULID: what is as long is no part of another id."""
SHORTEST_PART = 4
"""Characters of a part of an id: fewer would often match a word, and among a thousand records half
of the ends of three characters belong to two of them."""
KEY_LENGTH = 10
"""Characters of the key below: ends of a million random ids are told apart by four to nine."""


def end_key(identifier: str) -> str:
    """Returns the last characters of an id, backwards: keys sort ids by how they end."""
    return identifier[: -KEY_LENGTH - 1 : -1]


def spellings(part: str) -> Iterable[str]:
    """Returns the part as typed, then as an id of ours would spell it."""
    prefix, dash, rest = part.partition("-")
    return dict.fromkeys([part, part.upper(), f"{prefix.lower()}{dash}{rest.upper()}"])


def shortest_end(identifier: str, neighbours: Iterable[str]) -> str:
    """Returns the shortest end of an id that tells it from all others.

    `neighbours` are the keys right before and after its own among those of all ids; if one equals
    its own, only the whole id tells them apart.
    """
    key, size = end_key(identifier), SHORTEST_PART
    for other in neighbours:
        alike = 0
        while alike < min(len(key), len(other)) and key[alike] == other[alike]:
            alike += 1
        size = max(size, alike + 1)
    short = identifier[-size:]
    return short if size <= len(key) and short.isalnum() else identifier


def ulid_ms(identifier: str) -> int:
    """Returns the instant in a ULID, in ms since 1970; -1 for a text that is none."""
    if len(identifier) != WHOLE:
        return -1
    try:
        number = int(identifier.encode("ascii").translate(_AS_PYTHON_READS), 32) >> _RANDOM_BITS
    except ValueError:
        return -1
    return number if number <= MAX_MS else -1
