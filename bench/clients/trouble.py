"""Sittings in which something is missing or broken: trust, the hive, and at last our settings."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

from bench.clients.cells import Findings, Playing, change, played, text_of
from bench.clients.wires import Request
from bench.clients.world import World

_SLOW_S = 60
"""An edit may take this long while another process holds the lock of the hive."""


def without_trust(world: World, found: Findings) -> None:
    """A folder that the user does not trust: the edit is refused, or `--check` says why not."""
    row = "no trust: stopped or told"
    world.furnish(trusted=False)
    world.queen("reserve", "src/b.py", droid="other")

    def script(request: Request) -> Playing:
        yield from change(world, request, "b", "2")
        yield "Done."

    run = played(world, script)
    if not run.play.requests:
        found.say(row, run.status != 0, "it ended without a word", "does not run")
        return
    check = world.tried("setup", "--check", world.client.name)
    told = any(word in check.stdout.lower() for word in ("trust", "review"))
    kept = text_of(world, "b") == "b = 1"
    said = "refused" if kept else "told by the check"
    found.say(row, kept or told, "a held file was changed; the check says nothing", said)


def broken(world: World, found: Findings) -> None:
    """A hive that cannot be read: the edit goes through."""
    world.furnish()
    ledger = world.repo / ".beads" / "queen_reservations.jsonl"
    ledger.unlink(missing_ok=True)
    ledger.mkdir()
    _goes_on(world, found, "hive broken")
    warned = any("not guarded" in each.answer for each in world.hooked())
    found.say("hive broken", warned, "nobody was told that edits are not guarded")


def slow(world: World, found: Findings) -> None:
    """A hive whose lock another process holds."""
    world.furnish()
    with (world.repo / ".git" / "queenbee" / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _goes_on(world, found, "hive slow")


def absent(world: World, found: Findings) -> None:
    """A repository whose hive is gone, with our settings still there."""
    world.furnish()
    shutil.rmtree(world.repo / ".beads")
    shutil.rmtree(world.repo / ".git" / "queenbee")
    _goes_on(world, found, "hive absent")


def _goes_on(world: World, found: Findings, row: str) -> None:
    def script(request: Request) -> Playing:
        request = yield from change(world, request, "a", "2")
        found.say(row, text_of(world, "a") == "a = 2", f"was told {request.last[-150:]!r}")
        yield "Done."

    run = played(world, script)
    if found.showed(run, (row,)):
        found.say(row, run.status == 0, f"exit status {run.status}")
        found.say(row, run.seconds < _SLOW_S, f"took {run.seconds:.0f} s")


def undone(world: World, found: Findings) -> None:
    """Setup, a run that may rewrite the client's files, the check, and undo.

    What a client writes for itself may stay: OpenCode's modules, and that Claude Code's user
    approved our server.
    """
    rows = ("check after a run", "undo after a run")
    world.furnish()
    begin = world.git("rev-list", "--max-parents=0", "HEAD").strip()

    def script(request: Request) -> Playing:
        yield from change(world, request, "a", "2")
        yield "Done."

    if not found.showed(played(world, script), rows):
        return
    check = world.tried("setup", "--check", world.client.name)
    found.say(rows[0], check.returncode == 0, check.stdout[-150:])
    undo = world.tried("setup", "--undo", world.client.name)
    found.say(rows[1], undo.returncode == 0, undo.stderr[-150:])
    ours = ":(exclude)src", ":(exclude).beads"
    files = world.git("diff", "--name-only", begin, "--", ".", *ours).split()
    files += world.git("ls-files", "--others", "--", ".", *ours).split()
    own = ("node_modules", ".claude/settings.local.json")
    paths = [world.repo / each for each in files if not any(part in each for part in own)]
    paths += [world.home / each for each in (".codex/config.toml", ".gemini/settings.json")]
    left = [str(path.relative_to(world.folder)) for path in paths if "queen" in _read(path)]
    found.say(rows[1], not left, f"left in {', '.join(left)}")


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
