"""What `queen` and `queen-hook` call, called in this process: no interpreter has to start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from queenbee.cli.main import run
from queenbee.hook.main import respond


def run_queen(arguments: Sequence[str]) -> int:
    """Runs `queen` with these arguments, and returns the exit status."""
    return run(list(arguments))


def run_hook(event: bytes, env: Mapping[str, str], cwd: str) -> dict[str, Any] | None:
    """Runs `queen-hook` with an event on its standard input, and returns the answer."""
    return respond(event, env, cwd)
