"""A droid that waits in the queue, as the format documents it: one locked file for each waiter.

`docs/format.md`, section "Places", "The queue".
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from stamps import format_ms

from queenbee import Hive

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@contextmanager
def waits(
    hive: Hive,
    *patterns: str,
    exclusive: bool = True,
    issue_id: str | None = None,
    any_issue: bool = False,
    wait_s: int = 60,
) -> Iterator[str]:
    """The droid of a hive waits for leases, an issue or any issue until the block ends; gives the
    name of the file that says so.
    """
    wanted: dict[str, object] = {"issue_id": issue_id} if issue_id else {"any_issue": any_issue}
    if patterns:
        wanted = {"patterns": patterns, "exclusive": exclusive}
    now_ms = hive.now_ms()
    entry = {
        "droid": hive.actor,
        **wanted,
        "since": format_ms(now_ms),
        "until": format_ms(now_ms + wait_s * 1000),
        "pid": os.getpid(),
    }
    folder = Path(hive.layout.queue_dir)
    folder.mkdir(parents=True, exist_ok=True)
    name = _behind(sorted(os.listdir(folder)), now_ms)
    nameless = folder.parent / f"{name}.waiter"
    with nameless.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump(entry, file)
        file.flush()
        nameless.rename(folder / name)
        try:
            yield name
        finally:
            with suppress(FileNotFoundError):
                (folder / name).unlink()


def _behind(line: Sequence[str], now_ms: int) -> str:
    """Returns a ULID of this instant, or of the one after the last in the line."""
    last_ms = _number(line[-1][:10]) if line else 0
    return _ulid(max(now_ms, last_ms + 1), time.monotonic_ns())


def _number(digits: str) -> int:
    number = 0
    for digit in digits:
        number = number * 32 + _DIGITS.index(digit)
    return number


def _ulid(instant_ms: int, unique: int) -> str:
    number, digits = instant_ms << 80 | unique, ""
    for _ in range(26):
        number, digit = divmod(number, 32)
        digits = _DIGITS[digit] + digits
    return digits
