"""No branch that lands leads everybody to another hive."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hives import QuickQueen, Ran, commit_file, git

SETTINGS = ".beads/queen.toml"


@pytest.fixture
def tree(repo: Path, beads: Path, quick: QuickQueen, tmp_path: Path) -> Path:
    """A worktree of a repository that has its settings and a file in git."""
    quick("init")
    quick("config", "set", "land.check", "true")
    git(repo, "add", SETTINGS)
    commit_file(repo, "alt/x", "x\n")
    tree = tmp_path / "api"
    git(repo, "worktree", "add", "-q", str(tree), "-b", "api")
    return tree


def landing(quick: QuickQueen, tree: Path) -> Ran:
    return quick("land", "-m", "other hive", as_="api", cwd=tree)


def test_a_branch_that_adds_a_redirect_is_refused(
    repo: Path, tree: Path, quick: QuickQueen
) -> None:
    (tree / ".beads" / "redirect").write_text("../alt\n")
    before = git(repo, "rev-parse", "main")
    refused = landing(quick, tree)
    assert (refused.code, git(repo, "rev-parse", "main")) == (5, before)
    assert (
        "this branch changes .beads/redirect, which would give everybody another hive"
        in refused.err
    )
    command = refused.err.partition("try: ")[2].partition(", and commit")[0]
    subprocess.run(command, shell=True, cwd=tree, check=True)
    (tree / "work.txt").write_text("x\n")
    assert landing(quick, tree).code == 0


@pytest.mark.parametrize("name", ["web/.beads/redirect", ".Beads/redirect", ".BEADS/queen.toml"])
def test_a_branch_that_leads_those_in_a_folder_or_on_another_system_elsewhere_is_refused(
    repo: Path, tree: Path, quick: QuickQueen, name: str
) -> None:
    before = git(repo, "rev-parse", "main")
    commit_file(tree, name, "alt\n")
    refused = landing(quick, tree)
    assert (refused.code, git(repo, "rev-parse", "main")) == (5, before)
    assert f"this branch changes {name}, which would give everybody another hive" in refused.err


@pytest.mark.parametrize("name", ["metadata.json", "config.yaml", "beads.db", "dolt/x"])
def test_a_branch_that_gives_the_tracker_to_another_program_is_refused(
    repo: Path, tree: Path, quick: QuickQueen, name: str
) -> None:
    before = git(repo, "rev-parse", "main")
    commit_file(tree, f".beads/{name}", "{}\n")
    refused = landing(quick, tree)
    assert (refused.code, git(repo, "rev-parse", "main")) == (5, before)
    assert f"this branch has .beads/{name} of bd or br, which would give" in refused.err
    commit_file(repo, "y", "y\n")  # Else the next could be the very commit of the branch.
    commit_file(repo, ".beads/config.yaml", "{}\n")  # A person has decided that.
    assert landing(quick, tree).code == 0


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ('state = "beads"\n', "state to beads"),
        ('[engine]\nkind = "postgres"\n', "engine.kind to postgres"),
        ('[engine]\nhive = "other"\n', "engine.hive to other"),
    ],
)
def test_a_branch_that_says_where_the_hive_is_is_refused(
    repo: Path, tree: Path, quick: QuickQueen, said: str, what: str
) -> None:
    path = tree / SETTINGS
    top, rest = (said, "") if said.startswith("state") else ("", said)
    path.write_text(f"{top}{path.read_text()}{rest}")
    before = git(repo, "rev-parse", "main")
    refused = landing(quick, tree)
    assert (refused.code, git(repo, "rev-parse", "main")) == (5, before)
    assert f"this branch sets {what} in {SETTINGS}, which would give everybody" in refused.err


def test_a_branch_may_say_what_the_target_says(repo: Path, tree: Path, quick: QuickQueen) -> None:
    path = repo / SETTINGS
    path.write_text(f'{path.read_text()}[engine]\nhive = "team"\n')
    git(repo, "commit", "-qam", "the engine")
    git(tree, "merge", "-q", "main")
    (tree / SETTINGS).write_text(f"{path.read_text()}hook = 'warn'\n")
    assert landing(quick, tree).code == 0
