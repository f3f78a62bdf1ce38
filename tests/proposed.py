"""What tests of pull requests do in the worktree of a droid."""

from __future__ import annotations

import json
from pathlib import Path

from hives import QuickQueen, Ran

from queenbee.store.layout import discover


def land(quick: QuickQueen, tree: Path, name: str = "a", *more: str) -> Ran:
    """Lands a file that is written now."""
    (tree / name).write_text("x\n")
    return quick("land", "-m", f"add {name}", *more, as_="ui", cwd=tree)


def ask_again(tree: Path) -> None:
    """Lets the next command ask the host, as if a minute had passed."""
    path = Path(discover(str(tree), {}).state_dir, "code-host.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "asked_ms": 0}))


def forget(tree: Path) -> None:
    """Forgets what the host said last, and that it wants to be left alone."""
    Path(discover(str(tree), {}).state_dir, "code-host.json").unlink()


def follow(quick: QuickQueen, tree: Path) -> Ran:
    """Takes the next issue, once the host may be asked again."""
    ask_again(tree)
    return quick("next", as_="ui", cwd=tree)


def state(quick: QuickQueen, issue_id: str) -> str:
    found = {each["id"]: each["state"] for each in quick("issues", "--all", "--json").json}
    return str(found[issue_id])
