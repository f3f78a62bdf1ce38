"""`queen prompt` as an installer puts it in place, and names that a prompt must not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hives import QuickQueen

SCRIPT = Path(__file__).parents[1] / "scripts" / "queen"
HOSTILE = (
    "$(touch ran)",
    "`touch ran`",
    "#(touch ran)",
    "#[fg=red]#{pid}#I",
    "%{a%}%n%D{%Y}",
    "${HOME}\\$(touch ran)\\u",
    "!!\x1b[31m\n\x07",
    "\u202egnp\u2066",
)


def installed(
    cwd: Path, *arguments: str, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """Runs the installed command."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), "prompt", *arguments],
        cwd=cwd,
        env={**os.environ, **env},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )


def line(quick: QuickQueen, *arguments: str, as_: str | None = "amber") -> str:
    ran = quick("prompt", *arguments, as_=as_)
    assert (ran.code, ran.err) == (0, "")
    return ran.out
