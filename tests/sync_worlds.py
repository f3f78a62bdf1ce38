"""Clones of one bare repository, each with a clock of its own, for the tests of `queen sync`."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from hives import START_MS, Clock, environment, git

from queenbee import Hive

BRANCH = "queenbee/hive"
HOUR_S = 3600
PATIENCE_S = 60
"""How long what must happen may take on a busy machine."""


class World:
    """A bare repository and its clones, over `file://`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bare = folder / "remote.git"
        subprocess.run(["git", "init", "-q", "--bare", str(self.bare)], check=True)
        self.clocks: dict[str, Clock] = {}

    def clone(self, name: str, *, off_s: float = 0, options: tuple[str, ...] = ()) -> Path:
        """Makes a clone whose clock is off by so many seconds."""
        path = self.folder / name
        url = f"file://{self.bare}"
        subprocess.run(["git", "clone", "-q", *options, url, str(path)], check=True)
        git(path, "config", "user.email", "a@b.c")
        git(path, "config", "user.name", name)
        (path / ".beads").mkdir(exist_ok=True)
        self.clocks[name] = Clock(START_MS + int(off_s * 1000))
        return path

    def hive(self, name: str, droid: str | None = None) -> Hive:
        """Returns the open hive of a clone, in which its droid, or another, acts."""
        path = self.folder / name
        return Hive.open(path, droid=droid or name, env=environment(), clock=self.clocks[name])

    def settings(self, name: str, text: str) -> None:
        """Gives the hive of a clone these settings."""
        (self.folder / name / ".beads" / "queen.toml").write_text(text)

    def cut(self) -> None:
        """Makes the remote unreachable, until `heal`."""
        self.bare.rename(self.folder / "away.git")

    def heal(self) -> None:
        (self.folder / "away.git").rename(self.bare)

    def git(self, *arguments: str) -> str:
        """Returns what git says in the bare repository."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.bare, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def lines(self, commit: str = BRANCH) -> list[dict[str, object]]:
        """Returns every line on the branch as of a commit."""
        names = self.git("ls-tree", "-r", "--name-only", commit).splitlines()
        texts = [self.git("cat-file", "blob", f"{commit}:{name}") for name in names]
        return [json.loads(line) for text in texts for line in text.splitlines()]


def until(true: Callable[[], object]) -> None:
    """Returns as soon as something is true."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline_s, "timed out"
        time.sleep(0.02)


def there(world: World) -> set[str]:
    """Returns the issues that the branch of the remote says are claimed."""
    if not world.git("branch", "--list", BRANCH):
        return set()
    return {str(line.get("issue_id")) for line in world.lines()}
