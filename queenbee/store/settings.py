"""The hive's settings: `.beads/queen.toml`, shared by everybody through git.

`docs/format.md`, section "Settings".
"""

from __future__ import annotations

import os

from queenbee.core.leases import DEFAULT_TTL_S, MAX_TTL_S, MIN_TTL_S
from queenbee.core.timestamps import parse_duration_s
from queenbee.errors import InvalidInput, NotFound, Unreadable
from queenbee.store.documents import read_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_NAME = "queen.toml"

TEMPLATE = """\
# QueenBee's settings for this repository; every line is optional.

# state = "git"          # lock and journal in the git directory; "beads": in .beads/.queenbee/
# droids = "auto"        # "strict": only names in .factory/droids/; "off": any name; "auto": strict
#                        # where that folder has any
# issues = "auto"        # "strict": only ids in issues.jsonl; "off": any id; "auto": strict where
#                        # the file exists
# ttl = "2h"             # how long a reservation lasts unless it says so itself
# durability = "synced"  # "buffered": acknowledge before the disk does
# lock_timeout = "10s"   # how long a command waits for its turn
# gate_results = 10      # results of each rule that a phase gate keeps; 0: all
# rotate_at = "4MiB"     # from this size on, a ledger's closed records move to .beads/archive/;
#                        # "off": only when told to, by queen rotate
# archive_after = "1d"   # how long a record must be closed before it moves
"""

_CHOICES = {
    "state": ("git", "beads"),
    "droids": ("auto", "strict", "off"),
    "issues": ("auto", "strict", "off"),
    "durability": ("synced", "buffered"),
}
_DURATIONS = {
    "ttl": (MIN_TTL_S, MAX_TTL_S),
    "lock_timeout": (0, 3600),
    "archive_after": (0, 3650 * 86_400),
}
_SIZES = {"rotate_at": 64 * 1024 * 1024}
_UNITS = {"KiB": 1024, "MiB": 1024 * 1024}
_NUMBERS = {"gate_results": (0, 10_000)}


class Settings:
    """What the hive's owner decided; the defaults where nothing is said."""

    __slots__ = (
        "archive_after_s",
        "droids",
        "durability",
        "gate_results",
        "issues",
        "lock_timeout_s",
        "rotate_at_bytes",
        "state",
        "ttl_s",
        "unknown",
    )

    def __init__(
        self,
        *,
        state: str = "git",
        droids: str = "auto",
        issues: str = "auto",
        durability: str = "synced",
        ttl_s: int = DEFAULT_TTL_S,
        lock_timeout_s: float = 10.0,
        gate_results: int = 10,
        rotate_at_bytes: int = 4 * 1024 * 1024,
        archive_after_s: int = 86_400,
        unknown: tuple[str, ...] = (),
    ) -> None:
        self.state = state
        self.droids = droids
        self.issues = issues
        self.durability = durability
        self.ttl_s = ttl_s
        self.lock_timeout_s = lock_timeout_s
        self.gate_results = gate_results
        self.rotate_at_bytes = rotate_at_bytes
        """0 where ledgers are not rotated by themselves."""
        self.archive_after_s = archive_after_s
        self.unknown = unknown
        """Settings that this version does not know: kept, ignored, reported by doctor."""


def load(beads_dir: str, env: Mapping[str, str]) -> Settings:
    """Returns the settings of the hive in `beads_dir`; `QUEEN_DURABILITY` overrides the file's.

    Raises `Unreadable`, naming the line at fault, for a file that is not TOML or says what no
    setting allows: guessing at shared settings would give two processes two truths.
    """
    path = os.path.join(beads_dir, FILE_NAME)
    values = _read(path)
    known: dict[str, object] = {}
    for name, allowed in _CHOICES.items():
        value = values.pop(name, None)
        if value is not None:
            if value not in allowed:
                raise _wrong(path, name, value, " or ".join(f'"{each}"' for each in allowed))
            known[name] = value
    for name, (least, most) in _DURATIONS.items():
        value = values.pop(name, None)
        if value is not None:
            known[f"{name}_s"] = _duration(path, name, value, least, most)
    for name, (least, most) in _NUMBERS.items():
        value = values.pop(name, None)
        if value is not None:
            if type(value) is not int or not least <= value <= most:
                raise _wrong(path, name, value, f"a whole number of {least} to {most}")
            known[name] = value
    for name, most in _SIZES.items():
        value = values.pop(name, None)
        if value is not None:
            known[f"{name}_bytes"] = _size(path, name, value, most)
    durability = env.get("QUEEN_DURABILITY")
    if durability:
        if durability not in _CHOICES["durability"]:
            raise InvalidInput(
                f"QUEEN_DURABILITY is {durability!r}", hint="set it to synced or buffered"
            )
        known["durability"] = durability
    return Settings(**known, unknown=tuple(sorted(values)))  # type: ignore[arg-type]


def _read(path: str) -> dict[str, object]:
    try:
        text = read_document(path).decode()
    except NotFound:
        return {}
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path} is not UTF-8: {error}", path=path) from error
    # As made by `queen init`, the file holds comments only: worth 10 ms of import to notice.
    if all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # Also numbers and nesting beyond all bounds.
        raise Unreadable(
            f"{path} is not TOML: {error}", hint="correct the file, or delete it", path=path
        ) from error


def _duration(path: str, name: str, value: object, least: int, most: int) -> int:
    try:
        seconds = parse_duration_s(value) if isinstance(value, str) else -1
    except InvalidInput:
        seconds = -1
    if not least <= seconds <= most:
        raise _wrong(path, name, value, f'a duration such as "2h", of {least} to {most} seconds')
    return seconds


def _size(path: str, name: str, value: object, most: int) -> int:
    if value == "off":
        return 0
    digits, unit = (value[:-3], value[-3:]) if isinstance(value, str) else ("", "")
    size = int(digits) * _UNITS.get(unit, 0) if digits.isascii() and digits.isdigit() else 0
    if not 0 < size <= most:
        allowed = f'"off", or a size such as "512KiB" or "4MiB", up to "{most // 2**20}MiB"'
        raise _wrong(path, name, value, allowed)
    return size


def _wrong(path: str, name: str, value: object, allowed: str) -> Unreadable:
    return Unreadable(
        f"{path}: {name} is {value!r}", hint=f"set {name} to {allowed}", path=path, setting=name
    )
