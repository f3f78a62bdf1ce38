"""Clients from npm, each version in a folder of its own below build/clients."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from bench.clients.known import Client

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "clients"
_LIMIT_S = 600


class NotInstalled(Exception):
    """Why a client cannot be run."""


def installed(client: Client, version: str) -> Path:
    """Returns the program of a client at a version; asks npm for it if it is not there yet.

    Raises `NotInstalled` with the reason.
    """
    folder = BUILD / f"{client.name}@{version}"
    program = folder / "node_modules" / ".bin" / client.program
    if program.exists() and (folder / "complete").exists():
        return program
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled("npm is not on the PATH")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = ["install", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix", str(folder)]
    try:
        done = subprocess.run(
            [npm, *words, f"{client.package}@{version}"],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"npm took more than {_LIMIT_S} s") from None
    if done.returncode or not program.exists():
        errors = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        told = [line for line in errors if not line.startswith("npm error code")]
        raise NotInstalled((told or ["npm made no program"])[0])
    (folder / "complete").touch()
    return program
