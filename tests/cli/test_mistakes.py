"""What a newcomer types by mistake: the answer suggests a command, and the command works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHOP = """git init -q -b trunk . && echo a > a && git add -A && git commit -qm a && queen init
queen config set land.check true && queen --as ana issue new First --id t-1"""
WORK = "&& queen worktree add ui && cd ../shop-ui && echo b > b && git add b && git commit -qm b"
MISTAKES = {
    "a bare repository": ("git init -q --bare .", "queen init", "is a bare git repository"),
    "no commit yet": ("git init -q . && queen init", "queen worktree add ui", "is no commit"),
    "a branch that exists": (
        f"{SHOP} && git branch ui",
        "queen worktree add ui",
        "there is a branch ui already",
    ),
    "the branch of a folder that was deleted": (
        f"{SHOP} && queen worktree add ui && rm -r ../shop-ui",
        "queen worktree add ui",
        "there is a branch ui already",
    ),
    "landing onto a detached HEAD": (
        f"{SHOP} && git checkout -q --detach {WORK} && queen claim t-1",
        "queen land",
        "shop is on no branch of its own",
    ),
    "landing from a detached HEAD": (
        f"{SHOP} {WORK} && queen claim t-1 && git checkout -q --detach",
        "queen land",
        "shop-ui is on no branch of its own",
    ),
    "setting up no agent": (SHOP, "queen setup", "no agent was found here"),
    "another's issue": (
        f"{SHOP} && queen worktree add ui && queen --as bo claim t-1 && cd ../shop-ui",
        "queen claim t-1",
        "t-1 is assigned to bo",
    ),
    "nothing to land": (
        f"{SHOP} && queen worktree add ui && cd ../shop-ui && queen claim t-1",
        "queen land",
        "nothing to land",
    ),
    "a typing error in an issue": (SHOP, "queen claim t-2 --as ana", "there is no issue 't-2'"),
    "a typing error in a setting": (SHOP, "queen config set land.chek x", "no setting"),
    "a change in the way of a landing": (
        f"{SHOP} {WORK} && queen claim t-1 && echo c > ../shop/b",
        "queen land",
        "cannot be moved",
    ),
    "a body before the droid": (
        f"{SHOP} && queen hive whoami --set bo",
        "queen msg send 'is it done?' ana",
        "is not a droid name",
    ),
    "a setting without a verb": (SHOP, "queen config land.check", "Did you mean 'get'"),
    "another word of the same noun": (SHOP, "queen worktree delete ui", "Did you mean 'remove'"),
    "a leftover QUEEN_DROID": (
        f"{SHOP} {WORK} && export QUEEN_DROID=bo",
        "queen next",
        "QUEEN_DROID says that you are bo",
    ),
}
PASTED = {
    "landing onto a detached HEAD": "; queen land",
    "landing from a detached HEAD": "; queen land",
    "nothing to land": "; echo b > b && queen land -m b",
    "no commit yet": "; queen worktree add ui",
    "a leftover QUEEN_DROID": "; queen next",
}
"""What is typed again after the command that was suggested, and works then."""


def shell(text: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("QUEEN_", "GIT_", "FACTORY_", "BEADS_"))
    }
    env["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), env["PATH"]])
    env |= {"HOME": str(cwd.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{role}_NAME": "ana", f"GIT_{role}_EMAIL": "ana@example.com"}
    return subprocess.run(
        ["sh", "-c", text.replace("\n", " && ")],
        cwd=cwd, env=env, text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def suggested_in(said: str) -> str:
    """Returns the command that a refusal suggests, without the words before it."""
    hint = said.rpartition("  try: ")[2].strip()
    begins = [at for word in ("queen ", "git ", "unset ") if (at := hint.find(word)) >= 0]
    return hint[min(begins) :].partition(", ")[0].partition("; ")[0]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_command_that_is_suggested_after_a_mistake_works_when_pasted(
    tmp_path: Path, mistake: str
) -> None:
    before, typed, reason = MISTAKES[mistake]
    shop = tmp_path / "shop"
    shop.mkdir()
    made = shell(before, shop)
    assert made.returncode == 0, made.stderr
    place = shop if "shop-ui" not in before.split("&& rm")[0] else tmp_path / "shop-ui"
    export = "export QUEEN_DROID=bo; " if "export" in before else ""
    refused = shell(export + typed, place)
    assert refused.returncode in (1, 2, 4, 5)
    assert reason in refused.stderr
    pasted = shell(export + suggested_in(refused.stderr) + PASTED.get(mistake, ""), place)
    assert pasted.returncode == 0, (refused.stderr, pasted.stderr)


def test_undoing_a_setup_names_only_what_it_takes_out(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    shell(SHOP, shop)
    assert shell("queen setup", shop).returncode == 4
    assert not (shop / ".git" / "hooks" / "pre-commit").exists()
    assert shell("queen setup --undo", shop).stdout == "No file had to be changed.\n"
    assert shell("queen setup codex", shop).returncode == 0
    undone = shell("queen setup --undo", shop)
    assert (undone.returncode, "unchanged" in undone.stdout) == (0, False)
    assert "AGENTS.md" in undone.stdout


def test_a_dependency_is_confirmed(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    shell(f"{SHOP} && queen --as ana issue new Second --id t-2", shop)
    assert shell("queen --as ana issue dep t-2 t-1", shop).stdout == "t-2 waits for t-1\n"
    gone = shell("queen --as ana issue dep t-2 t-1 --remove", shop)
    assert gone.stdout == "t-2 waits for no issue\n"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("bead new", "'queen plan import' or 'queen bead schema ralph'"),
        ("hive doctor", "'queen doc"),
        ("issue done", "'queen complete'"),
        ("msg list", "'inbox'"),
        ("gate create", "'new'"),
    ],
)
def test_a_command_of_another_noun_is_named(tmp_path: Path, typed: str, meant: str) -> None:
    assert f"Did you mean {meant}" in shell(f"queen {typed}", tmp_path).stderr
