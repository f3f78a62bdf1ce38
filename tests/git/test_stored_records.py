"""Git stores records as they are, whatever the repository's own attributes say of other files."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from hives import QuickQueen, git

LFS = "*.jsonl filter=lfs diff=lfs merge=lfs -text"
OF_OLD = "queen_*.jsonl text eol=lf merge=union\n"
"""The whole of `.beads/.gitattributes` until 0.2."""

needs_lfs = pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")


class Clones:
    """A bare repository with attributes of its own, and its clones, which know Git LFS."""

    def __init__(self, root: Path, attributes: str) -> None:
        self.root, self.hub = root, root / "hub.git"
        git(root, "init", "-q", "--bare", "-b", "main", str(self.hub))
        first = self.clone("ada")
        (first / ".gitattributes").write_text(attributes)
        git(first, "add", "-A")
        git(first, "commit", "-qm", "attributes")
        assert QuickQueen(first)("init").code == 0

    def clone(self, name: str, *, knows_lfs: bool = True) -> Path:
        """Makes a clone, whose user is the droid of its name."""
        tree = self.root / name
        git(self.root, "clone", "-q", str(self.hub), str(tree))
        if knows_lfs:
            for key in ("clean", "smudge"):
                git(tree, "config", "filter.lfs." + key, f"git-lfs {key} -- %f")
        return tree

    def note(self, name: str, text: str) -> None:
        """Has a droid send a message to all, and commits it as a person would."""
        tree = self.root / name
        assert QuickQueen(tree)("msg", "send", "human", text, as_=name).code == 0
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", text)


def messages(tree: Path) -> set[str]:
    return {each["body"] for each in QuickQueen(tree)("msg", "inbox", "--json", as_="human").json}


def findings(tree: Path, *options: str) -> dict[str, str | None]:
    told = QuickQueen(tree)("doctor", "--json", *options).json
    return {each["code"]: each["hint"] for each in told if each["severity"] == "error"}


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param(LFS, marks=needs_lfs),
        pytest.param("* filter=lfs merge=lfs -text\n.gitattributes !filter", marks=needs_lfs),
        "*.jsonl working-tree-encoding=UTF-16 eol=crlf",
        "*.jsonl binary",
        "*.jsonl merge=ours ident",
    ],
)
def test_two_clones_merge_records_in_spite_of_a_rule(tmp_path: Path, attributes: str) -> None:
    clones = Clones(tmp_path, f"{attributes}\n")
    clones.note("ada", "$Id$ of the hive")
    git(tmp_path / "ada", "push", "-q", "origin", "main")
    bob = clones.clone("bob")
    git(bob, "config", "merge.ours.driver", "true")
    for name in ("ada", "bob"):
        clones.note(name, f"of {name}")
    git(tmp_path / "ada", "push", "-q", "origin", "main")
    git(bob, "pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    git(bob, "push", "-q", "origin", "main")
    assert findings(bob) == {}
    everything = {"$Id$ of the hive", "of ada", "of bob"}
    assert messages(bob) == everything
    assert messages(clones.clone("new", knows_lfs=False)) == everything


@needs_lfs
def test_a_hive_of_old_is_mended_and_its_pointers_are_replaced(tmp_path: Path) -> None:
    clones = Clones(tmp_path, f"{LFS}\n")
    ada = tmp_path / "ada"
    (ada / ".beads/.gitattributes").write_text(OF_OLD)
    clones.note("ada", "hello")
    assert git(ada, "show", "HEAD:.beads/queen_messages.jsonl").startswith(
        "version https://git-lfs"
    )
    assert findings(ada) == {"attributes": "queen doctor --fix"}
    hint = findings(ada, "--fix")["pointer"]
    for command in (hint or "").split(" && "):
        git(ada, *shlex.split(command)[1:], *(["-qm", "mended"] if "commit" in command else []))
    git(ada, "push", "-q", "origin", "HEAD:main")
    assert findings(ada) == {}
    assert messages(clones.clone("new", knows_lfs=False)) == {"hello"}


def test_lines_of_the_user_come_after_ours_and_count_more(repo: Path, quick: QuickQueen) -> None:
    path = repo / ".beads" / ".gitattributes"
    path.write_text(f"{OF_OLD}*.db filter=store")
    for _ in range(2):
        quick("init")
        assert path.read_text().splitlines()[1:] == [*OF_OLD.splitlines(), "*.db filter=store"]
    assert "filter: store" in git(repo, "check-attr", "filter", "--", ".beads/a.db")
