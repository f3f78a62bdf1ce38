"""What is copied into a new worktree: what patterns name and git ignores, over nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from extent import examples
from hives import commit_file, git
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from queenbee.git.worktrees import copying

NUMBERS = count()
PATHS = (
    ".env", "a.key", "x.txt", "d/.env", "d/x.txt", "d/build/k", "build/.env", "build/x.txt",
    "local/a.key", "local/sub/b.key", "only/.env", ".hooks/.gitignore", ".hooks/run",
)  # fmt: skip
IGNORES = (".env", "*.key", "build/", "local/*", "!local/a.key", "d/x.txt", "only", "/x.txt")
PATTERNS = (
    ".env", "*.key", "build/", "build/.env", "/build", "local/**", "!d/.env", "x.txt", "d/*",
    "**", "../*", "/only/", ".hooks", "a*b*c*d*e*f", "#x", "[", "!", "/",
)  # fmt: skip


@pytest.fixture
def trees(repo: Path) -> tuple[Path, Path]:
    """The main worktree, which ignores some files, and another one."""
    commit_file(repo, ".gitignore", ".env*\nnode_modules/\nlocal/*.key\n")
    git(repo, "worktree", "add", "-q", "../other", "-b", "other")
    return repo, repo.parent / "other"


def put(tree: Path, *paths: str) -> None:
    for path in paths:
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(f"of {tree.name}: {path}\n")


def copied(trees: tuple[Path, Path], *patterns: str) -> list[str]:
    main, tree = map(str, trees)
    found = copying.select(main, tree, patterns)
    assert [*copying.copy(main, tree, found.files)] == []
    return sorted(found.files)


def left_out(trees: tuple[Path, Path], *patterns: str) -> str:
    return "; ".join(copying.select(*map(str, trees), patterns).left_out)


def files(tree: Path) -> dict[str, str]:
    return {
        path.relative_to(tree).as_posix(): path.read_text()
        for path in tree.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(tree).parts
    }


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository for one example after the other."""
    tree = tmp_path_factory.mktemp("laws") / "main"
    tree.mkdir()
    git(tree, "init", "-q", "-b", "main")
    commit_file(tree, "tracked.txt")
    return tree


def ignored(tree: Path, path: str) -> bool:
    asked = ["git", "check-ignore", "-q", "--", path]
    return subprocess.run(asked, cwd=tree, check=False).returncode == 0


def above(path: str) -> Iterator[str]:
    yield from (f"{each.as_posix()}/" for each in Path(path).parents if each != Path())


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    paths=st.sets(st.sampled_from(PATHS), min_size=1),
    ignores=st.lists(st.sampled_from(IGNORES), unique=True),
    patterns=st.lists(st.sampled_from(PATTERNS), min_size=1, unique=True),
    there=st.sets(st.sampled_from(PATHS), max_size=4),
)
def test_it_is_what_matches_and_git_ignores_and_nothing_else_changes(
    main: Path, paths: set[str], ignores: list[str], patterns: list[str], there: set[str]
) -> None:
    git(main, "clean", "-ffdxq")
    tree = main.parent / f"tree-{next(NUMBERS)}"
    git(main, "worktree", "add", "-q", "--detach", str(tree))
    rules = "".join(f"{each}\n" for each in ignores)
    (main / ".git" / "info" / "exclude").write_text(rules)
    put(main, *paths)
    put(tree, *there)
    for folder in (main, tree):
        if (folder / ".hooks" / ".gitignore").exists():
            (folder / ".hooks" / ".gitignore").write_text("*\n")
    before, status = files(tree), git(tree, "status", "--porcelain")
    found = {*copied((main, tree), *patterns)}
    after = files(tree)
    assert after == {**before, **{path: files(main)[path] for path in found}}
    assert found.isdisjoint(before)
    assert git(tree, "status", "--porcelain") == status
    spec = GitIgnoreSpec.from_lines(
        each for each in patterns if each not in ("[", "!", "/") and each.count("*") < 4
    )
    for path in paths - there:
        wanted = ignored(main, path) and spec.match_file(path)
        if path in found:
            assert wanted
        elif wanted and ignored(tree, path):
            # In a folder that is ignored by its name, a bare name does not count.
            assert any(ignored(main, each) for each in above(path))


def test_a_folder_that_is_ignored_is_named_or_left_alone(trees: tuple[Path, Path]) -> None:
    put(trees[0], "node_modules/a/.env", "node_modules/b", "sub/.env")
    assert copied(trees, ".env") == ["sub/.env"]
    assert copied(trees, "node_modules/a") == ["node_modules/a/.env"]
    assert copied(trees, "node_modules") == ["node_modules/b"]


def test_what_is_there_stays(trees: tuple[Path, Path]) -> None:
    put(trees[0], ".env")
    put(trees[1], ".env")
    assert copied(trees, ".env") == []
    assert (trees[1] / ".env").read_text() == "of other: .env\n"


