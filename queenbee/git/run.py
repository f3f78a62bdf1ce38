"""Runs git; no other module does.

The environment is passed on unchanged: in a hook, `GIT_DIR` and `GIT_INDEX_FILE` name the
repository and the index.
"""

from __future__ import annotations

import os
import subprocess

from queenbee.errors import ExternalFailure


def git(*arguments: str, cwd: str, stdin: bytes = b"") -> bytes:
    """Returns what git prints. Raises `ExternalFailure` if it fails or is not installed."""
    try:
        done = subprocess.run(["git", *arguments], cwd=cwd, input=stdin, capture_output=True)
    except OSError as error:
        raise ExternalFailure(f"git cannot be run: {error.strerror}", program="git") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="backslashreplace").strip().splitlines()
        raise ExternalFailure(
            f"git {arguments[0]} failed: {said[-1] if said else done.returncode}",
            program="git",
            status=done.returncode,
        )
    return done.stdout


def line(*arguments: str, cwd: str) -> str | None:
    """Returns the one line that git prints, or None if it fails or prints nothing."""
    try:
        return os.fsdecode(git(*arguments, cwd=cwd)).rstrip("\n") or None
    except ExternalFailure:
        return None
