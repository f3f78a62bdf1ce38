"""The commands that agents' settings run: `queen-hook`, and `queen mcp`."""

from __future__ import annotations

import os
import shutil
import sys

from queenbee.core.text import shell_quoted

HOOK = "queen-hook"
_ALONE = " -E -P -X utf8"
"""Keeps the working directory and PYTHONPATH off the interpreter's path, and the locale out."""


def hook_command() -> str:
    """Returns the shell command that runs the hook.

    It is the bare name if that is on the `PATH`, so that settings can be shared; otherwise a path
    on this machine.
    """
    if shutil.which(HOOK):
        return HOOK
    script = _script(HOOK)
    if script is not None:
        return shell_quoted(script)
    return f"{shell_quoted(sys.executable)}{_ALONE} -m queenbee.hook.main"


def mcp_command() -> list[str]:
    """Returns the program and arguments of the MCP server."""
    return ["queen" if shutil.which("queen") else _script("queen") or "queen", "mcp"]


def guarded(run: str, otherwise: str | None = None) -> str:
    """Returns a shell command that runs the hook only if it is there.

    On a machine without the hook, such as a colleague's, nothing fails; `otherwise` is printed.
    """
    program = run.partition(_ALONE)[0]
    found = f"command -v {program} >/dev/null 2>&1"
    if otherwise is None:
        return f"! {found} || {run}"
    return f"if {found}; then {run}; else echo '{otherwise}'; fi"


def _script(name: str) -> str | None:
    path = os.path.join(os.path.dirname(sys.executable), name)
    return path if os.access(path, os.X_OK) else None
