"""Names of files: whatever the locale, links and nested repositories are, a held file is held."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from entry_points import run_hook
from hives import commit_file, git

from queenbee import Hive

SCRIPT = Path(__file__).parents[2] / "scripts" / "queen-hook"


def hold(tree: Path, pattern: str) -> None:
    env = {"QUEEN_DURABILITY": "buffered"}
    Hive.open(tree, droid="reviewer", env=env).reservations.reserve([pattern])


def event_of(cwd: Path, name: str) -> bytes:
    event = {"hook_event_name": "PreToolUse", "session_id": "s-1234567", "tool_name": "Write"}
    return json.dumps({**event, "cwd": str(cwd), "tool_input": {"file_path": name}}).encode()


def refused(cwd: Path, name: str) -> bool:
    env = {"QUEEN_DROID": "mo", "QUEEN_DURABILITY": "buffered"}
    answer: dict[str, Any] | None = run_hook(event_of(cwd, name), env, str(cwd))
    return answer is not None and "reserved by reviewer" in json.dumps(answer)


def test_a_git_file_that_leads_nowhere_does_not_hide_the_repository(tree: Path) -> None:
    hold(tree, "src/**")
    (tree / "src" / ".git").write_text("gitdir: /nowhere\n")
    assert refused(tree, "src/app.py")
    assert refused(tree / "src", "app.py")


@pytest.mark.parametrize("name", ["new\nline", "\x1b[2J", "latin\udce9", "\x85", 'quo"te\\'])
def test_a_name_of_any_bytes_is_leased_and_nothing_else_with_it(tree: Path, name: str) -> None:
    env = {"QUEEN_DROID": "reviewer", "QUEEN_DURABILITY": "buffered"}
    assert run_hook(event_of(tree, f"src/{name}"), env, str(tree)) is None
    (lease,) = Hive.open(tree).reservations.find()
    assert lease.pattern.isascii() and lease.pattern.isprintable()
    for _ in range(2):  # Also where the file exists by now.
        assert refused(tree, f"src/{name}")
        assert not refused(tree, f"src/{name}x")
        with open(os.path.join(tree, "src", name), "w"):
            pass
    assert run_hook(event_of(tree, f"src/{name}"), env, str(tree)) is None
    assert len(Hive.open(tree).reservations.find(droid="reviewer")) == 1


def test_a_link_is_followed_before_the_folder_above_it(tree: Path) -> None:
    (tree / "other" / "deep").mkdir(parents=True)
    (tree / "other" / "f.py").write_text("")
    (tree / "src" / "link").symlink_to("../other/deep")
    hold(tree, "other/f.py")
    assert refused(tree, "src/link/../f.py")
    assert refused(tree / "src", "link/../f.py")
    assert not refused(tree, "src/f.py")
    hive = Hive.open(tree, droid="mo", env={})
    assert [each.status for each in hive.reservations.check(["src/link/../f.py"])] == ["held"]
    assert [each.path for each in hive.reservations.check(["src/../src/./x/../app.py"])] == [
        "src/app.py"
    ]


@pytest.mark.parametrize("absorbed", [True, False])
def test_what_the_superproject_holds_is_held_in_a_submodule(
    tree: Path, tmp_path: Path, absorbed: bool
) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    commit_file(library, "z.py")
    local = ("-c", "protocol.file.allow=always")
    if not absorbed:
        git(tree, "clone", "-q", str(library), "vendor/lib")
    git(tree, *local, "submodule", "--quiet", "add", str(library), "vendor/lib")
    assert (tree / "vendor" / "lib" / ".git").is_file() == absorbed
    hold(tree, "vendor/lib/**")
    assert refused(tree, "vendor/lib/z.py")
    assert refused(tree / "vendor" / "lib", "z.py")


def test_another_repository_inside_is_its_own(tree: Path) -> None:
    (tree / "inner").mkdir()
    git(tree / "inner", "init", "-q")
    hold(tree, "**")
    assert not refused(tree, "inner/z.py")


COMPOSED, DECOMPOSED = "src/caf\u00e9.py", "src/cafe\u0301.py"


@pytest.mark.parametrize(("held", "edited"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
def test_both_forms_of_a_letter_are_one_name_where_the_file_system_says_so(
    tree: Path, held: str, edited: str
) -> None:
    git(tree, "config", "core.precomposeunicode", "true")
    hold(tree, held)
    assert refused(tree, edited)
    assert refused(tree, held)


def test_both_forms_of_a_letter_are_two_names_elsewhere(tree: Path) -> None:
    git(tree, "config", "core.precomposeunicode", "false")
    hold(tree, COMPOSED)
    assert not refused(tree, DECOMPOSED)
    assert refused(tree, COMPOSED)


@pytest.mark.parametrize("pattern", ["src/cafe\u0301*", "**/cafe\u0301/x?"])
def test_patterns_have_the_form_that_git_stores(tree: Path, pattern: str) -> None:
    git(tree, "config", "core.precomposeunicode", "true")
    hold(tree, pattern)
    (lease,) = Hive.open(tree, env={}).reservations.find()
    assert lease.pattern == unicodedata.normalize("NFC", pattern)


@pytest.mark.linux
@pytest.mark.parametrize("escaped", [False, True])
def test_a_locale_without_the_letters_of_a_name_changes_nothing(tree: Path, escaped: bool) -> None:
    hold(tree, "dé/ü.py")
    name = "dé/ü.py".encode().decode("ascii", "surrogateescape") if escaped else "dé/ü.py"
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "QUEEN_DROID": "mo"}
    ran = subprocess.run(
        [sys.executable, str(SCRIPT)],
        cwd=tree,
        env={**os.environ, **plain},
        input=event_of(tree, name),
        capture_output=True,
    )
    assert b"reserved by reviewer" in ran.stdout
