"""Nested hives: a lease in any hive above a file holds, and writes go to the nearest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from governed_edits import edited, leased
from hives import QuickQueen, add_submodule, commit_file, environment, git

from queenbee import Hive

pytestmark = pytest.mark.both_engines(thorough=True)


@pytest.fixture
def nested(repo: Path) -> Path:
    """A repository with a hive, and a project in `src/` with a hive of its own."""
    commit_file(repo, "src/app.py", "a = 1\n")
    commit_file(repo, "docs/a.md", "a\n")
    (repo / "src" / ".beads").mkdir()
    return repo


def hold(folder: Path, pattern: str) -> None:
    env = environment()
    Hive.open(folder, droid="reviewer", env=env).reservations.reserve([str(folder / pattern)])


@pytest.mark.parametrize("holder", ["", "src"])
def test_an_edit_is_refused_by_each_hive_above_the_file(nested: Path, holder: str) -> None:
    hold(nested / holder, "src/*" if not holder else "*")
    answer = edited(nested, "src/app.py")
    assert answer is not None
    assert "reserved by reviewer" in json.dumps(answer)
    assert leased(nested) == leased(nested / "src") == []


def test_an_edit_is_leased_in_the_nearest_hive_alone(nested: Path) -> None:
    assert edited(nested, "src/app.py", "docs/a.md") is None
    assert leased(nested / "src") == ["src/app.py"]
    assert leased(nested) == ["docs/a.md"]


def test_a_hive_that_the_environment_names_governs_alone(nested: Path) -> None:
    hold(nested, "src/*")
    assert edited(nested, "src/app.py", BEADS_DIR="src/.beads") is None


def test_check_and_where_and_the_guard_ask_every_hive(nested: Path, quick: QuickQueen) -> None:
    hold(nested, "src/*")
    for cwd, path in ((nested, "src/app.py"), (nested / "src", "app.py")):
        found = quick("reserve", "check", "--json", path, as_="mo", cwd=cwd)
        assert (found.code, found.json[0]["status"]) == (1, "held")
    above = quick("hive", "where", "--json", cwd=nested / "src").json["above"]
    assert above == [str(nested / ".beads")]
    assert quick("hive", "where", "--json").json["above"] == []
    (nested / "src" / "app.py").write_text("a = 2\n")
    git(nested, "add", "src/app.py")
    for cwd in (nested, nested / "src"):
        assert quick("guard", "check", "--staged", as_="mo", cwd=cwd).code == 1


def test_the_guard_at_the_top_asks_a_hive_below(nested: Path, quick: QuickQueen) -> None:
    hold(nested / "src", "*")
    (nested / "src" / "app.py").write_text("a = 2\n")
    git(nested, "add", "src/app.py")
    assert quick("guard", "check", "--staged", as_="mo").code == 1
    assert quick("guard", "check", "--staged", as_="reviewer").code == 0
    assert quick("reserve", "check", "src/app.py", as_="mo").code == 1


def test_a_file_in_a_linked_worktree_is_governed_by_both(nested: Path, tmp_path: Path) -> None:
    git(nested, "worktree", "add", "-q", str(tmp_path / "other"))
    hold(nested, "src/*")
    answer = edited(tmp_path / "other", "src/app.py")
    assert answer is not None


# Several files: all or none, whatever one of them is


def test_a_hive_that_cannot_be_read_does_not_let_a_held_file_pass(nested: Path) -> None:
    hold(nested, "docs/*")
    (nested / "src" / ".beads" / "queen_reservations.jsonl").mkdir()
    for files in (("src/app.py", "docs/a.md"), ("docs/a.md", "src/app.py")):
        answer = edited(nested, *files)
        assert answer is not None, files
        assert "reserved by reviewer" in json.dumps(answer)


@pytest.mark.parametrize("bad", ["x" * 5_000, "a\0b", "loop/x", "\udcff", "src/app.py/below"])
def test_a_bad_name_does_not_let_a_held_file_pass(nested: Path, bad: str) -> None:
    (nested / "loop").symlink_to("loop")
    hold(nested, "docs/*")
    for files in ((bad, "docs/a.md"), ("docs/a.md", bad)):
        answer = edited(nested, *files)
        assert answer is not None, files


@pytest.fixture
def submodule(repo: Path, tmp_path: Path) -> Path:
    """A submodule without a hive, in a repository that has one."""
    add_submodule(repo, tmp_path / "library", "vendor/lib")
    git(repo, "commit", "-q", "--no-verify", "-m", "a submodule")
    module = repo / "vendor" / "lib"
    (module / "z.py").write_text("z = 2\n")
    git(module, "add", "z.py")
    return module


@pytest.mark.parametrize("own", [False, True])
def test_what_the_superproject_holds_is_refused_in_a_submodule(
    repo: Path, submodule: Path, quick: QuickQueen, own: bool
) -> None:
    if own:
        (submodule / ".beads").mkdir()
    hold(repo, "vendor/lib/**")
    for cwd, path in ((submodule, "z.py"), (repo, "vendor/lib/z.py")):
        found = quick("reserve", "check", "--json", path, as_="mo", cwd=cwd)
        assert (found.code, found.json[0]["status"]) == (1, "held")
        assert quick("reserve", "check", path, as_="reviewer", cwd=cwd).code == 0
        assert quick("guard", "check", path, as_="mo", cwd=cwd).code == 1
    refused = quick("guard", "check", "--staged", as_="mo", cwd=submodule)
    assert refused.code == 1
    assert "vendor/lib/z.py: held by reviewer" in refused.err + refused.out
    assert quick("guard", "check", "--staged", as_="reviewer", cwd=submodule).code == 0
    assert quick("guard", "check", "--staged", as_="mo", cwd=repo).code == 0


@pytest.mark.only_files  # The settings of the hive would go with it.
def test_a_submodule_without_any_hive_passes_and_says_so(
    repo: Path, submodule: Path, quick: QuickQueen
) -> None:
    (repo / ".beads").rmdir()
    assert quick("guard", "check", "--staged", as_="mo", cwd=submodule).code == 0
    assert quick("guard", "check", "--range", "no..such", as_="mo", cwd=submodule).code == 0
    assert "there is no hive here" in quick("reserve", "check", "z.py", as_="mo", cwd=submodule).err


@pytest.mark.only_files  # The settings of the hive would go with it.
def test_the_guard_asks_a_hive_below_if_there_is_none_at_the_top(
    nested: Path, quick: QuickQueen
) -> None:
    (nested / ".beads").rmdir()
    hold(nested / "src", "*")
    (nested / "src" / "app.py").write_text("a = 2\n")
    git(nested, "add", "src/app.py")
    assert quick("guard", "check", "--staged", as_="mo", cwd=nested).code == 1
    assert quick("guard", "check", "src/app.py", as_="mo", cwd=nested).code == 1
    assert quick("reserve", "check", "src/app.py", as_="mo", cwd=nested).code == 1
    assert quick("guard", "check", "docs/a.md", as_="mo", cwd=nested).code == 0
    warned = quick("guard", "check", "--staged", as_="mo", cwd=nested, env={"QUEEN_GUARD": "warn"})
    assert warned.code == 0
    off = quick("guard", "check", "--staged", as_="mo", cwd=nested, env={"QUEEN_GUARD": "off"})
    assert off.code == 0
    log = next((nested / ".git" / "queenbee").rglob("guard.log")).read_text()
    assert "QUEEN_GUARD=warn: src/app.py (reviewer)" in log
    assert "not checked, QUEEN_GUARD=off" in log
