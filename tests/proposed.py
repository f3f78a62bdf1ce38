"""What tests of pull requests do in the worktree of a droid."""

from __future__ import annotations

import json
from pathlib import Path

from hives import QuickQueen, Ran
from scripted_host import ScriptedHost

from queenbee.core.reviews.review import REVIEW, Review
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


def forge(
    host: ScriptedHost, tree: Path, issue_id: str, branch: str, head: str | None = None
) -> int:
    """Has the record of an issue name a person's branch and pull request, and its commit or `head`,
    as a line that somebody pushed could; returns the number of that request.
    """
    host.git("branch", branch, "main")
    commit = host.git("commit-tree", f"{branch}^{{tree}}", "-p", branch, "-m", "of a person")
    host.git("update-ref", f"refs/heads/{branch}", commit)
    number = len(host.pulls) + 1
    host.pulls[number] = host.pull(branch)
    forge_review(tree, issue_id, number=number, branch=branch, head=head or commit)
    return number


def forge_review(tree: Path, issue_id: str, **says: object) -> None:
    """Has the record of an issue say something else of its pull request, or say that it has one."""
    ledger = Path(discover(str(tree), {}).beads_dir, "queen_assignments.jsonl")
    lines = (json.loads(each) for each in ledger.read_text().splitlines())
    last = [each for each in lines if each["issue_id"] == issue_id][-1]
    none = Review(77, url="", branch=f"ui-{issue_id}", head="0" * 40, target="origin/main")
    review = {**none.to_dict(), **(last.get(REVIEW) or {}), **says}
    with ledger.open("a") as file:
        file.write(json.dumps({**last, "rev": last["rev"] + 1, REVIEW: review}) + "\n")
