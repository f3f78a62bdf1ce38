"""Which files are ignored: git is the oracle, and pathspec is loaded only where it may matter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from extent import examples
from hives import git, write_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queenbee.store.git_files.ignore_files import ignored
from queenbee.store.git_trees import name_in_index
from queenbee.store.layout import Layout, discover

Files = dict[str, str]


def layout_of(tree: Path) -> Layout:
    return discover(str(tree), {})


def by_git(tree: Path, paths: list[str], env: dict[str, str]) -> set[str]:
    done = subprocess.run(
        ["git", "check-ignore", "-z", "--stdin"],
        cwd=tree,
        input=b"".join(os.fsencode(path) + b"\0" for path in paths),
        env={**os.environ, **env},
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return {os.fsdecode(each) for each in done.stdout.split(b"\0") if each}


def write(tree: Path, files: Files) -> None:
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)


@pytest.fixture
def compare(repo: Path) -> Callable[..., None]:
    """Asks git and us about the same paths."""

    def compared(files: Files, paths: list[str], env: dict[str, str] | None = None) -> None:
        write(repo, files)
        expected = by_git(repo, paths, env or {})
        assert ignored(layout_of(repo), paths, env or {}) == expected

    return compared


PATHS = [
    "app.py", "app.pyc", "build/x.o", "build/keep/x.o", "src/app.py", "src/app.log", "src/build",
    "src/build/a", "a/b/c/d.txt", "a/b.txt", "a/c/b.txt", ".env", ".env.local", "src/.env",
    "node_modules/x/index.js", "dist/app.js", "Dist/app.js", "docs/[id].md", "docs/a b.md", "x~",
    "logs/keep/a.txt", "logs/a.txt", "#notes", "!bang", "src/é.txt", "src/deep/er/app.pyo",
]  # fmt: skip
LINES = st.sampled_from([
    "build/", "/build", "build", "!build/keep/", "build/*", "!build/keep", "*.py[co]", "*.log",
    "!src/app.log", "a/**", "a/**/b.txt", "**/b.txt", "/a/*.txt", "*", "!*.py", "!*/", ".env*",
    "node_modules", "# comment", "", "  ", "dist/ ", r"\#notes", r"\!bang", "docs/[[]id].md",
    r"docs/\[id\].md", "!#notes", "!!bang",
    "docs/*[ ]*", "x?", "*~", "logs/*", "!logs/keep/", "!a.txt", "/", "**",
    "**/build/**", "src/**/app.py?", "é.*", "*.[!p]*", "a//b.txt", "src/", "d*t", "[a-c]", "b[",
])  # fmt: skip
IGNORE_FILES = st.dictionaries(
    st.sampled_from([".gitignore", "src/.gitignore", "a/.gitignore", "logs/.gitignore",
                     ".git/info/exclude"]),
    st.lists(LINES, max_size=5).map("\n".join),
    max_size=3,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(IGNORE_FILES)
def test_the_verdict_is_gits(repo: Path, files: Files) -> None:
    every = [".gitignore", "src/.gitignore", "a/.gitignore", "logs/.gitignore", ".git/info/exclude"]
    write(repo, {**dict.fromkeys(every, ""), **files})
    expected = by_git(repo, PATHS, {})
    assert ignored(layout_of(repo), PATHS, {}) == expected


def test_the_nearest_file_wins_and_a_folder_stays_ignored(compare: Callable[..., None]) -> None:
    files = {".gitignore": "*.log\nbuild/\n", "src/.gitignore": "!app.log\n"}
    files["build/.gitignore"] = "!x.o\n"
    compare(files, ["src/app.log", "app.log", "build/x.o", "src/a.log"])


def test_lines_may_end_as_on_windows_and_begin_with_a_mark(repo: Path) -> None:
    (repo / ".gitignore").write_bytes(b"\xef\xbb\xbf*.log\r\ndist/\r\n")
    paths = ["a.log", "dist/a", "b.py"]
    assert ignored(layout_of(repo), paths, {}) == by_git(repo, paths, {}) == {"a.log", "dist/a"}


def test_a_link_is_no_ignore_file(repo: Path) -> None:
    (repo / "rules").write_text("*.log\n")
    (repo / ".gitignore").symlink_to("rules")
    assert ignored(layout_of(repo), ["a.log"], {}) == set()


@pytest.mark.parametrize("place", ["default", "xdg", "named", "included", "of the repository"])
def test_the_users_own_ignore_file_counts(repo: Path, tmp_path: Path, place: str) -> None:
    home = tmp_path / "home"
    rules, env = home / ".config/git/ignore", {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    config = home / ".gitconfig"
    if place == "xdg":
        env["XDG_CONFIG_HOME"], rules = str(tmp_path / "xdg"), tmp_path / "xdg/git/ignore"
    elif place in ("named", "included"):
        rules = home / "Mine"
        write(home, {".other": '[Core]\n\texcludesFile = "~/Mine"\n'})
        config.write_text(
            "[include]\npath = .other\n" if place == "included" else (home / ".other").read_text()
        )
    elif place == "of the repository":
        rules = tmp_path / "theirs"
        git(repo, "config", "core.excludesFile", str(rules))
    write(rules.parent, {rules.name: "*.swp\n"})
    without = dict.fromkeys(("GIT_CONFIG_GLOBAL",), "")
    theirs = {key: value for key, value in os.environ.items() if key not in without}
    done = subprocess.run(
        ["git", "check-ignore", "-q", "a.swp"], cwd=repo, env={**theirs, **env}, check=False
    )
    assert done.returncode == 0
    assert ignored(layout_of(repo), ["a.swp", "a.py"], env) == {"a.swp"}


def test_a_linked_worktree_has_its_own_files_and_the_exclude_of_all(repo: Path) -> None:
    linked = repo.parent / "linked"
    git(repo, "worktree", "add", "-q", str(linked), "-b", "topic")
    (repo / ".gitignore").write_text("main.txt\n")
    (linked / ".gitignore").write_text("topic.txt\n")
    (repo / ".git/info/exclude").write_text("all.txt\n")
    paths = ["main.txt", "topic.txt", "all.txt"]
    assert ignored(layout_of(linked), paths, {}) == {"topic.txt", "all.txt"}
    assert by_git(linked, paths, {}) == {"topic.txt", "all.txt"}


def test_upper_and_lower_case_are_one_where_git_says_so(repo: Path) -> None:
    git(repo, "config", "core.ignorecase", "true")
    (repo / ".gitignore").write_text("Dist/\n")
    assert ignored(layout_of(repo), ["dist/a"], {}) == by_git(repo, ["dist/a"], {}) == {"dist/a"}


# Tracked files


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_a_file_that_git_tracks_is_not_ignored(repo: Path, version: str) -> None:
    write(repo, {"x/dist/a.js": "", "dist/a.js": "", "dist/b.js": "", ".gitignore": "dist/\n"})
    git(repo, "add", "-f", "dist/b.js", "x/dist/a.js")
    git(repo, "update-index", "--index-version", version)
    if version == "3":  # Git writes it only if an entry needs it.
        git(repo, "update-index", "--skip-worktree", "README.md", "dist/b.js")
    paths = ["dist/a.js", "dist/b.js", "x/dist/a.js", "dist/b"]
    assert ignored(layout_of(repo), paths, {}) == by_git(repo, paths, {})
    assert ignored(layout_of(repo), paths, {}) == {"dist/a.js", "dist/b"}
    index = (repo / ".git/index").read_bytes()
    assert index[7] == int(version)


def test_each_worktree_has_an_index_of_its_own(repo: Path) -> None:
    linked = repo.parent / "linked"
    git(repo, "worktree", "add", "-q", str(linked), "-b", "topic")
    (repo / ".git/info/exclude").write_text("*.log\n")
    (linked / "a.log").touch()
    git(linked, "add", "-f", "a.log")
    assert ignored(layout_of(repo), ["a.log"], {}) == {"a.log"}
    assert ignored(layout_of(linked), ["a.log"], {}) == set()


def test_an_index_that_cannot_be_read_tracks_nothing(repo: Path, tmp_path: Path) -> None:
    (repo / ".git/index").write_bytes(b"DIRC\0\0\0\4 torn")
    assert name_in_index(str(repo / ".git"), "README.md\0") is None
    assert name_in_index(str(tmp_path / "nowhere"), "README.md\0") is None


# The setting


def test_the_setting_names_files_that_are_tracked_too(repo: Path, beads: Path) -> None:
    (beads / "queen.toml").write_text(
        '[hook]\nignore = ["*.lock", "/gen/", "!keep.lock", "README.md"]\n'
    )
    paths = ["a/b.lock", "keep.lock", "gen/x.py", "src/gen/x.py", "README.md"]
    assert ignored(layout_of(repo), paths, {}) == {"a/b.lock", "gen/x.py", "README.md"}


def test_the_setting_counts_outside_git(tmp_path: Path) -> None:
    (tmp_path / ".beads").mkdir()
    (tmp_path / ".beads/queen.toml").write_text('[hook]\nignore = ["dist/"]\n')
    (tmp_path / ".gitignore").write_text("*.log\n")
    assert ignored(layout_of(tmp_path), ["dist/a", "a.log"], {}) == {"dist/a"}


# Its price


COMMON = """\
__pycache__/
*.py[cod]
*$py.class
*.so
build/
/dist/
.env*
*.log
.venv
htmlcov/
.coverage.*
*.egg-info/
"""


def test_pathspec_is_loaded_only_where_a_line_may_match(repo: Path) -> None:
    write_lines(repo / ".gitignore", COMMON)
    script = (
        "import sys, os; from queenbee.store.git_files.ignore_files import ignored;"
        "from queenbee.store.layout import discover; layout = discover(os.getcwd(), {});"
        "found = ignored(layout, ['src/app.py', 'docs/build.md', 'a.logic', 'x.env'], {});"
        "print(found, 'pathspec' in sys.modules);"
        "print(ignored(layout, ['src/app.pyc'], {}), 'pathspec' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=repo, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["set() False", "{'src/app.pyc'} True"]


def test_the_rules_of_nested_files_have_the_order_that_git_gives_them(repo: Path) -> None:
    write(
        repo,
        {
            ".gitignore": "*.log\nbuild/\n!x.o\n",
            "src/.gitignore": "!app.log\n",
            "build/.gitignore": "!x.o\n",
        },
    )
    (repo / "kept.log").touch()
    git(repo, "add", "-f", "kept.log")
    paths = ["src/app.log", "build/x.o", "kept.log", "a.log"]
    assert ignored(layout_of(repo), paths, {}) == by_git(repo, paths, {})


def test_a_pattern_that_would_take_for_ever_counts_for_nothing(repo: Path) -> None:
    """It would try more than 10^17 ways; what it names is leased."""
    name = "a" * 200 + ".py"
    (repo / ".gitignore").write_text("*a" * 12 + "b*\n" + "[a]*" * 12 + "b\n")
    assert ignored(layout_of(repo), [name], {}) == set()
