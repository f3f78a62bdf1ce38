"""What a long history costs where git is concerned: pulls, and the commits of busy days."""

from __future__ import annotations

import os
import random
import shutil
import time

from bench.processes import git, git_command, installed, seconds
from bench.stores import message_line

PULLED = 1_000
A_DAY = 10_000
_DAYS = 3
_AS = ("--as", "droid-1")
SEND = [*installed("queen"), *_AS, "msg", "send", "droid-2", "hello"]
INBOX = [*installed("queen"), *_AS, "msg", "inbox"]


def pull(hive: str, folder: str) -> dict[str, float]:
    """Returns how many seconds the first commands take in a clone, and after a pull of 1,000
    lines; also those of git's own part.
    """
    clone = os.path.join(folder, "clone")
    _commit(hive)
    took = {"git clone": seconds(git_command("clone", "-q", hive, clone), folder)}
    took["first read in a clone"] = seconds(INBOX, clone)
    took["first write in a clone"] = seconds(SEND, clone)
    seconds(SEND, clone)
    _commit(clone)
    _append(hive, PULLED)
    _commit(hive)
    pull_command = git_command("pull", "-q", "--no-rebase", "--no-edit")
    took[f"git pull of {PULLED:,} lines"] = seconds(pull_command, clone)
    took["the next read"] = seconds(INBOX, clone)
    took["the next write"] = seconds(SEND, clone)
    shutil.rmtree(clone)
    return took


def busy_days(hive: str, *, rotate: bool) -> tuple[list[float], int]:
    """Returns the seconds of each `git add` and `git commit` of a day with 10,000 messages,
    and the bytes by which three of them, packed, made the repository larger.
    """
    with open(os.path.join(hive, ".beads", "queen.toml"), "w", encoding="utf-8") as file:
        file.write("" if rotate else 'rotate_at = "off"\n')
    _commit(hive)
    before = _packed(hive)
    took = []
    for _ in range(_DAYS):
        _append(hive, A_DAY)
        seconds(SEND, hive)
        begun = time.perf_counter()
        _commit(hive)
        took.append(time.perf_counter() - begun)
    return took, _packed(hive) - before


def _append(hive: str, messages: int) -> None:
    rng = random.Random(os.urandom(8))
    with open(os.path.join(hive, ".beads", "queen_messages.jsonl"), "ab") as file:
        file.writelines(message_line(number, rng) for number in range(messages))


def _commit(hive: str) -> None:
    git(hive, "add", "-A")
    git(hive, "commit", "-q", "--allow-empty", "-m", "a day")


def _packed(hive: str) -> int:
    """Returns the size of all objects that a push would carry to an empty repository."""
    return int(git(hive, "rev-list", "--objects", "--all", "--disk-usage"))
