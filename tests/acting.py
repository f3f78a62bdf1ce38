"""Commands that the droid of an open hive runs, in this process, at the time of that hive."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import postgres_server
import pytest
from hives import QuickQueen, Ran, environment, git

from queenbee import Hive, QueenError


def command(hive: Hive, *arguments: str, stdin: str = "") -> Ran:
    """Runs a command as the droid of the hive, where it is open and when its clock says."""
    now_ms = hive.now_ms()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: now_ms * 1_000_000)
        if postgres_server.hive_of(Path(hive.layout.beads_dir)):
            postgres_server.set_clock(patch, lambda: now_ms)
        beads, env = hive.layout.beads_dir, environment()
        if Path(beads).name != ".beads":  # Only its name leads there.
            env["BEADS_DIR"] = beads
        quick, droid = QuickQueen(Path(hive.cwd)), hive.actor_or_none
        return quick(*arguments, as_=droid, stdin=stdin, env=env)


def answer(hive: Hive, *arguments: str, stdin: str = "") -> Any:
    """Runs a command with `--json`, and returns what it prints. Raises what it was refused with."""
    ran = command(hive, "--json", *arguments, stdin=stdin)
    if ran.code not in (0, 1):
        raise refusal(ran.error)
    return ran.json


def refusal(told: Mapping[str, Any]) -> QueenError:
    """Returns the error that a refusal in JSON stands for."""
    known = [QueenError]
    for each in known:
        known += each.__subclasses__()
    (kind, *_) = [each for each in known if vars(each).get("code") == told["code"]]
    details = {key: told[key] for key in told if key not in ("code", "message", "hint")}
    return kind(told["message"], hint=told.get("hint"), **details)


def remember_name(tree: Path, droid: str) -> None:
    """Makes this the name of who works in a worktree, as `queen hive whoami --set` does."""
    place = git(tree, "rev-parse", "--absolute-git-dir").strip()
    Path(place, "queenbee-droid").write_text(f"{droid}\n")


def install_guard(tree: Path) -> None:
    """Puts the guard into the hooks of a repository."""
    ran = QuickQueen(tree)("guard", "install", env=environment())
    assert ran.code == 0, ran
