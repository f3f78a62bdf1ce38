"""`queen land` in the main worktree, with a branch of one's own checked out."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hives import QuickQueen, commit_file, git


def test_says_how_to_land_the_branch_and_that_lands_it(repo: Path, quick: QuickQueen) -> None:
    assert quick("config", "set", "land.target", "main").code == 0
    assert quick("config", "set", "land.check", "true").code == 0
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a hive")
    git(repo, "switch", "-qc", "nia/oat")
    commit_file(repo, "oat", "oat\n")
    refused = quick("land", as_="nia")
    assert refused.code == 2
    assert "nia/oat is checked out in the main worktree" in refused.err
    way = " ".join(refused.err.split()).partition("try: ")[2]
    switch, _, add = way.partition(";")[0].partition(" && ")
    subprocess.run(switch, shell=True, check=True, cwd=repo)
    made = quick(*add.removeprefix("queen ").replace("NAME", "oat").split(), as_="nia")
    assert made.code == 0, made
    assert quick("land", as_="oat", cwd=repo.parent / "repo-oat").code == 0
    assert git(repo, "show", "main:oat") == "oat\n"
