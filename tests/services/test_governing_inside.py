"""Nested hives: the parts inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from governed_edits import edited, leased
from hives import commit_file, git

from queenbee.services import governing
from queenbee.store.layout import hives_above

pytestmark = pytest.mark.both_engines(thorough=True)


@pytest.fixture
def nested(repo: Path) -> Path:
    """A repository with a hive, and a project in `src/` with a hive of its own."""
    commit_file(repo, "src/app.py", "a = 1\n")
    commit_file(repo, "docs/a.md", "a\n")
    (repo / "src" / ".beads").mkdir()
    return repo


def test_an_edit_that_cannot_have_all_of_its_files_has_none(
    nested: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from queenbee.errors import Busy
    from queenbee.services.leases import edits

    keep, calls = edits.keep, 0

    def second_is_busy(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Busy("locked")
        return keep(*arguments)

    monkeypatch.setattr(edits, "keep", second_is_busy)
    assert edited(nested, "docs/a.md", "src/app.py") is None
    assert calls == 2
    assert leased(nested) == leased(nested / "src") == []


def same_hives(tree: Path) -> bool:
    """Returns whether each folder of a tree has the hives that it has when it is asked alone."""
    above = governing._Above(str(tree), {})
    folders = [str(each) for each in [tree, *tree.rglob("*")] if each.is_dir()]
    return all(
        [each.beads_dir for each in above.hives(folder)]
        == [each.beads_dir for each in hives_above(folder, {})]
        for folder in folders
        if ".git" not in Path(folder).parts
    )


@pytest.fixture
def tangled(nested: Path) -> Path:
    """A tree with a hive below, a repository below, and a link to a folder with a hive."""
    for name in ("docs/deep/er", "src/core", "inner/lib", "elsewhere"):
        (nested / name).mkdir(parents=True)
    git(nested / "inner", "init", "-q")
    (nested / "docs" / "link").symlink_to(nested / "src" / "core")
    return nested


def test_folders_asked_together_have_the_hives_that_each_has_alone(
    tangled: Path, tmp_path: Path
) -> None:
    assert same_hives(tangled)
    git(tangled, "add", "docs/a.md", "src/app.py")
    linked = tmp_path / "linked"
    git(tangled, "worktree", "add", "-q", str(linked))
    assert same_hives(linked)
