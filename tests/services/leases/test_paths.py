"""Paths: what a user types, where they type it, becomes a pattern from the root."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import Clock, environment, git

from queenbee import Hive
from queenbee.errors import BadPattern, InvalidInput
from queenbee.services.leases.paths import path_of, pattern_of

pytestmark = pytest.mark.both_engines(thorough=True)


@pytest.fixture
def tree(repo: Path) -> Path:
    """A working tree with files, folders, odd names and links."""
    for name in ("src/auth/login.py", "src/db.py", "app/[id]/page.tsx", "a b.py", "!x", "{y}"):
        path = repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (repo / "lib").symlink_to("src")
    (repo / "alias.py").symlink_to("src/db.py")
    (repo / "broken").symlink_to("nowhere")
    (repo / "out").symlink_to("/etc")
    return repo


def meant(tree: Path, text: str, cwd: str = "") -> str:
    return pattern_of(text, tree=str(tree), cwd=str(tree / cwd)).pattern


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("src/db.py", "src/db.py"),
        ("./src/db.py", "src/db.py"),
        ("src//auth/../db.py", "src/db.py"),
        ("src", "src/**"),
        ("src/", "src/**"),
        ("./src/auth", "src/auth/**"),
        (".", "**"),
        ("src/*", "src/*"),
        ("src/*.py", "src/*.py"),
        ("**/*.md", "**/*.md"),
        ("new/", "new/**"),
        ("new.py", "new.py"),
        ("a b.py", "a b.py"),
    ],
)
def test_at_the_root_a_pattern_means_what_it_says(tree: Path, text: str, pattern: str) -> None:
    assert meant(tree, text) == pattern


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("login.py", "src/auth/login.py"),
        ("../db.py", "src/db.py"),
        ("../../src/db.py", "src/db.py"),
        ("*.py", "src/auth/*.py"),
        ("../*.py", "src/*.py"),
        ("**", "src/auth/**"),
        (".", "src/auth/**"),
        ("..", "src/**"),
        ("../..", "**"),
        ("new.py", "src/auth/new.py"),
    ],
)
def test_below_the_root_a_pattern_is_relative_to_where_it_is_typed(
    tree: Path, text: str, pattern: str
) -> None:
    assert meant(tree, text, "src/auth") == pattern


@pytest.mark.parametrize(
    ("text", "pattern"),
    [("/src/db.py", "src/db.py"), ("/src/*.py", "src/*.py"), ("/src", "src/**"), ("", "**")],
)
def test_an_absolute_path_in_the_repository_is_taken_from_its_root(
    tree: Path, text: str, pattern: str
) -> None:
    assert meant(tree, f"{tree}{text}", "src/auth") == pattern


def test_a_working_directory_with_a_special_name_is_not_a_pattern(tree: Path) -> None:
    assert meant(tree, "*.tsx", "app/[id]") == r"app/\[id]/*.tsx"


@pytest.mark.parametrize(
    ("text", "cwd", "pattern"),
    [
        ("app/[id]/**", "", r"app/\[id]/**"),
        ("./app/[id]/*.tsx", "", r"app/\[id]/*.tsx"),
        ("[id]/new.tsx", "app", r"app/\[id]/new.tsx"),
        ("app/[xy]/*.tsx", "", "app/[xy]/*.tsx"),
    ],
)
def test_a_folder_that_exists_is_meant_literally_also_where_a_pattern_follows(
    tree: Path, text: str, cwd: str, pattern: str
) -> None:
    assert meant(tree, text, cwd) == pattern


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("app/[id]/page.tsx", r"app/\[id]/page.tsx"),
        ("app/[id]", r"app/\[id]/**"),
        ("./!x", r"\!x"),
        ("{y}", r"\{y\}"),
    ],
)
def test_what_exists_is_meant_literally(tree: Path, text: str, pattern: str) -> None:
    assert meant(tree, text) == pattern


def test_a_literal_name_that_was_reserved_covers_its_file_and_not_the_class_it_looks_like(
    tree: Path, hive: Hive, reviewer: Hive
) -> None:
    hive.reservations.reserve(["app/[id]/page.tsx"])
    held, free = reviewer.reservations.check(["app/[id]/page.tsx", "app/i/page.tsx"])
    assert (held.status, free.status) == ("held", "free")


def test_a_file_that_does_not_exist_yet_is_reserved_with_a_note(tree: Path) -> None:
    place = pattern_of("new.py", tree=str(tree), cwd=str(tree / "src"))
    assert place.note == "src/new.py does not exist yet; it is treated as a file"


@pytest.mark.parametrize("text", ["src/db.py", "src", "new/", "src/*.py", "[ab].py"])
def test_nothing_is_noted_where_nothing_is_in_doubt(tree: Path, text: str) -> None:
    assert pattern_of(text, tree=str(tree), cwd=str(tree)).note is None


# Symbolic links


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("lib/db.py", "src/db.py"),
        ("lib/auth", "src/auth/**"),
        ("lib/*.py", "src/*.py"),
        ("lib/new.py", "src/new.py"),
        ("lib/", "src/**"),
        ("alias.py", "alias.py"),
        ("broken", "broken"),
    ],
)
def test_links_to_folders_are_resolved_on_the_way_to_a_file(
    tree: Path, text: str, pattern: str
) -> None:
    assert meant(tree, text) == pattern


def test_reserving_a_link_adds_a_note_about_its_target(tree: Path) -> None:
    place = pattern_of("lib", tree=str(tree), cwd=str(tree))
    assert place.pattern == "lib"
    assert place.note == (
        "lib is a symbolic link; this reserves the link, not its target. For the target: lib/"
    )


def test_a_working_directory_behind_a_link_is_the_real_one(tree: Path, clock: Clock) -> None:
    hive = Hive.open(tree / "lib" / "auth", droid="x", env=environment(), clock=clock)
    assert hive.reservations.resolve(["login.py"])[0].pattern == "src/auth/login.py"


def test_a_repository_behind_a_link_is_the_real_one(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "shortcut").symlink_to(tree)
    hive = Hive.open(tmp_path / "shortcut", droid="x", env=environment())
    typed = str(tmp_path / "shortcut" / "src" / "db.py")
    assert hive.reservations.resolve([typed])[0].pattern == "src/db.py"
    assert hive.reservations.check([typed])[0].path == "src/db.py"


def test_a_link_out_of_the_repository_is_reserved_itself(tree: Path) -> None:
    assert meant(tree, "out") == "out"


# Refusals


@pytest.mark.parametrize(
    "text",
    ["out/passwd", "out/*", "out/", "/etc/passwd", "/etc/*", "../x", "../*.py", "src/../../x"],
)
def test_paths_outside_the_repository_are_refused(tree: Path, text: str) -> None:
    with pytest.raises(BadPattern, match=r"out of the repository|outside the repository") as no:
        meant(tree, text)
    assert text in no.value.message


@pytest.mark.parametrize("text", ["", "!src/**", "src/[", "a\0b", "a\\"])
def test_invalid_patterns_are_refused(tree: Path, text: str) -> None:
    with pytest.raises(BadPattern):
        meant(tree, text)


# Literal paths


@pytest.mark.parametrize(
    ("text", "cwd", "path"),
    [
        ("src/db.py", "", "src/db.py"),
        ("./db.py", "src", "src/db.py"),
        ("../db.py", "src/auth", "src/db.py"),
        ("never/was.py", "", "never/was.py"),
        ("src/*.py", "", "src/*.py"),
        ("lib/db.py", "", "src/db.py"),
        ("alias.py", "", "alias.py"),
        ("src/", "", "src"),
        ("app/[id]/page.tsx", "", "app/[id]/page.tsx"),
    ],
)
def test_a_literal_path_is_taken_from_the_root(tree: Path, text: str, cwd: str, path: str) -> None:
    assert path_of(text, tree=str(tree), cwd=str(tree / cwd)) == path


@pytest.mark.parametrize("text", ["", ".", "a\0b", "..", "../x", "/etc/passwd", "out/passwd"])
def test_only_files_of_the_repository_have_a_literal_path(tree: Path, text: str) -> None:
    with pytest.raises(InvalidInput):
        path_of(text, tree=str(tree), cwd=str(tree))


# Worktrees


def test_in_a_linked_worktree_patterns_are_from_its_own_root(
    tree: Path, tmp_path: Path, clock: Clock
) -> None:
    git(tree, "worktree", "add", "-q", str(tmp_path / "linked"))
    (tmp_path / "linked" / "src").mkdir()
    main = Hive.open(tree, droid="ui-engineer", env=environment(), clock=clock)
    linked = Hive.open(
        tmp_path / "linked" / "src", droid="reviewer", env=environment(), clock=clock
    )
    main.reservations.reserve(["src/db.py"])
    assert linked.reservations.check(["db.py"])[0].path == "src/db.py"
    assert linked.reservations.check(["db.py"])[0].status == "held"