def test_a_file_that_comes_meanwhile_stays(trees: tuple[Path, Path]) -> None:
    put(trees[0], ".env")
    found = copying.select(*map(str, trees), [".env"])
    target, draft = trees[1] / ".env", trees[1] / "draft"
    put(trees[1], ".env")
    with pytest.raises(FileExistsError):
        copying._copy(str(trees[0] / ".env"), str(target), str(draft))
    assert found.files == [".env"]
    assert target.read_text() == "of other: .env\n"


def test_mode_and_time_are_those_of_the_original(trees: tuple[Path, Path]) -> None:
    put(trees[0], "local/a.key")
    (trees[0] / "local/a.key").chmod(0o600)
    os.utime(trees[0] / "local/a.key", (1, 2))
    copied(trees, "local/a.key")
    status = (trees[1] / "local/a.key").stat()
    assert (status.st_mode & 0o777, status.st_mtime) == (0o600, 2)


def test_what_the_other_branch_would_commit_is_not_copied(trees: tuple[Path, Path]) -> None:
    commit_file(trees[1], ".gitignore", "node_modules/\n")
    put(trees[0], ".env")
    assert copied(trees, ".env") == []
    assert ".env would not be ignored there" in left_out(trees, ".env")


def test_a_folder_that_ignores_itself_is_copied_with_that_first(trees: tuple[Path, Path]) -> None:
    put(trees[0], ".husky/_/.gitignore", ".husky/_/A")
    (trees[0] / ".husky/_/.gitignore").write_text("*\n")
    assert copied(trees, "/.husky/_/") == [".husky/_/.gitignore", ".husky/_/A"]
    assert git(trees[1], "status", "--porcelain") == ""


class TestAnEnemy:
    @pytest.mark.parametrize("leads", ["/etc/passwd", "../secret", ".git/config", ".beads/x"])
    def test_a_link_out_of_the_repository_is_not_copied(
        self, trees: tuple[Path, Path], leads: str
    ) -> None:
        (trees[0] / ".env").symlink_to(leads)
        assert copied(trees, ".env") == []
        assert ".env is a link that leads out" in left_out(trees, ".env")

    def test_a_link_within_stays_a_link(self, trees: tuple[Path, Path]) -> None:
        put(trees[0], "local/a.key")
        (trees[0] / ".env").symlink_to("local/a.key")
        assert copied(trees, ".env") == [".env"]
        assert os.readlink(trees[1] / ".env") == "local/a.key"

    def test_nothing_is_written_through_a_link(self, trees: tuple[Path, Path]) -> None:
        (trees[0].parent / "outside").mkdir()
        (trees[1] / "local").symlink_to("../outside")
        put(trees[0], "local/a.key")
        assert copied(trees, "local/a.key") == []
        assert "has a link or a file in place of local/" in left_out(trees, "local/a.key")
        main, tree = map(str, trees)
        assert [*copying.copy(main, tree, ["local/a.key"])] != []
        assert [*(trees[0].parent / "outside").iterdir()] == []

    def test_a_fifo_stops_nobody(self, trees: tuple[Path, Path]) -> None:
        (trees[0] / "node_modules").mkdir()
        os.mkfifo(trees[0] / "node_modules" / "fifo")
        assert copied(trees, "node_modules") == []
        assert "node_modules/fifo is no regular file" in left_out(trees, "node_modules")

    def test_a_folder_that_is_too_large_is_left_out_whole(
        self, trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(trees[0], *(f"node_modules/{number}" for number in range(4)), ".env")
        monkeypatch.setattr(copying, "MOST_FILES", 3)
        assert copied(trees, "node_modules", ".env") == [".env"]
        assert "node_modules/ is too much: 4 files" in left_out(trees, "node_modules")
        monkeypatch.setattr(copying, "MOST_FILES", 30)
        monkeypatch.setattr(copying, "MOST_BYTES", 30)
        assert "node_modules/ is too much" in left_out(trees, "node_modules")

    def test_neither_git_nor_the_hive_is_copied(self, trees: tuple[Path, Path]) -> None:
        put(trees[0], ".beads/.env", "node_modules/x/.git/config", "node_modules/x/y")
        assert copied(trees, "**") == []

    def test_nothing_above_the_repository_is_named(self, trees: tuple[Path, Path]) -> None:
        (trees[0].parent / ".env").write_text("secret")
        assert copied(trees, "../.env", "/../.env", "../**", str(trees[0].parent / ".env")) == []

    def test_an_include_file_that_is_a_link_counts_for_nothing(
        self, trees: tuple[Path, Path]
    ) -> None:
        (trees[0] / "list").write_text(".env\n")
        (trees[0] / copying.INCLUDE).symlink_to("list")
        assert copying.included(str(trees[0])) == []
